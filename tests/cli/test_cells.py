"""Fits by cells: the same model as in Python, and what does not go with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from plain import PLAIN_OPTIONS

from gramian import KernelRidge
from gramian.model import KernelModel

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 2))


@pytest.fixture
def data(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.sin(2 * X[:, 0]) + X[:, 1])
    path = tmp_path / "train.csv"
    frame.to_csv(path, index=False)
    return path


def test_the_model_is_that_of_python(gramian, data, tmp_path):
    out = tmp_path / "m"
    done = gramian(
        "fit", data, "--target", "y", "--cells", 100, "--seed", 3, *PLAIN_OPTIONS, "--out", out
    )
    assert done.code == 0, done.err
    model = KernelModel.load(out)
    frame = pd.read_csv(data)
    est = KernelRidge(
        "gaussian", lengthscale="median", penalty=1e-6, cells=100, random_state=3
    ).fit(frame[["a", "b"]], frame["y"])
    assert model.cells.cells.count == est.model_.cells.cells.count > 4
    np.testing.assert_array_equal(model.predict(frame)[:, 0], est.predict(frame[["a", "b"]]))


def test_plan_and_info_count_them(report, data, tmp_path):
    assert report("plan", data, "--target", "y", "--cells", 100)["cells"] >= 4
    report("fit", data, "--target", "y", "--cells", 100, "--out", tmp_path / "m")
    assert report("info", tmp_path / "m")["cells"] >= 4


def test_a_checkpoint_keeps_them(gramian, report, data, tmp_path):
    saved, command = tmp_path / "c", ("fit", data, "--target", "y", "--cells", 100)
    whole = report(*command, "--out", tmp_path / "m", "--checkpoint", saved)
    content = saved.read_bytes()
    saved.write_bytes(content[: len(content) // 2])  # as a kill may leave it
    done = gramian(*command, "--out", tmp_path / "n", "--checkpoint", saved)
    assert done.code == 0, done.err
    assert "were lost" in done.err
    assert len(saved.read_bytes()) >= len(content)
    a, b = (KernelModel.load(tmp_path / name) for name in "mn")
    np.testing.assert_array_equal(a.coef, b.coef)
    assert whole["stop_reason"] == "converged"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--cells", 0], "--cells must be a whole number of at least 1, not 0"),
        (
            ["--cells", 50, "--landmarks", 20],
            "--landmarks 20 cannot be combined with --cells",
        ),
        (["--cells", 50, "--early-stopping"], "--early-stopping cannot be combined with --cells"),
        (["--cells", 50, "--validation", 0.2], "--cells and --validation cannot be combined"),
        (["--cells", 50, "--budget", "9 s"], "--cells requests a single fit"),
    ],
)
def test_what_does_not_go_with_them(gramian, data, tmp_path, more, said):
    done = gramian("fit", data, "--target", "y", *more, "--out", tmp_path / "m")
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "m").exists()
