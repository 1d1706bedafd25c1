from . import encoding as encoding
from . import formats as formats
from . import tables as tables
from .checks import check_finite as check_finite
from .checks import check_magnitude as check_magnitude
from .copies import check_copies as check_copies
from .encoding import (
    EncodedRows as EncodedRows,
)
from .encoding import (
    Encoding as Encoding,
)
from .encoding import (
    FittedEncoding as FittedEncoding,
)
from .formats.csv.remarks import ReadWarning as ReadWarning
from .formats.memory_map import (
    gather_rows as gather_rows,
)
from .formats.memory_map import (
    scratch as scratch,
)
from .formats.memory_map import (
    store_rows as store_rows,
)
from .formats.parquet import ParquetRows as ParquetRows
from .formats.parquet_lists import ParquetLists as ParquetLists
from .local.named_table import (
    check_kept as check_kept,
)
from .local.named_table import (
    feature_columns as feature_columns,
)
from .local.named_table import (
    open_rows as open_rows,
)
from .local.named_table import (
    split_names as split_names,
)
from .local.named_table import (
    table_schema as table_schema,
)
from .local.named_table import (
    write_table as write_table,
)
from .local.named_table import (
    write_with_columns as write_with_columns,
)
from .maps.augment import (
    Augmentation as Augmentation,
)
from .maps.augment import (
    crop_flip as crop_flip,
)
from .maps.augment import (
    mixup as mixup,
)
from .maps.augment import (
    noise as noise,
)
from .maps.batches import EPOCH_STRIDE as EPOCH_STRIDE
from .maps.batches import Batches as Batches
from .maps.batches import Shuffle as Shuffle
from .maps.linear_map import LinearMap as LinearMap
from .maps.quantile_map import QuantileMap as QuantileMap
from .maps.standardizer import Standardizer as Standardizer
from .remote.columns import (
    AnyWeights as AnyWeights,
)
from .remote.columns import (
    RemoteColumns as RemoteColumns,
)
from .remote.columns import (
    RowNumbers as RowNumbers,
)
from .remote.columns import (
    RowWeights as RowWeights,
)
from .remote.columns import (
    Targets as Targets,
)
from .remote.columns import (
    all_finite as all_finite,
)
from .remote.columns import (
    as_remote_columns as as_remote_columns,
)
from .remote.columns import (
    gather_numbers as gather_numbers,
)
from .remote.columns import (
    range_of as range_of,
)
from .remote.columns import (
    take_numbers as take_numbers,
)
from .remote.rows import RemoteRows as RemoteRows
from .rows.array import (
    ENTRY_NUMBERS as ENTRY_NUMBERS,
)
from .rows.array import (
    ArrayRows as ArrayRows,
)
from .rows.array import (
    SparseRows as SparseRows,
)
from .rows.arrow import TableRows as TableRows
from .rows.base import (
    RemoteDescription as RemoteDescription,
)
from .rows.base import (
    RowSource as RowSource,
)
from .rows.base import (
    Spread as Spread,
)
from .rows.base import (
    default_block_size as default_block_size,
)
from .rows.base import (
    first_row as first_row,
)
from .rows.base import (
    refuse_remote as refuse_remote,
)
from .rows.cache import (
    DecodedRows as DecodedRows,
)
from .rows.cache import (
    decode_rows as decode_rows,
)
from .rows.cache import (
    decoded_bytes as decoded_bytes,
)
from .rows.reduce import (
    BlockFn as BlockFn,
)
from .rows.reduce import (
    BlockReduction as BlockReduction,
)
from .rows.reduce import (
    RowIndex as RowIndex,
)
from .rows.reduce import (
    Rowwise as Rowwise,
)
from .rows.reduce import (
    Shifted as Shifted,
)
from .rows.reduce import (
    Sum as Sum,
)
from .rows.transform import Cast as Cast
from .rows.transform import Standardized as Standardized
from .rows.transform import cast_rows as cast_rows
from .rows.views import (
    Complement as Complement,
)
from .rows.views import (
    Select as Select,
)
from .rows.views import (
    Subset as Subset,
)
from .rows.views import (
    complement as complement,
)
from .rows.views import (
    select as select,
)
from .rows.views import (
    subset as subset,
)
from .samples import sample_path as sample_path
from .sources.as_rows import as_rows as as_rows
from .sources.as_rows import is_collection as is_collection
from .sources.as_table import as_table as as_table
from .sources.convert import convert as convert
from .sources.needs_encoding import (
    has_numeric_columns as has_numeric_columns,
)
from .sources.needs_encoding import (
    needs_encoding as needs_encoding,
)
from .sources.odd_values import OddValueWarning as OddValueWarning
from .sources.training_table import TrainingTable as TrainingTable
from .sources.training_table import read_targets as read_targets
from .tables import MemoryTable as MemoryTable
from .tables import Table as Table
from .tables.base import NumberRows as NumberRows
from .tables.filled_rows import FilledRows as FilledRows
from .tables.frames import is_table as is_table
from .tables.read_options import ReadOptions as ReadOptions
from .tables.target import target_column as target_column
