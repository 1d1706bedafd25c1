"""Imports that cost little: modules when they are first used, and no collections in between."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_lock = threading.RLock()
"""Held while entries of `sys.modules` change; imports have locks of their own."""


class WhenUsed(ModuleType):
    """Stands for a module, which is imported when something of it is asked for.

    Its attributes are the attributes of the module; only `is` distinguishes them.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(_import_module(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_import_module(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_import_module(self), name)

    def __dir__(self) -> list[str]:
        return dir(_import_module(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


def _import_module(stand_in: WhenUsed) -> ModuleType:
    _remove_stand_ins(stand_in)
    return import_module(stand_in.__name__)


def _remove_stand_ins(stand_in: WhenUsed) -> None:
    with _lock:
        if sys.modules.get(stand_in.__name__) is stand_in:
            del sys.modules[stand_in.__name__]


@contextmanager
def defer_imports(*names: str) -> Iterator[None]:
    """Let import statements have modules that are imported when they are first used.

    Only in this context, only for modules that are installed and not yet imported, and for all
    threads: a module that another thread imports in this time works, too. If two threads use the
    context, or a child is forked in it, placeholders leave `sys.modules` when they are first used.
    """
    stand_ins = [_stand_in(name) for name in names if name not in sys.modules]
    with _lock:
        placed = [
            stand_in
            for stand_in in stand_ins
            if stand_in is not None and stand_in.__name__ not in sys.modules
        ]
        sys.modules.update({stand_in.__name__: stand_in for stand_in in placed})
    try:
        yield
    finally:
        for stand_in in placed:
            _remove_stand_ins(stand_in)


def _stand_in(name: str) -> WhenUsed | None:
    """Return the placeholder of a module, with the spec that importlib needs."""
    spec = find_spec(name)
    if spec is None:
        return None
    stand_in = WhenUsed(name)
    vars(stand_in)["__spec__"] = spec
    return stand_in


@contextmanager
def pause_collection() -> Iterator[None]:
    """Keep the garbage collector from walking through all of torch again and again.

    Nor after it is enabled again: existing objects then count as old.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # what others have frozen stays so
            gc.freeze()
            gc.unfreeze()
        if was_on:
            gc.enable()
