"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from gramian import _atomic
from gramian._atomic import write_atomically, write_tensors


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".part")]


def test_a_new_file_in_a_new_folder(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, lambda part: part.write_bytes(b"whole"))
    assert path.read_bytes() == b"whole"
    assert not leftovers(path.parent)


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write(part: Path) -> None:
        part.write_bytes(b"ne")
        assert path.read_bytes() == b"old"
        assert part.parent == path.parent  # a rename across file systems would not be atomic
        part.write_bytes(b"new")

    write_atomically(path, write)
    assert path.read_bytes() == b"new"


def test_permissions_are_those_of_any_new_file(tmp_path):
    mask = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", lambda part: part.write_bytes(b""))
        assert os.umask(0o027) == 0o027  # which has not been changed
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_whatever_happens_the_old_file_stays(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write(part: Path) -> None:
        part.write_bytes(b"half of the ne")
        raise error

    with pytest.raises(type(error)):
        write_atomically(path, write)
    assert path.read_bytes() == b"old"
    assert not leftovers(tmp_path)


def test_a_disk_that_is_full_only_when_flushed(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_atomic.os, "fsync", full)
    with pytest.raises(OSError, match=r"could not write .*file: No space.*is unchanged") as caught:
        write_atomically(path, lambda part: part.write_bytes(b"new"))
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old"
    assert not leftovers(tmp_path)


def test_without_an_old_file_none_is_mentioned(tmp_path):
    def write(part: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device\.$"):
        write_atomically(tmp_path / "file", write)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="could not write"):
        write_atomically(tmp_path / "folder", lambda part: part.write_bytes(b""))
    assert not leftovers(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        write_atomically(tmp_path / "file" / "model", lambda part: part.write_bytes(b""))


class TestTensors:
    def test_they_come_back(self, tmp_path):
        tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.empty(0, 2)}
        write_tensors(tmp_path / "file", tensors, {"about": "text"})
        for name, tensor in load_file(tmp_path / "file").items():
            assert torch.equal(tensor, tensors[name])

    def test_a_full_disk_is_an_error_of_the_system(self, full_disk, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        message = r"could not write .*is unchanged"
        with pytest.raises(OSError, match=message) as caught, full_disk(100):
            write_tensors(path, {"a": torch.zeros(1000)}, {})
        assert caught.value.errno == errno.EFBIG
        assert path.read_bytes() == b"old"
        assert not leftovers(tmp_path)
