"""The order of the gallery: what most readers look for first."""

from __future__ import annotations

FIRST = [
    "error_and_seconds",
    "classification",
    "intervals",
    "lengthscale",
    "landmarks_on_a_map",
    "learned_metric",
    "kernel_zoo",
    "learning_curves",
    "molecules",
]


class ByInterest:
    """The key that sphinx-gallery sorts files by: those of `FIRST`, then the others by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Return the place of a file."""
        short = name.removeprefix("plot_").removesuffix(".py")
        return FIRST.index(short) if short in FIRST else len(FIRST), short
