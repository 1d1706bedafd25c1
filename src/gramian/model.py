"""KernelModel: a kernel, centers and coefficients; predicts, and saves itself without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ._checks import as_bytes, listed
from ._model_file import ENCODING, center_tensors, check_parts, read_model, write_model
from .data import (
    Encoding,
    RowSource,
    Standardizer,
    Table,
    as_rows,
    as_table,
    check_finite,
    is_table,
)
from .kernels import Kernel
from .operators import Engine, KernelOperator

Label = str | int | float | bool

PROBED_CENTERS = 256
"""Centers at which predictions with float32 entries are compared with those of float64 ones."""

VISIBLE_ROUNDING = 1e-3
"""Share of the spread of predictions from which on rounding of entries counts as visible."""


@dataclass(frozen=True)
class KernelModel:
    r"""The function :math:`f(x) = \sum_j k(x, z_j)\,\mathrm{coef}_j`, scaled and shifted.

    Parameters
    ----------
    kernel : Kernel
    centers : RowSource, or anything `as_rows` takes
        m rows of d features, standardised if there is a standardizer.
    coef : Tensor of shape (m, t)
    standardizer : Standardizer, optional
        What is done to rows before the kernel sees them.
    target_shift, target_scale : Tensor of shape (t,), optional
        Predictions are ``target_shift + target_scale * (K @ coef)``; 0 and 1 if None;
        scales are positive.
    feature_names : tuple of d str, optional
        Names of the columns that are looked for in tables, and that rows must have if they have
        names.
    classes : tuple, optional
        Labels, if this is a classifier: one target for two classes, else one per class.
    encoding : Encoding, optional
        What made rows of numbers of a table, and scaled them: the model then predicts tables.
    target : tuple of str, optional
        Names of the columns that are predicted.
    info : mapping, optional
        What else is worth keeping, as JSON: version, training rows, validation error.
    """

    kernel: Kernel
    centers: Any  # a RowSource once constructed
    coef: Float[Tensor, "m t"]
    standardizer: Standardizer | None = None
    target_shift: Float[Tensor, " t"] | None = None
    target_scale: Float[Tensor, " t"] | None = None
    feature_names: tuple[str, ...] | None = None
    classes: tuple[Label, ...] | None = None
    encoding: Encoding | None = None
    target: tuple[str, ...] | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "centers", as_rows(self.centers))
        if self.centers.shape[0] != self.coef.shape[0]:
            raise ValueError(
                f"{self.centers.shape[0]} centers but {self.coef.shape[0]} coefficients"
            )

    def predict(
        self, X: Any, *, engine: str | Engine = "auto", memory_bytes: int | str = 1 << 30
    ) -> Float[Tensor, "n t"]:
        """Return f of each row.

        Parameters
        ----------
        X : RowSource, or anything `as_rows` takes; or a table, see `rows`
            n rows of d features, not standardised.
        engine : str or Engine, default="auto"
        memory_bytes : int or str, default=2**30
            For blocks, as a number or like "500MB".

        Returns
        -------
        Tensor of shape (n, t)
            In float64. For a classifier: decision values.

        Raises
        ------
        ValueError
            If the number or the names of the features are not those of training, or
            `memory_bytes` is no size.

        Notes
        -----
        Cost: n m kernel evaluations; in the first call with float32 rows 512 m more. Kernel entries
        are float32 if rows and centers are, unless predictions at 256 centers differ by more than
        1e-3 of their spread from those of float64 entries: large coefficients that nearly cancel,
        as small penalties and smooth kernels have them, magnify the rounding of entries.
        """
        rows = self.prepared(self.rows(X))
        memory = as_bytes(memory_bytes, "memory_bytes")
        K = KernelOperator(self.kernel, rows, self.centers, engine, memory)
        if K.dtype != torch.float64 and self._shows_rounding(K):
            K = K.double()
        values = K @ self.coef.double()
        if self.target_scale is not None:
            values *= self.target_scale
        if self.target_shift is not None:
            values += self.target_shift
        return values

    def _shows_rounding(self, K: KernelOperator) -> bool:
        """Return whether float32 entries would be seen in predictions, found out once."""
        known: bool | None = self.__dict__.get("_rounding_shows")
        if known is None:
            m = len(self.centers)
            some = torch.linspace(0, m - 1, min(m, PROBED_CENTERS), dtype=torch.float64).long()
            sample = replace(K, rows=self.centers)[some]
            exact = sample.double() @ self.coef.double()
            off = (sample @ self.coef.double() - exact).square().mean(dim=0).sqrt()
            known = not bool((off <= VISIBLE_ROUNDING * exact.std(dim=0, correction=0)).all())
            object.__setattr__(self, "_rounding_shows", known)
        return known

    def predict_labels(self, X: Any, **settings: Any) -> list[Label]:
        """Return the predicted class of each row; see `predict` for the arguments."""
        if self.classes is None:
            raise ValueError("this model is a regression and has no classes; use predict")
        values = self.predict(X, **settings)
        best = (values[:, 0] > 0).long() if values.shape[1] == 1 else values.argmax(dim=1)
        return [self.classes[i] for i in best.tolist()]

    def rows(self, X: Any) -> RowSource:
        """Return rows of what is to be predicted: columns of a table are taken by their names.

        Parameters
        ----------
        X : a table as `as_table` takes, a path, or anything `as_rows` takes
            A table may have more columns, in any order. If the model has an encoding, rows that
            are no table must be encoded already.

        Raises
        ------
        TypeError
            If the model has an encoding, and X no columns with names.
        ValueError
            If a column is not there, or a value of it cannot be used.
        """
        if self.encoding is not None:
            if isinstance(X, RowSource):
                return X
            if not is_table(X):
                names = listed(self.encoding.names)
                raise TypeError(
                    f"this model was fitted to a table with the columns {names}; give a path or a "
                    f"table with these, not {type(X).__name__}"
                )
            return self.encoding.rows(self.table(X))
        if self.feature_names is None or not is_table(X):
            return as_rows(X)
        table = self.table(X)
        rows = table.rows(self.feature_names)
        check_finite(rows, table.where)
        return rows

    def table(self, X: Any) -> Table:
        """Return `as_table` of what is to be predicted.

        Columns of a file of text that were levels in training, or labels, are read as text: a file
        of a few rows may hold only such as look like numbers.
        """
        levels = () if self.encoding is None else self.encoding.texts
        labels = self.classes is not None and all(isinstance(k, str) for k in self.classes)
        return as_table(X, texts=(*levels, *(self.target or () if labels else ())))

    def prepared(self, rows: RowSource) -> RowSource:
        """Check rows against this model and standardise them if it does."""
        d = self.centers.shape[1]
        if rows.shape[1] != d:
            raise ValueError(f"X has {rows.shape[1]} features, but the model was trained on {d}")
        names = rows.feature_names
        if names is not None and self.feature_names is not None and names != self.feature_names:
            wrong = next((a, b) for a, b in zip(names, self.feature_names, strict=True) if a != b)
            raise ValueError(
                f"X has feature {wrong[0]!r} where the model expects {wrong[1]!r}; give the "
                f"columns in the order of training: {listed(self.feature_names)}"
            )
        return rows if self.standardizer is None else self.standardizer.apply(rows)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file with a JSON header; nothing is pickled.

        Parameters
        ----------
        path : str or Path
            Replaced only once the new file is complete. It keeps its permissions; of a symbolic
            link, what it points to is replaced.

        Raises
        ------
        OSError
            If it cannot be written; what was there before is unchanged.
        ValueError
            If its parts do not fit together, so that `load` would refuse it.
        """
        check_parts({f.name: getattr(self, f.name) for f in fields(self)})
        tensors = {"coef": self.coef, **center_tensors(self.centers)}
        for name in ("target_shift", "target_scale"):
            if getattr(self, name) is not None:
                tensors[name] = getattr(self, name)
        if self.encoding is not None:
            tensors |= {ENCODING + name: part for name, part in self.encoding.tensors().items()}
        header = {
            "kernel": self.kernel.to_dict(),
            "centers": list(self.centers.shape),
            "standardizer": self.standardizer and self.standardizer.to_dict(),
            "feature_names": self.feature_names,
            "classes": self.classes,
            "encoding": self.encoding and self.encoding.to_dict(),
            "target": self.target,
            "info": dict(self.info),
        }
        write_model(path, header, tensors)

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> KernelModel:
        """Read a model written by `save`.

        Parameters
        ----------
        path : str or Path
        verify : bool, default=True
            Whether the digest of the file is compared, and the centers are looked at for NaN: two
            passes over the file, at about 1.7 and 10 GB/s. False spares them where centers are
            mapped and huge.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is truncated, is not a model, was changed since it was written, has parts
            that do not fit together, or was written by a newer version.

        Notes
        -----
        A file of up to 64 MiB is read into memory. The centers of a larger one are mapped: replace
        such a file with `save`, or by renaming, while it is in use. Whoever cuts it off in place
        ends the processes that use it, by a signal of the system (SIGBUS).

        The digest notices damage, and not malice: who can write the file can compute it anew.
        """
        return cls(**read_model(Path(path), verify))
