"""Imports: what is left for later is there when it is used, and costs nothing before."""

import gc
import importlib
import importlib.util
import pickle
import subprocess
import sys
import threading

import pytest

from gramian._imports import WhenUsed, defer_imports, pause_collection

LATER = ("scipy.stats", "scipy.optimize", "pandas", "pyarrow.compute", "sklearn.cluster", "rich")


@pytest.mark.slow
def test_what_few_need_is_not_imported() -> None:
    code = f"""
import sys
from gramian import KernelRidge
assert not [name for name in {LATER!r} if name in sys.modules]
import gc
assert gc.isenabled()
import numpy as np, scipy.stats, sklearn.utils.fixes, pandas
assert sklearn.utils.fixes._mode(np.array([1, 2, 2])).mode == 2
assert sklearn.utils.fixes.pd.DataFrame is pandas.DataFrame
assert scipy.stats.norm.cdf(0) == 0.5
KernelRidge().fit(pandas.DataFrame({{"a": [0.0, 1, 2], "b": list("xyx")}}), [0, 1, 3])
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_deferred_module_is_imported_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with defer_imports("colorsys", "no_such_module_anywhere"):
        import colorsys

        assert isinstance(colorsys, WhenUsed)
        with pytest.raises(ImportError):
            __import__("no_such_module_anywhere")
    assert "colorsys" not in sys.modules
    assert colorsys.rgb_to_hsv(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert sys.modules["colorsys"].rgb_to_hsv is colorsys.rgb_to_hsv


def test_a_deferred_module_can_be_used_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "wsgiref"]:
        monkeypatch.delitem(sys.modules, name)
    with defer_imports("wsgiref"):
        import wsgiref
        from wsgiref.util import guess_scheme

        assert isinstance(wsgiref, WhenUsed)
    assert guess_scheme({}) == "http"
    assert not isinstance(sys.modules["wsgiref"], WhenUsed)


def test_a_stand_in_is_its_module_to_all_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with defer_imports("colorsys"):
        import colorsys

        found = importlib.util.find_spec("colorsys")  # of another thread, say
        assert found is not None
        assert found.name == "colorsys"
        assert "colorsys" in sys.modules
    real = importlib.import_module("colorsys")
    assert dir(colorsys) == dir(real)
    monkeypatch.setattr(colorsys, "ONE_THIRD", 0.25)
    assert real.ONE_THIRD == 0.25  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(colorsys)) is real


def test_stand_ins_of_several_threads_are_imported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    start, got = threading.Barrier(8), []

    def use(number: int) -> None:
        start.wait()
        if number % 2:
            with defer_imports("colorsys"):
                got.append(importlib.import_module("colorsys").rgb_to_hsv)
        else:
            got.append(importlib.import_module("colorsys").rgb_to_hsv)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 8
    assert len(set(got)) == 1
    assert not isinstance(sys.modules["colorsys"], WhenUsed)


def test_what_is_imported_is_not_deferred() -> None:
    with defer_imports("sys"):
        import sys as again

        assert again is sys
    assert sys.modules["sys"] is sys


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_as_it_was(on: bool) -> None:
    was_on = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        with pause_collection():
            assert not gc.isenabled()
        assert gc.isenabled() is on
    finally:
        (gc.enable if was_on else gc.disable)()


def test_what_is_made_meanwhile_counts_as_old() -> None:
    gc.unfreeze()
    try:
        with pause_collection():
            made: list[int] = []
        assert any(one is made for one in gc.get_objects(generation=2))
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()  # as conftest has left it


def test_what_others_have_frozen_stays_frozen() -> None:
    gc.freeze()
    with pause_collection():
        pass
    assert gc.get_freeze_count() > 0
