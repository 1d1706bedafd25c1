"""EigenPro 3 on shifted and mirrored images: what augmentation gains where noise gains nothing."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows, crop_flip
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import EigenPro3

from ..lib.images import BANDWIDTH, pixels
from ..lib.results import Row
from ..lib.sets import data_set
from ..lib.tables import Tables
from .large_models import Images, after

CHOICE, GAIN = "Augmentations, on held-out images", "Gain, on test images"
SHAPE = (28, 28)
TUNED = (1000, 4, 100_000)
"""Images, copies of each among the centers, rows of the stream: with which one is chosen."""


@dataclass(frozen=True)
class Augmented:
    """Largest shift in pixels, and whether half of the images are mirrored."""

    pad: int
    flip: bool

    def __str__(self) -> str:
        shift = f"shifts of {self.pad}" if self.pad else ""
        return (
            " and ".join(part for part in (shift, "mirrored" if self.flip else "") if part)
            or "none"
        )

    @property
    def change(self) -> crop_flip | None:
        return crop_flip(SHAPE, self.pad, self.flip) if self.pad or self.flip else None


NONE = Augmented(0, False)
OPTIONS = (
    Augmented(0, True), Augmented(1, False), Augmented(1, True), Augmented(2, False)
)  # fmt: skip
RUNS = (
    (2000, 1, NONE, 20_000), (2000, 1, None, 100_000), (2000, 4, None, 200_000),
    (4000, 1, NONE, 40_000), (4000, 3, None, 120_000),
)  # fmt: skip
"""Images, copies of each among the centers, the augmentation if it is not the best, rows."""

NOTES = f"""\
fashion-MNIST, pixels between 0 and 1, float32; `EigenPro3(augment=crop_flip(...))`, Laplacian
kernel, lengthscale {BANDWIDTH:.0f}, no penalty. Rows of the stream are the images, changed anew in
each epoch. One thread; CPU seconds, setup included; percent of right labels.

- {CHOICE}: {TUNED[0]:,} images, {TUNED[1]} copies of each as centers, {TUNED[2]:,} rows; told are
  5,000 other training images. The best is taken for the next table.
- {GAIN}: 10,000 test images. Copies: of each image among the centers; the first one as it is, the
  others changed like rows. Without augmentation the stream has the same images in each epoch, and
  10 epochs."""


def problem(images: Images, count: int, copies: int, how: Augmented) -> NystromProblem:
    """Return the regression on some images, with them and changed copies of them as centers."""
    X, Y, rng = images.X[:count], images.Y[:count], RandomStream(1)
    change = how.change
    more = [] if change is None else [change(X, Y, rng)[0] for _ in range(copies - 1)]
    K = KernelOperator(
        kernels.Laplacian(BANDWIDTH), as_rows(X), as_rows(np.concatenate([X, *more]))
    )
    return NystromProblem(K, Y, 0.0)


def run(images: Images, count: int, copies: int, rows: int, how: Augmented) -> Row:
    """Return accuracy and seconds after so many rows of the stream."""
    regression = problem(images, count, copies, how)
    solver = EigenPro3(augment=how.change)
    seconds, coef = after(regression, solver, max(1, rows // count))
    accuracy = images.accuracy(regression, coef)
    return {"rows": rows, "accuracy": accuracy, "CPU s": seconds}


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    if (path := data_set(options.data, "fashion_mnist")) is None:
        return
    tables = Tables("large_augment", (CHOICE, GAIN), NOTES, options)
    images = Images.of(pixels(path, 3000 if options.quick else None))
    small = options.quick
    count, copies, rows = (300, 2, 1200) if small else TUNED
    apart = images.held_out(len(images.X) // 12)
    for how in (NONE, *OPTIONS):
        if not tables.has(CHOICE, augmentation=str(how)):
            many = (1, 10 * count) if how == NONE else (copies, rows)
            row: Row = {"augmentation": str(how), "images": count, "centers": count * many[0]}
            tables.add(CHOICE, row | run(apart, count, *many, how))
    scores = {row["augmentation"]: row["accuracy"] for row in tables[CHOICE]}
    best = max(OPTIONS, key=lambda how: scores[str(how)])
    for count, copies, given, rows in () if small else RUNS:
        how = given or best
        key: Row = {"images": count, "centers": count * copies, "augmentation": str(how)}
        if not tables.has(GAIN, **key):
            tables.add(GAIN, key | run(images, count, copies, rows, how))
