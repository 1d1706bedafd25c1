"""Order of the examples: the most popular ones first."""

from __future__ import annotations

FIRST_EXAMPLES = [
    "customers",
    "house_prices",
    "molecules",
    "sentences",
    "streaming",
    "service",
    "error_and_seconds",
    "classification",
    "intervals",
    "lengthscale",
    "landmarks_on_a_map",
    "learned_metric",
    "kernel_zoo",
    "learning_curves",
]


class ByInterest:
    """Sort key of sphinx-gallery: the files of `FIRST_EXAMPLES`, then the others by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Return the sort key of a file."""
        short = name.removeprefix("plot_").removesuffix(".py")
        rank = FIRST_EXAMPLES.index(short) if short in FIRST_EXAMPLES else len(FIRST_EXAMPLES)
        return rank, short
