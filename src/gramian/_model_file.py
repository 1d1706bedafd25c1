"""The file of a model: what is in it, and what must hold before it is believed.

A safetensors file with the tensors ``coef``, ``centers`` (or the three parts of sparse ones) and,
if there are, ``target_shift``, ``target_scale`` and those of an encoding; in its metadata a JSON
header with all the rest, and a digest of the file. Older formats are read: format 2 has no encoding
and no names of targets, and format 1 neither a digest nor the list of parts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import scipy.sparse
import torch
from torch import Tensor

from ._tensors import DamagedFile, read_tensors, write_tensors
from .data import Encoding, RowSource, Standardizer, as_rows, check_finite, gathered
from .data.array import ArrayRows
from .kernels import Kernel, from_dict

FORMAT = 3
"""Version of the file format. A reader refuses a newer one."""

KEY = "gramian"
"""Key of the header in the metadata of the file."""

CENTER_BYTES = 1 << 28
"""Centers of another source than an array are copied to be saved: to a file if they are more."""

ENCODING = "encoding."
"""Beginning of the names of the tensors of an encoding."""

OPTIONAL = ("standardizer", "feature_names", "classes", "encoding", "target")
NEW_IN_3 = ("encoding", "target")
FIELDS = {"format", "kernel", "centers", "info", *OPTIONAL}
SPARSE = ("centers.values", "centers.col", "centers.crow")


def write_model(path: str | Path, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write a model; `header` and `tensors` are what `read_model` reads.

    Parameters
    ----------
    header : dict
        What JSON can hold: kernel, shape of the centers, standardizer, ...
    tensors : dict of str to Tensor
    """
    there = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    about = {"format": FORMAT, **header, "parts": _parts(header, there)}
    write_tensors(path, there, {KEY: json.dumps(about)})


def _parts(header: dict[str, Any], tensors: Iterable[str]) -> list[str]:
    """Return the names of what a model has and others do not have."""
    return sorted([*tensors, *(name for name in OPTIONAL if header[name] is not None)])


def center_tensors(centers: RowSource) -> dict[str, Tensor]:
    """Return the tensors that centers are kept in."""
    if isinstance(centers, ArrayRows):
        return {"centers": next(centers.blocks(len(centers)))[1]}  # a view, mapped or not
    z = gathered(centers, torch.arange(len(centers)), CENTER_BYTES)
    if not centers.sparse:
        return {"centers": z}
    parts = (z.values(), z.col_indices(), z.crow_indices())
    return dict(zip(SPARSE, parts, strict=True))


def read_model(path: Path, verify: bool) -> dict[str, Any]:
    """Return the parts of the model in a file: the arguments of `KernelModel`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no model, is damaged, or was written by a newer version.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        contents = read_tensors(path, verify=verify)
        header = json.loads(contents.metadata.pop(KEY, "null"))
    except (DamagedFile, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a gramian model, or was cut off while it was copied, or changed "
            f"since it was written ({error})"
        ) from error
    _check_format(path, header)
    try:
        if contents.metadata or (header["format"] > 1 and contents.digest is None):
            raise ValueError("its digest is missing")
        _check_header(header, contents.tensors)
        parts = _assembled(header, contents.tensors)
        check_parts(parts)
        if verify:
            check_finite(parts["centers"], "centers")
    except KeyError as error:
        raise ValueError(f"{path} is a damaged gramian model: missing {error}") from error
    except (ValueError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        raise ValueError(f"{path} is a damaged gramian model: {error}") from error
    return parts


def _check_format(path: Path, header: Any) -> None:
    if not (isinstance(header, dict) and isinstance(header.get("format"), int)):
        raise ValueError(f"{path} is a safetensors file but not a gramian model")
    if header["format"] > FORMAT:
        info = header.get("info")
        version = info.get("version", "(newer)") if isinstance(info, dict) else "(newer)"
        raise ValueError(
            f"{path} has format {header['format']}, written by gramian {version}; this version "
            f"reads up to {FORMAT}: upgrade gramian"
        )


def _check_header(header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    if header["format"] < 3:
        header |= dict.fromkeys(NEW_IN_3)
    there = set(_parts(header, tensors))
    named = set(header.pop("parts")) if header["format"] > 1 else there
    if there != named:
        raise ValueError(f"header and contents differ by {', '.join(map(str, there ^ named))}")
    if unknown := set(header) - FIELDS:
        raise ValueError(f"its header has the unknown fields {', '.join(sorted(unknown))}")
    known = {"coef", "target_shift", "target_scale", *(SPARSE if SPARSE[0] in tensors else ())}
    if header["encoding"] is not None:
        known |= {name for name in tensors if name.startswith(ENCODING)}
    if unknown := set(tensors) - known - {"centers"}:
        raise ValueError(f"it has the unknown tensors {', '.join(sorted(unknown))}")
    if not isinstance(header["info"], dict):
        raise ValueError("info is no object")


def _assembled(header: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    standardizer, names, classes, encoding, target = (header[key] for key in OPTIONAL)
    parts = {k.removeprefix(ENCODING): v for k, v in tensors.items() if k.startswith(ENCODING)}
    return {
        "kernel": from_dict(header["kernel"]),
        "centers": _centers(tensors, header["centers"]),
        "coef": tensors["coef"],
        "standardizer": None if standardizer is None else Standardizer.from_dict(standardizer),
        "target_shift": tensors.get("target_shift"),
        "target_scale": tensors.get("target_scale"),
        "feature_names": None if names is None else tuple(names),
        "classes": None if classes is None else tuple(classes),
        "encoding": None if encoding is None else Encoding.from_parts(encoding, parts),
        "target": None if target is None else tuple(target),
        "info": header["info"],
    }


def _centers(tensors: dict[str, Tensor], shape: list[int]) -> RowSource:
    if SPARSE[0] not in tensors:
        dense = tensors["centers"]
        if list(dense.shape) != shape:
            raise ValueError(f"its centers have shape {list(dense.shape)}, the header says {shape}")
        _check_floating("centers", dense)
        return as_rows(dense)
    values, *indices = (tensors[name] for name in SPARSE)
    _check_floating("centers.values", values)
    try:
        matrix = scipy.sparse.csr_array(
            (values.numpy(), *(index.numpy() for index in indices)), shape=tuple(shape)
        )
        matrix.check_format(full_check=True)  # indices out of range would crash the process
    except (ValueError, TypeError) as error:
        raise ValueError(f"the sparse centers of the model are damaged: {error}") from error
    return as_rows(matrix)


def check_parts(parts: Mapping[str, Any]) -> None:
    """Refuse parts of a model that do not fit together: ValueError, at no cost of order m d."""
    kernel, centers, coef = parts["kernel"], parts["centers"], parts["coef"]
    (m, d), t = centers.shape, coef.shape[-1]
    if coef.ndim != 2 or 0 in coef.shape:
        raise ValueError(f"coef must have shape ({m}, t), not {tuple(coef.shape)}")
    if len(coef) != m:
        raise ValueError(f"{m} centers but {len(coef)} coefficients")
    _check_numbers("coef", coef, tuple(coef.shape))
    _check_kernel(kernel, d)
    for name in ("target_shift", "target_scale"):
        if parts[name] is not None:
            _check_numbers(name, parts[name], (t,), positive=name == "target_scale")
    if (standardizer := parts["standardizer"]) is not None:
        _check_numbers("standardizer.mean", standardizer.mean, (d,))
        _check_numbers("standardizer.scale", standardizer.scale, (d,), positive=True)
    _check_texts("feature_names", parts["feature_names"], d)
    _check_texts("target", parts["target"], t if parts["classes"] is None else 1)
    if (encoding := parts["encoding"]) is not None and encoding.width != d:
        raise ValueError(f"the encoding gives {encoding.width} features, but centers have {d}")
    _check_classes(parts["classes"], t)


def _check_kernel(kernel: Kernel, d: int) -> None:
    if kernel.dim not in (None, d):
        raise ValueError(f"the kernel has {kernel.dim} lengthscales for {d} features")
    if "median" in json.dumps(kernel.to_dict()):
        raise ValueError("the kernel's lengthscale is no number")


def _check_floating(name: str, tensor: Tensor) -> None:
    if tensor.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} must be float32 or float64, not {tensor.dtype}")


def _check_numbers(
    name: str, tensor: Tensor, shape: tuple[int, ...], positive: bool = False
) -> None:
    _check_floating(name, tensor)
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} must have shape {shape}, not {tuple(tensor.shape)}")
    if not bool(tensor.isfinite().all()):
        raise ValueError(f"{name} holds numbers that are not finite")
    if positive and not bool((tensor > 0).all()):
        raise ValueError(f"{name} must be positive")


def _check_texts(what: str, names: tuple[Any, ...] | None, count: int) -> None:
    if names is None:
        return
    if len(names) != count or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{what} must be {count} texts, not {names!r}")


def _check_classes(classes: tuple[Any, ...] | None, t: int) -> None:
    if classes is None:
        return
    expected = 2 if t == 1 else t
    if len(classes) != expected or len(set(classes)) != expected:
        raise ValueError(f"{t} targets have {expected} classes, and its header names {classes!r}")
    if not all(isinstance(label, str | int | float) for label in classes):
        raise ValueError(f"classes must be texts or numbers, not {classes!r}")
    if any(isinstance(label, float) and not math.isfinite(label) for label in classes):
        raise ValueError(f"classes must be finite, not {classes!r}")
