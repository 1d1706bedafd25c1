"""A random campaign: fits of all kinds against dense float64 answers.

    make campaign                              # an hour, some 1,000 configurations
    make campaign ARGS="--number 100 --first 5000"
    make campaign ARGS="--seed 1234"           # one configuration again, with all it says

Each configuration follows from its number alone. It ends as ``right`` (within what precision,
conditioning and the reported residual allow), ``warned`` (further off, but said so), ``refused``
(an error in words), ``loose`` (within the allowance, but that is above 1 %) or ``WRONG``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from configuration import draw
from fits import judge
from verdict import REFUSED, RIGHT, WRONG

from gramian import solvers


def main() -> int:
    parser = argparse.ArgumentParser(prog="make campaign", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0, help="end after so many")
    parser.add_argument("--number", type=int, default=1_000_000, help="end after so many fits")
    parser.add_argument("--first", type=int, default=0, help="number of the first configuration")
    parser.add_argument("--seed", type=int, help="only this configuration")
    parser.add_argument("--largest", type=int, default=1200, help="rows at most")
    given = parser.parse_args()
    threadpool_limits(1)
    if given.seed is not None:
        c = draw(given.seed, given.largest)
        print(c, judge(c), sep="\n")
        return 0
    counts, start = Counter(), time.monotonic()
    seeds = range(given.first, given.first + given.number)
    for seed in seeds:
        if time.monotonic() - start > given.seconds:
            break
        c = draw(seed, given.largest)
        verdict = judge(c)
        counts[c.estimator, _name(c.solver), verdict.status] += 1
        if verdict.status not in (RIGHT, REFUSED):
            print(f"{verdict.status} {verdict.error:.1e} > {verdict.allowed:.1e} {c}")
            print(f"    {verdict.note}", flush=True)
    _report(counts)
    return int(any(status == WRONG for *_, status in counts))


def _report(counts: Counter) -> None:
    statuses = Counter()
    for (_, _, status), number in counts.items():
        statuses[status] += number
    print(f"{sum(counts.values())} configurations:", dict(statuses))
    for (estimator, solver, status), number in sorted(counts.items()):
        print(f"{estimator:12} {solver:12} {status:8} {number}")


def _name(solver: object) -> str:
    return solver if isinstance(solver, str) else solvers.name_of(solver)


if __name__ == "__main__":
    sys.exit(main())
