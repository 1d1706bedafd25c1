"""Encodings: rows of numbers made of the columns of a table.

`FittedEncoding.fit` reads a table once and chooses an encoding for each column: numbers are
standardised, categories get a column per level or the mean of the targets in each level, dates the
time elapsed and the cycles of the calendar. The fitted encoding encodes the training rows so that
no row's features depend on its own target. Its ``encoding``, which a model stores, encodes all
other rows. Both return `EncodedRows`, a row source.

A new kind of column is one file with a `ColumnEncoding` and an `Observer` that learns it and names
its types (`column_kind`), and one import line in `columns`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
