"""Errors that carry their parts, and texts that name parameters."""

from __future__ import annotations

import pickle

import pytest

from gramian._messages.errors import (
    SETTING_FORM,
    UNKNOWN_FORM,
    ParameterError,
    Text,
    write_argument,
    write_message,
)


def in_capitals(mark: str, value: object) -> str:
    """Write marks as another face would."""
    return mark.upper() if value is None else f"{mark.upper()}<{value}>"


TEXTS = {
    "no mark": (Text("no {}", "mark"), "no mark"),
    "a {b}": (Text("a {}", "{b}"), "a {b}"),
    "[1] is 3": (Text("{!r} is {:.0f}", [1], 3.1), "[1] is 3"),
    "raise tol": (Text("raise {tol}"), "raise TOL"),
    "use engine='torch:cuda'": (Text("use {engine='torch:cuda'}"), "use ENGINE='TORCH:CUDA'"),
    "leave columns=[...] out": (Text("leave {columns=[...]} out"), "leave COLUMNS=[...] out"),
    "cv=3 folds": (Text("{cv=} folds", 3), "CV=<3> folds"),
    "above tol=1.0e-06": (Text("above {tol=:.1e}", 1e-6), "above TOL=1.0E-06"),
    "a.state: raise tol": (Text("{}: {}", "a.state", Text("raise {tol}")), "a.state: raise TOL"),
    "bad: raise tol": (Text("bad: {}", ValueError(Text("raise {tol}"))), "bad: raise TOL"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_of_each_face(text):
    message, capitals = TEXTS[text]
    assert str(message) == write_message(message, write_argument) == text
    assert write_message(message, in_capitals) == capitals
    assert write_message(TypeError(message), in_capitals) == capitals
    assert str(pickle.loads(pickle.dumps(message))) == text


ERRORS = {
    "tol must be at least 0, not -1": ParameterError("tol", -1, "at least 0"),
    "tol must be at least 0, not -1; raise max_iter": ParameterError(
        "tol", -1, "at least 0", Text("raise {max_iter}")
    ),
    "tol=-1 is negative; leave it out": ParameterError(
        "tol", -1, "is negative", "leave it out", SETTING_FORM
    ),
    "unknown kernel 'k'; known: a, b; did you mean a?": ParameterError(
        "kernel", "k", "a, b", "did you mean a?", UNKNOWN_FORM
    ),
}


@pytest.mark.parametrize("text", ERRORS)
def test_parts_of_an_error(text):
    error = ERRORS[text]
    assert str(error) == text
    assert error.parameter in ("tol", "kernel")
    assert error.value in (-1, "k")
    assert "; " + str(error.remedy) in text + "; "
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.parameter, copy.value) == (text, error.parameter, error.value)


def test_long_values_are_cut():
    assert len(str(ParameterError("cv", list(range(10**5)), "a number"))) < 200


def test_other_errors_stay_as_they_are():
    error = OSError(2, "no such file", "x")
    assert write_message(error, in_capitals) == str(error)
    assert write_message(KeyError("x"), in_capitals) == "'x'"
    assert write_message(ValueError(), in_capitals) == ""
