"""Text for people: no secret of an address, no control character."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from gramian._messages.checks import it_has, join_words
from gramian._messages.display import (
    display_lines,
    display_text,
    escape_controls,
    escape_json_controls,
    value_text,
    without_secrets,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://KEY:SECRET@b/x.parquet?region=eu: no file", "s3://b/x.parquet: no file"),
        ("s3:/KEY:SE/CR?ET@b/x is no table", "s3://b/x is no table"),  # as a Path leaves it
        ("tcp://user:p@ss@host:8786, which", "tcp://host:8786, which"),
        ("'https://token@h/x?X-Amz-Signature=a&b=c' (or", "'https://h/x' (or"),
        ("(see https://h/x?sig=abc#d)", "(see https://h/x)"),
        ("s3://K:S@b/a and gs://L:T@c/d.", "s3://b/a and gs://c/d."),
    ],
)
def test_secrets_of_addresses_are_left_out(text, shown):
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    "text",
    ["s3://bucket/a@b.csv", "tls://scheduler:8786", "C:/users/a@b", "me@home.org", "12:30@noon"],
)
def test_other_texts_stay(text):
    assert display_text(text) == text


def test_control_characters_are_escaped():
    assert escape_controls("\x1b[2J\r\n\u202ea\x9b\udcff") == r"\x1b[2J\r\n\u202ea\x9b\udcff"
    names = "Zürich é 東京 \u0646\u200c\u0647 \U0001f600"  # a joiner is a letter's in Persian
    assert escape_controls(names) == names
    assert display_lines("a\nb\x1b") == "a\nb\\x1b"
    assert "\x1b" not in join_words(["a\x1b"]) + it_has(["a\x1b"], "a")


def test_escaped_json_says_the_same():
    value = {"a\u202e": "\x9b\udcff\U000e0041é"}
    text = escape_json_controls(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert text == r'{"a\u202e": "\u009b\udcff\udb40\udc41é"}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.datetime(2026, 1, 2), "2026-01-02"),
        (dt.datetime(2026, 1, 2, 3), "2026-01-02 03:00:00"),
        (None, "missing"),
        (float("nan"), "missing"),
        (1 / 3, "0.3333333"),
    ],
)
def test_texts_of_values(value, text):
    assert value_text(value) == text
