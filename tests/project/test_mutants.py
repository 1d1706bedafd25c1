"""The deliberate errors of `make mutants` still fit the sources; running them is another matter."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture
def mutants() -> Iterator[ModuleType]:
    spec = spec_from_file_location("mutants_main", TESTS / "mutants" / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_what_each_replaces_is_there_once(mutants: ModuleType) -> None:
    assert [str(m) for m in mutants.entries() if m.found() != 1 or m.old == m.new] == []


def test_there_is_each_file_of_tests_that_should_notice(mutants: ModuleType) -> None:
    named = {part for m in mutants.entries() for part in shlex.split(m.tests) if ".py" in part}
    assert len(named) > 0
    assert [part for part in sorted(named) if not (TESTS / part.split("::")[0]).exists()] == []
