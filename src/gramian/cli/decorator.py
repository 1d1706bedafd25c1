"""`options_from`: the fields of a dataclass as options of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

from typer import Context


def options_from(options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes the fields of a dataclass options of a command.

    The command gets one instance as the argument ``options``; its other parameters stay its own.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(context: Any, **values: Any) -> None:  # a class of typer's own, not Context itself
            names = frozenset(name for name in values if is_given(context, name))
            own = {f.name: values.pop(f.name) for f in fields(options) if f.name != "given"}
            command(options=options(**own, given=names), **values)

        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters.values()
        parameters = [
            p.replace(kind=p.KEYWORD_ONLY, annotation=hints[p.name])
            for p in own
            if p.name != "options"
        ]
        of_options = inspect.signature(options, eval_str=True).parameters
        parameters += [p for name, p in of_options.items() if name != "given"]
        in_context = inspect.Parameter(
            "context", inspect.Parameter.KEYWORD_ONLY, annotation=Context
        )
        parameters.append(in_context)
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [p.replace(kind=p.KEYWORD_ONLY) for p in parameters]
        )
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


def is_given(context: Any, name: str) -> bool:
    """Return whether a parameter of a command was given, be it with its default value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")
