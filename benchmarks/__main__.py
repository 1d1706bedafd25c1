"""Run benchmarks by name; without a name, all of them."""

from __future__ import annotations

import argparse
import importlib

from .common import DATA

NAMES = {
    "engine": "kernel evaluations per second, against plain torch (about 20 minutes)",
    "native": "the compiled tiles against torch tiles and scikit-learn (about 6 minutes)",
    "parts": "seconds of FALKON by part, torch tiles and compiled ones (about 15 minutes)",
    "settings": "lengthscale and penalty of three real data sets, on held-out rows (about an hour)",
    "regression": "test error and seconds on these, against scikit-learn (about an hour)",
    "out_of_core": "20 million rows from disk in a bounded memory (about 10 minutes)",
    "selectors": "error and seconds by selector of landmarks on six sets (about 20 minutes)",
    "falkon_bless": "FALKON with leverage scores: condition, iterations, penalties (about an hour)",
    "downstream": "kernel PCA, kernel k-means and k-means centers on fashion-MNIST (about an hour)",
    "leverage": "leverage scores: accuracy, seconds against n, clusters (about 40 minutes)",
    "nystrom": "error of Nystrom approximations against landmarks and seconds (about 40 minutes)",
    "full_linear": "Skotch and ASkotch to 1e-10, float32 beside CG (about an hour)",
    "full_krr": "ASkotch, PCG and FALKON in the same memory and seconds (about two hours)",
    "full_ablations": "ASkotch: momentum, preconditioner, blocks, rank (about 20 minutes)",
    "full_memory": "half a million centers in a gigabyte, by the clock (about 15 minutes)",
    "large_models": "EigenPro 3: accuracy by rows and centers (about 10 minutes)",
    "large_rivals": "EigenPro 3 and SketchySAGA beside FALKON (about half an hour)",
    "large_steps": "EigenPro: the automatic step, and cost per epoch (about 10 minutes)",
    "large_virtual": "EigenPro 3: two million virtual images (about 20 minutes)",
    "faults": "kills, damaged files, full disks, memory over many fits (about 10 minutes)",
    "gpu": "contracts, kernel evaluations per second and whole fits on a GPU (about an hour)",
    "plans": "memory, kernel evaluations and seconds of plans and of 24 fits (about 10 minutes)",
    "newcomer": "a fresh clone: seconds of make demo and make test (downloads torch)",
}
ON_REQUEST = (
    "parts",
    "settings",
    "falkon_bless",
    "downstream",
    "full_linear",
    "full_krr",
    "full_ablations",
    "full_memory",
    "large_models",
    "large_rivals",
    "large_steps",
    "large_virtual",
    "faults",
    "gpu",
    "plans",
    "newcomer",
)


def main() -> None:
    listing = "\n".join(f"  {name:12} {what}" for name, what in NAMES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"benchmarks:\n{listing}\n\nWithout a name: all but {', '.join(ON_REQUEST)}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", help="one or more of those below")
    parser.add_argument("--data", default=str(DATA), help="folder of the real data sets")
    parser.add_argument("--work", default=None, help="folder for large temporary files")
    parser.add_argument("--fresh", action="store_true", help="settings: try everything again")
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    options = parser.parse_args()
    unknown = [name for name in options.name if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name in options.name or [name for name in NAMES if name not in ON_REQUEST]:
        print(f"# {name}: {NAMES[name]}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main(options)


if __name__ == "__main__":
    main()
