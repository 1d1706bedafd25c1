"""Rows of a search in memory, with targets, weights and splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .. import _arrays as xp
from .._arrays import Array, Float, Int, RandomStream
from .._sparse import take_rows
from ..data import LinearMap, QuantileMap
from ..paths.sample import Sample
from .folds import Split, random_splits

MOST_DIFFERENT = 1e3
"""Largest ratio of standard deviations of features in one unit, such as pixels or counts."""


@dataclass(frozen=True, eq=False)
class Material:
    """Material of a search: standardised or encoded rows in memory, with targets and splits.

    Attributes
    ----------
    X : Array of shape (n, d)
        Dense or sparse rows; maps need dense rows.
    Y : Array of shape (n, t)
    weights : Array of shape (n,), or None
    coded : bool
        Whether targets are codes of classes.
    splits : sequence of Split
    rng : RandomStream
    scales : Array of shape (d,), or None
        Standard deviations of the features before standardisation; None without it.
    """

    X: Float[Array, "n d"]
    Y: Float[Array, "n t"]
    weights: Float[Array, " n"] | None
    coded: bool
    splits: Sequence[Split]
    rng: RandomStream
    scales: Float[Array, " d"] | None = None

    @classmethod
    def of(
        cls,
        X: Float[Array, "n d"],
        Y: Float[Array, "n t"],
        weights: Float[Array, " n"] | None = None,
        *,
        coded: bool = False,
        splits: Sequence[Split] | None = None,
        rng: RandomStream,
        scales: Float[Array, " d"] | None = None,
    ) -> Material:
        """Return the material of given rows, with the given splits or random splits."""
        if splits is None:
            splits = random_splits(Y, coded, rng)
        return cls(X, Y, weights, coded, splits, rng, scales)

    def part(self, index: Int[Array, " k"], splits: Sequence[Split]) -> Material:
        """Return the material of some of the rows, with the same maps and with other splits."""
        w = self.weights
        weights = None if w is None else w[index]
        X = take_rows(self.X, index)
        subset = replace(self, X=X, Y=self.Y[index], weights=weights, splits=splits)
        # Maps learned from the subset would differ from the maps of the stems that are fitted to
        # it.
        return subset.mapped_as(self)

    def mapped_as(self, other: Material) -> Material:
        """Return a copy with the quantile map and the common scale of another material."""
        # `cached_property` keeps its values in the instance dictionary, where a frozen dataclass
        # accepts new ones. `replace` leaves them out, so only the named maps are copied, if they
        # exist.
        copy, names = replace(self), ("quantiles", "common")
        vars(copy).update({name: vars(other)[name] for name in names if name in vars(other)})
        return copy

    @cached_property
    def quantiles(self) -> QuantileMap:
        """Map of the features to normal scores, learned from all rows, but from no targets."""
        return QuantileMap.fit(self.X, rng=self.rng)

    @cached_property
    def _normal(self) -> tuple[Array, Array]:
        """Rows as normal scores, and a mask of the rows computed so far."""
        return xp.empty_like(self.X), xp.zeros(len(self.X), xp.bool)

    @cached_property
    def common(self) -> LinearMap | None:
        """Map to one common scale for all features, which gives the original features, centered.

        None without standardisation, if the map would change nothing, or if standard deviations
        differ too much for one unit.
        """
        if self.scales is None or self.X.shape[1] == 1:
            return None
        # A constant feature is zero after standardisation. Its scale has no meaning.
        varying = self.scales[xp.max(xp.abs(self.X), axis=0) > 0]
        # Scales within 5 % of each other give almost the standardised rows again.
        if len(varying) < 2 or not 1.05 < float(varying.max() / varying.min()) < MOST_DIFFERENT:
            return None
        # Dividing by the root mean square preserves the total variance of the varying features.
        return LinearMap(scales=self.scales / xp.sqrt(xp.square(varying).mean()))

    def inputs(self, name: str) -> Float[Array, "n d"]:
        """Return the rows for `name`: standardised, as normal scores, or on one common scale."""
        if name == "common" and self.common is not None:
            return self._common
        return self._made_normal(xp.arange(len(self.X))) if name == "quantile" else self.X

    @cached_property
    def _common(self) -> Array:
        return self.X if self.common is None else self.common.forth(self.X)

    def compose(self, inputs: str, map_: LinearMap | None) -> LinearMap | None:
        """Compose the maps of inputs and a metric into one linear map of standardised rows."""
        if inputs != "common" or self.common is None:
            return map_
        scales = self.common.array
        if map_ is None:
            return self.common
        if map_.matrix is None:
            return LinearMap(scales=scales * map_.array)
        # (X diag(s)) M = X (diag(s) M).
        return LinearMap(scales[:, None] * map_.matrix)

    def sample(self, inputs: str, split: Split, rows: int | None = None) -> Sample:
        """Return the rows of a split, with the first `rows` training rows, all by default."""
        w, learn = self.weights, split.train[:rows]
        return Sample(
            self._rows(inputs, learn), self.Y[learn],
            self._rows(inputs, split.validation), self.Y[split.validation],
            None if w is None else w[learn], None if w is None else w[split.validation],
        )  # fmt: skip

    def _rows(self, inputs: str, index: Int[Array, " k"]) -> Float[Array, "k d"]:
        X = self._made_normal(index) if inputs == "quantile" else self.inputs(inputs)
        return take_rows(X, index)

    def _made_normal(self, index: Int[Array, " k"]) -> Float[Array, "n d"]:
        """Return rows as normal scores; only rows in `index` are computed.

        Quantiles of 1,000 features take a second for 10,000 rows.
        """
        mapped, is_mapped = self._normal
        # Fits with all rows ask for all of them, after samples have asked for a few.
        new = index[~is_mapped[index]]
        mapped[new], is_mapped[new] = self.quantiles.scores(self.X[new]), True
        return mapped

    @cached_property
    def held_out_index(self) -> Int[Array, " v"]:
        """Indices of all held-out rows, split by split."""
        return xp.concat([split.validation for split in self.splits])

    @property
    def truth(self) -> Float[Array, "v t"]:
        """Targets of all held-out rows."""
        return self.Y[self.held_out_index]

    @property
    def held_weights(self) -> Float[Array, " v"] | None:
        """Weights of all held-out rows."""
        return None if self.weights is None else self.weights[self.held_out_index]
