"""Errors about a parameter name it as Python does, or its option on the command line."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gramian import KernelRidge
from gramian._messages.errors import (
    MUST_BE_FORM,
    SETTING_FORM,
    UNKNOWN_FORM,
    ParameterError,
    Text,
    write_message,
)
from gramian._parameters.fit_parameters import Parameter, option_parameters
from gramian.cli.outputs.messages import write_option
from gramian.landmarks import RPCholesky

PARAMETERS = list(option_parameters())
UNUSABLE = {int: 0, bool: "unusable", str: "unusable"}
"""Values that no parameter of a kind takes."""

PYTHON_SYNTAX = re.compile(
    rf"(?<![\w-])({'|'.join(parameter.name for parameter in PARAMETERS)})=|[A-Z]\w+\("
)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_unusable_value(parameter: Parameter, error, train, tmp_path):
    value = UNUSABLE[parameter.kind]
    with pytest.raises(ValueError, match=rf"\b{parameter.name}\b") as raised:
        KernelRidge(**{parameter.name: value}).fit(np.ones((9, 2)), np.arange(9.0))
    assert "--" not in str(raised.value)
    option = f"--{parameter.name.replace('_', '-')}"
    text = error("fit", train, "--target", "y", f"{option}={value}", "--out", tmp_path / "m")
    assert re.search(rf"{option}\b", text)
    assert not PYTHON_SYNTAX.search(text)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_each_form_has_the_option(parameter: Parameter):
    option = f"--{parameter.name.replace('_', '-')}"
    remedy = Text(f"raise {{{parameter.name}}}")
    for form in (MUST_BE_FORM, SETTING_FORM, UNKNOWN_FORM):
        error = ParameterError(parameter.name, 1, "other", remedy, form)
        text = write_message(error, write_option)
        assert text.count(option) == 2
        assert not PYTHON_SYNTAX.search(text)


OPTION_TEXTS = {
    "and --landmarks rpcholesky:9 has none": Text("and {landmarks=} has none", RPCholesky(m=9)),
    "--landmarks none has": Text("{landmarks=} has", None),
    "give --lengthscale 1,2.5": Text("give {lengthscale=}", (1, 2.5)),
    "give --standardize true": Text("give {standardize=True}"),
    "use --engine torch:cuda": Text("use {engine='torch:cuda'}"),
    "give no --early-stopping": Text("give {early_stopping=False}"),
    "set --seed": Text("set {random_state}"),
    "leave it out with --drop": Text("leave it out with {columns=[...]}"),
    "use another --checkpoint": Text("use {Checkpoint(..., resume=False)}"),
    "but the table has 2": Text("but {X} has {}", 2),
    "set rank=2": Text("set {rank=}", 2),  # no option sets it
}


@pytest.mark.parametrize("text", OPTION_TEXTS)
def test_marks_become_options(text):
    assert write_message(OPTION_TEXTS[text], write_option) == text
