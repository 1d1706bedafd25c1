"""The registry: names to classes, and an error that helps."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gramian import kernels
from gramian._registries.registry import Registry


class Tool:
    """The base class of what is registered here."""


def toolbox() -> Registry[Tool]:
    registry: Registry[Tool] = Registry("tool")

    @registry.register("hammer")
    @dataclass
    class Hammer(Tool):
        weight: float = 1.0

    @registry.register("saw")
    @dataclass
    class Saw(Tool):
        teeth: int = 20

    return registry


def test_make_passes_the_parameters():
    assert toolbox().make("hammer", weight=2.5).weight == 2.5
    assert toolbox().make("saw").teeth == 20


def test_register_gives_the_class_back():
    registry: Registry[Tool] = Registry("tool")
    assert registry.register("tool")(Tool) is Tool
    assert registry["tool"] is Tool


def test_names_in_the_order_of_registration():
    registry = toolbox()
    assert list(registry) == ["hammer", "saw"]
    assert "saw" in registry
    assert "axe" not in registry
    assert 3 not in registry


def test_name_of_is_the_inverse_of_make():
    registry = toolbox()
    for name in registry:
        assert registry.name_of(registry.make(name)) == name


def test_name_of_does_not_take_a_subclass_for_its_parent():
    registry = toolbox()

    class Sledgehammer(registry["hammer"]):
        """Not registered: it would be loaded back as a hammer."""

    with pytest.raises(ValueError, match="Sledgehammer is not a registered tool"):
        registry.name_of(Sledgehammer())


def test_an_unknown_name_says_what_there_is_and_what_may_be_meant():
    with pytest.raises(
        ValueError, match=r"unknown tool 'hamer'; known: hammer, saw; did you mean hammer\?$"
    ):
        toolbox()["hamer"]
    with pytest.raises(ValueError, match=r"unknown tool 'xylophone'; known: hammer, saw$"):
        toolbox().make("xylophone")


def test_registries_are_separate():
    assert "hammer" not in Registry("other")


def test_names_that_other_libraries_have_are_answered():
    registry = Registry[Tool]("tool", {"mallet": "hammer"})
    with pytest.raises(ValueError, match=r"unknown tool 'Mallet'; known: ; did you mean hammer\?"):
        registry["Mallet"]


def test_kernels_of_the_distance_are_named_first():
    """Random fits of the campaign are drawn by this order, and messages list kernels in it."""
    distance = ("gaussian", "laplacian", "matern12", "matern32", "matern52", "rational_quadratic")
    assert kernels.names()[: len(distance)] == distance
