"""Arrays of NumPy on the host, and of torch on a device, by one set of names.

Code that may compute on a device calls these functions where NumPy and torch differ; on the host
they are NumPy's. Nothing here imports torch for arrays of NumPy.
"""

from __future__ import annotations

import math

import numpy as np

from ._kinds import (
    HOST_DEVICE,
    Array,
    Bool,
    Device,
    DType,
    Float,
    Int,
    Num,
    Shaped,
    is_array,
    is_tensor,
    numpy_dtype,
    torch_dtype,
)
from .creation import (
    arange,
    array,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from .csr_array import CsrArray
from .elementwise import (
    abs,
    add,
    asin,
    cos,
    deg2rad,
    exp,
    expm1,
    fill_where,
    floor,
    isfinite,
    isnan,
    lerp,
    log,
    log1p,
    log2,
    logit,
    logsigmoid,
    maximum,
    minimum,
    negative,
    power,
    reciprocal,
    rsqrt,
    sigmoid,
    sign,
    sin,
    softplus,
    sqrt,
    square,
    subtract,
    where,
)
from .factors import cholesky, cholesky_ex, eigh, eigvalsh, qr, solve_triangular, svd
from .in_place import (
    add_,
    add_at,
    addmm_,
    assign_,
    clip_,
    divide_,
    exp_,
    fill_,
    fill_where_,
    lerp_,
    minimum_at,
    multiply_,
    negative_,
    sqrt_,
    subtract_,
    zero_,
)
from .order import (
    argsort,
    array_equal,
    bincount,
    diff,
    find_insertions,
    flatnonzero,
    isin,
    kth_smallest,
    max_with_index,
    median,
    min_with_index,
    nonzero,
    quantile,
    sort,
    sort_with_order,
    topk,
    unique,
)
from .places import (
    Limits,
    as_tensor,
    cast,
    cast_like,
    detach,
    device,
    device_of,
    dtype_name,
    dtype_of,
    file_dtype_name,
    finfo,
    is_complex,
    is_contiguous,
    is_floating,
    is_host,
    promote_types,
    to_device,
    to_float64,
    to_host,
    view_as,
)
from .random import RandomStream, as_stream
from .shapes import (
    array_split,
    chunk,
    concat,
    contiguous,
    copy,
    copy_by_rows,
    diag_embed,
    diagonal,
    expand,
    flip,
    put_along,
    repeat,
    size,
    split,
    stack,
    strides,
    swapaxes,
    take_along,
    take_columns,
    transpose,
    tril,
    triu,
    triu_,
    triu_indices,
    with_strides,
)
from .sparse_rows import csr, entries, indices, indptr, is_sparse, to_dense
from .sums import (
    addmm,
    aminmax,
    cdist,
    einsum,
    log_softmax,
    logsumexp,
    matmul,
    max,
    min,
    norm,
    pdist,
    softmax,
    std,
    sum_float64,
)

inf, nan, pi = math.inf, math.nan, math.pi

float64, float32, float16 = (np.dtype(name) for name in ("float64", "float32", "float16"))
int64, int32, int16, int8 = (np.dtype(name) for name in ("int64", "int32", "int16", "int8"))
uint8, bool = np.dtype("uint8"), np.dtype("bool")
