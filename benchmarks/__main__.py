"""Run benchmarks by name; without a name, some of them; `data` checks the data sets.

`papers` compares figures, tables and theorems of five papers with ours.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from . import data

GROUPS = {
    "engine": {
        "engine": "kernel evaluations per second, against plain torch (about 20 minutes)",
        "native": "the compiled tiles against torch tiles and scikit-learn (about 6 minutes)",
        "gradients": "gradients of a predictor, beside normal and torch (about 2 minutes)",
        "similarities": "kernels of fingerprints, places, strings; molecules (about 12 minutes)",
        "fingerprints": "Tanimoto beside RDKit, all molecules as centers (about 10 minutes)",
        "tiles": "shares of the floor, before and after, Tanimoto's kernel (about 5 minutes)",
        "slopes": "seconds of solvers, selectors by rows, centers, features (about 5 minutes)",
        "peers": "whole fits beside falkon, scikit-learn, EigenPro 3's code (about 15 minutes)",
        "parts": "seconds of FALKON by part, torch tiles and compiled ones (about 15 minutes)",
        "serving": "predictions of a row, requests to a server, other packages (about 5 minutes)",
        "waits": "imports, small and dense fits, landmarks, EigenPro 3 (about 10 minutes)",
        "streaming": "a Parquet file beside rows in memory; 10^8 rows (about 40 minutes)",
    },
    "landmarks": {
        "selectors": "error and seconds by selector of landmarks on six sets (about 20 minutes)",
        "leverage": "leverage scores: accuracy, seconds against n, clusters (about 40 minutes)",
        "nystrom": "error of Nystrom approximations by landmarks, seconds (about 40 minutes)",
        "falkon_bless": "FALKON with leverage scores: condition, iterations (about an hour)",
        "downstream": "kernel PCA, k-means, k-means centers on fashion-MNIST (about an hour)",
        "baselines": "FALKON, divide-and-conquer, random features; AUC (about 10 minutes)",
        "flatness": "leverage scores or uniform: errors by rows and unevenness (20 minutes)",
        "many_outputs": "FALKON with up to 4,000 outputs: seconds, memory (about 25 minutes)",
        "iterations": "FALKON beside gradient descent, SGD and NYTRO (about 10 minutes)",
    },
    "regression": {
        "settings": "lengthscale and penalty of three sets, on held-out rows (about an hour)",
        "regression": "test error and seconds on these, against scikit-learn (about an hour)",
        "molecules": "Tanimoto kernels: learning curves, scaffolds, deviations (5 minutes)",
        "forces": "energies and forces of two molecules, with and without forces (5 minutes)",
    },
    "tables": {
        "accuracy": "error and CPU seconds on 38 tables, boosted trees and xRFM (about a day)",
        "mixed": "60 public tables with text, gaps, dates, boosted trees (about two hours)",
        "many_rows": "all rows of eight sets: cells, FALKON, PCG, boosted trees (about 5 hours)",
        "search": "against a full grid, budgets, noise, seeds, odd tables (about two hours)",
        "cells_large": "20 million rows by cells, killed and resumed (about half an hour)",
        "cells": "error and seconds by size and overlap of cells, by rows (about half an hour)",
        "cells_seeds": "spread of searches by cells over ten seeds on four sets (about 15 minutes)",
        "cells_cores": "cells with two threads, and two processes, by the clock (about 10 minutes)",
        "cells_beyond": "two trees of cells, residuals, ridges by cell (about 20 minutes)",
        "stacking": "kernels combined with boosted trees on ten sets (about 40 minutes)",
        "probabilities": "log loss, Brier, calibration, AUC on seven sets (about two hours)",
        "intervals": "coverage and width on eight sets over twenty seeds (about half an hour)",
        "deviations": "standard deviations: calibration, growth, seconds (about 5 minutes)",
        "processes": "Gaussian processes and kriging of five packages: density (10 minutes)",
        "series": "forecasts of twenty time series against ETS and naive ones (3 minutes)",
        "hopt": "lengthscales by gradients, and the learned metric, on six sets (about 25 minutes)",
        "pictures": "a learned metric of the shipped sets: importances, M, rounds (a minute)",
        "categories": "encoded categories, one-hot and boosting on three sets (about 20 minutes)",
    },
    "full": {
        "full_linear": "Skotch and ASkotch to 1e-10, float32 beside CG (about an hour)",
        "full_fixed": "ASkotch: rates of fixed and fresh blocks, by eigenvalues (about 10 minutes)",
        "full_krr": "ASkotch, PCG and FALKON in the same memory and seconds (about two hours)",
        "full_sets": "ASkotch, Skotch and PCG by time on eight sets (about 10 minutes)",
        "full_ablations": "ASkotch: momentum, preconditioner, blocks, rank (about 20 minutes)",
        "cells_pcg": "cells as a preconditioner of PCG: iterations, seconds (about two hours)",
        "full_kept": "entries that are kept beside entries evaluated anew (about 15 minutes)",
        "full_generated": "ASkotch on 10^8 generated rows: memory, seconds (about 5 minutes)",
        "full_peers": "ASkotch and PCG on 100,000 to 300,000 rows, fast_krr (about an hour)",
        "full_memory": "half a million centers in a gigabyte, by the clock (about 15 minutes)",
    },
    "large": {
        "large_models": "EigenPro 3: accuracy by rows and centers (about 10 minutes)",
        "large_rivals": "EigenPro 3 and SketchySAGA beside FALKON (about half an hour)",
        "large_steps": "EigenPro: the automatic step, and cost per epoch (about 10 minutes)",
        "large_slow_end": "SketchySAGA on nycflights: float32, damping, rank (about 5 minutes)",
        "large_augment": "EigenPro 3: shifted and mirrored images (about 10 minutes)",
        "large_virtual": "EigenPro 3: two million virtual images (about 20 minutes)",
        "text": "generated reviews of 65 million sparse features (about an hour)",
        "cluster": "rows on Dask workers: bits, bytes, kills, 100 million rows (about an hour)",
    },
    "gpu": {
        "gpu": "contracts, kernel evaluations per second, whole fits (about an hour)",
    },
    "losses": {
        "losses": "minima, steps and seconds of losses, quantiles, 10 million rows (about an hour)",
    },
    "reliability": {
        "out_of_core": "20 million rows from disk in a bounded memory (about 10 minutes)",
        "text_tables": "tables of text by gramian, DuckDB and polars (about 10 minutes)",
        "shipped_tables": "files that DuckDB and others ship, by three readers (about 5 minutes)",
        "plans": "memory, evaluations and seconds, planned and spent (about 10 minutes)",
        "faults": "kills, damaged and changed files, full disks, memory (about 10 minutes)",
        "bits": "fits, model files and plans of two commits, compared (about 15 minutes)",
        "newcomer": "a fresh clone: seconds of make demo and make test (downloads torch)",
    },
}
"""Names of the benchmarks and what they measure, by folder."""

WITHOUT_A_NAME = (
    "engine", "native", "regression", "out_of_core", "selectors", "leverage", "nystrom"
)  # fmt: skip
FOLDER = {name: group for group, names in GROUPS.items() for name in names}


def listing() -> str:
    lines = []
    for group, names in GROUPS.items():
        lines += [f"{group}:", *(f"  {name:15} {what}" for name, what in names.items())]
    return "\n".join(lines)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"{listing()}\n\nWithout a name: {', '.join(WITHOUT_A_NAME)}.\n"
        "`data --help`: the data sets; `papers --help`: five papers, item by item.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", help="one or more of those below")
    parser.add_argument("--data", default=str(data.FOLDER), help="folder of the real data sets")
    parser.add_argument("--work", default=None, help="folder for large temporary files")
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--fresh", action="store_true", help="measure again what has been measured")
    parser.add_argument(
        "--forget", action="append", default=[], metavar="KEY=VALUE",
        help="measure again only rows with this value, e.g. file=csv of faults; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", default=[], metavar="KEY=VALUE",
        help="of `accuracy`, `mixed`, `many_rows`, `search`, `stacking`, `probabilities`, "
        "`cells_pcg`, `flatness`, `losses`, `peers`: measure only this, e.g. set=pol "
        "contender=xrfm, or part=classes of `losses`; may be repeated, and values of one key are "
        "alternatives",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0, help="of `accuracy`, `many_rows`, `probabilities` (0)"
    )
    parser.add_argument(
        "--limit", type=int, default=1800,
        help="CPU seconds of one fit of `accuracy`, `many_rows` or `probabilities` (1800)",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    unknown = [name for name in options.name if name not in FOLDER]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(FOLDER)}")
    return options


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["data"]:
        return data.main(arguments[1:])
    if arguments[:1] == ["papers"]:
        papers = importlib.import_module(".papers.papers", __package__)
        return int(papers.main(arguments[1:], str(data.FOLDER)))
    options = parse(arguments)
    for name in options.name or WITHOUT_A_NAME:
        print(f"# {name}: {GROUPS[FOLDER[name]][name]}", flush=True)
        importlib.import_module(f".{FOLDER[name]}.{name}", __package__).main(options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
