"""CsrArray: what is no matrix by rows is refused; dense rows and products are right."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from gramian import _arrays as xp


def rows(**changed) -> xp.CsrArray:
    parts = {
        "indptr": np.array([0, 2, 2, 3]), "indices": np.array([0, 3, 1]),
        "data": np.array([1.0, 2.0, 3.0]), "shape": (3, 4),
    }  # fmt: skip
    return xp.CsrArray(**(parts | changed))


DENSE = np.array([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])


def test_dense_rows_and_products(rng):
    x = rows()
    x.check()
    assert np.array_equal(x.toarray(), DENSE)
    v = rng.standard_normal((4, 2))
    np.testing.assert_allclose(x @ v, DENSE @ v)
    assert (len(x), x.ndim, x.device, x.dtype, x.itemsize) == (3, 2, "cpu", np.float64, 8)
    assert np.array_equal(pickle.loads(pickle.dumps(x)).toarray(), DENSE)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indptr": np.array([0, 2, 3])}, "do not fit their number"),
        ({"indptr": np.array([1, 2, 2, 3])}, "do not fit their number"),
        ({"indptr": np.array([0, 2, 2, 2])}, "or their entries"),
        ({"indptr": np.array([0, 3, 2, 3])}, "starts that increase"),
        ({"data": np.array([1.0, 2.0])}, "one column for each value"),
        ({"indices": np.array([0, 4, 1])}, "outside 0 to 3"),
        ({"indices": np.array([-1, 3, 1])}, "outside 0 to 3"),
        ({"indices": np.array([3, 3, 1])}, "at most once"),
        ({"indices": np.array([3, 0, 1])}, "must increase"),
    ],
)
def test_damaged_rows_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        rows(**changed).check()


def test_no_rows_and_no_entries():
    empty = np.empty(0, np.int64)
    for n in (0, 3):
        x = xp.CsrArray(np.zeros(n + 1, np.int64), empty, np.empty(0), (n, 4))
        x.check()
        assert np.array_equal(x.toarray(), np.zeros((n, 4)))
