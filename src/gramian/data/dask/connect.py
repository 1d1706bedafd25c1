"""Connection to a Dask cluster, or to processes on this machine."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import dask
import distributed
from distributed.security import Security

from ..._messages.display import without_secrets
from ..remote.rows import FOLDER_CLIENT

ANSWER_SECONDS = 10.0
"""Seconds in which a scheduler has to answer."""

ONE_MACHINE = {
    # A worker that is lost on a busy machine is waited for: there is no other.
    "distributed.deploy.lost-worker-timeout": "600s",
    # Of each second of an idle worker Dask spends 25 ms on monitoring itself, and 3 with these.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "500ms",
    # Otherwise kept rows move between workers, and values that all workers need are dropped by all
    # but one.
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # Dask always opens HTTP ports, without certificates: they serve no page.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""Settings of Dask for processes on this machine; a cluster elsewhere has its own."""

SECURE_PROTOCOLS = ("tls://", "wss://", "inproc://")
"""Protocols that require certificates or stay within the process."""


@contextmanager
def connection(
    address: str | int,
    *,
    wait: float | None = None,
    patience: str | float | None = None,
    keep: bool | None = None,
) -> Iterator[distributed.Client]:
    """Connect to a cluster while a context lasts: its workers read folders opened within it.

    - `address`: address of a scheduler, such as ``tls://scheduler:8786``; or the number of
      processes of one thread to start on this machine, which end with the context. Only this client
      can connect to them: their keys and certificates are new, and stay in memory.
    - `wait`: seconds within which a scheduler has to answer; `ANSWER_SECONDS`, 10, by default.
    - `patience`: time without any worker after which a pass ends with an error, as ``"5min"``.
    - `keep`: whether workers keep rows of folders in memory.

    Raises
    ------
    ConnectionError
        If no scheduler answers.
    ValueError
        If `address` requests processes and cryptography is not installed.

    Warns
    -----
    UserWarning
        If the scheduler accepts connections without a certificate.
    """
    settings = {"gramian.patience": patience, "gramian.keep": keep}
    with (
        dask.config.set({name: value for name, value in settings.items() if value is not None}),
        _local(address)
        if isinstance(address, int)
        else _remote(address, ANSWER_SECONDS if wait is None else wait) as client,
    ):
        # A context variable: other threads, and calls after the context, still read folders
        # themselves.
        before = FOLDER_CLIENT.set(client)
        try:
            yield client
        finally:
            FOLDER_CLIENT.reset(before)


@contextmanager
def _local(processes: int) -> Iterator[distributed.Client]:
    try:
        security = Security.temporary()
    except ImportError:
        raise ValueError(
            "processes on this machine need cryptography for their certificates, without which "
            "any other user could connect to them: pip install 'gramian[dask]'"
        ) from None
    parent = dask.config.get("temporary-directory", None)
    with (
        dask.config.set(ONE_MACHINE),
        # Dask's own folder may belong to another user, and Dask unpickles the files in it.
        tempfile.TemporaryDirectory(
            prefix="dask-scratch-space-", dir=parent, ignore_cleanup_errors=True
        ) as folder,
        distributed.LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            host="127.0.0.1",
            security=security,
            local_directory=folder,
            # None would take the port 8787.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextmanager
def _remote(address: str, wait: float) -> Iterator[distributed.Client]:
    try:
        client = distributed.Client(address, timeout=wait)
    except (OSError, TimeoutError, ValueError) as error:
        reason_lines = str(error).splitlines()
        # Only errors about the form of an address help, and only if it has no password, which Dask
        # repeats in them.
        tells = reason_lines and isinstance(error, ValueError) and "@" not in address
        reason = f" ({without_secrets(reason_lines[0])})" if tells else ""
        raise ConnectionError(
            f"no Dask scheduler answers at {without_secrets(address)} within {wait:.0f} s; start "
            f"one, or check the address{reason}"
        ) from None
    if not address.startswith(SECURE_PROTOCOLS):
        warnings.warn(
            f"the scheduler at {without_secrets(address)} accepts connections without a "
            "certificate: anyone who reaches it can run code on its workers and, through their "
            "answers, in this process; use tls:// with certificates, or a private network",
            stacklevel=2,
        )
    with client:
        yield client
