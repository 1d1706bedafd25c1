"""Markdown pages of the papers, from their records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import get_args

from ..lib.results import ROOT, Row, markdown
from .item import Verdict
from .plot import draw, pictures

FOLDER = ROOT / "docs" / "papers"


@dataclass(frozen=True)
class Paper:
    """Texts of a page around its records.

    Attributes
    ----------
    name : str
        Heading of the page.
    title : str
    algorithms : dict of str to tuple of str
        Algorithm or equation; its source file, and the class whose notes list the departures.
    departures : list of str
        The largest of them.
    symbols : dict of str to str
        Symbols of the paper, and our names.
    """

    name: str
    title: str
    algorithms: dict[str, tuple[str, str]]
    departures: list[str]
    symbols: dict[str, str]


PAPERS = {
    "falkon": Paper(
        "FALKON",
        "Rudi, Carratino, Rosasco, FALKON: An optimal large scale kernel method, NeurIPS 2017",
        {
            "algorithms 1 and 2": ("solvers/falkon.py", "Falkon"),
            "equations (10), (13), appendix A": ("preconditioners/falkon.py", "Falkon"),
            "equations (11), (12)": ("solvers/nystrom/gradient_descent.py", "FalkonGD"),
            "equation (6) on problem (8)": ("solvers/nystrom/gradient_descent.py", "NystromGD"),
            "NYTRO [23]": ("solvers/nystrom/nytro.py", "Nytro"),
            "stochastic gradients of problem (8)": ("solvers/nystrom/nystrom_sgd.py", "NystromSGD"),
        },
        [
            "no jitter in the factor of K_MM: pivots remove landmarks that depend on others",
            "the penalty inside A may be larger than λ where M is small; `None` gives the paper's",
            "float32 rows are refined in float64",
        ],
        {"λ": "`penalty`", "M": "`landmarks`", "t": "`max_iter`", "K_nM": "`NystromProblem.K`",
         "B, A, T": "`FalkonFactor`", "ŷ": "`targets`", "N(λ)": "`effective_dimension`"},
    ),
    "bless": Paper(
        "BLESS",
        "Rudi, Calandriello, Carratino, Rosasco, On fast leverage score sampling and optimal "
        "learning, NeurIPS 2018",
        {
            "algorithm 1": ("landmarks/leverage/bless.py", "Bless"),
            "algorithm 2": ("landmarks/leverage/bless_r.py", "BlessR"),
            "equation (3)": ("landmarks/leverage/scores.py", "Bless"),
            "equation (15)": ("preconditioners/falkon.py", "Falkon"),
        },
        [
            "a row drawn several times is kept once, with the probability of being drawn at all",
            "constants q1 and q2 are a small oversampling, not the theorem's",
            "A of equation (15) is scaled so that uniform landmarks give FALKON's preconditioner; "
            "read literally it has a factor n / M more",
        ],
        {"λ": "`penalty`", "J, A": "`Landmarks.index`, `Landmarks.weight`", "q2": "`oversampling`",
         "q": "`step`", "d_eff": "`effective_dimension`", "M": "number of landmarks"},
    ),
    "eigenpro": Paper(
        "EigenPro 3",
        "Abedsoltan, Belkin, Pandit, Toward large kernel models, ICML 2023",
        {
            "algorithm 2": ("solvers/eigenpro/eigenpro3.py", "EigenPro3"),
            "algorithm 1, equation (32)": ("solvers/eigenpro/projection.py", "EigenPro3"),
            "equations (23), (29)": ("preconditioners/eigenpro.py", "EigenPro2"),
            "augmentation": ("data/maps/augment.py", "EigenPro3"),
        },
        [
            "projections are delayed (EigenPro 4): one after p rows in place of one after a batch",
            "the mean of the iterates is returned, not the last",
            "a penalty and weights of rows, which the paper has not",
            "a projection ends at a relative residual, not after a number of epochs",
        ],
        {"p": "`landmarks`", "Z": "centers", "s": "`subsample`", "q": "`rank`", "m": "`batch`",
         "T": "`delay`", "η": "`step_scale` times the automatic step"},
    ),
    "rls": Paper(
        "Recursive RLS",
        "Musco, Musco, Recursive sampling for the Nyström method, NeurIPS 2017",
        {
            "algorithm 2, appendix D": ("landmarks/leverage/recursive_rls.py", "RecursiveRLS"),
            "algorithm 1, the approximation K̃": ("approximations/nystrom.py", "NystromMap"),
            "definition 1": ("landmarks/leverage/exact_rls.py", "ExactRLS"),
            "theorems 17 to 19": ("estimators/decomposition/cca.py", "KernelCCA"),
        },
        [
            "oversampling is a small constant, not 16 log(d_eff / δ)",
            "with a number of landmarks s, the last level draws exactly s, by systematic sampling",
            "`accelerated=True` is the heuristic of appendix G",
        ],
        {"λ": "`penalty` times n", "s": "`m`", "S": "`Landmarks.index`", "K̃": "`NystromMap`",
         "d_eff": "`effective_dimension`"},
    ),
    "askotch": Paper(
        "ASkotch",
        "Rathore, Frangella, Yang, Dereziński, Udell, Have ASkotch: A neat solution for "
        "large-scale kernel ridge regression, 2024",
        {
            "algorithms 1 and 4": ("solvers/askotch/askotch.py", "ASkotch"),
            "algorithm 1, lines 5 to 12": ("solvers/askotch/block_rules.py", "ASkotch"),
            "algorithm 2": ("lowrank/randomized.py", "ASkotch"),
            "section B.2, test matrices": ("lowrank/randomized.py", "ASkotch"),
            "algorithm 3": ("lowrank/eigenvalues.py", "ASkotch"),
            "algorithm 5, section B.5": ("solvers/sketchy_saga/sketchy_saga.py", "SketchySAGA"),
        },
        [
            "blocks are drawn afresh in each iteration, as in later versions of the paper; "
            "`blocks=\"fixed\"` is algorithm 1",
            "blocks of up to 4,000 rows are solved exactly, not by a Nystrom approximation",
            "μ is estimated from the decay of residuals; `convexity=` sets the paper's ridge",
            "SketchySAGA starts from the initial residuals, and chooses its damping by a rule",
        ],
        {"λ": "`penalty` times n", "B": "n / `block`", "r": "`rank`", "ρ": "`damping`",
         "α, β": "`sampling_power`, 1 - 2 `sampling_power`", "μ": "`convexity`",
         "Ω": "`test_matrix`"},
    ),
}  # fmt: skip


def link_benchmarks(text: str) -> str:
    """Return the text with links from names of benchmarks to their results."""
    return re.sub(r"benchmark `(\w+)`", r"benchmark [`\1`](../../benchmarks/results/\1.md)", text)


def places_of(records: list[Row]) -> list[str]:
    """Return processors, dates and commits with the number of items that were measured there."""
    places = [row["measured"] for row in records if row["CPU s"]]
    counts = {place: places.count(place) for place in places}
    return [f"{place} ({n} item{'s' * (n > 1)})" for place, n in counts.items()]


def anchor_of(heading: str) -> str:
    """Return the anchor that GitHub and MyST give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def introduction(name: str, records: list[Row]) -> list[str]:
    """Return the lines above the sections of the items: the counts of verdicts, and a table."""
    verdicts = [row["verdict"] for row in records]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in get_args(Verdict) if v in verdicts)
    overview = [
        {
            "item": f"[{row['item']}](#{anchor_of(row['item'])})",
            "value of the paper": row["value of the paper"],
            "verdict": row["verdict"],
        }
        for row in records
    ]
    return [
        f"# {PAPERS[name].name}", "", f"{PAPERS[name].title}.", "",
        f"{len(records)} items: {counts}. `make papers ARGS=\"{name}\"` measures them again and "
        f"writes this page; `ARGS=\"{name} --quick\"` takes a few minutes and writes nothing. "
        "CPU seconds are of one thread; items without them come from the stored results of a "
        "benchmark, whose page names its own machine.", "",
        "In kind: the same statement on other data or at another scale. Explained: a measurement "
        "that the paper has not shows the cause of a difference.", "",
        "## Items", "", markdown(overview), "",
    ]  # fmt: skip


def section(row: Row, plot: Row | None) -> list[str]:
    """Return the lines of an item: the paper's value, ours, the verdict, the picture."""
    verdict = row["verdict"].capitalize()
    lines = [
        f"### {row['item']}", "",
        f"- Paper: {row['value of the paper']}",
        f"- Ours: {row['our value']}" if row["our value"] else "",
        f"- {verdict}: {link_benchmarks(row['why'])}" if row["why"] else f"- {verdict}",
        f"- {row['CPU s']:g} CPU s" if row["CPU s"] else "",
    ]  # fmt: skip
    lines = [*lines[:2], *(line for line in lines[2:] if line), ""]
    drawn = pictures(plot) if plot else []
    return [*lines, *(f"![{alt}](plots/{file})" for file, alt in drawn), ""]


def sources(paper: Paper) -> list[str]:
    """Return the lines below the items: files of the algorithms, departures, symbols."""
    files = [
        {
            "paper": key,
            "file": f"[`{path}`](../../src/gramian/{path})",
            "departures in the notes of": f"`{owner}`",
        }
        for key, (path, owner) in paper.algorithms.items()
    ]
    symbols = [{"paper": key, "gramian": ours} for key, ours in paper.symbols.items()]
    return [
        "## Source", "", markdown(files), "",
        "The largest departures:", "", *(f"- {line}." for line in paper.departures), "",
        "## Symbols", "", markdown(symbols), "",
    ]  # fmt: skip


def write_page(name: str, records: list[Row], plots: list[Row]) -> None:
    """Write ``docs/papers/NAME.md`` and the plots in it, and delete earlier plots."""
    plot_of = {plot["item"]: plot for plot in plots}
    text = introduction(name, records)
    for row in records:
        text += section(row, plot_of.get(row["item"]))
    text += sources(PAPERS[name])
    text += ["Measured on " + "; ".join(places_of(records)) + ".", ""]
    for old in (FOLDER / "plots").glob(f"{name}_*.svg"):
        old.unlink()
    for plot in plots:
        draw(plot, FOLDER / "plots")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.md").write_text("\n".join(text))
