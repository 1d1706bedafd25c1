"""Text tables: dialects from their bytes, types that suit every value, in bounded memory.

`sniff` finds encoding, compression, separator and names; `strings` reads all values as text with
Arrow's parser; `Inference` finds for each column the first of the `READINGS` with which all of its
values can be read; `text_table` puts these together. A small table is held in memory, a larger one
is rewritten once into a temporary file and read from there.
"""

from .dialect import Dialect, sniff
from .infer_types import ALL_READINGS, Inference
from .parsers import MISSING_TEXTS, Reading
from .table import HELD_BYTES, text_table

__all__ = [
    "ALL_READINGS",
    "HELD_BYTES",
    "MISSING_TEXTS",
    "Dialect",
    "Inference",
    "Reading",
    "sniff",
    "text_table",
]
