"""Run the items of the papers, and write a page for each: `python -m benchmarks papers --help`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ..lib.results import shown
from ..lib.tables import Tables
from . import askotch, bless, eigenpro, falkon, rls
from .item import Item, Scale
from .page import PAPERS, write_page

ITEMS: dict[str, Callable[[], list[Item]]] = {
    "falkon": falkon.items,
    "bless": bless.items,
    "eigenpro": eigenpro.items,
    "rls": rls.items,
    "askotch": askotch.items,
}
RECORDS, PLOTS = "Items", "Plots"


def main(arguments: list[str], folder: str = "data") -> int:
    """Measure the items of some papers; `folder` is the default of ``--data``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks papers",
        description="Figures, tables, theorems and claims of five papers: the paper's value, ours, "
        "and a verdict. Without --quick, results, and pages and plots in docs/papers, are written.",
    )
    parser.add_argument("paper", nargs="*", help=f"one or more of {', '.join(ITEMS)}; all of them")
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--fresh", action="store_true", help="measure again what has been measured")
    parser.add_argument(
        "--forget", action="append", default=[], metavar="KEY=VALUE",
        help="measure again only rows with this value, such as verdict=\"in kind\"",
    )  # fmt: skip
    parser.add_argument(
        "--item", action="append", default=[], metavar="WORDS",
        help="measure items with these words in their names only",
    )  # fmt: skip
    parser.add_argument("--data", default=folder, help="folder of the real data sets")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.paper if name not in ITEMS]
    if unknown:
        parser.error(f"there is no paper {', '.join(unknown)}; there are {', '.join(ITEMS)}")
    for name in options.paper or ITEMS:
        print(f"# {name}: {PAPERS[name].title}", flush=True)
        measure_paper(name, options)
    return 0


def measure_paper(name: str, options: argparse.Namespace) -> None:
    """Measure the items of a paper that have no record yet, and write its page."""
    title = PAPERS[name].title
    tables = Tables(f"papers_{name}", (RECORDS, PLOTS), title, options, hidden=(PLOTS,))
    scale = Scale(options.data, options.quick)
    items = ITEMS[name]()
    for item in items:
        if options.item and not any(word in item.name for word in options.item):
            continue
        if not tables.has(RECORDS, item=item.name):
            row, plot = item.record(name, scale)
            others = [row for row in tables[PLOTS] if row["item"] != item.name]
            tables.rows[PLOTS] = others + ([plot] if plot else [])
            tables.add(RECORDS, row)
    # Items that were measured again come back to their place.
    order = [item.name for item in items]
    for kind in (PLOTS, RECORDS):
        rows = [row for row in tables[kind] if row["item"] in order]
        tables.replace(kind, sorted(rows, key=lambda row: order.index(row["item"])))
    counts: dict[str, int] = {}
    for row in tables[RECORDS]:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    seconds = sum(row["CPU s"] for row in tables[RECORDS])
    shown({"paper": name, **counts, "CPU s": round(seconds, 1)})
    if not options.quick:
        write_page(name, tables[RECORDS], tables[PLOTS])
