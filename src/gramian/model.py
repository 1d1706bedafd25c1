"""KernelModel: a kernel, centers and coefficients; predicts, and saves itself without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scipy.sparse
import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ._atomic import write_tensors
from ._checks import as_bytes
from .data import ArrayRows, RowSource, Standardizer, as_rows, gathered
from .kernels import Kernel, from_dict
from .operators import Engine, KernelOperator

FORMAT = 1
"""Version of the file format. A reader refuses a newer one."""

CENTER_BYTES = 1 << 28
"""Centers of another source than an array are copied to be saved: to a file if they are more."""

Label = str | int | float | bool


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
        Predictions are ``target_shift + target_scale * (K @ coef)``; 0 and 1 if None.
    feature_names : tuple of d str, optional
        Names that rows must have if they have names.
    classes : tuple, optional
        Labels, if this is a classifier: one target for two classes, else one per class.
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
        X : RowSource, or anything `as_rows` takes
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
        Cost: n m kernel evaluations.
        """
        rows = self.prepared(as_rows(X))
        memory = as_bytes(memory_bytes, "memory_bytes")
        K = KernelOperator(self.kernel, rows, self.centers, engine, memory)
        values = K @ self.coef.double()
        if self.target_scale is not None:
            values *= self.target_scale
        if self.target_shift is not None:
            values += self.target_shift
        return values

    def predict_labels(self, X: Any, **settings: Any) -> list[Label]:
        """Return the predicted class of each row; see `predict` for the arguments."""
        if self.classes is None:
            raise ValueError("this model is a regression and has no classes; use predict")
        values = self.predict(X, **settings)
        best = (values[:, 0] > 0).long() if values.shape[1] == 1 else values.argmax(dim=1)
        return [self.classes[i] for i in best.tolist()]

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
                f"columns in the order of training: {', '.join(self.feature_names)}"
            )
        return rows if self.standardizer is None else self.standardizer.apply(rows)

    def save(self, path: str | Path) -> None:
        """Write the model to one safetensors file with a JSON header; nothing is pickled.

        Parameters
        ----------
        path : str or Path
            Replaced only once the new file is complete.

        Raises
        ------
        OSError
            If it cannot be written; what was there before is unchanged.
        """
        tensors = {"coef": self.coef.clone(), **_center_tensors(self.centers)}
        for name in ("target_shift", "target_scale"):
            if getattr(self, name) is not None:
                tensors[name] = getattr(self, name).clone()  # the file format refuses views
        contiguous = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        write_tensors(path, contiguous, {"gramian": json.dumps(self._header())})

    def _header(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kernel": self.kernel.to_dict(),
            "centers": list(self.centers.shape),
            "standardizer": self.standardizer and self.standardizer.to_dict(),
            "feature_names": self.feature_names,
            "classes": self.classes,
            "info": dict(self.info),
        }

    @classmethod
    def load(cls, path: str | Path) -> KernelModel:
        """Read a model written by `save`.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is truncated, is not a model, or was written by a newer version.
        """
        header, tensors = _read(Path(path))
        try:
            return cls._from(header, tensors)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is a damaged gramian model: missing {error}") from error

    @classmethod
    def _from(cls, header: dict[str, Any], tensors: dict[str, Tensor]) -> KernelModel:
        standardizer, names, classes = (
            header[key] for key in ("standardizer", "feature_names", "classes")
        )
        return cls(
            kernel=from_dict(header["kernel"]),
            centers=_centers(tensors, header["centers"]),
            coef=tensors["coef"],
            standardizer=Standardizer.from_dict(standardizer) if standardizer else None,
            target_shift=tensors.get("target_shift"),
            target_scale=tensors.get("target_scale"),
            feature_names=tuple(names) if names is not None else None,
            classes=tuple(classes) if classes is not None else None,
            info=header["info"],
        )


def _center_tensors(centers: RowSource) -> dict[str, Tensor]:
    if isinstance(centers, ArrayRows):
        return {"centers": next(centers.blocks(len(centers)))[1]}  # a view, mapped or not
    z = gathered(centers, torch.arange(len(centers)), CENTER_BYTES)
    if not centers.sparse:
        return {"centers": z}
    return {
        "centers.crow": z.crow_indices(),
        "centers.col": z.col_indices(),
        "centers.values": z.values(),
    }


def _centers(tensors: dict[str, Tensor], shape: list[int]) -> RowSource:
    if "centers" in tensors:
        return as_rows(tensors["centers"])
    parts = tuple(tensors[f"centers.{part}"].numpy() for part in ("values", "col", "crow"))
    try:
        matrix = scipy.sparse.csr_array(parts, shape=tuple(shape))
        matrix.check_format(full_check=True)  # indices out of range would crash the process
    except ValueError as error:
        raise ValueError(f"the sparse centers of the model are damaged: {error}") from error
    return as_rows(matrix)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata.get("gramian", "{}"))
            _check_format(path, header)
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} is not a gramian model, or was cut off while it was copied ({error})"
        ) from error


def _check_format(path: Path, header: Any) -> None:
    if not (isinstance(header, dict) and isinstance(header.get("format"), int)):
        raise ValueError(f"{path} is a safetensors file but not a gramian model")
    if header["format"] > FORMAT:
        raise ValueError(
            f"{path} has format {header['format']}, written by gramian "
            f"{header.get('info', {}).get('version', '(newer)')}; this version reads up to "
            f"{FORMAT}: upgrade gramian"
        )
