"""What feeds a device, with a CPU in the place of the device."""

from __future__ import annotations

import logging
import pickle
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from close import assert_close
from torch import Tensor

from gramian import KernelRidge
from gramian._arrays import RandomStream
from gramian.data import ArrayRows, RowSource, Sum
from gramian.engines.device_rows import DeviceRows, Staging
from gramian.kernels import Gaussian
from gramian.operators import KernelOperator, MultiDeviceEngine, TiledEngine

ELSEWHERE = "cpu:0"
"""The memory of the process, and still another device than that of its tensors, "cpu"."""


def numbered(n: int) -> Tensor:
    return torch.arange(2.0 * n).reshape(n, 2)


# --- blocks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4, 9, 10, 100])
@pytest.mark.parametrize("device", ["cpu", ELSEWHERE])
def test_blocks_are_those_of_the_source(size, device):
    x = numbered(10)
    rows = DeviceRows(ArrayRows(x), device)
    for _ in range(2):
        seen = list(rows.blocks(size))  # all at once: none may be overwritten by a later one
        assert [at.start for at, _ in seen] == list(range(0, 10, size))
        assert torch.equal(torch.cat([block for _, block in seen]), x)
    assert torch.equal(rows.take(torch.tensor([3, 1])), x[[3, 1]])
    assert torch.equal(rows.map(lambda block: 2 * block, size=size), 2 * x)
    assert torch.equal(rows.fold(Sum(lambda block: block.sum(dim=0)), size=size), x.sum(dim=0))


class Late:
    """A copy that is made no sooner than someone waits for it."""

    def __init__(self, staged: Tensor) -> None:
        self.staged, self.sent = staged, torch.full_like(staged, torch.nan)

    def synchronize(self) -> None:
        self.sent.copy_(self.staged)


class LateStaging(Staging):
    def _copy(self, staged: Tensor) -> tuple[Tensor, Late]:
        late = Late(staged)
        return late.sent, late


def test_a_buffer_is_not_filled_again_before_it_is_sent():
    staging = LateStaging(torch.device("cpu"))
    x = numbered(12)
    sent = [staging.send(block) for block in x.split([3, 3, 2, 3, 1])]
    for _, event in sent[-2:]:  # the last two copies may be on their way
        event.synchronize()
    assert torch.equal(torch.cat([block for block, _ in sent]), x)


class Broken(ArrayRows):
    def blocks(self, size):
        yield from list(super().blocks(size))[:2]
        raise OSError("the disk is gone")


def test_an_error_of_the_source_comes_through():
    rows = DeviceRows(Broken(numbered(10)), ELSEWHERE)
    with pytest.raises(OSError, match="the disk is gone"):
        rows.fold(Sum(lambda block: block), size=2)


def test_stopping_early_leaves_no_thread():
    before = set(threading.enumerate())
    for _ in DeviceRows(ArrayRows(numbered(10)), ELSEWHERE).blocks(2):
        break
    assert set(threading.enumerate()) <= before  # threads of other tests may end meanwhile


# --- an operator on a device ----------------------------------------------------------------------


@dataclass(frozen=True)
class Device(TiledEngine):
    """A device of so many bytes that has room for blocks of so many rows."""

    device: str = ELSEWHERE
    total: int = 1 << 30
    room: int = 1 << 30

    @property
    def on_host(self) -> bool:
        return False

    def check(self) -> None:
        pass

    def device_bytes(self) -> int:
        return self.total

    def feed(self, rows: RowSource) -> RowSource:
        return DeviceRows(rows, self.device)

    def matvec(self, kernel, x, z, v, *, diagonal=None):
        if len(x) > self.room:
            raise torch.OutOfMemoryError("no memory")
        return super().matvec(kernel, x, z, v, diagonal=diagonal)


def operator(engine: TiledEngine, n: int = 60, m: int = 9) -> KernelOperator:
    x = RandomStream(0).standard_normal((n, 3), np.float32)
    return KernelOperator(Gaussian(), x, x[:m], engine)


def with_blocks_of(K: KernelOperator, rows: int) -> KernelOperator:
    engine = K.engine
    held = engine.workspace_bytes(max(K.shape), 3, 2, 4) + rows * engine.row_bytes(3, 2, 4)
    return replace(K, memory_bytes=held)


@pytest.mark.parametrize("block", [7, 1000])
def test_products_are_those_of_the_host(block):
    host, device = operator(TiledEngine(threads=1)), operator(Device())
    device = with_blocks_of(device, block)
    v, u, close = np.ones((9, 2), np.float32), np.ones((60, 2), np.float32), assert_close
    close(device @ v, host @ v)
    close(device.T @ u, host.T @ u)
    close(device.normal(v, u[:, 0], u), host.normal(v, u[:, 0], u))
    close(device.dense(), host.dense())
    same = [KernelOperator(Gaussian(), K.rows, K.rows, K.engine) for K in (host, device)]
    close(same[1] @ u, same[0] @ u)


def test_blocks_respect_the_memory_of_the_device(monkeypatch):
    sizes: list[int] = []

    def feed(self, rows):
        class Watched(DeviceRows):
            def blocks(self, size):
                sizes.append(size)
                return super().blocks(size)

        return Watched(rows, self.device)

    monkeypatch.setattr(Device, "feed", feed)
    engine = Device(tile_bytes=1 << 10)
    limit = engine.workspace_bytes(9, 3, 2, 4) + 20 * engine.row_bytes(3, 2, 4)
    K = operator(replace(engine, total=limit))
    assert K.memory_bytes > limit
    K @ np.ones((9, 2), np.float32)
    assert sizes == [20]
    two = MultiDeviceEngine((K.engine, K.engine))
    assert two.device_bytes() == 2 * limit
    assert MultiDeviceEngine((TiledEngine(),)).device_bytes() is None


def test_a_device_without_room_gets_half_of_a_block_once(caplog):
    K, v = operator(Device(room=32)), np.ones((9, 2), np.float32)
    expected = operator(TiledEngine()) @ v
    with caplog.at_level(logging.WARNING, "gramian"):
        assert np.allclose(K @ v, expected)
    assert "not enough memory for blocks of 60 rows; restarting the pass with 30" in caplog.text
    assert K.meter.evaluations == 60 * 9
    caplog.clear()
    assert np.allclose(K @ v, expected)  # it has learnt the size
    assert not caplog.records
    with pytest.raises(torch.OutOfMemoryError):
        operator(Device(room=20)) @ v


# --- engines of another machine -------------------------------------------------------------------


def test_an_estimator_fitted_on_a_gpu_predicts_without_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 3)).astype(np.float32)
    model = KernelRidge(
        landmarks=20, penalty=1e-3, random_state=0, kernel="gaussian", lengthscale="median"
    ).fit(X, X[:, 0])
    expected = model.predict(X)
    model.engine_ = TiledEngine("cuda:0")  # as a GPU leaves it behind
    model = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match=r"TiledEngine\(device='cuda:0'.*set engine_='auto'"):
        model.predict(X)
    model.engine_ = "auto"
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-6)
