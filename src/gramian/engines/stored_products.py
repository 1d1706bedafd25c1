"""Compiled products with stored entries."""

from __future__ import annotations

from importlib import import_module

from .._arrays import Array, Float, Int
from .._arrays.elementwise import NATIVE_MODULE


def multiply(
    entries: Float[Array, "n m"],
    some: Int[Array, " k"] | None,
    bounds: tuple[int, int],
    *,
    v: Float[Array, "t m"] | None = None,
    weights: Float[Array, " k"] | None = None,
    targets: Float[Array, "k t"] | None = None,
    products: Float[Array, "b t"] | None = None,
    sums: Float[Array, "t c"] | None = None,
    chained: bool = False,
) -> None:
    """Multiply a range of rows of a stored matrix E; each row is read from memory once.

    Writes E v to `products` and adds E' W (E v - y), or if not `chained` E' W (-y), for the first
    columns of E to `sums`. The vectors `v` have the dtype of the entries, all others are float64.
    Sums run in the dtype of the entries over 256 terms, and in float64 beyond. The best
    instructions of the machine are used; the compiled tiles must be installed.
    """
    t = next(len(argument) for argument in (v, sums) if argument is not None)
    import_module(NATIVE_MODULE).multiply_stored(
        "best", entries, some, *bounds, v, weights, targets, products, sums, t, chained
    )
