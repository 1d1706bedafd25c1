"""Imports that cost little: modules when they are first used, and no collections in between."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class WhenUsed(ModuleType):
    """Stands for a module, which is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Let import statements have modules that are imported when they are first used.

    Only while this is open, only for modules that are installed and not yet imported, and for all
    threads: what they get in this time works, too.
    """
    absent = [name for name in names if name not in sys.modules and find_spec(name) is not None]
    stand_ins = {name: WhenUsed(name) for name in absent}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector from walking through all of torch again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
