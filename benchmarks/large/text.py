"""Text in kind: generated reviews with hashed word 3-grams, FALKON and linear models."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.lib.timing import set_blas_threads

from ..lib.process import bytes_before_work, in_fresh_process, peak_bytes
from ..lib.results import Row
from ..lib.tables import Tables, asked
from ..lib.timing import clock

TITLE, FILMS = "Reviews", "Films"
FEATURES = 65_000_000
VOCABULARY, WORDS, TELLING = 100_000, 50, 20_000
"""Words there are, of a review, and the most frequent ones that say something."""

NOISE = 0.7
"""Deviation of what no word says, in that of what they say."""

ROWS, QUICK_ROWS = (100_000, 1_500_000), (3000,)
TEST_ROWS, TUNED_ROWS, CHUNK = 20_000, 20_000, 50_000
WHOLE, MOST_WHOLE = "linear, all rows", 100_000
LANDMARKS, QUICK_LANDMARKS = (1000, 5000), (50,)
PENALTIES, COSTS, ALPHAS = (1e-5, 1e-6, 1e-7), (0.1, 1.0, 10.0), (1e-4, 1e-5, 1e-6)
MULTIPLIERS = (2_654_435_761, 40_503, 2_246_822_519)
FILM_ROWS, FILM_TUNED = 25_000, 20_000
FILM_PENALTIES = (1e-3, 1e-4, 1e-5, 1e-6)

NOTES = f"""\
Generated reviews in kind of YELP's in FALKON's paper: {WORDS} words, drawn by Zipf's law from
{VOCABULARY:,}; features are single words, pairs and triples of words next to each other, hashed to
{FEATURES:,} columns, counts divided by the norm of the row. The class is the sign of a sum over the
{TELLING:,} most frequent words, plus noise of {NOISE:g} times its deviation; {TEST_ROWS:,} other
reviews are predicted. One thread; each fit in a process of its own.

Films: the 50,000 labelled reviews of Maas et al. (2011), words that {FILM_ROWS:,} training reviews
have at least ten times, tf-idf with sublinear counts, norm 1, standard halves. Settings
are chosen with {FILM_ROWS - FILM_TUNED:,} of the training rows held out, penalties among
{FILM_PENALTIES}.

- gramian: `KernelRidgeClassifier(kernel, lengthscale=1, landmarks=m, solver="falkon")`. For rows of
  norm 1 "linear" and "cosine" are one kernel, which the second computes for rows of any norm.
- {WHOLE}: the same with `landmarks=None, solver="pcg"`, up to {MOST_WHOLE:,} rows.
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


def whole(kernel: str = "linear") -> Maker:
    """Return a maker of a classifier with all rows as centers, given its penalty."""
    from gramian import KernelRidgeClassifier

    def make(penalty: float) -> Any:
        return KernelRidgeClassifier(
            kernel, lengthscale=1.0, landmarks=None, penalty=penalty, solver="pcg", random_state=0
        )

    return make


Contender = tuple[Maker, tuple[float, ...], Maker]
"""A maker of a model of a setting; the settings that are tried; the maker they are tried by."""


def falkon(m: int, kernel: str = "linear") -> Maker:
    """Return a maker of a classifier of m landmarks, given its penalty."""
    from gramian import KernelRidgeClassifier

    def make(penalty: float) -> Any:
        return KernelRidgeClassifier(
            kernel, lengthscale=1.0, landmarks=m, penalty=penalty, solver="falkon", random_state=0
        )

    return make


PEERS: dict[str, tuple[Maker, tuple[float, ...]]] = {
    "LinearSVC": (lambda c: LinearSVC(C=c), COSTS),
    "SGDClassifier": (lambda a: SGDClassifier(alpha=a, random_state=0), ALPHAS),
    "RidgeClassifier": (lambda a: RidgeClassifier(alpha=a), COSTS),
}


def contenders(
    landmarks: tuple[int, ...], kernels: tuple[str, ...], penalties: tuple[float, ...]
) -> dict[str, Contender]:
    """Return them by name; kernels after the first have the first number of landmarks alone."""
    first, most = kernels[0], landmarks[0]
    pairs = [(first, m) for m in landmarks] + [(kernel, most) for kernel in kernels[1:]]
    ours = {
        f"{kernel}, {m:,} landmarks": (falkon(m, kernel), penalties, falkon(most, kernel))
        for kernel, m in pairs
    }
    ours |= {WHOLE: (whole(first), penalties, whole(first))}
    return ours | {name: (make, tried, make) for name, (make, tried) in PEERS.items()}


def of_reviews(landmarks: tuple[int, ...]) -> dict[str, Contender]:
    """Return the contenders of generated reviews."""
    return contenders(landmarks, ("linear", "cosine"), PENALTIES)


def of_films(landmarks: tuple[int, ...]) -> dict[str, Contender]:
    """Return the contenders of reviews of films."""
    return contenders(landmarks, ("linear", "cosine", "gaussian"), FILM_PENALTIES)


def _error(model: Any, data: Reviews) -> float:
    return float((model.predict(data.X) != data.y).mean())


def best(contender: Contender, learn: Reviews, held: Reviews) -> float:
    """Return the setting of the least error on other reviews."""
    _, tried, make = contender
    return min(tried, key=lambda value: _error(make(value).fit(learn.X, learn.y), held))


def measured(name: str, n: int, landmarks: tuple[int, ...], tuned: int, test: int) -> Row:
    """Fit one contender to generated reviews in this process."""
    set_blas_threads(1)
    contender = of_reviews(landmarks)[name]
    value = best(contender, drawn(tuned, 2), drawn(tuned, 3))
    return _fitted(name, contender[0](value), value, drawn(n, 1), drawn(test, 4))


def measured_films(name: str, folder: str, landmarks: tuple[int, ...]) -> Row:
    """Fit one contender to reviews of films in this process."""
    set_blas_threads(1)
    contender, (data, other) = of_films(landmarks)[name], films(folder)
    parts = slice(FILM_TUNED), slice(FILM_TUNED, None)
    value = best(contender, *(Reviews(data.X[part], data.y[part]) for part in parts))
    return _fitted(name, contender[0](value), value, data, other)


def _fitted(name: str, model: Any, value: float, data: Reviews, other: Reviews) -> Row:
    before = bytes_before_work()
    with clock() as took:
        model.fit(data.X, data.y)
    peak = peak_bytes()
    with clock() as predicted:
        error = _error(model, other)
    row: Row = {"rows": len(data.y), "contender": name, "setting": value, "error": error}
    row |= {} if name in PEERS else {"iterations": model.n_iter_}
    row |= {"cpu_s": took.cpu, "predict_s": predicted.cpu, "MB": (peak - before) / 1e6}
    return row | {"data MB": (data.X.data.nbytes + data.X.indices.nbytes) / 1e6}


def films(folder: str) -> tuple[Reviews, Reviews]:
    """Return the training and the test half of reviews of films, as tf-idf."""
    counts = scipy.sparse.csr_array(scipy.sparse.load_npz(Path(folder) / "imdb_counts.npz"))
    labels = pq.read_table(Path(folder) / "imdb_labels.parquet")["target"].to_numpy() > 0
    half = slice(FILM_ROWS), slice(FILM_ROWS, None)
    weights = TfidfTransformer(sublinear_tf=True).fit(counts[half[0]].astype(np.float32))
    X = scipy.sparse.csr_array(weights.transform(counts.astype(np.float32)))
    X.indices, X.indptr = (part.astype(np.int32) for part in (X.indices, X.indptr))
    first, second = (Reviews(X[part], labels[part]) for part in half)
    return first, second


def main(options: argparse.Namespace) -> None:
    tables = Tables("text", (TITLE, FILMS), NOTES, options)
    landmarks = QUICK_LANDMARKS if options.quick else LANDMARKS
    few = 500 if options.quick else None
    for n, name in itertools.product(QUICK_ROWS if options.quick else ROWS, of_reviews(landmarks)):
        key: Row = {"rows": n, "contender": name}
        few_enough = name != WHOLE or n <= MOST_WHOLE
        if few_enough and asked(key, options.only) and not tables.has(TITLE, **key):
            sizes = (few or TUNED_ROWS, few or TEST_ROWS)
            tables.add(TITLE, in_fresh_process(measured, name, n, landmarks, *sizes))
    if options.quick or not (Path(options.data) / "imdb_counts.npz").is_file():
        return
    for name in of_films(landmarks):
        key = {"rows": FILM_ROWS, "contender": name}
        if asked(key, options.only) and not tables.has(FILMS, contender=name):
            tables.add(FILMS, in_fresh_process(measured_films, name, options.data, landmarks))
