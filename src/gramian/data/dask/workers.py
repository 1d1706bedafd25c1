"""Interface to the workers of a cluster: client, arrays sent to workers, and results."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, TypeVar

import dask
import distributed
import numpy as np
from dask.utils import parse_timedelta
from distributed.client import CancelledError, FuturesCancelledError
from distributed.comm import CommClosedError

from ..._messages.checks import readable_bytes
from ..._messages.errors import TextError
from .part import Part, view_source
from .serialize import is_large, pack_value, receive_array

Result = TypeVar("Result")

Sent = tuple[bytes, dict[str, Any]]
"""A pickled value, and the large arrays in it by their keys."""

SHARED_ARRAYS = 8
"""Large arrays that stay on the workers, in addition to the arrays of parts."""

DEFAULT_PATIENCE = "5 minutes"
"""Time without any worker after which a pass ends; Dask alone would wait for ever."""

NAMED_TASKS = 1 << 16
"""Tasks of which is known which part they are for."""

CHECK_SECONDS = 1.0
"""Seconds between two checks for workers."""

MEMORY_SHARE = 0.6
"""Share of the memory of workers that rows may take; Dask writes to disk from there on."""

TASK_RETRIES = 3

CANCELLED_ERRORS = (FuturesCancelledError, CancelledError)

NAMED_PARTS = 3
"""Parts that an error names."""


class Workers:
    """Interface of `DaskRows` to the workers of a cluster.

    Attributes
    ----------
    patience : float
        Seconds without any worker after which a pass ends with an error: ``gramian.patience`` in
        Dask's configuration, or five minutes.
    """

    def __init__(self, client: distributed.Client) -> None:
        patience = dask.config.get("gramian.patience", DEFAULT_PATIENCE)
        self.client, self.patience = client, float(parse_timedelta(patience))
        # In the order of use: the oldest is dropped first.
        self.sent = OrderedDict[str, Any]()
        self._parts = OrderedDict[str, Part]()
        self._homes: dict[str, str] = {}

    def start(
        self, verb: Callable[..., Any], parts: Sequence[Part], *along: Sequence[Any]
    ) -> list[Any]:
        """Start ``verb(source, changes, *one of each along)`` on each part, on its worker.

        See `beside_parts`.
        """
        sources, changes = [part.source for part in parts], [part.changes for part in parts]
        futures = self.beside_parts(parts, verb, sources, changes, *along)
        self._parts.update((task.key, part) for task, part in zip(futures, parts, strict=True))
        # Only for the names in errors, so that a bounded number is kept.
        while len(self._parts) > NAMED_TASKS:
            self._parts.popitem(last=False)
        return futures

    def beside_parts(
        self, parts: Sequence[Part], verb: Callable[..., Any], *along: Sequence[Any]
    ) -> list[Any]:
        """Start a task for each part on the worker that keeps it, so that rows are not moved.

        Tasks with the same worker, or with none, form one message to the scheduler, which takes
        about as long as the message of a single task.
        """
        homes = [self._homes.get(getattr(part.source, "key", "")) for part in parts]
        futures: list[Any] = [None] * len(parts)
        for home in dict.fromkeys(homes):
            places = [place for place, home_of_part in enumerate(homes) if home_of_part == home]
            # Others may take over if the home is lost; the part is then made again.
            pinned = {"workers": [home], "allow_other_workers": True} if home else {}
            own_arguments = [[home_of_part[place] for place in places] for home_of_part in along]
            for place, task in zip(places, self.map(verb, *own_arguments, **pinned), strict=True):
                futures[place] = task
        return futures

    def map(self, verb: Callable[..., Any], *along: Sequence[Any], **where: Any) -> list[Any]:
        """Start a task for each element, in one message to the scheduler."""
        # Not pure: Dask would otherwise hash all arguments, and reuse results of equal tasks of an
        # earlier pass.
        futures: list[Any] = self.client.map(
            verb, *along, pure=False, retries=TASK_RETRIES, **where
        )
        return futures

    def slots(self) -> int:
        """Return the number of tasks that run at once at present."""
        return sum(self.client.nthreads().values())

    def memory(self) -> list[int]:
        """Return the memory limits, in bytes, of the workers that have one."""
        worker_infos = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return [int(info["memory_limit"]) for info in worker_infos if info["memory_limit"]]

    def check_room(self, held: int) -> None:
        """Raise ValueError if the workers do not have `held` free bytes."""
        limits = self.memory()
        # Without a known limit nothing can be refused.
        if limits and held > MEMORY_SHARE * sum(limits):
            raise ValueError(
                f"rows of {readable_bytes(held)} do not fit into {len(limits):,} workers with "
                f"{readable_bytes(sum(limits))} of memory in all; read them in each pass with "
                "keep=False, or start more workers"
            )

    def find(self, parts: Sequence[Part]) -> None:
        """Look up in one round trip which workers keep the parts; before, no worker is known."""
        kept_futures = [p.source for p in parts if isinstance(p.source, distributed.Future)]
        if kept_futures:
            holders = self.client.who_has(kept_futures)
            self._homes |= {
                str(key): next(iter(addresses)) for key, addresses in holders.items() if addresses
            }

    def value(self, fn: Any, parts: int) -> Sent:
        """Return a value in the form that is sent: pickled, with keys in place of large arrays."""
        used: dict[str, Any] = {}

        def share(array: np.ndarray) -> str:
            key, future = self._shared(array, parts)
            # The future in the arguments is replaced by the array on the worker.
            used[key] = future
            return key

        return pack_value(fn, share), used

    def beside(self, numbers: Any, parts: int) -> Any:
        """Return row-aligned numbers of a part in the form in which they are sent."""
        return self._shared(numbers, parts)[1] if is_large(numbers) else numbers

    def results(self, futures: list[Any], *, bring: bool = True) -> list[Any]:
        """Return results; raise an error without a worker for too long, or if a part kills workers.

        Results are fetched only with `bring`. If the wait ends early, for instance by Ctrl-C, the
        tasks are cancelled: their errors would keep the rows in memory as long as the client.
        """
        try:
            return self._results(futures, bring=bring)
        except CANCELLED_ERRORS:
            raise ConnectionError(
                "rows or numbers in the memory of workers are lost: the cluster was restarted, or "
                "tasks were cancelled; open the rows again"
            ) from None
        # Also Ctrl-C: tasks that nobody waits for would keep the workers busy.
        except BaseException:
            self.cancel(futures)
            raise

    def cancel(self, futures: list[Any]) -> None:
        """Cancel tasks whose results are not needed any more, unless the client is closed."""
        # Called while another error is raised, which an error of this call must not replace.
        with contextlib.suppress(Exception):
            self.client.cancel([future for future in futures if future is not None])

    def _results(self, futures: list[Any], *, bring: bool) -> list[Any]:
        last_seen = time.monotonic()
        while True:
            try:
                # `wait` would otherwise run in the loop of the default client.
                with self.client.as_current():
                    # In short turns, because Dask alone waits for ever if all workers are lost.
                    distributed.wait(futures, timeout=CHECK_SECONDS)
                break
            except TimeoutError:
                last_seen = self._time_last_seen(futures, last_seen)
        # Results that stay on the workers need no message; if one of them has failed, `gather`
        # raises its error.
        if not bring and all(future.status == "finished" for future in futures):
            return []
        try:
            results: list[Any] = self.client.gather(futures)
        except distributed.KilledWorker as error:
            raise MemoryError(
                f"{self._describe_sources(error, futures)} ended {TASK_RETRIES + 1} workers "
                "in a row, usually for lack of memory: give each worker more memory (`gramian "
                "plan` estimates it), or make smaller files or partitions"
            ) from None
        return results

    def call_all(self, ask: Callable[[], Result]) -> Result:
        """Return the common answer of all workers; raise ValueError if answers differ."""
        answers = self._answers(ask)
        if any(answer != answers[0] for answer in answers):
            kinds = Counter(repr(answer) for answer in answers).most_common()
            kinds_text = "; ".join(f"{count:,} have {kind}" for kind, count in kinds)
            raise TextError(
                "workers differ: {}; set one that all workers have, such as {engine='numpy'}",
                kinds_text,
            )
        first_answer: Result = answers[0]
        return first_answer

    def mean(self, ask: Callable[[], float]) -> float:
        """Return the mean of the answers of all workers, which compute them at the same time."""
        answers: list[float] = self._answers(ask)
        return sum(answers) / len(answers)

    def _answers(self, ask: Callable[[], Any]) -> list[Any]:
        """Return the answers of workers that are not lost; raise the first error if all fail."""
        replies = list(self.client.run(ask, on_error="return").values())
        answers = [reply for reply in replies if not isinstance(reply, Exception)]
        errors = [reply for reply in replies if isinstance(reply, Exception)]
        if not answers:
            raise (
                errors[0] if errors else ConnectionError(f"{self.client} has no workers; start one")
            )
        return answers

    def check(self, path: str | None = None) -> None:
        """Raise ValueError if a worker has another gramian, or cannot see a path."""
        own = version("gramian")
        for address, reply in self.client.run(view_source, path, on_error="return").items():
            if isinstance(reply, CommClosedError):
                # The worker is lost: its replacement reads or fails.
                continue
            if isinstance(reply, ImportError):
                raise ValueError(
                    f"worker {address} has no gramian with dask; install gramian[dask] {own} on it"
                )
            if isinstance(reply, Exception):
                raise reply
            if reply[0] != own:
                raise ValueError(
                    f"worker {address} has gramian {reply[0]}, but this process has {own}; install "
                    "the same version"
                )
            if not reply[1]:
                raise ValueError(
                    f"worker {address} cannot see {path}: the path must be the same on all workers"
                )

    def _describe_sources(self, error: distributed.KilledWorker, futures: list[Any]) -> str:
        """Describe the rows whose tasks killed workers.

        All tasks of a worker that was killed are suspected, including tasks that only waited.
        """
        # Dask names one task, but a worker runs several at once, each of which may have taken the
        # memory.
        suspects = {str(error.task)}
        for future in futures:
            if future.status == "error" and isinstance(future.exception(), type(error)):
                suspects.add(future.key)
        parts = [self._parts[key] for key in suspects if key in self._parts]
        part_texts = [f"{p.path or 'a partition'} of {p.rows:,} rows" for p in parts]
        if not part_texts:
            return "a task"
        more = (
            f" or one of {len(part_texts) - NAMED_PARTS:,} others"
            if len(part_texts) > NAMED_PARTS
            else ""
        )
        return " or ".join(sorted(part_texts)[:NAMED_PARTS]) + more

    def _time_last_seen(self, futures: list[Any], seen: float) -> float:
        """Return the time at which a worker was last seen; raise an error if it is too long ago."""
        moment = time.monotonic()
        if self.client.status != "running":
            raise ConnectionError(f"{self.client} is closed: its scheduler has ended")
        # Any worker will do: a pass that only waits for slow tasks has no limit of time.
        if self.client.scheduler_info()["workers"]:
            return moment
        if moment - seen > self.patience:
            raise ConnectionError(
                f"no worker has been available for {self.patience:.0f} s; start workers, and "
                "resume from the last checkpoint"
            )
        return seen

    def _shared(self, array: np.ndarray, parts: int) -> tuple[str, Any]:
        """Return the remote copy of an array; send the array if the workers do not have it.

        The bytes of the array are part of a task: the scheduler keeps them, and the array can be
        recreated if a worker is lost.
        """
        data = array.tobytes()
        about = f"{array.dtype.str}{array.shape}".encode()
        # By its contents, so that equal arrays of several passes are sent once.
        key = f"gramian-{hashlib.blake2b(data + about, digest_size=16).hexdigest()}"
        # A cancelled or failed task, as after a restart of the cluster, is sent again.
        if key not in self.sent or self.sent[key].status not in ("pending", "finished"):
            self.sent[key] = self.client.submit(
                receive_array, data, array.dtype.str, array.shape, key=key, pure=False
            )
            while len(self.sent) > SHARED_ARRAYS + 3 * parts:
                self.sent.popitem(last=False)
        self.sent.move_to_end(key)
        return key, self.sent[key]


def repeat_arguments(values: Sequence[Any], count: int) -> list[list[Any]]:
    """Return each value once for each task."""
    return [[value] * count for value in values]


def connected_client(client: distributed.Client | None = None) -> distributed.Client:
    """Return `client`, by default the newest client; raise ValueError without a client."""
    try:
        used_client: distributed.Client = distributed.default_client() if client is None else client
    except ValueError:
        raise ValueError(
            "no Dask client: connect first with distributed.Client('tls://scheduler:8786'), or "
            "pass a client, as in DaskRows.open(path, client=client)"
        ) from None
    if used_client.asynchronous:
        raise ValueError(
            f"{used_client} is asynchronous, but a fit waits for its passes; pass a client without "
            "asynchronous=True"
        )
    return used_client
