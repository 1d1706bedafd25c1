"""EigenPro 3 on virtual rows: the centers are images, the rows these images with fresh noise."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

from benchmarks.lib.timing import set_blas_threads
from gramian.data import noise
from gramian.solvers import EigenPro3

from ..lib import plots
from ..lib.images import BANDWIDTH, pixels
from ..lib.process import bytes_before_work, in_fresh_process, peak_bytes, resident_bytes
from ..lib.results import ROOT, Row
from ..lib.sets import data_set
from ..lib.tables import Tables
from .large_models import Images, after, trained

PLOT = ROOT / "docs" / "plots" / "large_virtual.png"
SIGMA, VIRTUAL, STREAM = "Noise, on held-out images", "Virtual rows", "Stream"
SIGMAS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
TUNED = (2000, 40_000)
"""Images and virtual rows with which the noise is chosen."""

RUNS = ((2000, 2_000_000), (10_000, 100_000))
"""Images, all of them centers, and virtual rows."""


def chosen_noise(tables: Tables, images: Images, quick: bool) -> float:
    """Return the positive deviation that is best on held-out images."""
    count, virtual = (300, 1200) if quick else TUNED
    apart = images.held_out(len(images.X) // 12)
    problem = apart.problem(count, count)
    for sigma in SIGMAS:
        if not tables.has(SIGMA, sigma=sigma):
            _, coef = after(problem, EigenPro3(augment=noise(sigma)), virtual // count)
            row = {"sigma": sigma, "images": count, "virtual rows": virtual}
            tables.add(SIGMA, row | {"held-out accuracy": apart.accuracy(problem, coef)})
    noisy = [row for row in tables[SIGMA] if row["sigma"] > 0]
    return float(max(noisy, key=lambda row: row["held-out accuracy"])["sigma"])


def stream(path: Path, p: int, virtual: int, sigma: float, looks: int) -> list[Row]:
    """Return accuracy and memory along a run in which each image comes anew with each epoch."""
    set_blas_threads(1)
    images = Images.of(pixels(path))
    problem = images.problem(p, p)
    passes, rows, before = virtual // p, [], bytes_before_work()
    due = np.unique(np.geomspace(1, passes, looks).round().astype(int))
    solver = EigenPro3(augment=noise(sigma) if sigma else None)
    for epoch, (seconds, coef) in zip(range(1, passes + 1), trained(problem, solver), strict=False):
        if epoch in due:
            held, peak = resident_bytes(), peak_bytes()
            row = {"seen": epoch * p, "accuracy": images.accuracy(problem, coef)}
            row |= {"CPU s": seconds, "MB": held / 1e6, "peak MB": peak / 1e6}
            rows.append(row | {"MB at start": before / 1e6})
            print(p, sigma, row, flush=True)
    return rows


def virtual_rows(tables: Tables, path: Path, sigma: float) -> None:
    for (p, virtual), deviation in itertools.product(RUNS, (0.0, sigma)):
        # without noise the rows are the same in each epoch, and few epochs are enough
        seen = virtual if deviation else min(virtual, 10 * p)
        if tables.has(VIRTUAL, images=p, sigma=deviation):
            continue
        rows = in_fresh_process(stream, path, p, seen, deviation, 12)
        about = {"images": p, "sigma": deviation}
        tables.rows[STREAM] += [about | row for row in rows]
        last, first = rows[-1], rows[min(2, len(rows) - 1)]
        row = about | {"seen": last["seen"], "accuracy": last["accuracy"], "CPU s": last["CPU s"]}
        row |= {"rows per CPU s": last["seen"] / last["CPU s"], "MB early": first["MB"]}
        tables.add(VIRTUAL, row | {"MB at end": last["MB"], "peak MB": last["peak MB"]})


def draw(tables: Tables) -> None:
    figure, (left, right) = plots.subplots(1, 2, width=9, height=3.3)
    runs = list(dict.fromkeys((r["images"], r["sigma"]) for r in tables[STREAM]))
    for color, (p, sigma) in zip(plots.COLORS.values(), runs, strict=False):
        mine = [r for r in tables[STREAM] if (r["images"], r["sigma"]) == (p, sigma)]
        seen = [r["seen"] for r in mine]
        style = {"color": color, "label": f"{p:,} images, sigma = {sigma:g}"}
        left.semilogx(seen, [r["accuracy"] for r in mine], "o-", **style)
        right.semilogx(seen, [r["MB"] for r in mine], "o-", **style)
    left.set(xlabel="rows seen", ylabel="test accuracy, %")
    right.set(xlabel="rows seen", ylabel="resident MB", ylim=(0, None))
    left.legend()
    plots.save(figure, PLOT)


NOTES = f"""\
fashion-MNIST, pixels between 0 and 1, float32; Laplacian kernel, lengthscale {BANDWIDTH:.0f}, no
penalty. One thread; CPU seconds, setup included; accuracy: percent of right labels.

- {SIGMA}: `EigenPro3(augment=noise(sigma))`, {TUNED[0]:,} images, all of them centers, told are
  5,000 other training images. The best above 0 is taken for the next table.
- {VIRTUAL}: 10,000 test images at the end of the run. Rows are the images with fresh noise in each
  epoch (sigma 0: the images as they are, at most 10 epochs). Each run in a process of its own; MB:
  resident set, data and libraries included, at the third look and at the end."""


def main(options: argparse.Namespace) -> None:
    set_blas_threads(1)
    if (path := data_set(options.data, "fashion_mnist")) is None:
        return
    titles = (SIGMA, VIRTUAL, STREAM)
    tables = Tables("large_virtual", titles, NOTES, options, hidden=(STREAM,))
    images = Images.of(pixels(path, 3000 if options.quick else None))
    sigma = chosen_noise(tables, images, options.quick)
    if not options.quick:
        virtual_rows(tables, path, sigma)
        draw(tables)
