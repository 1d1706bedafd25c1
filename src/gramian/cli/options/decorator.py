"""Decorator that adds the fields of a class to a command as options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_type_hints

from typer import Context

from .options import parameters_of, typer_parameters


def options_from(options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of a class.

    The command receives an instance as its argument ``options`` and keeps its other parameters.
    """
    fields_of_options = {option.name for option in fields(options)}
    names = fields_of_options - {"parameters", "given_names"}
    has_parameters = "parameters" in fields_of_options

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(context: Context, **values: Any) -> None:
            given_names = frozenset(name for name in values if is_given(context, name))
            own = {name: values.pop(name) for name in names}
            if has_parameters:
                fit = {option.name: values.pop(option.name) for option in parameters_of(options)}
                # Only the given options: the defaults are in `FitSettings`.
                fit = {name: value for name, value in fit.items() if name in given_names}
                own |= {"parameters": fit, "given_names": given_names}
            command(options=options(**own), **values)

        # Annotations are texts in `app`: typer needs the types, and the options within `Annotated`.
        hints = get_type_hints(command, include_extras=True)
        parameters = [
            argument.replace(kind=argument.KEYWORD_ONLY, annotation=hints[argument.name])
            for argument in inspect.signature(command).parameters.values()
            if argument.name != "options"
        ]
        parameters += typer_parameters(options)
        in_context = inspect.Parameter(
            "context", inspect.Parameter.KEYWORD_ONLY, annotation=Context
        )
        parameters.append(in_context)
        # Typer reads the signature and the annotations of `run`, whose code takes any keyword.
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {argument.name: argument.annotation for argument in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


def is_given(context: Context, name: str) -> bool:
    """Return whether the user gave a parameter, even with its default value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")
