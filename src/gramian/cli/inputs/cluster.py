"""`on_cluster`: run a command on the Dask cluster that ``--dask`` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..options import parsing

LOCAL_PREFIX = "local:"


@contextmanager
def on_cluster(
    option: str | None, data: Path, patience: str | None = None, keep: bool = False
) -> Iterator[None]:
    """Connect to a cluster, or start local processes; do nothing without ``--dask``.

    - `option`: the value of ``--dask``.
    - `data`: folder whose files are the parts of the table.
    - `patience`: the value of ``--dask-patience``.
    - `keep`: whether ``--dask-keep`` is given.

    Raise ValueError if the value is not valid, the data are not a folder, or Dask is not
    installed, and ConnectionError if no scheduler answers.
    """
    if option is None:
        if patience is not None or keep:
            raise ValueError("--dask-patience and --dask-keep require --dask")
        yield
        return
    address = _address(option)
    if not data.is_dir():
        raise ValueError(f"--dask requires DATA to be a folder of .parquet files, not {data}")
    try:
        from ...data.dask.connect import connection
    except ImportError:
        raise ValueError("--dask needs Dask: pip install 'gramian[dask]'") from None
    seconds = None if patience is None else parsing.seconds(patience, "--dask-patience")
    with connection(address, patience=seconds, keep=keep or None):
        yield


def _address(option: str) -> str | int:
    if not option.startswith(LOCAL_PREFIX):
        # The message leaves out user and password, which precede the @ of an address.
        if "://" not in option:
            raise ValueError(
                "--dask must be the address of a scheduler, such as tls://scheduler:8786, or "
                f"local:4 for four processes on this machine, not {option.rpartition('@')[2]}"
            )
        return option
    count = option.removeprefix(LOCAL_PREFIX)
    if not count.isdecimal() or int(count) < 1:
        raise ValueError(
            f"--dask local:NUMBER must have a number of processes, such as local:4, not {option}"
        )
    return int(count)
