"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from gramian._files import atomic as _atomic
from gramian._files.atomic import check_output, write_atomically
from gramian._files.tensors import write_tensors


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".part")]


def test_a_new_file_in_a_new_folder(tmp_path):
    path = tmp_path / "a" / "file"
    write_atomically(path, lambda part: part.write_bytes(b"whole"))
    assert path.read_bytes() == b"whole"
    assert not leftovers(path.parent)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a/b/file", "there is no folder .*a; make it"),
        ("/gramian-none/file", "there is no folder /gramian-none; make it"),  # as root, too
        ("pipe", "pipe is not a regular file"),
        ("/dev/null", "/dev/null is not a regular file"),
        (".", "is a directory; it must be a file"),
        ("text/file", "text is not a writable folder"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused(path, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("text").write_text("")
    with pytest.raises(OSError, match=words):
        check_output(path)
    with pytest.raises(OSError, match=f"could not write {path}: .*{words}"):
        write_atomically(path, lambda part: part.write_bytes(b""))
    assert sorted(os.listdir(tmp_path)) == ["pipe", "text"]


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://K:S@bucket/a/file", "only tables are read"),
        ("gs://bucket/file", "only tables are read"),
        ("file:///x/y", "files are written to plain paths: give the path without file://"),
    ],
)
def test_addresses_are_refused(address, words, kind, tmp_path, monkeypatch):
    """A `Path` of an address has lost a slash, and would be a folder named "s3:"."""
    monkeypatch.chdir(tmp_path)
    for write in (check_output, lambda path: write_atomically(path, Path.touch)):
        with pytest.raises(ValueError, match=f"is an address, but {words}") as caught:
            write(kind(address))
        assert "K:S" not in str(caught.value)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "path", ["run:/file", "./run:/file", Path("run:/file"), Path("./run:/file")]
)
def test_a_local_folder_may_be_named_like_the_start_of_an_address(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run:").mkdir()
    check_output(path)
    write_atomically(path, lambda part: part.write_bytes(b"whole"))
    assert (tmp_path / "run:" / "file").read_bytes() == b"whole"
    with pytest.raises(ValueError, match="run://file is an address"):  # whatever folders there are
        check_output("run://file")


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


def test_the_mask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    """Files that other threads make in that moment would be open to the world."""

    def touched(mask: int) -> int:
        raise AssertionError

    monkeypatch.setattr(os, "umask", touched)
    write_atomically(tmp_path / "file", lambda part: part.write_bytes(b""))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_there_keeps_its_permissions(mode, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)

    def write(part: Path) -> None:
        assert stat.S_IMODE(part.stat().st_mode) == 0o600  # nobody else reads it meanwhile
        part.write_bytes(b"new")

    write_atomically(path, write)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="files have other owners there")
def test_its_owner_too_where_that_is_possible(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(os, "fchown", lambda held, *owner: given.append(owner))
    path = tmp_path / "file"
    write_atomically(path, lambda part: part.write_bytes(b"old"))
    assert given == []
    write_atomically(path, lambda part: part.write_bytes(b"new"))
    assert given == [(path.stat().st_uid, path.stat().st_gid)]


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_stays_one(there, tmp_path):
    (tmp_path / "a").mkdir()
    target, link = tmp_path / "a" / "file", tmp_path / "link"
    link.symlink_to(target)
    if there:
        target.write_bytes(b"old")
    write_atomically(link, lambda part: part.write_bytes(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert not leftovers(tmp_path) + leftovers(tmp_path / "a")


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes there")
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"pipe is not a regular file\.$"):
        write_atomically(tmp_path / "pipe", lambda part: part.write_bytes(b""))
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_new_name_is_flushed_with_its_folder(tmp_path, monkeypatch):
    flushed, flush = [], os.fsync

    def record(held: int) -> None:
        flushed.append(stat.S_ISDIR(os.fstat(held).st_mode))
        flush(held)

    monkeypatch.setattr(os, "fsync", record)
    write_atomically(tmp_path / "file", lambda part: part.write_bytes(b""))
    assert flushed == [False, True]


KILLED = """
import os, signal, sys
from pathlib import Path
from gramian._files.atomic import write_atomically

def write(part: Path) -> None:
    part.write_bytes(b"half")
    print(part.name, flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.readline()
    part.write_bytes(b"theirs")

write_atomically(sys.argv[1], write)
"""


@pytest.mark.parametrize("how", ["killed", "alive"])
def test_what_a_kill_left_is_removed_by_a_save_an_hour_later(how, tmp_path):
    path, other = tmp_path / "file", tmp_path / ".file.more.01234567.part"
    other.write_bytes(b"of another file")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, path, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    part = process.stdout.readline().decode().strip()
    if how == "killed":
        process.wait()
    assert set(leftovers(tmp_path)) == {part, other.name}
    for minutes in (59, 61) if how == "killed" else (59,):
        written = time.time() - 60 * minutes
        for name in (part, other.name):
            os.utime(tmp_path / name, (written, written))
        write_atomically(path, lambda part: part.write_bytes(b"ours"))
        assert path.read_bytes() == b"ours"
        assert (part in leftovers(tmp_path)) == (minutes < 60)
    if how == "killed":
        assert leftovers(tmp_path) == [other.name]
        process.communicate()
        return
    assert set(leftovers(tmp_path)) == {part, other.name}  # which another process still writes
    process.communicate(b"\n")
    assert process.returncode == 0
    assert path.read_bytes() == b"theirs"
    assert leftovers(tmp_path) == [other.name]


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
        tensors = {
            "a": np.arange(6.0, dtype=np.float32).reshape(2, 3),
            "b": np.empty((0, 2), np.float32),
        }
        write_tensors(tmp_path / "file", tensors, {"about": "text"})
        for name, tensor in load_file(tmp_path / "file").items():
            assert np.array_equal(tensor, tensors[name])

    def test_a_full_disk_is_an_error_of_the_system(self, full_disk, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        message = r"could not write .*is unchanged"
        with pytest.raises(OSError, match=message) as caught, full_disk(100):
            write_tensors(path, {"a": np.zeros(1000, np.float32)}, {})
        assert caught.value.errno == errno.EFBIG
        assert path.read_bytes() == b"old"
        assert not leftovers(tmp_path)
