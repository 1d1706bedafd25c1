"""Work of a computation, in units whose speed can be measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Kernel evaluations, operations and memory traffic of a computation.

    - `evaluations`, `double_evaluations`: kernel evaluations in float32, and in float64.
    - `operations`: floating-point operations, at the speed of a Cholesky factorisation in float64.
    - `moved_bytes`: bytes that are read or written.
    - `peak_bytes`: largest memory at any time.
    """

    evaluations: float = 0.0
    double_evaluations: float = 0.0
    operations: float = 0.0
    moved_bytes: float = 0.0
    peak_bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        """Return the work of one computation after the other."""
        return Work(
            self.evaluations + other.evaluations,
            self.double_evaluations + other.double_evaluations,
            self.operations + other.operations,
            self.moved_bytes + other.moved_bytes,
            max(self.peak_bytes, other.peak_bytes),
        )

    def __mul__(self, times: float) -> Work:
        """Return the work of several such computations, or of a share of one."""
        return Work(
            times * self.evaluations,
            times * self.double_evaluations,
            times * self.operations,
            times * self.moved_bytes,
            self.peak_bytes if times else 0.0,
        )
