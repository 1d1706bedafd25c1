"""Imports: what is left for later is there when it is used, and costs nothing before."""

import subprocess
import sys

import pytest

LATER = ("sklearn.cluster", "sklearn.metrics", "tqdm.auto", "rich")


@pytest.mark.slow
def test_what_few_need_is_not_imported() -> None:
    code = f"""
import sys
from gramian import KernelRidge
assert not [name for name in {LATER!r} if name in sys.modules]
import gc
assert gc.isenabled()
import pandas
KernelRidge().fit(pandas.DataFrame({{"a": [0.0, 1, 2], "b": list("xyx")}}), [0, 1, 3])
"""
    subprocess.run([sys.executable, "-c", code], check=True)
