"""Steps of a search, whose results are read from a journal or computed.

The decisions of a search depend on results, its random generator and the clock. A journal keeps all
three, so a resumed search decides as before, up to the step at which it was killed.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from .. import _arrays as xp
from .._arrays import Array, RandomStream
from .._parallel.machine import read_seconds
from .._sparse import is_sparse
from ..data import LinearMap
from ..kernels import Kernel, from_dict
from ..operators import CostMeter

Result = TypeVar("Result")

GENERATOR_STATE = "generator"
"""Name of the tensor with the state of the random generator after a step."""

_RESULT_CLASSES: dict[str, type] = {}


@runtime_checkable
class Store(Protocol):
    """Storage of parts by index, such as `gramian.callbacks.journal.Journal`."""

    def part(self, number: int) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """Return the facts and the tensors of a part; None if it is missing or damaged."""

    def append(self, number: int, facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> None:
        """Append a part with its facts and tensors."""

    def warn_of_damage(self, number: int) -> None:
        """Log that a part cannot be used."""


class Steps:
    """Ordered steps of a search, with the time that they took.

    Without a journal, each step is computed.

    Notes
    -----
    A step of the journal is used if its name and the results of all earlier steps are the same. A
    damaged step is computed again, and later steps stay valid if its result has the same bits.
    """

    def __init__(self) -> None:
        self._store: Store | None = None
        self._offset, self._started = 0.0, 0.0
        self._next, self._chain = 0, ""
        self._part: tuple[dict[str, Any], dict[str, Array]] | None = None
        self._replayed: deque[float] = deque()
        self._readings: list[float] = []
        self._is_computing = False

    def keep(self, store: Store, *, started: float, rng: RandomStream, meter: CostMeter) -> None:
        """Attach a journal: read its steps, and append new steps.

        Parameters
        ----------
        store : Journal
        started : float
            The time of `read_clock` at which the search began.
        rng : RandomStream
            Generator of the search.
        meter : CostMeter
            Meter of the search.
        """
        self._store, self._started, self._rng, self._meter = store, started, rng, meter
        self._load()

    def end(self) -> None:
        """Detach the journal: later steps belong to an interrupted search."""
        self._store, self._part = None, None
        self._replayed.clear()

    @property
    def are_kept(self) -> bool:
        """Whether there is a journal."""
        return self._store is not None

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the journal from copies for worker processes, which compute parts of a step."""
        # The offset stays, because workers compare the remaining seconds with the same clock.
        return Steps().__dict__ | {"_offset": self._offset}

    def read_clock(self) -> float:
        """Return the time of the search in seconds: `read_seconds` without the pauses.

        The journal keeps the readings between steps.
        """
        # Readings inside a step influence only its result, which is replayed as a whole.
        if self._replayed and not self._is_computing:
            return self._started + self._replayed.popleft()
        seconds = read_seconds() + self._offset
        if self.are_kept and not self._is_computing:
            self._readings.append(seconds - self._started)
        return seconds

    def run(self, name: str, compute: Callable[[], Result]) -> Result:
        """Return the result of a step: from the journal, or computed and appended to it.

        Parameters
        ----------
        name : str
            Name of the computation, whose arguments the earlier steps determine.
        compute : callable
            Returns numbers, tensors, kernels, linear maps, or dataclasses and tuples of these.
        """
        if self._store is None:
            return compute()
        # The result is in a tuple, as None may itself be a result.
        if (replayed := self._replay_step(name)) is not None:
            earlier: Result = replayed[0]
            return earlier
        spent, self._is_computing = self._meter.evaluations, True
        try:
            result = compute()
        finally:
            self._is_computing = False
        self._add(name, result, self._meter.evaluations - spent)
        return result

    def run_each(
        self,
        name: str,
        count: int,
        compute: Callable[[Sequence[int]], Iterator[tuple[Result, int]]],
        meter: CostMeter,
    ) -> Iterator[Result]:
        """Yield the results of `count` steps that do not depend on each other.

        Parameters
        ----------
        name : str
        count : int
        compute : callable
            Yields the results of steps, given their numbers, each with its kernel evaluations.
        meter : CostMeter
            Meter that adds up these evaluations.
        """
        if self._store is None:
            for result, spent in compute(range(count)):
                meter.evaluations += spent
                yield result
            return
        # 1. Read all steps from the journal. Each continues the chain of the steps before the
        # loop, not of its neighbours, so a missing or damaged one does not invalidate the others.
        first, chain = self._next, self._chain
        results: dict[int, Result] = {}
        chains: dict[int, str] = {}
        for number in range(count):
            self._next, self._chain = first + number, f"{chain} {number}"
            self._load()
            if (replayed := self._replay_step(name)) is not None:
                results[number], chains[number] = replayed[0], self._chain
        # 2. Compute the missing ones together, so that workers share them.
        missing = [number for number in range(count) if number not in results]
        self._is_computing = True
        try:
            fresh = compute(missing)
            # 3. Yield in order. `pop` releases results that the caller may drop.
            for number in range(count):
                if number in results:
                    yield results.pop(number)
                    continue
                result, spent = next(fresh)
                meter.evaluations += spent
                self._next, self._chain = first + number, f"{chain} {number}"
                self._add(name, result, spent)
                chains[number] = self._chain
                yield result
        finally:
            self._is_computing = False
        # 4. Later steps depend on all of these results.
        together = " ".join(chains[number] for number in range(count))
        self._next, self._chain = first + count, hashlib.sha256(together.encode()).hexdigest()
        self._load()

    def _load(self) -> None:
        """Read the next step from the journal, and the clock readings before the step."""
        self._part = None if self._store is None else self._store.part(self._next)
        self._replayed.clear()
        # The next record may be the first one of `run_each`, whose chain has its number.
        chains = (self._chain, f"{self._chain} 0")
        if self._part is not None and self._part[0].get("before") in chains:
            self._replayed.extend(map(float, self._part[0].get("readings", [])))

    def _replay_step(self, name: str) -> tuple[Any] | None:
        """Return the result of the next step from the journal, and advance; None if missing."""
        if self._part is None:
            return None
        facts, tensors = self._part
        # Readings that the search has not asked for do not precede any later step.
        self._replayed.clear()
        if facts.get("step") != name or facts.get("before") != self._chain:
            return None
        try:
            # Everything that can fail comes before the first change to the search: a damaged
            # record must leave no trace, as the step is then computed.
            state, ended = tensors[GENERATOR_STATE], float(facts["ended"])
            spent = int(facts["evaluations"])
            result = unpack(facts["result"], tensors)
            self._rng.set_state(state)
            self._meter.evaluations += spent
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError):
            if self._store is not None:
                self._store.warn_of_damage(self._next)
            return None
        # The clock continues from the end of the step: pauses between two runs do not count.
        self._offset = self._started + ended - read_seconds()
        self._advance(name, tensors)
        return (result,)

    def _add(self, name: str, result: object, spent: int) -> None:
        """Append a step to the journal."""
        tensors = {GENERATOR_STATE: self._rng.state()}
        facts = {
            "step": name, "before": self._chain, "readings": self._readings,
            "ended": read_seconds() + self._offset - self._started, "evaluations": spent,
            "result": pack(result, tensors),
        }  # fmt: skip
        if self._store is not None:
            self._store.append(self._next, facts, tensors)
        self._advance(name, tensors)

    def _advance(self, name: str, tensors: Mapping[str, Array]) -> None:
        digest = hashlib.sha256(f"{self._chain} {name}".encode())
        for key in sorted(tensors):
            # Among the tensors is the state of the generator, so the chain also covers random
            # numbers.
            dense = xp.contiguous(xp.detach(tensors[key])).reshape(-1)
            digest.update(dense.view(xp.uint8).tobytes())
        self._chain, self._readings = digest.hexdigest(), []
        self._next += 1
        self._load()


def register_results(*classes: type) -> None:
    """Let steps return dataclasses of these types, which the journal finds by their names."""
    _RESULT_CLASSES.update({cls.__name__: cls for cls in classes})


def pack(value: Any, tensors: dict[str, Array]) -> Any:
    """Return a result as JSON, and put its tensors into `tensors`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    # Lists are packed, too: JSON would return tuples as lists.
    if isinstance(value, tuple | list):
        return {type(value).__name__: [pack(element, tensors) for element in value]}
    if xp.is_array(value):
        if is_sparse(value):
            parts = (xp.indptr(value), xp.indices(value), xp.entries(value))
            return {"sparse": [pack(part, tensors) for part in parts], "shape": list(value.shape)}
        name = str(len(tensors))
        tensors[name] = value
        return {"tensor": name, "strides": xp.strides(value)}
    if isinstance(value, Kernel):
        return {"kernel": value.to_dict()}
    if isinstance(value, LinearMap):
        return {"map": [pack(part, tensors) for part in (value.matrix, value.scales)]}
    if is_dataclass(value) and type(value).__name__ in _RESULT_CLASSES:
        packed = {f.name: pack(getattr(value, f.name), tensors) for f in fields(value)}
        return {"class": type(value).__name__, "fields": packed}
    raise TypeError(f"the journal of a search cannot store a {type(value).__name__}")


def unpack(value: Any, tensors: Mapping[str, Array]) -> Any:
    """Return the result that `pack` encoded."""
    if not isinstance(value, dict):
        return value
    if "class" in value:
        values = {name: unpack(field, tensors) for name, field in value["fields"].items()}
        return _RESULT_CLASSES[value["class"]](**values)
    if "kernel" in value:
        return from_dict(value["kernel"])
    if "tensor" in value:
        tensor = tensors[value["tensor"]]
        # Products round differently for another order in memory.
        return xp.with_strides(tensor, value["strides"])
    if "sparse" in value:
        crow, col, values = (unpack(part, tensors) for part in value["sparse"])
        # Indices from a damaged record could address memory outside the tensor.
        return xp.csr(crow, col, values, tuple(value["shape"]), check=True)
    if "map" in value:
        return LinearMap(*(unpack(part, tensors) for part in value["map"]))
    ((kind, packed),) = value.items()
    elements = [unpack(element, tensors) for element in packed]
    return tuple(elements) if kind == "tuple" else elements
