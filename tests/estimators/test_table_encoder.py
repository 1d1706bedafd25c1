"""TableEncoder: frames, paths and arrays to numbers, as scikit-learn expects of a transformer."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain import PLAIN
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from gramian import KernelRidge, KernelRidgeClassifier, TableEncoder


@pytest.fixture
def homes() -> tuple[pd.DataFrame, np.ndarray]:
    r = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "rooms": np.where(r.random(n) < 0.1, np.nan, r.integers(1, 9, n)),
            "town": [f"t{k}" for k in r.integers(0, 30, n)],
            "garden": r.random(n) < 0.4,
            "kind": pd.Categorical(r.choice(["flat", "house"], n)),
        }
    )
    number = frame["town"].str[1:].astype(int).to_numpy()
    return frame, number / 10 + frame["garden"] + r.normal(scale=0.1, size=n)


def test_the_same_from_frames_tables_and_paths(homes, tmp_path: Path) -> None:
    frame, y = homes
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, tmp_path / "x.parquet")
    expected = TableEncoder(max_levels=20, random_state=0).fit_transform(frame, y)
    assert expected.shape == (300, 7)
    for X in (table, tmp_path / "x.parquet", str(tmp_path / "x.parquet")):
        encoder = TableEncoder(max_levels=20, random_state=0)
        assert (encoder.fit_transform(X, y) == expected).all()
        assert (encoder.transform(frame) == encoder.fit(X, y).transform(X)).all()


def test_names_and_output_of_frames(homes) -> None:
    frame, y = homes
    encoder = TableEncoder(max_levels=20, random_state=0).set_output(transform="pandas")
    out = encoder.fit_transform(frame, y)
    assert out.columns.tolist() == encoder.get_feature_names_out().tolist() == [
        "rooms", "rooms missing", "town (mean)", "town (log count)", "garden", "kind=flat",
        "kind=house",
    ]  # fmt: skip
    assert encoder.n_features_in_ == 4
    assert encoder.feature_names_in_.tolist() == ["rooms", "town", "garden", "kind"]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(["a", "b", "c", "d"])


def test_names_of_arrays() -> None:
    X = np.array([[1.0, np.nan], [2, 3], [4, 5]])
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x1 missing"]
    assert encoder.get_feature_names_out(["a", "b"]).tolist() == ["a", "b", "b missing"]
    assert not hasattr(encoder, "feature_names_in_")
    assert not hasattr(encoder.fit(pd.DataFrame(X, columns=["a", "b"])).fit(X), "feature_names_in_")


def test_columns_are_taken_by_name(homes) -> None:
    frame, y = homes
    encoder = TableEncoder(random_state=0).fit(frame, y)
    other = frame[["kind", "town", "garden", "rooms"]].assign(more="x")
    assert (encoder.transform(other) == encoder.transform(frame)).all()
    with pytest.raises(ValueError, match="has no column town"):
        encoder.transform(frame.drop(columns="town"))


def test_training_rows_are_cross_fitted(homes) -> None:
    frame, y = homes
    encoder = TableEncoder(max_levels=20, random_state=0)
    training, new = encoder.fit_transform(frame, y), encoder.transform(frame)
    assert (training[:, 2] != new[:, 2]).all()
    # A training row does not count itself.
    assert (training[:, 3] < new[:, 3]).all()
    assert (training[:, [0, 1, 4, 5, 6]] == new[:, [0, 1, 4, 5, 6]]).all()


def test_means_are_those_of_scikit_learn(homes) -> None:
    """The rule is theirs, with the smoothing that we have by default."""
    frame, y = homes
    new = TableEncoder(max_levels=20, random_state=0).fit(frame, y).transform(frame)[:, 2]
    theirs = TargetEncoder(smooth=20.0).fit(frame[["town"]], y).transform(frame[["town"]])[:, 0]
    assert np.corrcoef(new, theirs)[0, 1] == pytest.approx(1, abs=1e-12)


def test_without_targets_there_are_counts_alone(homes) -> None:
    frame, _ = homes
    names = TableEncoder(max_levels=20).fit(frame).get_feature_names_out().tolist()
    assert "town (log count)" in names
    assert "town (mean)" not in names


@pytest.mark.parametrize(
    ("labels", "means"),
    [
        (["no", "yes"], 1), ([False, True], 1), (["a", "b", "c"], 3), ([0, 1, 2], 1),
        (np.array([1, 2], object), 1),
    ],
)  # fmt: skip
def test_labels_have_a_share_each(homes, labels, means: int) -> None:
    frame, _ = homes
    y = np.asarray(labels)[np.arange(300) % len(labels)]
    names = TableEncoder(max_levels=20).fit(frame, y).get_feature_names_out()
    assert sum("mean" in name for name in names) == means


def test_the_state_decides(homes) -> None:
    frame, y = homes
    one, same, other = (
        TableEncoder(max_levels=20, random_state=seed).fit_transform(frame, y) for seed in (0, 0, 1)
    )
    assert (one == same).all()
    assert (one != other).any()


def test_pipelines(homes) -> None:
    frame, y = homes
    pipe = make_pipeline(
        TableEncoder(random_state=0),
        KernelRidge(
            standardize=False, random_state=0, penalty=1e-3, kernel="gaussian", lengthscale="median"
        ),
    )
    assert cross_val_score(pipe, frame, y).min() > 0.8
    search = GridSearchCV(pipe, {"tableencoder__numbers": ["standard", "quantile"]}, cv=2)
    assert search.fit(frame, y).best_score_ > 0.8
    labels = np.where(y > np.median(y), "dear", "cheap")
    model = make_pipeline(
        TableEncoder(random_state=0), KernelRidgeClassifier(random_state=0, **PLAIN)
    )
    assert model.fit(frame, labels).score(frame, labels) > 0.9


def test_a_column_transformer(homes) -> None:
    frame, y = homes
    parts = [
        ("towns", TableEncoder(max_levels=50), ["town"]),
        ("rest", TableEncoder(), ["rooms", "garden"]),
    ]
    both = ColumnTransformer(parts).fit(frame, y)
    assert both.transform(frame).shape == (300, 33)
    assert "towns__town=t7" in both.get_feature_names_out()


@pytest.mark.parametrize("numbers", ["standard", "quantile", "raw"])
def test_saved_and_loaded(homes, tmp_path: Path, numbers: str) -> None:
    frame, y = homes
    encoder = TableEncoder(numbers, max_levels=10, smoothing=5, random_state=0).fit(frame, y)
    encoder.save(tmp_path / "encoder")
    again = TableEncoder.load(tmp_path / "encoder")
    assert (again.transform(frame) == encoder.transform(frame)).all()
    assert again.get_params() == {**encoder.get_params(), "random_state": None}
    assert again.feature_names_in_.tolist() == encoder.feature_names_in_.tolist()
    assert again.n_features_in_ == 4
    of_array = TableEncoder().fit(np.eye(3))
    of_array.save(tmp_path / "of array")
    assert not hasattr(TableEncoder.load(tmp_path / "of array"), "feature_names_in_")


def test_a_file_of_something_else(tmp_path: Path) -> None:
    from gramian.data.encoding import save_encoding

    save_encoding(tmp_path / "x", TableEncoder().fit(np.eye(3)).encoding_, {"numbers": "raw"})
    with pytest.raises(ValueError, match=r"not written by TableEncoder\.save"):
        TableEncoder.load(tmp_path / "x")


def test_copies(homes) -> None:
    frame, y = homes
    encoder = TableEncoder(random_state=0).fit(frame, y)
    assert not hasattr(clone(encoder), "encoding_")
    again = pickle.loads(pickle.dumps(encoder))
    assert (again.transform(frame) == encoder.transform(frame)).all()


@pytest.mark.parametrize("y", [[1.0, 2.0], [1.0, np.nan, 2.0]])
def test_targets_that_do_not_fit(y: list[float]) -> None:
    with pytest.raises(ValueError, match=r"inconsistent numbers|contains NaN"):
        TableEncoder().fit(np.eye(3), y)
