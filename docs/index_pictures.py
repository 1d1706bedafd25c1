"""Draw the pictures of the landing page, which are pictures of examples."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

PROJECT_ROOT = Path(__file__).parents[1]
PICTURES = {
    "map": "worked/plot_house_prices",
    "molecule": "worked/plot_molecules",
    "interval": "gallery/plot_intervals",
}
"""Examples whose first picture is on the landing page."""


def main() -> None:
    """Run the examples, and write the first picture of each."""
    plt.show = lambda: None
    for name, example in PICTURES.items():
        plt.close("all")
        runpy.run_path(str(PROJECT_ROOT / "examples" / f"{example}.py"))
        target = PROJECT_ROOT / "docs" / "plots" / f"index_{name}.png"
        plt.figure(1).savefig(target, dpi=100)


if __name__ == "__main__":
    main()
