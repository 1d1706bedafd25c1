"""Base class of kernels, which are positive-definite functions of two points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

from .. import _arrays as xp
from .._arrays import Array, Float
from .._registries.registry import Registry
from .._sparse import is_sparse

Prepared = tuple[Array, ...]
"""Rows transformed once for many tiles: one (n, p) matrix per elementary kernel."""

Side = Literal["left", "right"]


@dataclass(frozen=True)
class Kernel(ABC):
    """A positive-definite function ``k(x, z)``; immutable, hashable, and without data.

    An entry is computed in two stages, so that an engine can do the first once per row and the
    second once per pair: `prepare` maps rows to features, `tile` maps two sets of prepared rows
    to a block of the kernel matrix.
    """

    tuned: ClassVar[tuple[str, ...]] = ()
    """Names of the positive parameters that `gramian.kernels.hyperparameters` has."""

    @property
    def stationary(self) -> bool:
        """Whether k(x, z) depends on x - z alone, so that both sides may be centered."""
        return False

    @property
    def sparse_ok(self) -> bool:
        """Whether `prepare` accepts rows in compressed sparse row form on the left."""
        return False

    @property
    def bilinear(self) -> bool:
        """Whether k(x, z) is the inner product of the first matrices that `prepare` returns.

        Engines then multiply with two factors of the kernel matrix, and compute no entry of it.
        """
        return False

    @property
    def instead(self) -> str:
        """Advice in the error about sparse rows, if `sparse_ok` is False."""
        return "another kernel"

    def check_layout(self, points: Array) -> None:
        """Raise ValueError if points are sparse, and this kernel needs dense points."""
        if is_sparse(points) and not self.sparse_ok:
            raise ValueError(
                f"the kernel {self!r} needs dense rows, but these are sparse; use {self.instead}, "
                "or X.toarray() if it fits in memory"
            )

    @property
    def nonnegative(self) -> bool:
        """Whether features must be at least 0, like counts and shares."""
        return False

    @property
    def scale_free(self) -> bool:
        """Whether multiplying all features by a number changes the kernel at most by a factor."""
        return False

    def unscaled_features(self, d: int) -> frozenset[int]:
        """Return the indices of the features, out of d, that must not be standardised.

        The units and the origin of such features have a meaning. By default all features if they
        must be at least 0, and otherwise none.
        """
        return frozenset(range(d) if self.nonnegative else ())

    def used_features(self, d: int) -> frozenset[int]:
        """Return the indices of the features, out of d, that this kernel uses; all by default."""
        return frozenset(range(d))

    def coordinates(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """Return points in the coordinates of this kernel's distance, for dividing them into cells.

        The coordinates are the used features over their lengthscales; for two kernels the
        coordinates of both, concatenated. By default the points are returned unchanged.

        Parameters
        ----------
        points : Array of shape (n, d)
            Dense points.
        """
        return points

    @property
    def parts(self) -> int:
        """Number of matrices that `prepare` returns."""
        return 1

    @abstractmethod
    def prepare(self, points: Array, side: Side) -> Prepared:
        """Return the matrices for `tile` of `points`, (n, d), on the left or the right side."""

    @abstractmethod
    def tile(
        self,
        left: Prepared,
        right: Prepared,
        out: Float[Array, "b m"],
        *,
        underflow: bool = True,
    ) -> Float[Array, "b m"]:
        """Fill `out` with the kernel of prepared rows, and return it.

        The prepared rows may be float64 while `out` is float32: the argument of the profile is
        then accurate beyond float32, see `rounding`. ``underflow=False`` promises that no entry
        comes near the smallest normal number, see `may_underflow`.
        """

    def may_underflow(self, left: Prepared, right: Prepared, dtype: xp.DType) -> bool:
        """Return whether an exponential in `tile` may reach below the normal numbers of `dtype`.

        Denormal numbers are 20 to 40 times slower, and guarding against them costs a pass.
        """
        return True

    @abstractmethod
    def diag(self, x: Array) -> Float[Array, " b"]:
        """Return k(x_i, x_i) for each row of `x`."""

    def rounding(self, left: Prepared, right: Prepared, eps: float) -> float:
        """Estimate the largest error of an entry of `tile` if it works with precision `eps`.

        The error is relative to the largest entry. Engines use it to decide whether float32
        suffices.
        """
        return eps

    @property
    def differentiable(self) -> bool:
        """Whether `gradients` is implemented."""
        return False

    @property
    def kinked(self) -> bool:
        """Whether gradients change fast near x = z, so that float32 rows need float64 for them."""
        return False

    def gradients(
        self,
        left: Prepared,
        right: Prepared,
        v: Float[Array, "m t"],
        weights: Float[Array, "b m"] | None = None,
    ) -> Float[Array, "b t d"]:
        """Return the gradients at the rows x_i of sum_j w_ij v_jc k(x_i, z_j), all w_ij fixed.

        Parameters
        ----------
        left, right : Prepared
            Dense rows, in the dtype of the computation.
        v : Array of shape (m, t)
        weights : Array of shape (b, m), optional
            The weights w, ones if None.

        Returns
        -------
        Array of shape (b, t, d)
            Gradients. If k has a kink at x = z or x_k = z_k, they are the mean of the slopes on
            both sides, 0.
        """
        raise ValueError(
            f"{self!r} has no gradients; its class needs `differentiable` and `gradients`, or "
            "`derivative` if it is a kernel of the distance or of the inner product"
        )

    @property
    def dim(self) -> int | None:
        """Number of features that this kernel requires; None for any number."""
        return None

    def resolve(self, sample: Float[Array, "s d"]) -> Kernel:
        """Return this kernel with every ``lengthscale="median"`` replaced by a number.

        Parameters
        ----------
        sample : Array of shape (s, d)
            Random rows; about 1,000 are enough. Cost: s² distances.
        """
        return self

    def __call__(self, x: Float[Array, "b d"], z: Float[Array, "m d"]) -> Float[Array, "b m"]:
        """Return the kernel matrix of the rows of `x` and `z`, by the reference evaluation."""
        self.check_layout(x)
        out = xp.empty((x.shape[0], z.shape[0]), z.dtype, like=z)
        # The reference evaluation uses float64, so that engines can be compared with it.
        x, z = xp.to_float64(x), xp.to_float64(z)
        if self.stationary and not xp.is_sparse(x):
            # Around their mean the points have the smallest norms, and the fewest digits cancel.
            origin = z.mean(axis=0)
            x, z = x - origin, z - origin
        return self.tile(self.prepare(x, "left"), self.prepare(z, "right"), out)

    def __add__(self, other: object) -> Kernel:
        if not isinstance(other, Kernel):  # a number would be taken for a kernel until evaluated
            return NotImplemented
        return kernels.make("sum", first=self, second=other)

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return kernels.make("product", first=self, second=other)
        return kernels.make("scaled", kernel=self, factor=float(other))

    __rmul__ = __mul__

    def on(self, columns: Iterable[int | str]) -> Kernel:
        """Return this kernel restricted to some columns, by indices from 0, or by names in a frame.

        ``Gaussian(2.0).on(["x", "y"]) * Periodic(1.0, 24.0).on(["hour"])`` mixes blocks of
        features. A fit replaces names by indices, see `Columns`.
        """
        if not isinstance(columns, str):  # which the class refuses
            columns = tuple(columns)
        return kernels.make("columns", kernel=self, columns=columns)

    def with_names(self, names: Sequence[str] | None) -> Kernel:
        """Return this kernel with indices of features in place of the names of columns.

        Parameters
        ----------
        names : sequence of d str, or None
            Name of the column of each feature; None if columns have no names. Features of one
            column have the same name.

        Raises
        ------
        ValueError
            If there is no such column, or the names contradict the order of the features that the
            kernel takes.
        """
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        named = {key: p.with_names(names) for key, p in parts.items() if isinstance(p, Kernel)}
        return replace(self, **named) if named else self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn does.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the parts of a kernel, such as
            ``first__lengthscale``.
        """
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        parts = {name: value for name, value in own.items() if deep and isinstance(value, Kernel)}
        return own | {
            f"{name}__{key}": value
            for name, part in parts.items()
            for key, value in part.get_params().items()
        }

    def set_params(self, **parameters: Any) -> Kernel:
        """Return a copy of this kernel with other parameters, named as in `get_params`.

        Unlike an estimator of scikit-learn, the kernel itself does not change. An estimator's
        ``set_params(kernel__lengthscale=...)`` replaces its kernel.

        Raises
        ------
        ValueError
            If there is no such parameter, or its value is invalid.
        """
        own = {name: value for name, value in parameters.items() if "__" not in name}
        names = [f.name for f in fields(self)]
        inner: dict[str, dict[str, Any]] = {}
        for name in parameters.keys() - own.keys():
            part, _, key = name.partition("__")
            inner.setdefault(part, {})[key] = parameters[name]
        for name in [*own, *inner]:
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}"
                )
        changed = replace(self, **own)
        for name, values in inner.items():
            part = getattr(changed, name)
            if not isinstance(part, Kernel):
                raise ValueError(f"{name}={part!r} of {type(self).__name__} has no parameters")
            changed = replace(changed, **{name: part.set_params(**values)})
        return changed

    def __sklearn_clone__(self) -> Kernel:
        return self  # a value needs no copy

    def to_dict(self) -> dict[str, Any]:
        """Return a description that JSON can hold; `from_dict` reads it back."""
        # The values are not copied as `asdict` would: parts that are kernels need their name and
        # package.
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        needs = kernels.needs(self)
        return (
            {"name": kernels.name_of(self)}
            | ({} if needs is None else {PACKAGE_KEY: needs})
            | {
                key: value.to_dict() if isinstance(value, Kernel) else value
                for key, value in values.items()
            }
        )


PACKAGE_KEY = "needs"
"""Key of the package that a kernel is from, in the description of one that is not from here."""

kernels: Registry[Kernel] = Registry(
    "kernel",
    {
        "rbf": "gaussian",
        "squared_exponential": "gaussian",
        "exponential": "laplacian",
        "matern": "matern12, matern32 or matern52",
        "poly": "polynomial",
        "laplace": "laplacian",
        "jaccard": "tanimoto",
        "haversine_distances": "haversine",
        "great_circle": "haversine",
        "exp_sine_squared": "periodic",
        "expsinesquared": "periodic",
        "chi2": "chi_squared",
        "minmax": "tanimoto, with counts='minmax'",
        "rq": "rational_quadratic",
    },
)


def from_dict(description: Mapping[str, Any]) -> Kernel:
    """Return the kernel described by `description`, as written by `Kernel.to_dict`.

    Raises
    ------
    ValueError
        If the kernel is unknown. The message names the package that has it, if any.
    """
    name, needs = description["name"], description.get(PACKAGE_KEY)
    # The package may have registered the kernel by an import, so the name is tried first.
    if needs is not None and name not in kernels:
        raise ValueError(
            f"the kernel {name!r} belongs to the package {needs!r}, which has not registered it: "
            f"import that package, or install it with an entry point {name!r} in the group "
            "'gramian.kernels'"
        )
    values = {
        key: from_dict(value)
        if isinstance(value, Mapping)
        else tuple(value)
        # JSON has no tuples, and a kernel with a list would not be hashable.
        if isinstance(value, list)
        else value
        for key, value in description.items()
        if key not in ("name", PACKAGE_KEY)
    }
    return kernels.make(name, **values)
