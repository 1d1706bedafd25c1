"""Fits of few rows: what takes as long as their arithmetic happens once."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramian import KernelRidge
from gramian._parallel.workers import one_blas_thread
from gramian.fitting.settings.settings import FitSettings

SETTINGS: dict[str, dict[str, Any]] = {
    "direct": {"lengthscale": 2.0, "penalty": 1e-4, "standardize": False},
    "standardised": {"lengthscale": "median", "penalty": 1e-4},
    "pcg": {"lengthscale": 2.0, "penalty": 1e-4, "solver": "pcg"},
    "falkon": {"lengthscale": 2.0, "penalty": 1e-3, "solver": "falkon", "landmarks": 20},
    "automatic": {"lengthscale": "auto", "penalty": "auto"},
    "newton": {"lengthscale": 2.0, "penalty": 1e-3, "loss": "huber"},
}


@pytest.fixture(params=SETTINGS)
def fit(request: pytest.FixtureRequest, rng: np.random.Generator) -> Callable[[], Any]:
    """A fit of few rows, after a first one."""
    X = rng.standard_normal((80, 3))
    model = KernelRidge("gaussian", random_state=0, **SETTINGS[request.param])
    model.fit(X, X[:, 0] ** 2)
    return lambda: model.fit(X, X[:, 0] ** 2)


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """Return a list to which each call of a method adds its arguments."""
    calls: list[Any] = []
    method = getattr(owner, name)

    def called(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        return method(*arguments, **named)

    monkeypatch.setattr(owner, name, called)
    return calls


def test_settings_are_checked_once(fit, monkeypatch):
    checks = counted(monkeypatch, FitSettings, "__post_init__")
    fit()
    assert len(checks) == 1


def test_the_blas_is_set_to_one_thread_once(fit, monkeypatch):
    changes = counted(monkeypatch, one_blas_thread, "_set")
    fit()
    assert len(changes) == 2  # at the start, and back at the end


def test_no_file_of_the_system_is_read(fit, monkeypatch):
    opened = counted(monkeypatch, io, "open")
    fit()
    assert [path for path, *_ in opened if str(path).startswith("/proc")] == []


def test_files_that_are_read_are_seen(monkeypatch, tmp_path: Path):
    """The test above counts the function that `Path.read_text` calls."""
    path = tmp_path / "file"
    path.write_text("text")
    opened = counted(monkeypatch, io, "open")
    path.read_text()
    assert [str(given) for given, *_ in opened] == [str(path)]
