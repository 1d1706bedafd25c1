"""Shapley values: against all coalitions, exact and sampled, of tables, classes and means."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from gramian import AverageModel, KernelRidge, KernelRidgeClassifier, RandomStream
from gramian.explain import shapley_values
from gramian.explain.terms import product_terms
from gramian.explain.values import sampled_values
from gramian.kernels import (
    ChiSquared,
    Cosine,
    Gaussian,
    Kernel,
    L1Laplacian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
)

D = 8
RNG = np.random.default_rng(0)
X = RNG.uniform(0.2, 3, size=(60, D))
Y = np.sin(X[:, 0] * X[:, 1]) + X[:, 2]
ROWS, BACKGROUND = X[:2], X[10:17]

EXACT: tuple[Kernel, ...] = (
    Gaussian(2.0),
    Gaussian(tuple(np.linspace(1, 3, D))),
    L1Laplacian(3.0),
    ChiSquared(4.0),
    Polynomial(2.0, degree=3),
    2 * Gaussian(2.0) * Linear(3.0).on([1, 2]) + Periodic(1.0, 3.0).on([4, 5]),
    Gaussian(2.0).on([0, 1, 2, 3, 4, 5, 6]) * Cosine().on([7]),
)
MIXTURES: tuple[Kernel, ...] = (
    Laplacian(2.0),
    Matern32(2.0),
    Matern52(tuple(np.linspace(1, 3, D))),
    RationalQuadratic(2.0, alpha=0.5),
)


def fit(kernel: Kernel, **settings) -> KernelRidge:
    return KernelRidge(kernel, penalty=1e-2, **settings).fit(X, Y)


def by_coalitions(predict, row, background, groups=tuple((k,) for k in range(D))) -> np.ndarray:
    """Return Shapley values by their definition."""
    g = len(groups)
    coalitions = list(itertools.product((False, True), repeat=g))
    group_of = np.empty(len(row), int)
    for k, group in enumerate(groups):
        group_of[list(group)] = k
    is_own = np.array(coalitions)[:, None, group_of]
    outputs = predict(np.where(is_own, row, background).reshape(-1, len(row)))
    means = outputs.reshape(len(coalitions), len(background), *outputs.shape[1:]).mean(axis=1)
    values = dict(zip(coalitions, means, strict=True))
    out = np.zeros((g, *np.shape(values[(True,) * g])))
    for members, value in values.items():
        size = sum(members)
        for k in range(g):
            if members[k]:
                out[k] += value * math.factorial(size - 1) * math.factorial(g - size)
            else:
                out[k] -= value * math.factorial(size) * math.factorial(g - size - 1)
    return out / math.factorial(g)


@pytest.mark.parametrize("kernel", [*EXACT, *MIXTURES], ids=str)
def test_values_equal_the_means_over_all_coalitions(kernel):
    est = fit(kernel)
    explanation = shapley_values(est, ROWS, background=BACKGROUND)
    assert explanation.is_exact
    assert (explanation.standard_errors == 0).all()
    for row, values in zip(ROWS, explanation.values, strict=True):
        np.testing.assert_allclose(values, by_coalitions(est.predict, row, BACKGROUND), atol=1e-8)
    np.testing.assert_allclose(explanation.base_values, est.predict(BACKGROUND).mean(), atol=1e-8)


def test_more_groups_than_a_product_of_all_nodes():
    # 40 groups: the quadrature has 20 nodes; a function of single features has known values.
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 40))
    est = KernelRidge(Gaussian(9.0), penalty=1e-3, standardize=False).fit(x, x[:, 0])
    exact = shapley_values(est, x[:1], background=x[1:4])
    sampled = shapley_values(est, x[:1], background=x[1:4], method="sampled", pairs=200)
    off = abs(exact.values - sampled.values)
    assert (off <= 5 * sampled.standard_errors + 1e-12).all()
    np.testing.assert_allclose(
        exact.values.sum() + exact.base_values, est.predict(x[:1]), atol=1e-10
    )


def test_mixtures_are_their_kernels():
    points = np.concatenate([np.zeros(1), np.logspace(-6, 2, 400)])[:, None]
    two = np.concatenate([points, points], axis=1)
    for kernel in (Laplacian(1.0), Matern32(1.0), Matern52(1.0), RationalQuadratic(1.0, alpha=3.0)):
        terms = product_terms(kernel, [0, 1])
        zero = np.zeros((1, 2))
        total = sum(
            term.weight * term.values(0, two, zero) * term.values(1, two, zero) for term in terms
        )
        np.testing.assert_allclose(total, kernel(two, zero), atol=1e-10)


def test_sampled_values_are_exact_for_functions_of_pairs():
    x, background = X[:3], X[10:15]
    values, errors = sampled_values(
        lambda rows: (rows[:, :1] * rows[:, 1:2] + rows[:, 2:3] ** 2 - rows[:, 3:4]),
        np.arange(D), x, background, 2, RandomStream(0),
    )  # fmt: skip
    expected = [
        by_coalitions(lambda r: r[:, 0] * r[:, 1] + r[:, 2] ** 2 - r[:, 3], row, background)
        for row in x
    ]
    np.testing.assert_allclose(values[..., 0], expected, atol=1e-12)
    np.testing.assert_allclose(errors, 0, atol=1e-7)


def test_sampled_values_are_within_their_errors():
    est = fit(Cosine())
    explanation = shapley_values(est, ROWS, background=BACKGROUND, pairs=100)
    assert not explanation.is_exact
    for k, row in enumerate(ROWS):
        off = abs(explanation.values[k] - by_coalitions(est.predict, row, BACKGROUND))
        assert (off <= 4.5 * explanation.standard_errors[k] + 1e-12).all()
    again = shapley_values(est, ROWS, background=BACKGROUND, pairs=100)
    np.testing.assert_array_equal(explanation.values, again.values)
    other = shapley_values(est, ROWS, background=BACKGROUND, pairs=100, random_state=1)
    assert (explanation.values != other.values).any()


def test_a_learned_matrix_is_sampled_and_needs_rows():
    metric = RNG.normal(size=(D, D))
    est = KernelRidge(Gaussian(5.0), metric=metric, penalty=1e-2).fit(X, Y)
    with pytest.raises(ValueError, match="background must be a table"):
        shapley_values(est, ROWS)
    with pytest.raises(ValueError, match="no exact values"):
        shapley_values(est, ROWS, background=BACKGROUND, method="exact")
    explanation = shapley_values(est, ROWS, background=BACKGROUND)
    assert not explanation.is_exact
    np.testing.assert_allclose(explanation.base_values, est.predict(BACKGROUND).mean(), atol=1e-10)


def test_a_column_of_text_has_one_value():
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    table["city"] = np.array(["Rome", "Oslo", "Lima", "Bern"])[RNG.integers(4, size=len(X))]
    table["y"] = Y + (table["city"] == "Rome")
    est = KernelRidge(Gaussian(2.0), penalty=1e-2).fit(table, "y")
    explanation = shapley_values(est, table[:2], background=table[10:17])
    assert explanation.feature_names == ["a", "b", "city"]
    assert explanation.data.tolist() == table[["a", "b", "city"]][:2].to_numpy().tolist()
    columns = [table[name].to_numpy() for name in explanation.feature_names]

    def predict(numbers):
        # Rows of row numbers: each column has the value of its own row.
        chosen = {
            name: column[index]
            for name, column, index in zip(
                explanation.feature_names, columns, numbers.T, strict=True
            )
        }
        return est.predict(pd.DataFrame(chosen))

    for k in range(2):
        background = np.arange(10, 17)[:, None].repeat(3, axis=1)
        expected = by_coalitions(predict, np.full(3, k), background, ((0,), (1,), (2,)))
        np.testing.assert_allclose(explanation.values[k], expected, atol=1e-6)


def test_groups_of_columns_change_together():
    est = fit(Gaussian(2.0))
    groups = {"first": ["feature 0", "feature 1"], "last": ["feature 7"]}
    explanation = shapley_values(est, ROWS, background=BACKGROUND, groups=groups)
    assert explanation.feature_names == ["first", *(f"feature {k}" for k in range(2, 7)), "last"]
    expected = by_coalitions(
        est.predict, ROWS[0], BACKGROUND, ((0, 1), *((k,) for k in range(2, 8)))
    )
    np.testing.assert_allclose(explanation.values[0], expected, atol=1e-10)
    with pytest.raises(ValueError, match="columns of the model, each once"):
        shapley_values(est, ROWS, groups={"first": ["feature 9"]})


def test_classes_have_values_of_their_own():
    labels = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.6]))]
    est = KernelRidgeClassifier(Gaussian(2.0), penalty=1e-2).fit(X, labels)
    explanation = shapley_values(est, ROWS, background=BACKGROUND)
    assert explanation.values.shape == (2, D, 3)
    assert explanation.output_names == ["a", "b", "c"]
    expected = by_coalitions(est.decision_function, ROWS[0], BACKGROUND)
    np.testing.assert_allclose(explanation.values[0], expected, atol=1e-10)
    chances = shapley_values(est, ROWS, background=BACKGROUND, output="prediction", pairs=100)
    off = abs(chances.values[0] - by_coalitions(est.predict_proba, ROWS[0], BACKGROUND))
    assert (off <= 5 * chances.standard_errors[0] + 1e-12).all()


def test_a_mean_of_models_has_the_mean_of_their_values():
    parts = [fit(Gaussian(2.0)).model_, fit(L1Laplacian(2.0)).model_]
    mean = AverageModel((0.25, 0.75), tuple(parts))
    values = [shapley_values(part, ROWS, background=BACKGROUND).values for part in parts]
    np.testing.assert_allclose(
        shapley_values(mean, ROWS, background=BACKGROUND).values,
        0.25 * values[0] + 0.75 * values[1],
        atol=1e-12,
    )


def test_the_default_background_is_the_centers(tmp_path):
    est = fit(Gaussian(2.0))
    est.save(tmp_path / "m.model")
    default = shapley_values(tmp_path / "m.model", ROWS)
    np.testing.assert_allclose(
        default.values, shapley_values(est, ROWS, background=X).values, atol=1e-8
    )


def test_more_rows_of_the_background_are_drawn():
    est = fit(Gaussian(2.0))
    few = shapley_values(est, ROWS, background=X, background_rows=5)
    assert abs(few.base_values - est.predict(X).mean()).min() > 1e-6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "tree"}, "method must be"),
        ({"output": "log"}, "output must be"),
        ({"pairs": 0}, "pairs must be"),
        ({"background_rows": 0, "background": X}, "background_rows must be"),
    ],
)
def test_invalid_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        shapley_values(fit(Gaussian(2.0)), ROWS, **settings)


def test_what_is_no_model_is_refused():
    with pytest.raises(ValueError, match="a fitted estimator"):
        shapley_values(3, ROWS)
