"""Checks of output files before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..._files.atomic import check_output
from ...data.formats import format_of


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Sequence[Path] = (), *, folder: bool = False
) -> None:
    """Raise ValueError for outputs that cannot be written, are inputs, or are equal.

    - `outputs`: files by the names of their options.
    - `inputs`: files and directories that the command reads.
    - `folder`: whether outputs are folders of files.
    """
    names_by_path: dict[Path, str] = {}
    for name, path in outputs.items():
        if path is None:
            continue
        _check_writable(name, path, folder)
        _check_inputs(name, path, inputs)
        earlier_name = names_by_path.setdefault(path.resolve(), name)
        if earlier_name != name:
            raise ValueError(f"--{name} and --{earlier_name} are both {path}; give two files")


def _check_writable(name: str, path: Path, folder: bool) -> None:
    try:
        check_output(path, folder=folder)
    except ValueError as error:
        raise ValueError(f"--{name} {error}") from None
    except OSError as error:
        raise ValueError(f"--{name} {path} cannot be written: {error.strerror}") from None


def _check_inputs(name: str, path: Path, inputs: Sequence[Path]) -> None:
    # Links and relative paths may lead to an input.
    resolved = path.resolve()
    for source in (path_given.resolve() for path_given in inputs):
        if resolved == source:
            raise ValueError(f"--{name} {path} would overwrite an input; give another file")
        inside = source.is_dir() and source in resolved.parents
        if inside and format_of(source).is_part(resolved.relative_to(source)):
            raise ValueError(
                f"--{name} {path} would become a part of the input data in its directory; give a "
                "file in another directory"
            )
