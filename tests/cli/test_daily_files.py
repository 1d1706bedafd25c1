"""Batches: a model of a year of daily files predicts each day of the next month, one row a file."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plain import PLAIN

from gramian import KernelRidge, load

FIRST, DAYS, NEXT = datetime.date(2021, 3, 1), 365, 31
RNG = np.random.default_rng(0)
TOWNS = ["Bergen", "Oslo", "Voss"]


def day_of(i: int) -> pd.DataFrame:
    """Return the rows of a day: visitors in thousands and a price beyond it."""
    rows = 3 if i < DAYS else 1
    visitors = RNG.integers(800, 9000, rows)
    frame = pd.DataFrame(
        {
            "day": FIRST + datetime.timedelta(days=i),
            "town": RNG.choice(TOWNS, rows),
            "visitors": visitors,
            "price": RNG.uniform(0, 3000, rows).round(3),
            "open": RNG.random(rows) < 0.7,
        }
    )
    season = 300 * np.sin(i / 58)
    frame["income"] = (visitors / 10 + frame["price"] / 20 + season + 50 * frame["open"]).round(2)
    return frame


def written(frame: pd.DataFrame, day: str, mark: str, point: str, group: str) -> str:
    """Return a file with days, separators and numbers in a style."""
    marks = str.maketrans(",.", group + point)
    texts = pd.DataFrame(
        {
            "day": [d.strftime(day) for d in frame["day"]],
            "town": frame["town"],
            "visitors": [f"{v:,}".translate(marks) for v in frame["visitors"]],
            "price": [f"{v:,.3f}".translate(marks) for v in frame["price"]],
            "open": np.where(frame["open"], "ja", "nein") if point == "," else frame["open"],
            "income": [f"{v:,.2f}".translate(marks) for v in frame["income"]],
        }
    )
    return texts.to_csv(index=False, sep=mark)


STYLES: dict[str, Callable[[pd.DataFrame], str]] = {
    "ISO": lambda frame: frame.to_csv(index=False),
    "German": lambda frame: written(frame, "%d.%m.%Y", ";", ",", "."),
    "American": lambda frame: written(frame, "%m/%d/%Y", ",", ".", ","),
    "spaces": lambda frame: frame.to_csv(index=False, sep=" "),
}


@pytest.fixture(scope="module")
def days() -> list[pd.DataFrame]:
    return [day_of(i) for i in range(DAYS + NEXT)]


@pytest.mark.filterwarnings("ignore:.*numbers such as 1.234 are read as 1234 in visitors")
@pytest.mark.parametrize("style", STYLES)
def test_each_day_of_the_next_month_is_predicted_as_in_one_frame(
    style: str, days: list[pd.DataFrame], tmp_path: Path, gramian: Any
) -> None:
    write, (folder, batches) = STYLES[style], (tmp_path / "year", tmp_path / "next")
    folder.mkdir()
    batches.mkdir()
    for i, frame in enumerate(days):
        path = (folder if i < DAYS else batches) / f"{i:03d}.csv"
        path.write_text(write(frame), "utf-8")
    model, out = tmp_path / "m.model", tmp_path / "out.csv"
    KernelRidge(random_state=0, **PLAIN).fit(folder, "income").save(model)
    whole = pd.concat(days[:DAYS], ignore_index=True)
    expected = KernelRidge(random_state=0, **PLAIN).fit(whole, "income")
    loaded = load(model)
    for i, frame in enumerate(days[DAYS:], DAYS):
        path = batches / f"{i:03d}.csv"
        meant = expected.predict(frame)
        np.testing.assert_allclose(loaded.predict(path), meant, rtol=1e-6)
        if i % 10 == 0:
            assert gramian("predict", model, path, "--out", out).code == 0
            np.testing.assert_allclose(pd.read_csv(out)["prediction"], meant, rtol=1e-6)
