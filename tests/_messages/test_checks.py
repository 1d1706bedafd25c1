"""Sizes and counts as people write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gramian._messages.checks import as_bytes, as_count, did_you_mean, readable_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        (500_000_000, 500_000_000),
        (np.int64(7), 7),
        ("123", 123),
        ("123 B", 123),
        ("500MB", 500_000_000),
        ("500 MB", 500_000_000),
        (" 2GB ", 2_000_000_000),
        ("1.5GiB", 1_610_612_736),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("1MiB", 1 << 20),
        ("3TiB", 3 << 40),
        ("0.5TB", 500_000_000_000),
        (2e16, 20_000_000_000_000_000),
        (1.5, 1),
    ],
)
def test_as_bytes(text, size):
    assert as_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    [
        0,
        -1,
        "",
        "MB",
        "0MB",
        "-5MB",
        "1.2.3GB",
        "5XB",
        "five",
        "1e",
        ".",
        "nan",
        "inf",
        np.nan,
        np.inf,
    ],
)
def test_what_is_no_size_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"limit=.* is not a size; .*'500MB' or '2GiB'"):
        as_bytes(text, "limit")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1, "1 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1_234_567, "1.23 MB"),
        (2.5e9, "2.5 GB"),
        (8e12, "8 TB"),
        (8e16, "8e+04 TB"),
    ],
)
def test_readable_bytes(size, text):
    assert readable_bytes(size) == text


@pytest.mark.parametrize("size", [1, 999, 1000, 12_345, 10**9, 10**13])
def test_what_is_written_can_be_read(size):
    text = readable_bytes(size).replace("bytes", "B")
    assert as_bytes(text) == pytest.approx(size, rel=0.005)  # three digits


@pytest.mark.parametrize("value", [1, 7, np.int32(3), np.uint8(200)])
def test_as_count(value):
    count = as_count(value, "every")
    assert count == value
    assert type(count) is int


@pytest.mark.parametrize("value", [0, -1, True, 1.0, 2.5, "3", None, np.bool_(True), float("nan")])
def test_what_is_no_count_is_refused(value: Any):
    with pytest.raises(ValueError, match="every must be a whole number of at least 1, not"):
        as_count(value, "every")


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("gausian", "gaussian"),
        ("Gaussian", "gaussian"),
        ("PRICE", "price"),
        ("latitude", None),
        ("price", None),
        ("target", None),
    ],
)
def test_near_names_are_proposed_but_neither_the_same_nor_others(
    wanted: str, near: str | None
) -> None:
    names = ["gaussian", "longitude", "price", "size"]
    expected = "" if near is None else f"; did you mean {near}?"
    assert did_you_mean(wanted, names) == expected
