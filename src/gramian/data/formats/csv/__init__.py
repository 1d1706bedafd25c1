"""Text tables: dialects from their bytes, types that suit every value, in bounded memory.

`sniff` finds encoding, compression, separator and names; `strings` reads all values as text with
Arrow's parser; `Inference` finds for each column the first of its `readings` with which all, or
nearly all, of its values can be read; `text_table` puts these together. A small table is held in
memory, a larger one is rewritten once into a temporary file and read from there.
"""

from ...tables.read_options import ReadOptions
from .columns.infer_types import Inference
from .columns.odd_values import ODD_SHARE
from .columns.parsers import MISSING_TEXTS, Reading
from .columns.readings import ALL_READINGS
from .dialect import Dialect, sniff
from .table import HELD_BYTES, text_table

__all__ = [
    "ALL_READINGS",
    "HELD_BYTES",
    "MISSING_TEXTS",
    "ODD_SHARE",
    "Dialect",
    "Inference",
    "ReadOptions",
    "Reading",
    "sniff",
    "text_table",
]
