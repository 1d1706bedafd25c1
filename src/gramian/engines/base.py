"""Engine: computes with points in memory; only engines depend on the hardware."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from .. import _arrays as xp
from .._arrays import Array, Float
from .._messages.errors import TextError
from ..data import Cast, RowSource
from ..kernels import Kernel
from ._devices import check_device, device_bytes, free_device_bytes

LARGEST_BLOCK = 1 << 16
"""Rows per call of an engine: more would need memory and save nothing."""

DEVICE_BLOCK = 1 << 18
"""The same on a device, where starting a call costs as much as a hundred million entries."""


class Engine(ABC):
    """Products with one block of a kernel matrix, k(x, z), that is never stored.

    In each method `x` holds b rows, dense or sparse; `z` m rows, dense; both of one dtype, in which
    kernel entries are computed. Sums run in float64. `diagonal` is set if the two share rows: row i
    of `x` is row ``i + diagonal`` of `z`, where the entry is then exactly k(z, z).

    Arguments may be on any device. A result is on the device of `x` if it has the rows of `x`,
    else on the device of `z`.

    Attributes
    ----------
    device : str
        Device of the computation. With `place` and `feed`, repeated calls with the same arguments
        save transfers.
    """

    device: str = "cpu"

    def place(self, values: Array) -> Array:
        """Return an array on the device of this engine."""
        return values if self.on_host else xp.to_device(values, self.device)

    def feed(self, rows: RowSource) -> RowSource:
        """Return rows whose blocks are sent to the device of this engine in advance."""
        return rows if self.on_host else rows.map_rows(self._feed_part)

    def _feed_part(self, rows: RowSource) -> RowSource:
        if isinstance(rows, Cast):  # cast on the device: the source is mostly narrower
            return Cast(self.feed(rows.rows), rows.dtype)
        # It imports torch, which the host does not need.
        from .device_rows import DeviceRows

        return DeviceRows(rows, self.device)

    @property
    def on_host(self) -> bool:
        """Whether it computes in the memory of the process."""
        return xp.is_host(self.device)

    def device_bytes(self) -> int | None:
        """Return the bytes of its device that calls may use; None on the host."""
        return None if self.on_host else device_bytes(self.device)

    def free_bytes(self) -> int | None:
        """Return the free bytes among `device_bytes`; None on the host."""
        most_bytes = None if self.on_host else self.device_bytes()
        return None if most_bytes is None else min(most_bytes, free_device_bytes(self.device))

    @property
    def largest_block(self) -> int:
        """Largest number of rows for a call."""
        return LARGEST_BLOCK if self.on_host else DEVICE_BLOCK

    def check(self) -> None:
        """Raise ValueError if this engine, perhaps from another machine, cannot run on this one."""
        if not self.on_host:
            check_device(self.device, repr(self))

    def covers(self, kernel: Kernel, *, dtype: xp.DType, sparse: bool) -> bool:
        """Return whether this engine computes with a kernel and rows of this dtype and kind.

        An operator calls it once, see `KernelOperator`; methods raise ValueError if it is False.
        """
        return True

    def require(
        self, kernel: Kernel, *, dtype: xp.DType, sparse: bool, name: str | None = None
    ) -> None:
        """Raise ValueError, about the engine called `name`, if `covers` is False."""
        if self.covers(kernel, dtype=dtype, sparse=sparse):
            return
        what, cure = "sparse rows" if sparse else repr(kernel), ""
        if not sparse and self.covers(kernel, dtype=xp.float32, sparse=False):
            what, cure = f"rows in {xp.dtype_name(dtype)}", "pass rows in float32, or "
        tiled = "numpy" if self.on_host else f"torch:{self.device}"
        raise TextError(
            "{engine=:s} has no tiles for {}; {}use {engine='auto'}, which chooses the fastest "
            "engine that has them, or {engine=}",
            name or type(self).__name__,
            what,
            cure,
            tiled,
        )

    @abstractmethod
    def matvec(
        self,
        kernel: Kernel,
        x: Array,
        z: Array,
        v: Float[Array, "m t"],
        *,
        diagonal: int | None = None,
    ) -> Float[Array, "b t"]:
        """Return K v in float64."""

    def against(
        self, kernel: Kernel, z: Array, v: Float[Array, "m t"]
    ) -> Callable[[Array], Float[Array, "b t"]]:
        """Return the function of rows x whose value is `matvec`, for repeated calls.

        An engine may prepare z and v once.
        """
        return lambda x: self.matvec(kernel, x, z, v)

    @abstractmethod
    def normal(
        self,
        kernel: Kernel,
        x: Array,
        z: Array,
        v: Float[Array, "m t"] | None,
        *,
        weights: Float[Array, " b"] | None = None,
        targets: Float[Array, "b t"] | None = None,
        diagonal: int | None = None,
    ) -> Float[Array, "m t"]:
        """Return K' W (K v - y) in float64, each entry of K evaluated once.

        Without `v` the term K v is left out, without `targets` the term y.
        """

    @abstractmethod
    def symmetric(
        self, kernel: Kernel, x: Float[Array, "n d"], v: Float[Array, "n t"]
    ) -> Float[Array, "n t"]:
        """Return k(x, x) v in float64, each pair of rows evaluated once; the diagonal is exact."""

    def symmetric_evaluations(self, n: int) -> int:
        """Return the number of entries that `symmetric` computes for n rows."""
        return n * (n + 1) // 2

    @abstractmethod
    def block(
        self, kernel: Kernel, x: Array, z: Array, *, diagonal: int | None = None
    ) -> Float[Array, "b m"]:
        """Return K itself, in the dtype of `x`."""

    @abstractmethod
    def gradients(
        self, kernel: Kernel, x: Array, z: Array, v: Float[Array, "m t"]
    ) -> Float[Array, "b t d"]:
        """Return the gradients of the predictor K v at each row of x, dense, in float64.

        Entry (i, c) is the gradient at x_i of sum_j k(x_i, z_j) v_jc. Where a kernel has a kink, at
        x = z or, for the l1 distance, x_k = z_k, it is the mean of the slopes on both sides, 0; and
        rows that differ by no more than rounding count as equal.

        Raises
        ------
        ValueError
            If the kernel is not `differentiable`, or the rows are sparse.
        """

    @abstractmethod
    def workspace_bytes(self, m: int, d: int, t: int, itemsize: int) -> int:
        """Return the bytes of a call that do not depend on the number of rows of `x`."""

    @abstractmethod
    def row_bytes(self, d: int, t: int, itemsize: int) -> int:
        """Return the bytes that a call needs for each row of `x`, including the row.

        The result of `gradients`, t d numbers of float64 per row, is not included.
        """
