"""Arrays of the host and tensors: transfers, types and their names."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from close import assert_close

from gramian import _arrays as xp
from gramian._sparse import sparse_rows
from gramian.engines import TiledEngine
from gramian.kernels import Cosine, Gaussian, Laplacian, Linear


def test_numpy_computes_without_torch():
    script = "import sys, numpy as np, gramian._arrays as xp; x = np.ones((3, 2))\n"
    script += "x = xp.to_device(xp.cast(xp.to_host(x), 'float32'), xp.device('cpu'))\n"
    script += "assert xp.is_array(x) and not xp.is_tensor(x) and not xp.is_tensor(1.0)\n"
    script += "xp.exp(xp.cdist(x, x)), xp.csr(*3 * [np.zeros(1, int)], (0, 1)), xp.RandomStream()\n"
    script += "assert 'torch' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_host_is_no_device_of_torch():
    assert xp.device("cpu") == "cpu"
    assert xp.is_host("cpu")
    assert xp.device_of(np.zeros(2)) == "cpu"
    assert xp.device_of(1.0) == "cpu"
    torch = pytest.importorskip("torch")
    assert xp.device("meta") == torch.device("meta")
    assert not xp.is_host(torch.device("cpu"))
    assert xp.device_of(torch.zeros(2)) == torch.device("cpu")


def test_arrays_of_the_host_are_not_copied():
    x = np.random.default_rng(0).standard_normal((4, 3))
    for same in (xp.to_host(x), xp.to_device(x, "cpu"), xp.to_float64(x), xp.detach(x)):
        assert same is x
    torch = pytest.importorskip("torch")
    tensor = xp.as_tensor(x, "cpu")
    assert tensor.data_ptr() == x.ctypes.data
    assert xp.to_host(tensor).ctypes.data == x.ctypes.data
    assert xp.to_host(tensor.requires_grad_()).ctypes.data == x.ctypes.data
    assert xp.to_device(tensor, torch.device("cpu")) is tensor


@pytest.mark.parametrize(
    ("view", "is_shared"),
    [
        (lambda x: x, True),
        (lambda x: x[:, ::2], True),
        (lambda x: x.T, True),
        (lambda x: x[::-1], False),  # torch has no steps back
        (lambda x: x[1, 2], False),  # a number
    ],
)
@pytest.mark.parametrize("writable", [True, False])
def test_views_and_read_only_memory_become_tensors(view, is_shared, writable):
    """Such as a mapped file; warnings, as torch's of such memory, are errors here."""
    pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((4, 5))
    x.flags.writeable = writable
    tensor = xp.as_tensor(view(x), "cpu")
    assert np.array_equal(tensor.numpy(), view(x))
    assert (tensor.data_ptr() == np.asarray(view(x)).ctypes.data) == is_shared
    assert_close(xp.cast_like(view(x), tensor.float()).numpy(), view(x).astype(np.float32))
    assert np.array_equal(xp.asarray(view(x), like=tensor).numpy(), view(x))


def test_bfloat16_comes_to_the_host_as_float32():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, -0.5], dtype=torch.bfloat16)
    assert_close(xp.to_host(x), np.array([1.0, -0.5], np.float32))
    assert xp.dtype_of(x) == np.float32


@pytest.mark.parametrize(
    "name", ["float64", "float32", "float16", "int64", "int8", "uint8", "bool"]
)
def test_types_have_the_same_names(name):
    dtype = getattr(xp, name)
    assert xp.dtype_name(dtype) == name
    assert xp.file_dtype_name(dtype) == f"torch.{name}"
    torch = pytest.importorskip("torch")
    assert xp.torch_dtype(dtype) is getattr(torch, name)
    assert xp.torch_dtype(getattr(torch, name)) is getattr(torch, name)
    assert xp.numpy_dtype(getattr(torch, name)) == dtype
    assert xp.file_dtype_name(getattr(torch, name)) == f"torch.{name}"


@pytest.mark.parametrize("name", ["float64", "float32", "float16"])
def test_limits_of_types(name):
    torch = pytest.importorskip("torch")
    for dtype in (getattr(xp, name), getattr(torch, name)):
        own, other = xp.finfo(dtype), torch.finfo(getattr(torch, name))
        for limit in own._fields:
            assert getattr(own, limit) == getattr(other, limit)
        assert all(type(value) in (int, float) for value in own)


def test_the_wider_type_of_two():
    torch = pytest.importorskip("torch")
    assert xp.promote_types(xp.float32, xp.float64) == np.float64
    assert xp.promote_types(torch.float32, xp.float32) == np.float32


def test_creation_follows_the_device():
    torch = pytest.importorskip("torch")
    like = torch.zeros(1)
    for made in (xp.zeros(3, like=like), xp.full((3,), 2.0, device=torch.device("cpu"))):
        assert xp.is_tensor(made)
    assert not xp.is_tensor(xp.asarray([1.0, 2.0]))
    assert xp.asarray(np.ones(2), xp.float32, like=like).dtype == torch.float32


def test_functions_of_the_host():
    assert_close(xp.linspace(0, 1, 5), np.array([0, 0.25, 0.5, 0.75, 1]))
    assert np.array_equal(xp.triu_indices(2, 3, 1), np.array([[0, 0, 1], [1, 2, 2]]))


def test_sparse_rows_go_to_a_device_and_back(rng):
    torch = pytest.importorskip("torch")
    x = sparse_rows(np.where(rng.random((5, 4)) < 0.5, rng.standard_normal((5, 4)), 0.0))
    sent = xp.to_device(x, torch.device("cpu"))
    assert sent.layout is torch.sparse_csr
    assert np.array_equal(xp.to_dense(sent).numpy(), x.toarray())
    back = xp.to_device(sent, "cpu")
    assert isinstance(back, xp.CsrArray)
    assert back.shape == x.shape
    for part in (xp.indptr, xp.indices, xp.entries):
        assert np.array_equal(part(back), part(x))


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(2.0), Linear(), Cosine()])
def test_sparse_rows_are_multiplied_on_a_device(kernel, rng):
    """On the CPU of torch, which is no host; the landmarks are dense or sparse."""
    torch = pytest.importorskip("torch")
    X = np.where(rng.random((50, 30)) < 0.2, rng.standard_normal((50, 30)), 0.0)
    v, there = rng.standard_normal((7, 2)), TiledEngine(torch.device("cpu"))
    for z in (X[:7], sparse_rows(X[:7])):
        sides = kernel, sparse_rows(X), z
        assert_close(there.matvec(*sides, v), TiledEngine().matvec(*sides, v))
        assert_close(there.normal(*sides, v), TiledEngine().normal(*sides, v))
        assert_close(there.block(*sides), TiledEngine().block(*sides))
