"""Row sources, tables and maps of rows.

Everything that gramian learns from is a `RowSource`: n rows of d features that may be in memory, in
a file that is mapped, or in a directory of files larger than memory. Two methods hide the
difference: `blocks(size)` walks over all rows in order, a block at a time, and `take(index)`
gathers some of them. All algorithms use these two and methods built on them: `map` concatenates
``f(block)`` over the blocks, and `fold` merges it: `Sum` adds it up. For rows on the machines of a
cluster, these two send a small value to the workers, and no block is sent back.

>>> import numpy as np
>>> rows = as_rows(np.arange(10.0).reshape(5, 2))
>>> rows.shape
(5, 2)
>>> rows.fold(Sum(lambda block: block.sum(axis=0)), size=2)  # one pass, two rows at a time
array([20., 25.])
>>> rows.take(np.array([4, 0]))
array([[8., 9.],
       [0., 1.]])

`as_rows` is the only entrance of numbers. `as_rows` takes NumPy arrays of any layout, tensors of
torch, frames and tables, SciPy sparse matrices (which stay sparse), and paths of files in one of
the `formats`: a ``.npy`` file is memory-mapped, a Parquet file or directory is read from front to
back in every pass (`random_access` is False, and `take` costs a pass). Nothing is copied as a
whole. It alone raises an error for anything that is not a matrix of numbers.

`as_table` is the only entrance of columns of any type: frames, files of all formats, text among
them, and addresses on object stores. A `Table` is read like rows, in batches.

Blocks are arrays of float32 or float64, or tensors if the data are on a device: float32 stays
float32; small integers and booleans become float32, which holds them exactly; everything wider
becomes float64. A block may be a view of your array: never write to it.

Sources can be wrapped: `Standardized` scales the features as they are read (a `Standardizer`
computes mean and scale in one pass), a `QuantileMap` makes them normal, a `LinearMap` multiplies
them by a matrix or by scales; `Subset`, `Complement` and `Select` pick rows and columns, `Cast`
changes the type. `Batches` gives shuffled mini-batches of any source; `noise`, `mixup` and
`crop_flip` change them. `decode_rows` caches the decoded rows of a file. `gather_rows` takes rows
into memory, or into a file that is mapped if they are too many. `check_finite` looks for missing
values, and for the target among the features. For the command line, `open_rows`, `read_targets`,
`write_table` and `convert` read and write whole tables; `sample_path` finds the
small real data sets that ship with the package.

A new kind of rows is one class with `blocks` and `take`, and one branch in `local_rows`; a new kind
of file is one class in `formats`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
