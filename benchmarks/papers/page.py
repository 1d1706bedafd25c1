"""Markdown pages of the papers, from their records."""

from __future__ import annotations

from dataclasses import dataclass

from ..lib.results import ROOT, Row, about, markdown

FOLDER = ROOT / "docs" / "papers"


@dataclass(frozen=True)
class Paper:
    """Texts of a page around its records.

    Attributes
    ----------
    title : str
    algorithms : dict of str to str
        Algorithm or equation, and its source file.
    symbols : dict of str to str
        Symbols of the paper, and our names.
    """

    title: str
    algorithms: dict[str, str]
    symbols: dict[str, str]


PAPERS = {
    "falkon": Paper(
        "Rudi, Carratino, Rosasco, FALKON: An optimal large scale kernel method, NeurIPS 2017",
        {
            "algorithm 1, equation (13)": "src/gramian/solvers/falkon.py",
            "equations (10), (13), appendix A": "src/gramian/preconditioners/falkon.py",
            "equations (11), (12)": "src/gramian/solvers/nystrom/falkon_gd.py",
            "equation (6) on problem (8)": "src/gramian/solvers/nystrom/nystrom_gd.py",
            "NYTRO [23]": "src/gramian/solvers/nystrom/nytro.py",
            "stochastic gradients of problem (8)": "src/gramian/solvers/nystrom/nystrom_sgd.py",
        },
        {"λ": "`penalty`", "M": "`landmarks`", "t": "`max_iter`", "K_nM": "`NystromProblem.K`"},
    ),
    "bless": Paper(
        "Rudi, Calandriello, Carratino, Rosasco, On fast leverage score sampling and optimal "
        "learning, NeurIPS 2018",
        {
            "algorithm 1": "src/gramian/landmarks/leverage/bless.py",
            "algorithm 2": "src/gramian/landmarks/leverage/bless_r.py",
            "equation (15)": "src/gramian/preconditioners/falkon.py",
        },
        {"λ": "`penalty`", "J, A": "`Landmarks.index`, `Landmarks.weight`", "q2": "oversampling"},
    ),
    "eigenpro": Paper(
        "Abedsoltan, Belkin, Pandit, Toward large kernel models, ICML 2023",
        {
            "algorithm 2": "src/gramian/solvers/eigenpro/eigenpro3.py",
            "algorithm 1": "src/gramian/solvers/eigenpro/projection.py",
        },
        {"p": "`landmarks`", "Z": "centers", "s": "`subsample`", "q": "`rank`", "m": "`batch`"},
    ),
    "rls": Paper(
        "Musco, Musco, Recursive sampling for the Nyström method, NeurIPS 2017",
        {
            "algorithm 2, appendix D": "src/gramian/landmarks/leverage/recursive_rls.py",
            "algorithm 1, the approximation K̃": "src/gramian/approximations/nystrom.py",
        },
        {"λ": "`penalty` times n", "s": "`m`", "S": "`Landmarks.index`"},
    ),
    "askotch": Paper(
        "Rathore, Frangella, Yang, Dereziński, Udell, Have ASkotch: A neat solution for "
        "large-scale kernel ridge regression, 2024",
        {
            "algorithms 1 and 4": "src/gramian/solvers/askotch/askotch.py",
            "algorithm 2": "src/gramian/lowrank/randomized.py",
            "algorithm 3": "src/gramian/lowrank/power.py",
            "algorithm 5, section B.5": "src/gramian/solvers/sketchy_saga",
        },
        {"λ": "`penalty` times n", "b": "`block`", "r": "`rank`", "ρ": "`damping`"},
    ),
}


def write_page(name: str, records: list[Row]) -> None:
    """Write ``docs/papers/NAME.md``."""
    paper, facts = PAPERS[name], about()
    rows = [{key: row[key] for key in row if key != "paper"} for row in records]
    verdicts = [row["verdict"] for row in records]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    text = [
        f"# {name}", "", f"{paper.title}.", "",
        f"{len(records)} items: {counts}. `make papers ARGS=\"{name}\"` measures them again and "
        f"writes this page; `ARGS=\"{name} --quick\"` takes a few minutes and writes nothing.", "",
        "In kind: the same statement on other data or at another scale, which the last column but "
        "one names.", "",
        "## Items", "", markdown(rows), "",
        "## Source", "", markdown(
            [{"paper": key, "file": f"`{path}`"} for key, path in paper.algorithms.items()]
        ), "",
        "Each file lists its departures from the paper.", "",
        "## Symbols", "", markdown(
            [{"paper": key, "gramian": ours} for key, ours in paper.symbols.items()]
        ), "",
        f"Measured on {facts['machine']}, {facts['date']}, commit {facts['commit']}.", "",
    ]  # fmt: skip
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.md").write_text("\n".join(text))
