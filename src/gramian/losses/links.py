"""Links: maps from the values of a model to predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float

Map = Callable[[Float[Array, "n q"]], Float[Array, "n q"]]


@dataclass(frozen=True)
class Link:
    """A map of the values f of a model to predictions.

    Attributes
    ----------
    name : str
        Name in a model file; see `link_of`.
    map : callable
    along : callable
        Map from values f and their gradients, (n, q, d), to gradients of the predictions.
    """

    name: str
    map: Map
    along: Callable[[Float[Array, "n q"], Float[Array, "n q d"]], Float[Array, "n q d"]]

    def __reduce__(self) -> tuple[Callable[[str], Link], tuple[str]]:
        """Pickle only the name."""
        # Lambdas do not pickle, so a pickle has the name alone.
        return link_of, (self.name,)


def _sort_quantiles(f: Array) -> Array:
    return xp.sort(f, axis=1)


def _along_sorted(f: Array, slopes: Array) -> Array:
    # Sorting permutes the gradients as it permutes the values.
    return xp.take_along(
        slopes, xp.expand(f.argsort(axis=1, stable=True)[:, :, None], slopes.shape), axis=1
    )


def _along_exp(f: Array, slopes: Array) -> Array:
    return xp.exp(f)[:, :, None] * slopes


IDENTITY = Link("identity", lambda f: f, lambda f, slopes: slopes)
EXP = Link("exp", xp.exp, _along_exp)
SORTED = Link("sorted", _sort_quantiles, _along_sorted)
"""Values in increasing order: quantiles that do not cross.

Sorting never makes the mean pinball loss larger (Chernozhukov, Fernandez-Val, Galichon 2010,
*Quantile and probability curves without crossing*, proposition 4).
"""

LINK_OF_NAME = {link.name: link for link in (IDENTITY, EXP, SORTED)}


def link_of(name: str) -> Link:
    """Return the link of that name; raise ValueError if it is unknown."""
    if name not in LINK_OF_NAME:
        raise ValueError(f"a link must be one of {', '.join(sorted(LINK_OF_NAME))}, not {name!r}")
    return LINK_OF_NAME[name]
