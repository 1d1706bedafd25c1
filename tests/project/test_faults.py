"""A small part of the fault campaign, ``make faults``."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@pytest.fixture
def faults(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from benchmarks.reliability import faults

    return faults


@pytest.mark.slow
@pytest.mark.parametrize("name", ["falkon", "askotch", "eigenpro3", "sketchysaga"])
def test_killed_fits_go_on_to_the_same_bits(name, faults, tmp_path):
    row = faults.kills(name, 2, tmp_path)
    assert row["identical"] == 2
    assert row["left over"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["KernelRidgeCV", "gramian tune"])
def test_killed_searches_resume_to_the_same_bits(name, faults, tmp_path):
    row = faults.kill_searches(name, 2, tmp_path)
    assert row["identical"] == 2
    assert row["left over"] == 0


@pytest.mark.parametrize("kind", ["model", "average", "state"])
def test_damaged_files_are_refused(kind, faults, tmp_path):
    row = faults.damage(kind, 60, tmp_path)
    assert (row["silently other"], row["bug"]) == (0, 0)
    assert row["refused"] > 50


def test_damaged_journals_cost_the_cells_that_are_damaged(faults, tmp_path):
    row = faults.journal_damage(30, tmp_path)
    assert (row["silently other"], row["bug"]) == (0, 0)
    assert row["parts lost by a flipped bit"] == 1


def test_files_that_change_under_fits_are_named(faults, tmp_path):
    for row in faults.changes(tmp_path):
        assert row["else"] == "", row
        mapped = row["file"] in ("npy", "memory map")  # of which only a change in place is one
        named, unchanged = (2, 10) if mapped else (12, 0)
        assert row["an error names the file and the change"] == named, row
        assert row["the fit of the file before"] == unchanged, row


@pytest.mark.parametrize("kind", ["feather", "ipc", "arrow"])
def test_damaged_files_of_arrow_end_no_process(kind, faults, tmp_path):
    row = faults.in_child(lambda: faults.damage(kind, 60, tmp_path))
    assert isinstance(row, dict), row
    assert row["bug"] == 0
    assert row["refused"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["line", "texts", "cells"])
def test_small_files_that_need_much_memory(name, faults, tmp_path):
    row = faults.measure_bomb(name, tmp_path)
    assert row["exit code"] == (0 if name == "cells" else 2)
    assert row["of the limit"] < 1.2


def test_a_disk_that_is_full_and_a_folder_that_is_closed(faults, tmp_path):
    for row in faults.disks(tmp_path):
        expected = ("OSError, old file kept", "not tried", "PermissionError", "the fit ends, coef")
        assert row["outcome"].startswith(expected), row
        assert "OTHER" not in row["outcome"], row


@pytest.mark.slow
def test_two_processes_with_one_checkpoint(faults, tmp_path):
    row = faults.two_processes("falkon", tmp_path)
    assert (row["identical"], row["left over"]) == (2, 0)
