"""Choice of the observer of a column, by its kind."""

from __future__ import annotations

import pyarrow as pa

from .columns.base import Observer
from .columns.boolean import BooleanObserver
from .columns.category import CategoryObserver
from .columns.datetime import DateObserver
from .columns.left_out import NothingObserver
from .columns.numeric import NumberObserver
from .columns.ordinal import OrderedObserver
from .kinds import Kind
from .settings import Settings


def observer(field: pa.Field, kind: Kind, where: str, settings: Settings) -> Observer:
    """Return the observer that learns from a column.

    Parameters
    ----------
    field : pyarrow.Field
    kind : str
    where : str
        The table, for error messages.
    settings : Settings
    """
    name = field.name
    if kind == "number":
        return NumberObserver(name, settings.numbers)
    if kind == "category":
        return CategoryObserver(
            name, where, settings.max_levels, settings.smoothing, name in settings.text_features
        )
    if kind == "boolean":
        return BooleanObserver(name)
    if kind == "ordered":
        return OrderedObserver(name, where)
    if kind == "nothing":
        return NothingObserver(name)
    return DateObserver(name, kind, getattr(field.type, "tz", None) or "")
