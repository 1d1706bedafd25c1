"""Shapes and types are checked in the first calls of each function: of others there are millions.

A check takes a tenth of a millisecond, and a function inside another one is decorated anew, in some
milliseconds, whenever that one is called: with all calls checked the suite took four times as long.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass
from types import CodeType
from typing import Any

FIRST = 10
"""Calls of a function that are checked in each test, all its cases together."""

seen: Counter[CodeType] = Counter()
"""Calls that were checked since it was cleared."""


def sparing(jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """Return jaxtyping's decorator, for functions and dataclasses to be checked at first only."""

    def decorate(thing: Any = None, *, typechecker: Any) -> Any:
        check = functools.partial(jaxtyped, typechecker=typechecker)
        if thing is None:
            return functools.partial(decorate, typechecker=typechecker)
        if inspect.isfunction(thing):
            return at_first(thing, check, jaxtyped)
        if is_dataclass(thing) and "__init__" in vars(thing):
            thing.__init__ = at_first(thing.__init__, check, jaxtyped)
        return thing

    return decorate


def at_first(
    plain: Any, check: Callable[..., Any], scope: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that is decorated when it is called, and checked in the first calls."""
    code = plain.__code__
    if seen[code] >= FIRST:
        return plain  # one inside a function that is called often
    checked = functools.cache(lambda: check(plain))

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if seen[code] >= FIRST:
            with scope("context"):  # sizes of axes are those of one call
                return plain(*args, **kwargs)
        seen[code] += 1
        return checked()(*args, **kwargs)

    return call
