from .file import load_encoding as load_encoding
from .file import save_encoding as save_encoding
from .fitted_encoding import FittedEncoding as FittedEncoding
from .table_encoding import EncodedRows as EncodedRows
from .table_encoding import Encoding as Encoding
from .values import array_table as array_table
