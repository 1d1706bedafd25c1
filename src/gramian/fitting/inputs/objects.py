"""Kernels that are Python functions of two objects, such as strings and graphs.

The kernel matrix takes the place of rows, see `gramian.fitting.inputs.kernel_matrix`. An entry is
computed once, when a fit needs it.
"""

from __future__ import annotations

import logging
import math
import reprlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, Int
from ..._messages.checks import readable_bytes
from ...data import RowSource

PairFunction = Callable[[Any, Any], float]
"""A kernel of two objects."""

logger = logging.getLogger("gramian")

LONG_SECONDS = 10.0
"""Expected seconds of calls above which predictions warn beforehand."""

MEASURED_SECONDS = 0.1
"""Seconds of the measurement of the calls per second."""

MEASURED_CALLS = 1000
"""Most calls of the measurement."""

MEASURED_OBJECTS = 32
"""Objects of the measurement; a function that caches objects is slower on the first call."""

COMPARED_PAIRS = 10
"""Pairs of which the function must give the same number in both orders."""

SYMMETRY_TOLERANCE = 1e-6
"""Largest difference of both numbers, relative to the larger one."""


class Calls:
    """Values of a function of all pairs of n objects, each pair called once.

    - `function`: ``function(a, b)`` gives a number, the same as ``function(b, a)``.
    - `objects`: sequence of n objects of any type.

    Memory: 8 n bytes for each column with a requested entry.
    """

    dtype = xp.float64

    @property
    def count(self) -> int:
        """Number of rows of the matrix, n."""
        return len(self.objects)

    def __init__(self, function: PairFunction, objects: Sequence[Any]) -> None:
        self.function, self.objects = function, objects
        self.calls = 0
        self._columns: dict[int, np.ndarray] = {}
        self._diagonal = np.full(self.count, np.nan)
        # Engines compute tiles in several threads.
        self._lock = threading.Lock()

    def block(self, rows: Int[Array, " b"], columns: Int[Array, " m"]) -> Float[Array, "b m"]:
        """Return the entries of some rows and columns; the caller must not write to the result."""
        down, across = rows, columns
        with self._lock:
            # Entries are kept by columns. By symmetry, the transposed
            # block may need no calls at all.
            if self._has(down) and not self._has(across):
                return self._fill_entries(across, down).T
            return self._fill_entries(down, across)

    def diagonal(self, at: Int[Array, " b"]) -> Float[Array, " b"]:
        """Return the diagonal entries k(x_i, x_i) of some rows."""
        with self._lock:
            # The diagonal is kept apart, because it would need all columns.
            for i in at[np.isnan(self._diagonal[at])].tolist():
                self._diagonal[i] = self._entry(i, i)
            return self._diagonal[at]

    def _has(self, columns: np.ndarray) -> bool:
        return all(j in self._columns for j in columns.tolist())

    def _fill_entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), len(columns)))
        for k, j in enumerate(columns.tolist()):
            # NaN marks entries that are not computed yet: `value_of`
            # refuses values that are not finite.
            column = self._columns.setdefault(j, np.full(self.count, np.nan))
            for i in rows[np.isnan(column[rows])].tolist():
                column[i] = self._entry(i, j)
            out[:, k] = column[rows]
        return out

    def _entry(self, i: int, j: int) -> float:
        """Return k(a, b), which is computed unless k(a, b) or k(b, a) is known."""
        if i == j and not math.isnan(self._diagonal[i]):
            return float(self._diagonal[i])
        for row, column in ((i, j), (j, i)):
            column_values = self._columns.get(column)
            if column_values is not None and not math.isnan(column_values[row]):
                return float(column_values[row])
        self.calls += 1
        return value_of(self.function, self.objects[i], self.objects[j], f"{i} and {j}")


class ObjectRows(RowSource):
    """The kernel matrix of n objects in place of rows; entries are computed when needed."""

    dtype = xp.float64

    def __init__(self, calls: Calls) -> None:
        self.calls, self.shape = calls, (calls.count, calls.count)

    def blocks(self, size: int) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows of the matrix; missing entries are computed and kept."""
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            yield part, self.take(xp.arange(part.start, part.stop))

    def take(self, index: Int[Array, " k"]) -> Float[Array, "k n"]:
        """Return some rows of the matrix; missing entries are computed and kept."""
        # The block may be a transposed view.
        return xp.contiguous(self.calls.block(index, xp.arange(len(self))))


@dataclass(frozen=True)
class CallCost:
    """Expected cost of the calls of a function.

    - `name`: name of the function.
    - `calls`: expected number; automatic choices may need more.
    - `per_second`: calls per second, measured on a few pairs.
    """

    name: str
    calls: int
    per_second: float

    @property
    def seconds(self) -> float:
        """Expected seconds of the calls."""
        return self.calls / self.per_second

    def __str__(self) -> str:
        return (
            f"the kernel {self.name} is a Python function, called for each pair: about "
            f"{self.calls:,} calls at {self.per_second:,.0f} per second (measured on a few pairs), "
            f"about {self.seconds:.3g} s on one core; use fewer landmarks, or compute the matrix "
            "by other means and pass it with kernel='precomputed'"
        )


def cost_of(calls: Calls, landmarks: int | None, selection: int = 0) -> CallCost:
    """Return the expected cost of the calls of a fit, from the time of a few calls.

    - `landmarks`: number of columns needed; None for all.
    - `selection`: number of further entries that the selection of landmarks needs.

    Raise ValueError if the function returns no finite numbers, or is not symmetric.
    """
    n, objects, function = calls.count, calls.objects, calls.function
    m = n if landmarks is None else min(landmarks, n)
    count, begin = 0, time.perf_counter()
    for i, j in _some_pairs(n):
        value = value_of(function, objects[i], objects[j], f"{i} and {j}")
        count += 1
        # Each pair that is compared counts as two calls.
        if count <= 2 * COMPARED_PAIRS:
            reverse_value = value_of(function, objects[j], objects[i], f"{j} and {i}")
            count += 1
            if abs(value - reverse_value) > SYMMETRY_TOLERANCE * max(
                abs(value), abs(reverse_value)
            ):
                raise ValueError(
                    f"a kernel must be symmetric, but {name_of(function)} returned {value:g} for "
                    f"objects {i} and {j}, and {reverse_value:g} for objects {j} and {i}"
                )
        if count >= MEASURED_CALLS or time.perf_counter() - begin > MEASURED_SECONDS:
            break
    # A coarse clock may not have moved.
    speed = count / max(time.perf_counter() - begin, 1e-9)
    # Entries between two landmarks are computed once for both orders, and none more often.
    total = min(n * m - m * (m - 1) // 2 + selection, n * (n + 1) // 2)
    return CallCost(name_of(function), total, speed)


def _some_pairs(n: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of a few of n objects, in an order in which all these objects occur soon.

    A function that caches results by object then no longer spends time on the first use.
    """
    sampled_objects = [k * n // min(n, MEASURED_OBJECTS) for k in range(min(n, MEASURED_OBJECTS))]
    for step in range(len(sampled_objects)):
        for k, i in enumerate(sampled_objects):
            yield i, sampled_objects[(k + step + len(sampled_objects) // 2) % len(sampled_objects)]


def check_memory_of_calls(calls: Calls, landmarks: int | None, limit: int | None) -> None:
    """Raise ValueError if the entries that a fit caches exceed the limit in bytes."""
    m = calls.count if landmarks is None else min(landmarks, calls.count)
    need = 8 * calls.count * m
    if limit is not None and need > limit:
        raise ValueError(
            f"{m:,} columns of {calls.count:,} kernel values need {readable_bytes(need)}, but "
            f"memory_limit is {readable_bytes(limit)}; use fewer landmarks"
        )


def between(
    function: PairFunction, new: Sequence[Any], centers: Sequence[Any]
) -> Float[Array, "b m"]:
    """Return the kernel values of new objects with centers. Cost: b m calls of the function.

    After the first row, a warning is logged if the calls will take long.
    """
    values = np.empty((len(new), len(centers)))
    begin = time.perf_counter()
    for i, a in enumerate(new):
        for j, z in enumerate(centers):
            values[i, j] = value_of(function, a, z, f"{i} (new) and {j}")
        # The first row measures the calls, whose time depends on the function and on the objects.
        if i == 0:
            seconds = (time.perf_counter() - begin) * (len(new) - 1)
            if seconds > LONG_SECONDS:
                cost = CallCost(name_of(function), values.size, values.size / seconds)
                logger.warning("%s", cost)
    return values


def value_of(function: PairFunction, a: object, b: object, which: str) -> float:
    """Call a kernel function for two objects; raise ValueError for no finite number."""
    value = function(a, b)
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        name = name_of(function)
        raise ValueError(
            f"a kernel must return a number, but {name} returned {reprlib.repr(value)} for "
            f"objects {which}"
        ) from error
    if not math.isfinite(number):
        name = name_of(function)
        raise ValueError(
            f"a kernel must return finite numbers, but {name} returned {number} for objects {which}"
        )
    return number


def name_of(function: PairFunction) -> str:
    """Return the name of a function, for messages."""
    return str(getattr(function, "__name__", None) or type(function).__name__)
