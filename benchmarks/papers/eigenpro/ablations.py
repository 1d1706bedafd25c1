"""Parts of EigenPro 3: algorithm 1, rank, projection, costs, augmentation, centers."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gramian import kernels
from gramian._arrays import RandomStream
from gramian.data import as_rows, crop_flip, mixup, noise
from gramian.operators import KernelOperator
from gramian.problems import NystromProblem
from gramian.solvers import EigenPro3

from ...landmarks.downstream import accuracy
from ...large.large_models import Images, after, trained
from ...lib.images import pixels
from ...lib.labels import load
from ...lib.sets import Split
from ..item import Outcome, Scale, judge_cause, judged, proved
from ..plot import Line, Panel, Plot, line
from ..stored import sample_rows, stored_row, stored_rows

SHAPE = (28, 28)


def images(scale: Scale, rows: int) -> tuple[Images, str]:
    """Return images of fashion-MNIST, or generated ones: ten smooth patterns and noise."""
    path = Path(scale.data) / "fashion_mnist.parquet"
    if path.is_file():
        found = Images.of(pixels(path, rows))
        if scale.quick:
            found = Images(found.X, found.Y, found.test[:2000], found.labels[:2000])
        return found, "fashion-MNIST"
    rng = np.random.default_rng(0)
    patterns = np.cumsum(rng.standard_normal((10, 784)), axis=1) / 28
    labels = rng.integers(10, size=rows + 2000)
    X = (patterns[labels] + rng.standard_normal((rows + 2000, 784))).astype(np.float32)
    return Images.of(Split(X[:rows], labels[:rows], X[rows:], labels[rows:])), "generated images"


def dense_algorithm(scale: Scale) -> Outcome:
    """Lemma 4: the iteration (26), written with dense matrices, and the step it takes."""
    n, p, q, steps = 400, 80, 20, 10
    X, y, *_ = sample_rows(scale, "nycflights", n)
    kernel, rows = kernels.Laplacian(3.0), as_rows(X)
    K = KernelOperator(kernel, rows, rows)
    problem = NystromProblem.at(K, np.arange(p), y, 0.0)
    solver = EigenPro3(
        subsample=n, rank=q, batch=n, exponent=1.0, projection="exact", delay=1, average=False
    )
    states = solver.iterate(problem, rng=RandomStream(0))
    ours = [state.coef for state in islice(states, 1, steps + 1)]
    full = K.dense()
    values, E = np.linalg.eigh(full)
    values, E = values[::-1], E[:, ::-1]
    Q = E[:, :q] * (1 - values[q] / values[:q]) @ E[:, :q].T
    alpha, eta, gap = np.zeros((p, 1)), 0.0, 0.0
    for coef in ours:
        residual = full[:, :p] @ alpha - y
        theta = np.linalg.solve(full[:p, :p], full[:p] @ (residual - Q @ residual))
        # The step is not printed in the paper: the first one is taken from our first iterate.
        eta = eta or float(-(theta * coef).sum() / (theta * theta).sum())
        alpha = alpha - eta * theta
        gap = max(gap, float(np.linalg.norm(coef - alpha) / np.linalg.norm(alpha)))
    limit = 2 / values[q]
    return proved(
        f"largest relative distance over {steps} iterations {gap:.1e}; step {eta / limit:.2f} of "
        "the largest stable one, 2 / λ_(q+1)",
        gap < 1e-6 and eta < limit,
        "rounding, or another preconditioner",
    )


def ranks(scale: Scale) -> Outcome:
    """Section 2.1: with a larger q steps are longer and training is faster."""
    data, name = images(scale, scale.size(1500, 4000))
    n, epochs = len(data.X), scale.size(3, 6)
    problem = data.problem(n, n // 4)
    curves: dict[str, Line] = {}
    for q in (0, 20, 100):
        solver = EigenPro3(subsample=1000, rank=q, projection="exact", average=False)
        curves[f"q = {q}"] = [
            (i, float(np.square(problem.K @ coef - problem.targets).mean()))
            for i, (_, coef) in enumerate(islice(trained(problem, solver), epochs), 1)
        ]
    last = {key: points[-1][1] for key, points in curves.items()}
    shown = ", ".join(f"{k}: {v[0][1]:.3f} and {v[-1][1]:.3f}" for k, v in curves.items())
    return judged(
        f"mean squared training error after 1 and {epochs} epochs, {shown}",
        last["q = 100"] < last["q = 20"] < last["q = 0"],
        f"{name}, n = {n:,}, p = {n // 4:,}, exact projection",
        "steps are not longer with a larger rank",
        Plot(
            "section 2.1", "Training error by epochs for three ranks of the preconditioner",
            [Panel("epochs", "mean squared error", curves, log="y")],
        ),
    )  # fmt: skip


def epoch_costs(scale: Scale) -> Outcome:
    """Table 1: an epoch is linear in p with delayed projections, in kind T_ep2 = O(p²) each."""
    rows = stored_rows("large_steps", "Cost per epoch")
    curves: dict[str, Line] = {}
    for row in rows:
        curves.setdefault(row["projection"], []).append((row["p"], row["CPU s"]))
    powers = {
        key: stored_row("large_steps", "Exponents", projection=key)["largest three"]
        for key in curves
    }
    shown = ", ".join(
        f"{key} p^{power:.2f}, {curves[key][-1][1]:.0f} s at p = 8,000"
        for key, power in powers.items()
    )
    return judged(
        f"CPU seconds of an epoch of 40,000 rows: {shown}",
        powers["delayed"] < 1.1 < powers["inexact"],
        "benchmark `large_steps`: the inexact projection of the paper after each batch, and ours",
        "seconds do not follow the operations",
        Plot(
            "table 1", "CPU seconds of an epoch by centers, delayed and inexact projections",
            [Panel("centers p", "CPU seconds", curves, log="xy")],
        ),
    )  # fmt: skip


def delayed_projection(scale: Scale) -> Outcome:
    """Ablation of the projection: exact, after each batch, delayed."""
    data, name = images(scale, scale.size(1500, 5000))
    n, epochs = len(data.X), scale.size(2, 3)
    problem = data.problem(n, n // 5)
    variants: dict[str, dict[str, Any]] = {
        "exact, T = 1": {"projection": "exact", "delay": 1},
        "exact, delayed": {"projection": "exact"},
        "inexact, T = 1": {"projection": "inexact", "delay": 1},
        "delayed, T = 2": {"projection": "delayed", "delay": 2},
        "delayed": {"projection": "delayed"},
    }
    found = {}
    for key, settings in variants.items():
        seconds, coef = after(problem, EigenPro3(batch=max(50, n // 40), **settings), epochs)
        found[key] = (100 - data.accuracy(problem, coef), seconds)
    shown = ", ".join(f"{k} {e:.1f} % in {s:.1f} s" for k, (e, s) in found.items())
    return judged(
        f"wrong labels and CPU seconds after {epochs} epochs: {shown}",
        found["delayed"][1] < found["inexact, T = 1"][1]
        and found["delayed"][0] < found["inexact, T = 1"][0] + 3,
        f"{name}, n = {n:,}, p = {n // 5:,}, batches of {max(50, n // 40)}",
        "delaying the projection costs more accuracy than it saves seconds",
    )


def noise_by_size(scale: Scale) -> Outcome:
    """Figure 4 on fashion-MNIST: Gaussian noise of different variances."""
    rows = stored_rows("large_virtual", "Noise, on held-out images")
    points = line([r["sigma"] for r in rows], [r["held-out accuracy"] for r in rows])
    test = {
        (r["images"], r["sigma"]): r["accuracy"]
        for r in stored_rows("large_virtual", "Virtual rows")
    }
    gains = {images: test[images, 0.02] - test[images, 0.0] for images in (2000, 10_000)}
    shown = ", ".join(f"{s:g}: {a:.1f} %" for s, a in points)
    return judged(
        f"accuracy on held-out images by the noise, {shown}; gain on test images with noise 0.02: "
        + ", ".join(f"{k:,} images {v:+.2f}" for k, v in gains.items()),
        min(gains.values()) > 0.5,
        "benchmark `large_virtual`",
        "a gain of 0.02 to 0.1 points, below the standard error of 0.35. Tested by the next item: "
        "not the length of the fit; larger noise lowers the accuracy",
        Plot(
            "figure 4", "Accuracy by the standard deviation of the noise",
            [Panel("noise added to pixels", "accuracy, %", {"": points})],
        ),
    )  # fmt: skip


def augmentation_by_epochs(scale: Scale) -> Outcome:
    """The cause of figure 4: how far the plain model is fitted, and the mean of iterates."""
    data, name = images(scale, scale.size(500, 1000))
    epochs = (1, 4, 10) if scale.quick else (1, 5, 20, 40)
    problem = data.problem(len(data.X), len(data.X))
    changes = {
        "none": None, "noise 0.05": noise(0.05), "mixup": mixup(0.2),
        "crops": crop_flip(SHAPE, 1, False), "crops, mirrored": crop_flip(SHAPE, 1, True),
    }  # fmt: skip
    curves: dict[str, Line] = {}
    for key, change in changes.items():
        solver = EigenPro3(augment=change, average=False, projection="exact")
        states = enumerate(trained(problem, solver), 1)
        states = islice(states, epochs[-1])
        curves[key] = [(i, data.accuracy(problem, c)) for i, (_, c) in states if i in epochs]
    gains = {
        key: [a - b for (_, a), (_, b) in zip(points, curves["none"], strict=True)]
        for key, points in curves.items()
        if key != "none"
    }
    shown = "; ".join(
        f"{key} " + ", ".join(f"{gain:+.1f}" for gain in of) for key, of in gains.items()
    )
    best = max(gain for of in gains.values() for gain in of)
    plain = [value for _, value in curves["none"]]
    return judge_cause(
        f"gain in points after {', '.join(map(str, epochs))} epochs with the images as centers: "
        f"{shown}; none has {plain[0]:.1f} to {plain[-1]:.1f} %",
        best < 0.5,
        f"{name}, {len(data.X):,} images, last iterate: the best gain after any of these lengths "
        f"is {best:+.1f} points, so that early stopping is not the cause; crops gain with copies "
        "as centers (see below), so that the functions which the images span are",
        f"{name}, {len(data.X):,} images, last iterate: a fit of another length gains",
        Plot(
            "figure 4 epochs", "Accuracy by epochs with and without augmentation",
            [Panel("epochs", "accuracy, %", curves, log="x")],
        ),
    )  # fmt: skip


def digits(scale: Scale) -> Outcome:
    """Table 2 on handwritten digits: random and k-means centers."""
    path, found = Path(scale.data) / "usps.parquet", {}
    if path.is_file():
        split, name = load(path, "float32", standardize=False), "usps"
    else:
        data, name = images(scale, 1500)
        split = Split(data.X, data.Y.argmax(axis=1), data.test, data.labels)
    for p in (100,) if scale.quick else (100, 1000):
        for kind in ("uniform", "kmeans"):
            runs = [accuracy(split, kind, p, 20.0, seed)["accuracy"] for seed in range(3)]
            found[p, kind] = float(np.mean(runs))
    sizes = list(dict.fromkeys(p for p, _ in found))
    shown = ", ".join(
        f"p = {p:,}: {found[p, 'uniform']:.2f} and {found[p, 'kmeans']:.2f}" for p in sizes
    )
    curves = {kind: [(p, found[p, kind]) for p in sizes] for kind in ("uniform", "kmeans")}
    return judged(
        f"accuracy with random and with k-means centers, {shown}",
        all(found[p, "kmeans"] > found[p, "uniform"] for p in sizes),
        f"{name}, 7,291 rows of 256 pixels in place of MNIST, three seeds, solved by FALKON",
        "k-means centers do not help",
        Plot(
            "table 2 digits", "Accuracy by centers, random and k-means",
            [Panel("centers p", "accuracy, %", curves, log="x")],
        ),
    )  # fmt: skip
