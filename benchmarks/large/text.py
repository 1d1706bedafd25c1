"""Text in kind: generated reviews with hashed word 3-grams, FALKON and linear models."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.svm import LinearSVC

from ..lib.process import bytes_before_work, in_fresh_process, peak_bytes
from ..lib.results import Row
from ..lib.tables import Tables
from ..lib.timing import clock

TITLE = "Reviews"
FEATURES = 65_000_000
VOCABULARY, WORDS, TELLING = 100_000, 50, 20_000
"""Words there are, of a review, and the most frequent ones that say something."""

NOISE = 0.7
"""Deviation of what no word says, in that of what they say."""

ROWS, QUICK_ROWS = (100_000, 400_000, 1_500_000), (3000,)
TEST_ROWS, TUNED_ROWS, CHUNK = 20_000, 20_000, 50_000
LANDMARKS, QUICK_LANDMARKS = (1000, 5000), (50,)
PENALTIES, COSTS, ALPHAS = (1e-5, 1e-6, 1e-7), (0.1, 1.0, 10.0), (1e-4, 1e-5, 1e-6)
MULTIPLIERS = (2_654_435_761, 40_503, 2_246_822_519)

NOTES = f"""\
Generated reviews in kind of YELP's in FALKON's paper: {WORDS} words, drawn by Zipf's law from
{VOCABULARY:,}; features are single words, pairs and triples of words next to each other, hashed to
{FEATURES:,} columns, counts divided by the norm of the row. The class is the sign of a sum over the
{TELLING:,} most frequent words, plus noise of {NOISE:g} times its deviation; {TEST_ROWS:,} other
reviews are predicted. One thread; each fit in a process of its own.

- gramian: `KernelRidgeClassifier("linear", lengthscale=1, landmarks=m, solver="falkon")`; for rows
  of norm 1 it is the cosine kernel.
- Penalty, C and alpha: the best of {PENALTIES}, {COSTS} and {ALPHAS} with {TUNED_ROWS:,} reviews
  and as many others, at the first number of landmarks; not in the seconds.
- "MB": largest resident memory of the process less that before the fit, which holds the rows
  ("data MB")."""


@dataclass(frozen=True)
class Reviews:
    """Rows of hashed words, and their classes."""

    X: scipy.sparse.csr_array
    y: np.ndarray


def drawn(n: int, seed: int) -> Reviews:
    """Return n reviews."""
    weight = np.zeros(VOCABULARY)
    weight[:TELLING] = np.random.default_rng(0).standard_normal(TELLING)
    share = 1 / np.arange(1, VOCABULARY + 1)
    share /= share.sum()
    unit = np.sqrt(WORDS * float(share @ weight**2))
    parts, scores = [], []
    for number, start in enumerate(range(0, n, CHUNK)):
        rng = np.random.default_rng((seed, number))
        rows = min(CHUNK, n - start)
        words = np.searchsorted(share.cumsum(), rng.random((rows, WORDS)) * (1 - 1e-12))
        scores.append(weight[words].sum(axis=1) / unit + NOISE * rng.standard_normal(rows))
        parts.append(_hashed(words.astype(np.uint64)))
    X = scipy.sparse.vstack(parts, format="csr")
    X.indices, X.indptr = (part.astype(np.int32) for part in (X.indices, X.indptr))  # LinearSVC
    return Reviews(X, np.concatenate(scores) > 0)


def _hashed(words: np.ndarray) -> scipy.sparse.csr_array:
    """Return counts of words, pairs and triples, divided by the norm of the row."""
    grams, found = np.zeros_like(words), []
    for k, factor in enumerate(MULTIPLIERS):
        grams = grams[:, : WORDS - k] * np.uint64(31) + words[:, k:] * np.uint64(factor)
        found.append((grams ^ (grams >> np.uint64(17))) % np.uint64(FEATURES))
    columns = np.concatenate(found, axis=1)
    n, k = columns.shape
    X = scipy.sparse.csr_array(
        (np.ones(n * k, np.float32), columns.ravel().astype(np.int32), np.arange(0, n * k + 1, k)),
        shape=(n, FEATURES),
    )
    X.sum_duplicates()
    norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X


Maker = Callable[[float], Any]


def falkon(m: int) -> Maker:
    """Return what makes a classifier of m landmarks, given its penalty."""
    from gramian import KernelRidgeClassifier

    def make(penalty: float) -> Any:
        return KernelRidgeClassifier(
            "linear", lengthscale=1.0, landmarks=m, penalty=penalty, solver="falkon", random_state=0
        )

    return make


PEERS: dict[str, tuple[Maker, tuple[float, ...]]] = {
    "LinearSVC": (lambda c: LinearSVC(C=c), COSTS),
    "SGDClassifier": (lambda a: SGDClassifier(alpha=a, random_state=0), ALPHAS),
    "RidgeClassifier": (lambda a: RidgeClassifier(alpha=a), COSTS),
}


def contenders(landmarks: tuple[int, ...]) -> dict[str, tuple[Maker, tuple[float, ...], Maker]]:
    """Return what makes each of them, what is tried, and what it is tried with."""
    first = falkon(landmarks[0])
    ours = {f"gramian, {m:,} landmarks": (falkon(m), PENALTIES, first) for m in landmarks}
    return ours | {name: (make, tried, make) for name, (make, tried) in PEERS.items()}


def _error(model: Any, data: Reviews) -> float:
    return float((model.predict(data.X) != data.y).mean())


def best(make: Maker, tried: tuple[float, ...], rows: int) -> float:
    """Return the setting of the least error on other reviews."""
    torch.set_num_threads(1)
    learn, held = drawn(rows, 2), drawn(rows, 3)
    return min(tried, key=lambda value: _error(make(value).fit(learn.X, learn.y), held))


def measured(name: str, n: int, landmarks: tuple[int, ...], tuned: int, test: int) -> Row:
    """Fit one contender in this process."""
    torch.set_num_threads(1)
    make, tried, small = contenders(landmarks)[name]
    value = best(small, tried, tuned)
    data, other = drawn(n, 1), drawn(test, 4)
    model, before = make(value), bytes_before_work()
    with clock() as took:
        model.fit(data.X, data.y)
    peak = peak_bytes()
    with clock() as predicted:
        error = _error(model, other)
    row: Row = {"rows": n, "contender": name, "setting": value, "error": error}
    row |= {"cpu_s": took.cpu, "predict_s": predicted.cpu, "MB": (peak - before) / 1e6}
    return row | {"data MB": (data.X.data.nbytes + data.X.indices.nbytes) / 1e6}


def pairs(options: argparse.Namespace) -> Iterator[tuple[int, str]]:
    """Yield numbers of rows, and contenders."""
    sizes = QUICK_ROWS if options.quick else ROWS
    for n in sizes:
        for name in contenders(QUICK_LANDMARKS if options.quick else LANDMARKS):
            yield n, name


def main(options: argparse.Namespace) -> None:
    tables = Tables("text", (TITLE,), NOTES, options)
    landmarks = QUICK_LANDMARKS if options.quick else LANDMARKS
    few = 500 if options.quick else None
    for n, name in pairs(options):
        if not tables.has(TITLE, rows=n, contender=name):
            sizes = (few or TUNED_ROWS, few or TEST_ROWS)
            tables.add(TITLE, in_fresh_process(measured, name, n, landmarks, *sizes))
