"""Odd values of text files: reported, stored in the model, refused in targets or by option."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain import PLAIN, PLAIN_OPTIONS

import gramian as package
from gramian.data import OddValueWarning

N = 200


def write(path: Path, *columns: list[object], names: str = "v,z,y") -> Path:
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([names, *rows]) + "\n")
    return path


@pytest.fixture
def numbers() -> tuple[list[Any], list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    v, z = rng.integers(1000, 9000, N), rng.normal(size=N).round(3)
    return v.tolist(), z.tolist(), (v / 1000 + z).round(3).tolist()


def test_odd_value_is_reported_stored_and_described(
    gramian: Any, tmp_path: Path, numbers: tuple[list[Any], ...]
) -> None:
    v, z, y = numbers
    path = write(tmp_path / "x.csv", [*v[:5], "unknown", *v[6:]], z, y)
    model = tmp_path / "a.model"
    done = gramian("fit", path, "--target", "y", *PLAIN_OPTIONS, "--out", model)
    assert done.code == 0
    (line,) = [line for line in done.err.splitlines() if "warning" in line]
    assert "x.csv: column 'v' holds numbers but for 1 value of 200: 'unknown' in row 7" in line
    assert "--strict" in line
    assert "'unknown': missing" in gramian("info", model).out
    new = write(tmp_path / "new.csv", ["unknown", 2000], [0.1, 0.2], names="v,z")
    done = gramian("predict", model, new, "--out", tmp_path / "p.csv")
    assert (done.code, "warning" in done.err) == (0, False)
    new = write(tmp_path / "new.csv", ["unbekannt", 2000], [0.1, 0.2], names="v,z")
    done = gramian("predict", model, new, "--out", tmp_path / "p.csv")
    assert done.code == 2
    assert "new.csv: column 'v' was written as 1 in training, but row 2" in done.err
    assert "'unbekannt'" in done.err


def test_strict_fit_refuses_odd_values_of_its_columns(
    gramian: Any, tmp_path: Path, numbers: tuple[list[Any], ...]
) -> None:
    v, z, y = numbers
    path = write(tmp_path / "x.csv", ["unknown", *v[1:]], z, y)
    fit = ("fit", path, "--target", "y", *PLAIN_OPTIONS, "--strict", "--out", tmp_path / "a.model")
    done = gramian(*fit)
    assert done.code == 2
    assert "x.csv: column 'v' holds numbers but for 1 value of 200: 'unknown' in row 2" in done.err
    assert gramian(*fit, "--drop", "v").code == 0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda i, y: "missing" if i == 3 else y, "1 of 200, first in row 5 .*'missing' in row 5"),
        (lambda i, y: "unknown" if i == 3 else y, "'y' holds numbers .*'unknown' in row 5 "),
        (
            lambda i, y: "bad" if i % 8 == 0 else y,
            r"x.csv: .* 17[0-9] different texts in 200 .* as 'bad' in row 2 ",
        ),
        (
            lambda i, y: f"${i % 7}" if i % 2 else f"€{i % 7}",
            "has numbers that are not written alike",
        ),
    ],
)
def test_target_that_is_neither_numbers_nor_labels_is_refused(
    gramian: Any, tmp_path: Path, numbers: tuple[list[Any], ...], change: Any, error: str
) -> None:
    v, z, y = numbers
    path = write(tmp_path / "x.csv", v, z, [change(i, value) for i, value in enumerate(y)])
    done = gramian("fit", path, "--target", "y", *PLAIN_OPTIONS, "--out", tmp_path / "a.model")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert re.search(error, line)


def test_marked_numbers_are_read_alike_by_predict(
    tmp_path: Path, numbers: tuple[list[Any], ...]
) -> None:
    v, z, y = numbers
    path = write(tmp_path / "x.csv", [f'"${q:,}.00"' for q in v], z, y)
    model = package.KernelRidge(random_state=0, **PLAIN).fit(path, "y")
    model.save(tmp_path / "a.model")
    new = write(tmp_path / "new.csv", ['"$1,234"', '"$5,678"'], [0.1, 0.2], names="v,z")
    found = package.load(tmp_path / "a.model").predict(new)
    np.testing.assert_allclose(found, [1.334, 5.878], atol=0.2)
    of_array = model.predict(np.array([[1234, 0.1], [5678, 0.2]]))
    np.testing.assert_allclose(of_array, found, rtol=1e-4)


def test_python_warns_of_odd_values(tmp_path: Path, numbers: tuple[list[Any], ...]) -> None:
    v, z, y = numbers
    path = write(tmp_path / "x.csv", [*v[:-2], "a", "b"], z, y)
    with pytest.warns(OddValueWarning, match=r"2 values of 200: 'a' in row 200, 'b' in row 201 "):
        package.KernelRidge(random_state=0, **PLAIN).fit(path, "y")
    encoder = package.TableEncoder(random_state=0)
    with pytest.warns(OddValueWarning, match="strict=True"):
        encoder.fit(path)
    encoder.save(tmp_path / "encoder")
    loaded = package.TableEncoder.load(tmp_path / "encoder")
    assert loaded.encoding_.readings["v"].gaps == ("a", "b")
    new = write(tmp_path / "new.csv", ["b", 2000], [0.1, 0.2], [1, 2])
    assert np.isfinite(loaded.transform(new)).all()
