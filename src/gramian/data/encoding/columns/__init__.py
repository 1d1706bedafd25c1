"""Encodings of single columns, and their observers: importing a file registers its kinds."""

from . import category as category
from . import datetime as datetime
from . import left_out as left_out
from . import numeric as numeric
from . import ordinal as ordinal
