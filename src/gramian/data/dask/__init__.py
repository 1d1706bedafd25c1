"""Rows on the workers of a Dask cluster, and passes over them.

`DaskRows` are `RowSource` of files that workers read, or of a dask collection. Nothing else of
gramian imports dask (``pip install gramian[dask]``).
"""

try:
    import distributed as _distributed
except ImportError as error:
    raise ImportError("rows on a Dask cluster need `pip install gramian[dask]`") from error

from .collections import remote_columns
from .part import Part
from .rows import DaskRows
from .table import DaskTable
from .workers import Workers, connected_client

__all__ = ["DaskRows", "DaskTable", "Part", "Workers", "connected_client", "remote_columns"]

del _distributed
