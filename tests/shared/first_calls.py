"""Shapes and types are checked in the first calls of each function, in each case of each test.

Which calls are checked does not depend on other cases, nor on their order. Counts that began anew
in each test function only, at ten calls for all its cases, took 17 CPU seconds of the contract of
selectors; three calls in each case take 21 and 23, ten take 23 and 28, on a busy machine. Tests of
kernels, the regressor and resuming solvers took 39.1 together, and take 39.0 with three.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

FIRST = 3
"""Calls of a function that are checked in each case of each test."""

seen: Counter[tuple[str, str]] = Counter()
"""Calls that were checked since it was cleared, by the module and the name of the function."""


def sparing(jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """Return jaxtyping's decorator, for functions and dataclasses to be checked at first only."""

    def decorate(thing: Any = None, *, typechecker: Any) -> Any:
        check = functools.partial(jaxtyped, typechecker=typechecker)
        if thing is None:
            return functools.partial(decorate, typechecker=typechecker)
        if inspect.isfunction(thing):
            return at_first(thing, check, jaxtyped)
        # one that is written out was a function before the class was there, and is decorated
        own = vars(thing).get("__init__")
        if is_dataclass(thing) and own is not None and not hasattr(own, "__wrapped__"):
            thing.__init__ = at_first(own, check, jaxtyped)
        return thing

    return decorate


def at_first(
    plain: Any, check: Callable[..., Any], scope: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that is decorated when it is called, and checked in the first calls."""
    # code objects of one text are equal: those that dataclasses generate, for one
    name = (plain.__module__, plain.__qualname__)
    if seen[name] >= FIRST:
        return plain  # one inside a function that is called often
    checked = functools.cache(lambda: check(plain))

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if seen[name] >= FIRST:
            with scope("context"):  # sizes of axes are those of one call
                return plain(*args, **kwargs)
        seen[name] += 1
        return checked()(*args, **kwargs)

    return call
