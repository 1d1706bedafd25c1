"""Checks of shapes and types in the first calls of each function, in each case of the contracts.

Tests of contracts turn `checking` on: they call each kernel, engine, selector, solver and source
of rows. Other tests run as a user's program does.

Which calls are checked does not depend on other cases, nor on their order. Checks of three calls in
each case add a third to the CPU time of the contracts, checks of all calls double it.

The type checker looks at the function itself, in a scope of its own for the sizes of axes.
`jaxtyped(typechecker=...)` adds a message that names all parameters: it makes two more functions of
each, for parameters and results, and checks parameters twice.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import is_dataclass
from typing import Any

import jaxtyping
from beartype.roar import BeartypeCallHintViolation

FIRST = 3
"""Calls of a function that are checked in each case of each test."""

checking = False
"""Whether calls are checked: in tests of contracts."""

seen: Counter[str] = Counter()
"""Calls that were checked since it was cleared, by the module and the name of the function."""

checkers: dict[tuple[str, types.CodeType], Callable[..., Any]] = {}
"""What checks the calls of a function, or of all that are made by one line inside another."""

called: ContextVar[Callable[..., Any]] = ContextVar("called")
"""The function that a checker is to call once it has checked the parameters, in each thread."""


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
    name = f"{plain.__module__} {plain.__qualname__}"  # one text: its hash is kept
    if seen[name] >= FIRST:
        return plain  # one inside a function that is called often

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not checking or seen[name] >= FIRST or jaxtyping.config.jaxtyping_disable:
            return plain(*args, **kwargs)
        seen[name] += 1
        if (name, plain.__code__) not in checkers:
            checkers[name, plain.__code__] = in_a_scope(plain, typechecker, jaxtyped)
        before = called.set(plain)
        try:
            return checkers[name, plain.__code__](*args, **kwargs)
        except BeartypeCallHintViolation as error:
            raise jaxtyping.TypeCheckError(str(error)) from error
        finally:
            called.reset(before)

    return call


def in_a_scope(plain: Any, typechecker: Any, jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the one in `called`, with sizes of axes of its own.

    It checks parameters and result as that one's annotations say: of all functions that are made
    where `plain` is. A checker takes a millisecond to make.
    """
    cells = tuple(types.CellType() for _ in plain.__code__.co_freevars)
    read = types.FunctionType(plain.__code__, plain.__globals__, plain.__name__, None, cells)
    functools.update_wrapper(read, plain)
    del read.__wrapped__
    read.__kwdefaults__, read.__defaults__ = plain.__kwdefaults__, plain.__defaults__
    hints = plain.__annotations__.items()
    read.__annotations__ = {name: meant(hint, plain.__globals__) for name, hint in hints}

    @functools.wraps(read)
    def call(*args: Any, **kwargs: Any) -> Any:
        return called.get()(*args, **kwargs)

    # From Python 3.14 on, `wraps` copies what makes annotations, and not ones that were assigned.
    call.__annotations__ = read.__annotations__
    return jaxtyped(typechecker(call), typechecker=None)


def meant(hint: Any, names: dict[str, Any]) -> Any:
    """Return the type that an annotation is the text of: anything, if its names are not there."""
    holder = types.SimpleNamespace(__annotations__={"it": hint})
    try:
        return typing.get_type_hints(holder, names, include_extras=True)["it"]
    except Exception:
        return Any
