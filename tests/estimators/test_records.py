"""Rows by name: dicts, lists of dicts and dicts of columns mean what the same frame means."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from plain import PLAIN

import gramian
from gramian import KernelRidge, KernelRidgeClassifier
from gramian.data import as_table, is_table

N = 120
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.standard_normal((N, 3)), columns=["age", "height", "weight"])
MIXED = NUMBERS.assign(
    city=RNG.choice(["Rome", "Bern"], N),
    since=pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"),
    member=RNG.random(N) > 0.5,
)
PRICE = (NUMBERS["age"] * NUMBERS["height"] + 0.3 * (MIXED["city"] == "Rome")).rename("price")


def fitted(kind: str) -> KernelRidge:
    est = KernelRidge(random_state=0, **PLAIN)
    if kind == "numbers apart":  # as scikit-learn has it
        return est.fit(NUMBERS, PRICE)
    frame = NUMBERS if kind == "numbers" else MIXED
    return est.fit(frame.assign(price=PRICE), "price")


@pytest.fixture(params=["mixed", "numbers", "numbers apart"])
def est(request) -> KernelRidge:
    return fitted(request.param)


def features_of(est: KernelRidge) -> pd.DataFrame:
    return MIXED[list(est.feature_names_in_)]


def test_each_form_means_its_frame(est):
    frame = features_of(est)[:3]
    rows = frame.to_dict("records")
    expected = est.predict(frame)
    for predict in (est.predict, lambda X: est.model_.predict(X)[:, 0]):
        assert np.array_equal(predict(rows), expected)
        assert np.array_equal(predict(tuple(rows)), expected)
        assert np.array_equal(predict(frame.to_dict("list")), expected)
        assert np.array_equal(predict({name: frame[name] for name in frame}), expected)
        assert np.array_equal(predict({name: frame[name].to_numpy() for name in frame}), expected)
        assert np.array_equal(predict(rows[0]), expected[:1])
        assert np.array_equal(predict(MappingProxyType(rows[0])), expected[:1])
        backwards = [dict(reversed(row.items())) if i % 2 else row for i, row in enumerate(rows)]
        assert np.array_equal(predict(backwards), expected)


def test_a_loaded_model_takes_them(est, tmp_path):
    row = features_of(est).iloc[0].to_dict()
    est.save(tmp_path / "m.model")
    loaded = gramian.load(tmp_path / "m.model")
    assert np.array_equal(loaded.predict(row), est.predict(row))
    assert np.array_equal(loaded.model_.predict([row, row])[:, 0], est.predict([row, row]))


def test_values_of_json():
    est = fitted("mixed")
    row = {**MIXED.iloc[5].to_dict(), "since": str(MIXED["since"][5].date()), "member": True}
    frame = MIXED[5:6].assign(member=True)
    assert np.array_equal(est.predict(row), est.predict(frame))
    for gap in (None, float("nan")):
        with pytest.warns(UserWarning, match="gaps in columns that had none in training: 'age' 1"):
            found = est.predict({**row, "age": gap})
        with pytest.warns(UserWarning, match="gaps"):
            assert np.array_equal(found, est.predict(frame.assign(age=np.nan)))


def test_a_missing_column(est):
    row = features_of(est).iloc[0].to_dict()
    del row["height"]
    for given in (row, [row], {name: [value] for name, value in row.items()}):
        with pytest.raises(ValueError, match="no column height; it has age, weight"):
            est.predict(given)
    with pytest.raises(ValueError, match=r"no column height; .* did you mean Height\?"):
        est.predict({**row, "Height": 1.0})


def test_an_unknown_column(est):
    row = {**features_of(est).iloc[0].to_dict(), "heigth": 1.0}
    for given in (row, [row], {name: [value] for name, value in row.items()}):
        for predict in (est.predict, est.model_.predict):
            with pytest.raises(
                ValueError, match=r"column heigth, which .* did you mean height\?; "
            ):
                predict(given)
    # A frame may have more columns.
    est.model_.predict(features_of(est)[:1].assign(heigth=1.0))


def test_the_target_and_columns_that_were_left_out_are_known():
    frame = MIXED.assign(one=1.0, price=PRICE)
    est = KernelRidge(random_state=0, **PLAIN).fit(frame, "price")
    row = frame.iloc[0].to_dict()
    assert np.array_equal(est.predict(row), est.predict(frame[:1]))


def test_rows_that_differ_in_their_names(est):
    row = features_of(est).iloc[0].to_dict()
    short = {name: value for name, value in row.items() if name != "age"}
    with pytest.raises(ValueError, match="row 1 lacks age, which row 0 has; give None"):
        est.predict([row, short])
    with pytest.raises(ValueError, match="row 0 lacks age, which row 1 has; give None"):
        est.predict([short, row])
    with pytest.raises(TypeError, match="row 1 is of type list, but row 0 is a mapping"):
        est.predict([row, [1.0, 2.0, 3.0]])


def test_columns_that_do_not_fit_together(est):
    row = features_of(est).iloc[0].to_dict()
    columns = {name: [value] for name, value in row.items()}
    with pytest.raises(ValueError, match="1 values in column 'age' and 2 in column 'height'"):
        est.predict({**columns, "height": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"single values in others, such as age; .* \[row\]"):
        est.predict({**columns, "age": 1.0})
    with pytest.raises(TypeError, match=r"column 'age' holds values of .*\(float and str\)"):
        est.predict({**{name: 2 * column for name, column in columns.items()}, "age": [1.0, "x"]})


def test_a_model_without_names():
    est = KernelRidge(**PLAIN).fit(NUMBERS.to_numpy(), PRICE)
    for given in ({"age": 1.0}, [{"age": 1.0}], {"age": [1.0]}):
        for predict in (est.predict, est.model_.predict):
            with pytest.raises(TypeError, match="fitted to rows without names; give an array"):
                predict(given)


def test_fits_and_scores_take_them():
    frame = MIXED.assign(price=PRICE)
    est = KernelRidge(random_state=0, **PLAIN).fit(frame.to_dict("records"), "price")
    same = KernelRidge(random_state=0, **PLAIN).fit(frame, "price")
    assert np.array_equal(est.predict(MIXED[:5]), same.predict(MIXED[:5]))
    assert est.score(frame[:50].to_dict("list")) == same.score(frame[:50])
    labels = np.where(PRICE > 0, "high", "low")
    clf = KernelRidgeClassifier(random_state=0, **PLAIN).fit(MIXED.to_dict("records"), labels)
    row = MIXED.iloc[0].to_dict()
    assert clf.predict(row).shape == (1,)
    assert np.array_equal(clf.predict_proba([row]), clf.predict_proba(MIXED[:1]))


def test_objects_of_a_kernel_stay_objects():
    words = [{"text": word} for word in ("a", "ab", "abc", "abcd")]
    est = KernelRidge(lambda a, b: float(min(len(a["text"]), len(b["text"]))), standardize=False)
    est.fit(words, [1.0, 2.0, 3.0, 4.0])
    assert est.predict([{"text": "ab"}]).shape == (1,)


def test_a_sparse_matrix_is_no_record():
    dok = scipy.sparse.dok_array(NUMBERS.to_numpy())
    assert isinstance(dok, dict)
    assert not is_table(dok)
    est = KernelRidge(**PLAIN, standardize=False).fit(dok, PRICE)
    np.testing.assert_allclose(est.predict(dok[:3]), est.predict(NUMBERS[:3].to_numpy()))


def test_tables():
    table = as_table([{"a": 1, "b": "x"}, {"b": None, "a": 2.5}])
    assert table.names == ("a", "b")
    assert table.column("a").to_pylist() == [1.0, 2.5]
    assert table.column("b").to_pylist() == ["x", None]
    gaps = as_table({"a": [1.0, np.nan], "b": np.array(["x", np.nan], object), "c": ("y", None)})
    assert [gaps.column(name).null_count for name in "abc"] == [1, 1, 1]
