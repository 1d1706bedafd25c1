"""Every registered kernel, and combinations of them, against formulas written without torch."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest
import scipy.sparse
from close import assert_close
from formulas import FORMULAS, column_by_column, exact, suited
from scipy.spatial.distance import pdist

from gramian import _arrays as xp
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import SparseRows
from gramian.kernels import (
    Gaussian,
    Kernel,
    L1Laplacian,
    Laplacian,
    Linear,
    Matern32,
    Periodic,
    Polynomial,
)
from gramian.kernels._lengthscale import LengthscaleKernel

LENGTHSCALE = 1.7
ROUNDINGS = 50
"""An entry is off by eps times the squared norms, in lengthscales: up to 20 or so here."""

ALWAYS = (
    "gaussian",
    "laplacian",
    "matern12",
    "matern32",
    "matern52",
    "rational_quadratic",
    "l1_laplacian",
    "linear",
    "polynomial",
    "cosine",
    "tanimoto",
    "chi_squared",
)
"""Kernels that are compared with formulas; one that was added may have none."""

ELEMENTARY = [kernels.make(name, lengthscale=LENGTHSCALE) for name in kernels.names()]
COMPOSITE = [
    Gaussian(1.3) + Linear(2.0),
    Laplacian(2.0) * Matern32(1.1),
    2.5 * Gaussian(0.8),
    (0.5 * Polynomial(3.0, degree=2) + Gaussian()) * L1Laplacian(4.0),
    Gaussian(1.1).on([0]) + Periodic(1.2, 2.5),
]


def name(kernel: Kernel) -> str:
    return kernel.to_dict()["name"]


each = pytest.mark.parametrize("kernel", ELEMENTARY + COMPOSITE, ids=name)
each_in_lengthscales = pytest.mark.parametrize(
    "kernel", [k for k in ELEMENTARY if isinstance(k, LengthscaleKernel)], ids=name
)
each_elementary = pytest.mark.parametrize("kernel", ELEMENTARY, ids=name)


def points(rng: RandomStream, *shapes: tuple[int, int], dtype=np.float64):
    return [xp.cast(rng.standard_normal(shape, np.float64), dtype) for shape in shapes]


def test_formulas_are_those_of_kernels():
    assert set(ALWAYS) <= set(FORMULAS) <= set(kernels.names())


def test_every_class_can_be_imported_from_the_package():
    for kernel in ELEMENTARY:
        assert getattr(kernels, type(kernel).__name__) is type(kernel)


def test_what_stands_in_for_a_formula_agrees_with_it(rng):
    for kernel in ELEMENTARY + COMPOSITE:
        x, z = (u for u in suited(kernel, *points(rng, (31, 5), (29, 5))))
        expected = exact(kernel, x, z)
        np.testing.assert_allclose(column_by_column(kernel, x, z), expected, rtol=1e-13, atol=1e-13)


@each
@pytest.mark.parametrize(("b", "m", "d"), [(1, 1, 1), (1, 7, 3), (23, 1, 2), (31, 29, 5)])
def test_equals_its_formula(kernel, b, m, d, dtype, rng, tol):
    x, z = suited(kernel, *points(rng, (b, d), (m, d), dtype=dtype))
    K = kernel(x, z)
    assert K.dtype == dtype
    expected = exact(kernel, xp.to_float64(x), xp.to_float64(z))
    atol = tol(dtype, ROUNDINGS) * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(xp.to_float64(K), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.5, 40.0])
def test_rational_quadratic_for_any_alpha(alpha, dtype, rng, tol):
    kernel = kernels.RationalQuadratic(0.9, alpha=alpha)
    x, z = points(rng, (11, 3), (13, 3), dtype=dtype)
    expected = exact(kernel, xp.to_float64(x), xp.to_float64(z))
    atol = tol(dtype, ROUNDINGS + alpha)  # the power multiplies the rounding error of its base
    np.testing.assert_allclose(kernel(x, z), expected, rtol=0, atol=atol)


@pytest.mark.parametrize(("degree", "coef0"), [(1, 0.0), (2, 0.0), (4, 0.5)])
def test_polynomial_of_any_degree(degree, coef0, rng):
    kernel = Polynomial(1.5, degree=degree, coef0=coef0)
    x, z = points(rng, (11, 3), (13, 3))
    expected = exact(kernel, x, z)
    np.testing.assert_allclose(kernel(x, z), expected, rtol=1e-13, atol=1e-13)


@each
def test_symmetric_and_positive_semidefinite(kernel, dtype, rng, tol):
    (x,) = suited(kernel, *points(rng, (40, 3), dtype=dtype))
    x[7] = x[31]  # a duplicate: a zero eigenvalue
    K = xp.to_float64(kernel(x, x))
    size = float(np.abs(K).max())
    assert_close(K, K.T, rtol=0, atol=tol(dtype, ROUNDINGS) * size)
    assert np.linalg.eigvalsh(K).min() >= -tol(dtype, 10 * len(x)) * size


@each
def test_diag_is_the_diagonal(kernel, dtype, rng, tol):
    (x,) = suited(kernel, *points(rng, (17, 4), dtype=dtype))
    diag = kernel.diag(x)
    assert diag.dtype == dtype
    atol = tol(dtype, ROUNDINGS) * float(np.abs(diag).max())
    assert_close(diag, xp.diagonal(kernel(x, x)), rtol=0, atol=atol)


@each
def test_arguments_are_left_alone(kernel, dtype, rng):
    x, z = suited(kernel, *points(rng, (5, 3), (4, 3), dtype=dtype))
    before = xp.copy(x), xp.copy(z)
    kernel(x, z)
    kernel.diag(x)
    assert np.array_equal(x, before[0])
    assert np.array_equal(z, before[1])


@each_in_lengthscales
def test_one_lengthscale_per_feature_is_data_in_other_units(kernel, dtype, rng, tol):
    x, z = suited(kernel, *points(rng, (19, 3), (23, 3), dtype=dtype))
    scales = (0.5, 2.0, 3.0)
    anisotropic = dataclasses.replace(kernel, lengthscale=scales)
    plain = dataclasses.replace(kernel, lengthscale=1.0)
    expected = plain(xp.to_float64(x) / np.array(scales), xp.to_float64(z) / np.array(scales))
    K = xp.to_float64(anisotropic(x, z))
    # float32 lengthscales would differ; these three are exact but for 1/3
    assert_close(K, expected, rtol=0, atol=tol(dtype, ROUNDINGS) * float(expected.max()))


@pytest.mark.parametrize(
    "given",
    [[1.0, 2.0], np.array([1, 2]), np.array([1.0, 2.0], dtype=np.float32), (1, np.float32(2))],
)
def test_lengthscales_may_come_in_any_sequence(given):
    kernel = Gaussian(given)
    assert kernel == Gaussian((1.0, 2.0))
    assert hash(kernel) == hash(Gaussian((1.0, 2.0)))
    assert json.dumps(kernel.to_dict())


@pytest.mark.parametrize(
    "given", [2, 2.0, np.float32(2), np.array(2), np.array(2.0, dtype=np.float32)]
)
def test_a_lengthscale_may_be_any_number(given):
    assert Gaussian(given) == Gaussian(2.0)


# --- the median heuristic ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [k for k in ELEMENTARY if k.stationary], ids=name)
@pytest.mark.parametrize(
    ("s", "d"), [(2, 4), (3, 4), (6, 4), (7, 4), (30, 4), (121, 4), (30, 1), (60, 40)]
)
def test_median_is_that_of_the_distances(kernel, s, d, rng):
    (sample,) = points(rng, (s, d))
    kernel = dataclasses.replace(kernel, lengthscale="median").resolve(sample)
    metric = "cityblock" if isinstance(kernel, L1Laplacian) else "euclidean"
    distance = np.sort(pdist(sample, metric))
    low, high = (len(distance) - 1) // 2, len(distance) // 2  # the same if the number is odd
    assert distance[low] * (1 - 1e-14) <= kernel.lengthscale <= distance[high] * (1 + 1e-14)


def test_median_of_float32_rows_is_found_in_float64(rng):
    sample = points(rng, (31, 4), dtype=np.float32)[0] + 1e4  # 465 pairs
    expected = np.median(pdist(xp.to_float64(sample)))
    kernel = Gaussian("median").resolve(sample)
    assert kernel.lengthscale == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("unit", [2.0**-900, 2.0**-600, 2.0**600, 2.0**900])
@pytest.mark.parametrize("name", ["gaussian", "l1_laplacian"])
def test_median_in_any_unit(name, unit, rng):
    x = rng.standard_normal((20, 3), np.float64)
    found = kernels.make(name, lengthscale="median").resolve(x * unit).lengthscale
    assert found == unit * kernels.make(name, lengthscale="median").resolve(x).lengthscale


@pytest.mark.parametrize("copies", [2, 20], ids=["some duplicates", "most pairs are duplicates"])
def test_median_counts_equal_rows_once(copies, rng):
    """A repeated row is a row of more weight, and weights move no distance."""
    (sample,) = points(rng, (6, 2))  # 15 pairs: the median is one of them
    repeated = np.concatenate([sample, xp.expand(sample[3:4], (copies, 2))])
    assert (np.median(pdist(repeated)) == 0) == (copies == 20)
    expected = np.median(pdist(sample))
    assert Laplacian("median").resolve(repeated).lengthscale == pytest.approx(expected, rel=1e-12)


def test_median_of_rows_that_agree_in_their_first_feature(rng):
    (sample,) = points(rng, (6, 2))
    sample[:, 0] = np.sign(sample[:, 0])
    expected = np.median(pdist(sample))
    found = Gaussian("median").resolve(np.concatenate([sample, sample[:2]])).lengthscale
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_median_of_equal_rows_is_one(rows):
    assert Gaussian("median").resolve(np.full((rows, 3), 4.2, dtype=np.float32)).lengthscale == 1.0


def test_median_of_kernels_without_distance(rng):
    (sample,) = points(rng, (5, 9))
    assert Linear("median").resolve(sample) == Linear(1.0)
    assert Polynomial("median", degree=2).resolve(sample) == Polynomial(3.0, degree=2)


@each_in_lengthscales
@pytest.mark.parametrize(("text", "factor"), [("2 median", 2.0), ("0.5 median", 0.5)])
def test_a_multiple_of_the_median(kernel, text, factor, rng):
    (sample,) = points(rng, (40, 3))
    once = dataclasses.replace(kernel, lengthscale="median").resolve(sample)
    kernel = dataclasses.replace(kernel, lengthscale=text)
    assert kernels.from_dict(json.loads(json.dumps(kernel.to_dict()))) == kernel
    expected = dataclasses.replace(once, lengthscale=factor * once.lengthscale)
    assert kernel.resolve(sample) == expected
    with pytest.raises(ValueError, match=f"lengthscale='{text}' has no value yet"):
        kernel(sample, sample)


def test_median_inside_combinations(rng):
    (sample,) = points(rng, (15, 2))
    kernel = 2.0 * (Gaussian("median") + L1Laplacian("median") * Linear(3.0))
    ell = {cls: cls("median").resolve(sample).lengthscale for cls in (Gaussian, L1Laplacian)}
    expected = 2.0 * (Gaussian(ell[Gaussian]) + L1Laplacian(ell[L1Laplacian]) * Linear(3.0))
    assert kernel.resolve(sample) == expected


@each
def test_resolve_keeps_what_is_known(kernel, rng):
    (sample,) = suited(kernel, *points(rng, (5, 3)))
    assert kernel.resolve(sample) == kernel


# --- kernels are values --------------------------------------------------------------------------


@each
def test_survives_json_pickle_and_comparison(kernel):
    copies = [
        kernels.from_dict(json.loads(json.dumps(kernel.to_dict()))),
        pickle.loads(pickle.dumps(kernel)),
        dataclasses.replace(kernel),
    ]
    for copy in copies:
        assert copy == kernel
        assert hash(copy) == hash(kernel)
        assert type(copy) is type(kernel)


def test_anisotropic_and_unresolved_kernels_survive_json():
    for kernel in (Gaussian((1.0, 2.5)), Laplacian("median"), Polynomial((1.0, 3.0), degree=5)):
        assert kernels.from_dict(json.loads(json.dumps(kernel.to_dict()))) == kernel


def test_different_kernels_differ():
    everything = {*ELEMENTARY, *COMPOSITE, Gaussian(1.0), Gaussian("median"), Gaussian((1.0,))}
    assert len(everything) == len(ELEMENTARY) + len(COMPOSITE) + 3
    assert Gaussian() + Linear() != Gaussian() * Linear()


def test_kernels_cannot_be_changed():
    kernel = Gaussian()
    with pytest.raises(dataclasses.FrozenInstanceError):
        kernel.lengthscale = 2.0


# --- sparse rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [k for k in ELEMENTARY + COMPOSITE if k.sparse_ok], ids=name)
@pytest.mark.parametrize("scales", [1.5, (0.5, 1.0, 2.0, 4.0, 0.7)], ids=["one", "each"])
def test_sparse_rows_give_what_dense_rows_give(kernel, scales, dtype, rng, tol):
    if kernel in ELEMENTARY:
        kernel = dataclasses.replace(kernel, lengthscale=scales)
    (x,) = suited(kernel, *points(rng, (20, 5), dtype=dtype))
    x[rng.random((20, 5), np.float32) < 0.7] = 0.0
    x[4] = 0.0  # a row without entries
    sparse = SparseRows(scipy.sparse.csr_matrix(x)).take(np.arange(20))
    z = np.concatenate([*suited(kernel, *points(rng, (6, 5), dtype=dtype)), x[:3]])
    dense_K, sparse_K = kernel(x, z), kernel(sparse, z)
    # distances are not taken from the origin of z: in float64 that costs sqrt(eps) at a kink
    atol = max(tol(dtype, ROUNDINGS), 1e-7) * float(np.abs(dense_K).max())
    assert_close(sparse_K, dense_K, rtol=0, atol=atol)
    assert_close(kernel.diag(sparse), kernel.diag(x), rtol=0, atol=atol)


@pytest.mark.parametrize("kernel", [L1Laplacian(), Gaussian() + 2.0 * L1Laplacian()], ids=name)
def test_the_l1_distance_refuses_sparse_rows_in_words(kernel):
    sparse = SparseRows(scipy.sparse.eye(4, format="csr")).take(np.arange(4))
    assert not kernel.sparse_ok
    with pytest.raises(ValueError, match=r"needs dense rows.*toarray"):
        kernel(sparse, np.eye(4, dtype=np.float64))


# --- errors --------------------------------------------------------------------------------------


@each_elementary
@pytest.mark.parametrize(
    "bad", [0.0, -1.0, float("nan"), float("inf"), (1.0, 0.0), (1.0, float("nan")), ()]
)
def test_a_lengthscale_is_positive_and_finite(kernel, bad):
    with pytest.raises(ValueError, match="lengthscale must be positive and finite"):
        dataclasses.replace(kernel, lengthscale=bad)


@pytest.mark.parametrize(
    "bad",
    [None, "wide", 1j, object(), "0 median", "-1 median", "2median", "1e999 median", "nan median"],
)
def test_a_lengthscale_is_a_number_or_median(bad):
    with pytest.raises(ValueError, match=r"neither a number.*nor 'median'"):
        Gaussian(bad)


@pytest.mark.parametrize(
    ("name", "parameters", "match"),
    [
        ("rational_quadratic", {"alpha": 0.0}, "alpha must be positive"),
        ("rational_quadratic", {"alpha": float("nan")}, "alpha must be positive"),
        ("polynomial", {"degree": 0}, "degree must be a whole number"),
        ("polynomial", {"coef0": -1.0}, "coef0 must be finite and at least 0"),
        ("polynomial", {"coef0": float("inf")}, "coef0 must be finite and at least 0"),
    ],
)
def test_parameters_that_are_no_kernel(name, parameters, match):
    with pytest.raises(ValueError, match=match):
        kernels.make(name, **parameters)


@pytest.mark.parametrize("factor", [0.0, -2.0, float("nan"), float("inf")])
def test_a_kernel_is_scaled_by_positive_numbers(factor):
    with pytest.raises(ValueError, match="must be positive and finite"):
        factor * Gaussian()


def test_only_a_kernel_is_added_to_a_kernel():
    with pytest.raises(TypeError, match="unsupported operand"):
        Gaussian() + 1


@each_in_lengthscales
def test_the_number_of_lengthscales_is_that_of_the_features(kernel, rng):
    kernel = dataclasses.replace(kernel, lengthscale=(1.0, 2.0))
    assert kernel.dim == 2
    x, z = points(rng, (4, 3), (5, 3))
    with pytest.raises(ValueError, match="2 lengthscales but the rows have 3 features"):
        kernel(x, z)


@each_elementary
def test_an_unresolved_median_says_what_to_do(kernel, rng):
    kernel = dataclasses.replace(kernel, lengthscale="median")
    x, z = points(rng, (4, 3), (5, 3))
    with pytest.raises(ValueError, match=r"call kernel\.resolve"):
        kernel(x, z)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(
        ValueError, match=r"unknown kernel 'gausian'; known: .*; did you mean gaussian\?$"
    ):
        kernels.make("gausian")
    with pytest.raises(ValueError, match=r"unknown kernel 'matern'.*known: .*laplacian"):
        kernels.from_dict({"name": "matern", "lengthscale": 1.0})
