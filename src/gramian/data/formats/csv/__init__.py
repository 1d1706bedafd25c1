"""Text tables: dialects from their bytes, types that suit every value, in bounded memory.

`sniff` finds encoding, compression, separator and names; `strings` reads all values as text with
Arrow's parser; `Inference` finds for each column the first of its `readings` with which all, or
nearly all, of its values can be read; `text_table` puts these together. A small table is held in
memory, a larger one is rewritten once into a temporary file and read from there.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
