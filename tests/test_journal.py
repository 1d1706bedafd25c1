"""The journal of a fit by parts: what a kill, damage and another fit leave of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from gramian import KernelRidge
from gramian.callbacks import Checkpoint
from gramian.callbacks.journal import Journal, is_journal

ABOUT = {"kernel": "a", "rows": "b"}


def filled(path: Path, parts: int = 3) -> Path:
    with Journal(path, ABOUT, resume=False) as journal:
        for number in range(parts):
            journal.append(number, {"ridge": 0.5}, torch.full((4, 2), float(number)))
    return path


def opened(path: Path, **about: str) -> Journal:
    return Journal(path, ABOUT | about, resume=True)


@pytest.fixture
def path(tmp_path):
    return filled(tmp_path / "c")


def test_parts_are_read_again(path):
    assert is_journal(path)
    with opened(path) as journal:
        assert len(journal) == 3
        facts, coef = journal.part(2)
        assert facts["ridge"] == 0.5
        assert torch.equal(coef, torch.full((4, 2), 2.0, dtype=torch.float64))
        assert journal.part(3) is None
        journal.append(3, {"ridge": 1.0}, torch.ones(1, 2))
    with opened(path) as journal:
        assert len(journal) == 4
        assert journal.part(3)[0]["ridge"] == 1.0


@pytest.mark.parametrize("lost", [1, 30, 64, 100])
def test_a_part_that_was_cut_off_is_none(path, lost, caplog):
    content = path.read_bytes()
    path.write_bytes(content[:-lost])
    with opened(path) as journal:
        assert len(journal) == 2
        assert "were lost" in caplog.text
        journal.append(2, {"ridge": 0.5}, torch.full((4, 2), 2.0))
    assert path.read_bytes() == content


def test_a_part_that_was_damaged_is_none(path, caplog):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with opened(path) as journal:
        assert journal.part(1) is not None
        assert journal.part(2) is None
    assert "part 2 is damaged" in caplog.text


def test_a_length_beyond_sense_is_damage(path, caplog):
    content = path.read_bytes()
    at = content.rindex(b'{"ridge"') - 8
    path.write_bytes(content[:at] + (1 << 62).to_bytes(8, "little") + content[at + 8 :])
    with opened(path) as journal:
        assert len(journal) == 2
        assert journal.part(1) is not None
    assert "were lost" in caplog.text


def test_facts_that_were_changed_are_damage(path):
    path.write_bytes(path.read_bytes().replace(b'"ridge": 0.5', b'"ridge": 0.7'))
    with opened(path) as journal:
        assert [journal.part(number) for number in range(3)] == [None] * 3


def test_another_fit_is_refused(path):
    with pytest.raises(ValueError, match="another problem: rows differ"), opened(path, rows="c"):
        pass


def test_a_newer_version_is_refused(path):
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 9'))
    with pytest.raises(ValueError, match="newer version"), opened(path):
        pass


def test_without_resume_it_starts_again(path):
    with Journal(path, ABOUT, resume=False) as journal:
        assert len(journal) == 0


def test_other_files_are_left_alone(tmp_path):
    other = tmp_path / "table.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not a checkpoint"):
        Journal(other, ABOUT, resume=False)
    assert other.read_text() == "a,b\n1,2\n"


def test_checkpoints_of_other_fits_are_not_confused(path, tmp_path):
    X = torch.randn(50, 2, generator=torch.Generator().manual_seed(0)).numpy()
    settings = {"kernel": "gaussian", "penalty": 1e-3, "random_state": 0, "solver": "pcg"}
    saved = tmp_path / "plain"
    KernelRidge(landmarks=None, callbacks=[Checkpoint(saved)], **settings).fit(X, X[:, 0])
    assert not is_journal(saved)
    with pytest.raises(ValueError, match="another kind of fit"), opened(saved):
        pass
    with pytest.raises(ValueError, match="a fit by cells"):
        KernelRidge(landmarks=None, callbacks=[Checkpoint(path)], **settings).fit(X, X[:, 0])


def test_the_header_is_json(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert json.loads(content[8 : 8 + length])["about"] == ABOUT
