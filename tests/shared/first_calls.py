"""Shapes and types are checked in the first calls of each function, in each case of each test.

Which calls are checked does not depend on other cases, nor on their order. Counts that began anew
in each test function only, at ten calls for all its cases, took 17 CPU seconds of the contract of
selectors; three calls in each case take 21 and 23, ten take 23 and 28, on a busy machine. Tests of
kernels, the regressor and resuming solvers took 39.1 together, and take 39.0 with three.

The type checker looks at the function itself, in a scope of its own for the sizes of axes. What
`jaxtyped(typechecker=...)` does beyond that is a message that names all parameters: it makes two
functions more of each, for parameters and results, and checks parameters twice.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import jaxtyping
from beartype.roar import BeartypeCallHintViolation

FIRST = 3
"""Calls of a function that are checked in each case of each test."""

seen: Counter[tuple[str, str]] = Counter()
"""Calls that were checked since it was cleared, by the module and the name of the function."""


def sparing(jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """Return jaxtyping's decorator, for functions and dataclasses to be checked at first only."""

    def decorate(thing: Any = None, *, typechecker: Any) -> Any:
        if thing is None:
            return functools.partial(decorate, typechecker=typechecker)
        if inspect.isfunction(thing):
            return at_first(thing, typechecker, jaxtyped)
        # one that is written out was a function before the class was there, and is decorated
        own = vars(thing).get("__init__")
        if is_dataclass(thing) and own is not None and not hasattr(own, "__wrapped__"):
            thing.__init__ = at_first(own, typechecker, jaxtyped)
        return thing

    return decorate


def at_first(plain: Any, typechecker: Any, jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is decorated when it is called, and checked in the first calls."""
    # code objects of one text are equal: those that dataclasses generate, for one
    name = (plain.__module__, plain.__qualname__)
    if seen[name] >= FIRST:
        return plain  # one inside a function that is called often
    checked = functools.cache(lambda: in_a_scope(plain, typechecker, jaxtyped))
    scope = jaxtyped("context")

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if seen[name] >= FIRST or jaxtyping.config.jaxtyping_disable:
            with scope:  # sizes of axes are those of one call
                return plain(*args, **kwargs)
        seen[name] += 1
        try:
            return checked()(*args, **kwargs)
        except BeartypeCallHintViolation as error:
            raise jaxtyping.TypeCheckError(str(error)) from error

    return call


def in_a_scope(plain: Any, typechecker: Any, jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that checks parameters and result, with sizes of axes of its own."""
    if inspect.isgeneratorfunction(plain):  # what it yields is not looked at
        return jaxtyped(plain, typechecker=typechecker)
    copy = types.FunctionType(
        plain.__code__, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__
    )
    functools.update_wrapper(copy, plain)
    del copy.__wrapped__
    copy.__kwdefaults__ = plain.__kwdefaults__
    hints = plain.__annotations__.items()
    copy.__annotations__ = {name: meant(hint, plain.__globals__) for name, hint in hints}
    return jaxtyped(typechecker(copy), typechecker=None)


def meant(hint: Any, names: dict[str, Any]) -> Any:
    """Return the type that an annotation is the text of: anything, if its names are not there."""
    holder = types.SimpleNamespace(__annotations__={"it": hint})
    try:
        return typing.get_type_hints(holder, names, include_extras=True)["it"]
    except Exception:
        return Any
