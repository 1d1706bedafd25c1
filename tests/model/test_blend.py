"""A blend predicts the weighted mean of a kernel model and trees, and one file holds both."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from close import assert_close
from plain import PLAIN

from gramian import AverageModel, KernelModel, KernelRidge, KernelRidgeClassifier
from gramian import _arrays as xp
from gramian.data import as_rows
from gramian.model import BlendModel, Trees, load_model
from gramian.model.blend.boosting import tree_features

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (150, 3))
Y = np.sign(X[:, 0]) + X[:, 1]
ROWS = X


def trees(y: np.ndarray = Y, coded: bool = False, rounds: int = 8) -> Trees:
    targets = np.atleast_2d(y.T).T.astype(float)
    boosters = 1 if coded else targets.shape[1]
    return Trees.fit(ROWS, targets, coded=coded, rounds=(rounds,) * boosters)


def blend(weight: float = 0.3, y: np.ndarray = Y) -> BlendModel:
    kernel_model = KernelRidge(**PLAIN | {"penalty": 1e-3}).fit(X, y).model_
    return BlendModel(kernel_model, trees(y), weight, {"rows": 150})


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_values_and_importances_are_weighted_means(weight):
    both = blend(weight)
    kernel, own = both.kernel_model, both.trees
    expected = weight * kernel.predict(X) + (1 - weight) * own.predict(as_rows(X))
    assert_close(both.predict(X), expected)
    shares = weight * kernel.feature_importances() + (1 - weight) * own.feature_importances()
    assert_close(both.feature_importances(), shares)
    assert float(own.feature_importances().sum()) == pytest.approx(1)


def test_trees_of_several_targets_are_trees_of_each():
    pair = trees(np.column_stack([Y, 1e6 + X[:, 2]]))
    assert pair.rounds == (8, 8)
    values = pair.predict(as_rows(X))
    for j, y in enumerate((Y, 1e6 + X[:, 2])):
        assert_close(values[:, j : j + 1], trees(y).predict(as_rows(X)))
    assert_close(
        values.mean(axis=0)[1], xp.to_float64(np.array(1e6, dtype=np.float32)), rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("count", [2, 3])
def test_values_of_classes_are_expected_codes(count):
    labels = np.digitize(X[:, 0], [-0.3, 0.3][: count - 1])
    data = KernelRidgeClassifier(**PLAIN).fit(X, labels)
    codes = 2.0 * labels - 1 if count == 2 else np.where(np.eye(3)[labels] == 1, 1, -0.5)
    own = trees(codes, coded=True, rounds=60)
    assert own.rounds == (60,)
    values = own.predict(as_rows(X))
    # Codes are linear in probabilities: the codes of probabilities that sum to one sum to zero.
    if count == 3:
        assert_close(values.sum(axis=1), xp.to_float64(np.zeros(150, np.float32)))
    assert float(np.abs(values).max()) <= 1
    both = BlendModel(data.model_, own, 0.5)
    assert np.mean(np.array(both.predict_labels(X)) == labels) > 0.95
    assert_close(both.predict_proba(X).sum(axis=1), xp.to_float64(np.ones(150, np.float32)))


def test_columns_of_levels_are_one_category():
    # Ten levels with random means: a split of columns takes one level, of a category any set.
    levels = np.arange(900) % 10
    means = RNG.permutation(10.0 * (np.arange(10) % 2))
    columns = np.eye(10)[levels]
    encoded = np.column_stack([means[levels] + 5, columns, np.tile(X[:, 0], 6)])
    y = means[levels][:, None]
    own = Trees.fit(encoded, y, coded=False, categories=((0, 1, 11),), rounds=(9,))
    assert (own.features, own.rounds) == (12, (9,))
    assert "num_cat=0" not in own.texts[0]
    assert tree_features(encoded, own.categories).shape == (900, 2)
    np.testing.assert_array_equal(tree_features(encoded, own.categories)[:, 1], levels)
    # All of the gain belongs to the first feature of the category.
    assert own.feature_importances()[0] > 0.8
    assert not own.feature_importances()[1:11].any()
    again = Trees.from_tensors(own.tensors())
    assert again.categories == own.categories
    unknown = xp.copy(encoded)
    unknown[:, 1:11] = 0
    assert np.isnan(tree_features(unknown, own.categories)[:, 1]).all()
    assert np.array_equal(again.predict(as_rows(encoded)), own.predict(as_rows(encoded)))


def test_rounds_end_where_the_held_out_loss_is_least():
    y = Y[:, None] + RNG.standard_normal((150, 1))
    held_out = ROWS[100:], y[100:], None
    own = Trees.fit(ROWS[:100], y[:100], coded=False, held_out=held_out)
    (rounds,) = own.rounds
    assert 1 <= rounds < 200

    def loss(count: int) -> float:
        other = Trees.fit(ROWS[:100], y[:100], coded=False, rounds=(count,))
        return float(np.square(other.predict(as_rows(X[100:])) - y[100:]).mean())

    assert loss(rounds) <= min(loss(max(1, rounds - 1)), loss(rounds + 1), loss(rounds + 40))
    late = Trees.fit(ROWS[:100], y[:100], coded=False, held_out=held_out, ends=0.0)
    assert late.rounds == (1,)


def test_a_constant_is_the_weighted_mean():
    weights = xp.to_float64(np.ones(150, np.float32))
    weights[:75] = 3
    targets = xp.to_float64(np.arange(150)[:, None]) // 75
    own = Trees.fit(np.zeros((150, 1), np.float32), targets, weights, coded=False, rounds=(5,))
    assert_close(
        own.predict(as_rows(np.zeros((1, 1)))), xp.to_float64(np.array([[0.25]], dtype=np.float32))
    )


class TestFile:
    @pytest.mark.parametrize("members", [1, 2])
    def test_round_trip(self, members, tmp_path):
        both = blend()
        if members == 2:
            average = AverageModel((0.5, 0.5), (both.kernel_model,) * 2)
            both = replace(both, kernel_model=average)
        both.save(tmp_path / "m")
        loaded = load_model(tmp_path / "m")
        assert np.array_equal(loaded.predict(X), both.predict(X))
        assert (loaded.weight, loaded.info) == (0.3, {"rows": 150})
        loaded.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
        # The text format of LightGBM, and no pickle.
        assert b"tree\nversion=v4" in (tmp_path / "m").read_bytes()

    def test_a_kernel_model_is_not_read_from_a_blend(self, tmp_path):
        blend().save(tmp_path / "m")
        for kind in (KernelModel, AverageModel):
            with pytest.raises(ValueError, match=r"holds a blend .* read it with gramian\.load"):
                kind.load(tmp_path / "m")

    def test_damage_is_found(self, tmp_path):
        both = blend()
        for name, tensors in {
            "lack a tensor": {},
            "2 targets cannot be blended with a model of 1": trees(
                np.column_stack([Y, Y])
            ).tensors(),
        }.items():
            changed = replace(both)
            shift = {
                "shift": np.zeros(1, np.float32),
                "scale": np.ones(1, np.float32),
                "features": np.array([3]),
            }
            object.__setattr__(changed, "trees", _Stored(tensors or shift))
            changed.save(tmp_path / "m")
            with pytest.raises(ValueError, match=f"damaged gramian model: .*{name}"):
                load_model(tmp_path / "m")
        broken = replace(both.trees, texts=("no trees",))
        with pytest.raises(ValueError, match="the trees of the model are damaged"):
            broken.predict(as_rows(X))

    def test_without_lightgbm(self, tmp_path, monkeypatch):
        blend().save(tmp_path / "m")
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        loaded = load_model(tmp_path / "m")
        assert loaded.trees.rounds == (8,)
        with pytest.raises(ImportError, match=r"needs LightGBM: pip install 'gramian\[trees\]'"):
            loaded.predict(X)


class _Stored:
    """Trees that store given tensors."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self._tensors = tensors

    def tensors(self) -> dict[str, np.ndarray]:
        return self._tensors


def test_pickled_trees_predict_the_same():
    own = trees()
    expected = own.predict(as_rows(X))
    assert np.array_equal(pickle.loads(pickle.dumps(own)).predict(as_rows(X)), expected)


def test_refusals():
    both = blend()
    for name in ("gradient", "deviations", "out_of_range"):
        with pytest.raises(ValueError, match=r"a blend with trees has no .* fit without blend"):
            getattr(both, name)(X)
    with pytest.raises(ValueError, match=r"from 0 to 1, not 1\.5"):
        replace(both, weight=1.5)
    with pytest.raises(ValueError, match="trees of 2 targets cannot be blended"):
        replace(both, trees=trees(np.column_stack([Y, Y])))
    with pytest.raises(ValueError, match="must have 3 features, not 2"):
        both.trees.predict(as_rows(X[:, :2]))
