"""Kinds of arrays: NumPy's, torch's without importing torch, and sparse rows of both."""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

__all__ = [
    "HOST_DEVICE", "Array", "Bool", "CsrArray", "DType", "Device", "Float", "Int", "Num",
    "Shaped", "csr", "entries", "indices", "indptr", "is_array", "is_sparse", "is_tensor",
    "numpy_dtype", "to_dense", "torch_dtype",
]  # fmt: skip

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool as Bool
    from jaxtyping import Float as Float
    from jaxtyping import Int as Int
    from jaxtyping import Num as Num
    from jaxtyping import Shaped as Shaped
else:
    # jaxtyping takes a tenth of a second to import, and annotations are text which nobody evaluates
    # at run time, except in tests, which import jaxtyping first.
    class Shaped:
        """Stand-in for a type of jaxtyping: an array with a dtype and a shape."""

        def __class_getitem__(cls, array_and_shape: object) -> Any:
            return Any

    Bool = Float = Int = Num = Shaped


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class CsrArray:
    """Sparse rows: the entries of row i are at ``indptr[i]`` to ``indptr[i + 1]``.

    SciPy's matrices would do, but each one copies its positions to 32 bits where they fit, and
    takes 50 microseconds to build.

    - `indptr`, (n + 1,): in int64.
    - `indices`: columns, in int64.
    - `shape`: the pair (n, d).
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    shape: tuple[int, int]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the entries."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes, 2."""
        return len(self.shape)

    @property
    def device(self) -> str:
        """The host, as for arrays of NumPy."""
        return "cpu"

    @property
    def itemsize(self) -> int:
        """The bytes of a value."""
        return self.data.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of values and positions."""
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    def check(self) -> None:
        """Raise ValueError if the positions do not describe compressed rows."""
        n, d = self.shape
        starts, columns = self.indptr, self.indices
        if len(starts) != n + 1 or starts[0] != 0 or starts[-1] != len(columns):
            raise ValueError("the starts of sparse rows do not fit their number, or their entries")
        if len(columns) != len(self.data) or (np.diff(starts) < 0).any():
            raise ValueError("sparse rows need one column for each value, and starts that increase")
        if len(columns) and not (columns.min() >= 0 and columns.max() < d):
            raise ValueError(f"a column of sparse rows is outside 0 to {d - 1}")
        # Columns increase within a row, and may fall from the last entry of a row to the first of
        # the next one: these places are left out. Compiled code searches columns by bisection.
        inner = np.ones(max(len(columns) - 1, 0), bool)
        inner[starts[(starts > 0) & (starts < len(columns))] - 1] = False
        if (np.diff(columns)[inner] <= 0).any():
            raise ValueError("the columns of a sparse row must increase, each at most once")

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        """Return the product with a dense array."""
        from scipy.sparse import csr_array

        parts = (self.data, self.indices, self.indptr)
        return np.asarray(csr_array(parts, shape=self.shape) @ other)

    def toarray(self) -> np.ndarray:
        """Return the rows as a dense array."""
        out = np.zeros(self.shape, self.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        np.add.at(out, (rows, self.indices), self.data)
        return out


Array: TypeAlias = Any
"""An array of NumPy, dense or `CsrArray`, or a tensor of torch."""

DType: TypeAlias = Any
"""A dtype of NumPy, as arrays on all devices state it here."""

Device: TypeAlias = Any
"""The text "cpu", which is the host, or a device of torch."""

HOST_DEVICE = "cpu"
"""The device of arrays of NumPy."""


def loaded_torch() -> Any:
    """Return the module torch, which is loaded if a tensor exists."""
    return sys.modules["torch"]


def is_array(x: Any) -> bool:
    """Return whether an object is an array: dense or sparse, or a tensor of torch."""
    return type(x) is np.ndarray or isinstance(x, np.ndarray | CsrArray) or is_tensor(x)


def is_tensor(x: Any) -> bool:
    """Return whether an object is a tensor of torch."""
    if type(x) is np.ndarray:
        return False
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def namesake(name: str, numpy: Any) -> Any:
    """Return a function of NumPy that calls the function of torch of this name for tensors.

    Functions of torch also take the names `axis` and `keepdims` of NumPy.
    """
    of_torch = operator.attrgetter(name)

    def function(x: Any, *args: Any, **settings: Any) -> Any:
        return (of_torch(loaded_torch()) if is_tensor(x) else numpy)(x, *args, **settings)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Return `{numpy.__name__}` of NumPy, or its namesake of torch."
    return function


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of NumPy for one of NumPy or torch."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        name = str(dtype).removeprefix("torch.")
        return np.dtype("float32" if name == "bfloat16" else name)
    return np.dtype(dtype)


def torch_dtype(dtype: Any) -> Any:
    """Return the dtype of torch for one of NumPy or torch."""
    import torch

    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    return getattr(torch, np.dtype(dtype).name)


def is_sparse(x: Any) -> bool:
    """Return whether rows are sparse, compressed by rows."""
    if type(x) is np.ndarray:
        return False
    if is_tensor(x):
        return x.layout is loaded_torch().sparse_csr
    return isinstance(x, CsrArray)


def csr(
    indptr: Any, indices: Any, values: Any, shape: tuple[int, int], *, check: bool = False
) -> Any:
    """Return sparse rows: the entries of row i are at ``indptr[i]`` to ``indptr[i + 1]``."""
    if is_tensor(values):
        _spend_beta_warning()
        return loaded_torch().sparse_csr_tensor(
            indptr, indices, values, size=shape, check_invariants=check
        )
    rows = CsrArray(indptr, indices, values, shape)
    if check:
        rows.check()
    return rows


@functools.cache
def _spend_beta_warning() -> None:
    """Trigger and suppress the warning about sparse rows that torch gives once per process.

    The filter applies to this one statement, not to all creation of rows.
    """
    # `catch_warnings` changes the filters of the whole process, which is not safe with threads: it
    # must not surround the work of a pass.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zero = loaded_torch().zeros(1, dtype=loaded_torch().int64)
        loaded_torch().sparse_csr_tensor(
            zero, zero[:0], zero[:0], size=(0, 1), check_invariants=False
        )


def indptr(x: Any) -> Any:
    """Return the starts of sparse rows."""
    return x.crow_indices() if is_tensor(x) else x.indptr


def indices(x: Any) -> Any:
    """Return the columns of the entries of sparse rows."""
    return x.col_indices() if is_tensor(x) else x.indices


def entries(x: Any) -> Any:
    """Return the stored values of sparse rows."""
    return x.values() if is_tensor(x) else x.data


def to_dense(x: Any) -> Any:
    """Return sparse rows as a dense array, and dense rows as they are."""
    if is_tensor(x):
        return x.to_dense()
    return x.toarray() if isinstance(x, CsrArray) else x
