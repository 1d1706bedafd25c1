"""The journal of a fit by parts: what a kill, damage and another fit leave of it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from gramian import KernelRidge
from gramian._arrays import RandomStream
from gramian.callbacks import Checkpoint, journal
from gramian.callbacks.journal import (
    FILE_HEADER,
    HEADER_COPIES,
    RECORD_FIELDS,
    RECORD_MARK,
    Journal,
    is_journal,
)

ABOUT = {"kernel": "a", "rows": "b"}
SETTINGS = {"kernel": "gaussian", "penalty": 1e-3, "random_state": 0}
START = HEADER_COPIES * len(FILE_HEADER)


def coef(number: int) -> np.ndarray:
    return np.full((4, 2), float(number), dtype=np.float64)


def filled(path: Path, parts: int = 3) -> Path:
    saved = Journal(path, ABOUT, resume=False)
    for number in range(parts):
        saved.append(number, {"ridge": 0.5}, {"coef": coef(number)})
    return path


def opened(path: Path, **about: str) -> Journal:
    return Journal(path, ABOUT | about, resume=True)


def kept(path: Path, parts: int = 3) -> list[int]:
    """Return the parts that are read again, each of them right."""
    saved, numbers = opened(path), []
    for number in range(parts):
        part = saved.part(number)
        if part is not None:
            assert part[0] == {"ridge": 0.5}
            assert np.array_equal(part[1]["coef"], coef(number))
            numbers.append(number)
    return numbers


@pytest.fixture
def path(tmp_path):
    return filled(tmp_path / "c")


def test_parts_are_read_again(path):
    assert is_journal(path)
    saved = opened(path)
    assert len(saved) == 3
    assert saved.part(3) is None
    saved.append(3, {"ridge": 1.0}, {"coef": np.ones((1, 2), np.float32), "rows": np.arange(3)})
    saved = opened(path)
    assert len(saved) == 4
    facts, tensors = saved.part(3)
    assert facts == {"ridge": 1.0}
    assert tensors["rows"].tolist() == [0, 1, 2]
    assert kept(path) == [0, 1, 2]


@pytest.mark.parametrize("lost", [1, 30, 64, 100])
def test_a_part_that_was_cut_off_is_missing_and_written_again(path, lost):
    path.write_bytes(path.read_bytes()[:-lost])
    assert kept(path) == [0, 1]
    opened(path).append(2, {"ridge": 0.5}, {"coef": coef(2)})
    assert kept(path) == [0, 1, 2]


def test_a_part_that_was_damaged_is_missing(path, caplog):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert kept(path) == [0, 1]
    assert "part 2 is damaged" in caplog.text


def test_a_flipped_bit_costs_one_part_at_most(path):
    content = path.read_bytes()
    rng = random.Random(0)
    marks = [i for i in range(len(content)) if content.startswith(RECORD_MARK, i)]
    heads = [mark + j for mark in marks for j in range(56)]
    places = [*range(0, START, 3), *heads, *(rng.randrange(len(content)) for _ in range(100))]
    for place in places:
        mutant = bytearray(content)
        mutant[place] ^= 1 << rng.randrange(8)
        path.write_bytes(mutant)
        assert len(kept(path)) >= 2, place


@pytest.mark.parametrize("length", [1 << 62, (1 << 64) - 1, 0])
def test_a_length_beyond_sense_is_damage(path, length):
    content = bytearray(path.read_bytes())
    place = content.rindex(RECORD_MARK) + len(RECORD_MARK)
    RECORD_FIELDS.pack_into(content, place, 2, length, bytes(32))
    path.write_bytes(content)
    assert kept(path) == [0, 1]


def test_facts_that_were_changed_are_damage(path):
    path.write_bytes(path.read_bytes().replace(b'\\"ridge\\": 0.5', b'\\"ridge\\": 0.7'))
    assert kept(path) == []


def forged(path: Path, payload: bytes) -> None:
    """Append a record whose digest is right."""
    fields = RECORD_FIELDS.pack(2, len(payload), journal._digest(2, payload))
    path.write_bytes(path.read_bytes() + RECORD_MARK + fields + payload)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff" * 8,
        (1 << 62).to_bytes(8, "little") + b"{}",
        safetensors.numpy.save({"coef": np.ones(2, np.float32)}),
        safetensors.numpy.save({}, {"gramian_state": "[]"}),
        safetensors.numpy.save({}, {"gramian_state": '{"about": 1, "facts": 2}'}),
        b'\x4c\0\0\0\0\0\0\0{"coef":{"dtype":"F64","shape":[-1,-1],"data_offsets":[0,8]}}'.ljust(
            92
        ),
    ],
)
def test_records_that_were_forged_are_no_parts(path, payload):
    forged(path, payload)
    assert kept(path) == [0, 1, 2]  # the record before holds


def test_another_fit_is_refused(path):
    with pytest.raises(ValueError, match="another problem: rows differ"):
        opened(path, rows="c")


@pytest.mark.parametrize(("version", "message"), [(9, "newer version"), (1, "older version")])
def test_another_version_is_refused(path, version, message):
    replaced = path.read_bytes().replace(b'"format": 2', b'"format": %d' % version)
    path.write_bytes(replaced)
    with pytest.raises(ValueError, match=message):
        opened(path)


def test_a_journal_of_before_is_refused_in_words(tmp_path):
    header = json.dumps({"gramian_state": "journal", "format": 1, "about": ABOUT}).encode()
    (tmp_path / "c").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ValueError, match=r"older version.*delete the file to start again"):
        opened(tmp_path / "c")
    assert len(Journal(tmp_path / "c", ABOUT, resume=False)) == 0


def test_without_resume_it_starts_again(path):
    assert len(Journal(path, ABOUT, resume=False)) == 0
    assert len(opened(path)) == 0


def test_other_files_are_left_alone(tmp_path):
    other = tmp_path / "table.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not a checkpoint"):
        Journal(other, ABOUT, resume=False)
    assert other.read_text() == "a,b\n1,2\n"


def test_a_full_disk_does_not_end_the_fit(path, caplog, monkeypatch):
    saved = opened(path)
    with monkeypatch.context() as patch:
        patch.setattr(journal.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
        saved.append(3, {"ridge": 0.5}, {"coef": coef(3)})
    assert "could not write part 3" in caplog.text
    assert kept(path) == [0, 1, 2]


def test_each_part_is_flushed_to_the_disk(path, monkeypatch):
    flushed = []
    monkeypatch.setattr(journal.os, "fsync", flushed.append)
    opened(path).append(3, {}, {})
    assert len(flushed) == 1


def test_checkpoints_of_other_fits_are_not_confused(path, tmp_path):
    X = RandomStream(0).standard_normal((50, 2), np.float32)
    settings = SETTINGS | {"solver": "pcg", "landmarks": None}
    saved = tmp_path / "plain"
    KernelRidge(callbacks=[Checkpoint(saved)], **settings).fit(X, X[:, 0])
    assert not is_journal(saved)
    with pytest.raises(ValueError, match="another kind of fit"):
        opened(saved)
    with pytest.raises(ValueError, match="a fit by cells"):
        KernelRidge(callbacks=[Checkpoint(path)], **settings).fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("iteration", "x"),
        ("iteration", None),
        ("reason", "else"),
        ("reason", []),
        ("shift", None),
        ("residual", "x"),
    ],
)
def test_facts_that_no_cell_has_are_damage(tmp_path, name, value):
    X = np.random.default_rng(0).standard_normal((60, 2))
    est = KernelRidge(cells=30, callbacks=[Checkpoint(tmp_path / "c")], **SETTINGS)
    whole = est.fit(X, X[:, 0]).dual_coef_
    append = edited(tmp_path / "c")
    for bad in ({name: value}, {}):
        append(bad)
        np.testing.assert_array_equal(est.fit(X, X[:, 0]).dual_coef_, whole)


def edited(path: Path):
    """Return what appends the first part once more, with other facts or other coefficients."""
    content = path.read_bytes()
    place = content.index(RECORD_MARK) + len(RECORD_MARK)
    _, length, _ = RECORD_FIELDS.unpack_from(content, place)
    payload = content[place + RECORD_FIELDS.size :][:length]
    about, facts, tensors = journal._unpack(payload)

    def append(change: dict[str, object]) -> None:
        saved = Journal(path, about, resume=True)
        saved.append(0, facts | change, tensors if change else {"coef": -tensors["coef"][:0]})

    return append
