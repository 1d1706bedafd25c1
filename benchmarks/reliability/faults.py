"""Faults: kills, damaged and changed files, full disks, two processes, memory of many fits."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from benchmarks.lib.timing import set_blas_threads
from gramian import AverageModel, KernelModel, KernelRidge, estimators, kernels, landmarks, solvers
from gramian._arrays import RandomStream
from gramian.callbacks import Checkpoint, load_state, save_state
from gramian.callbacks.journal import Journal
from gramian.data import check_finite, open_rows
from gramian.model import load_model
from gramian.operators import KernelOperator
from gramian.problems import FullProblem, NystromProblem
from gramian.solvers import State, max_iterations, solve

from ..lib.process import in_child, resident_bytes
from ..lib.results import Row
from ..lib.tables import Tables
from .bombs import BOMBS, measure_bomb
from .changed_files import changes
from .damaged_files import damaged, outcomes
from .killed_searches import SEARCHES, age_leftovers, kill_searches, leftovers

N, M, D = 200, 40, 3
KILLED: dict[str, tuple[dict[str, Any], int]] = {
    "falkon": ({}, 20),
    "pcg": ({}, 20),
    "askotch": ({"block": 20}, 60),
    "eigenpro2": ({"batch": 20, "subsample": 100}, 20),
    "eigenpro3": ({"batch": 20}, 20),
    "sketchysaga": ({"batch": 20}, 20),
}
"""Iterative solvers with their parameters and iterations."""

CELLS = 8
"""Cells of a fit whose journal is damaged."""

MUTANTS = {
    "model": 400, "average": 400, "state": 400, "parquet": 200, "npy": 200, "csv": 200,
    "feather": 200, "ipc": 200, "arrow": 200,
}  # fmt: skip
"""Damaged copies of each kind of file."""

ARROW_CODECS = {"feather": "lz4", "ipc": "zstd", "arrow": None}
"""Compression of the files of Arrow, by their suffix."""

TITLES = (
    "Kills", "Damaged files", "Changed files", "Bombs", "Full disks", "Two processes", "Memory",
)  # fmt: skip
NOTES = """\
Kills: kill -9 of a fit at random times, resumed from its checkpoint, which is written in each
iteration; `identical` counts resumed fits with the coefficients of the whole one, bit by bit.
Searches are killed after or within a random step, and compared in their records, too.
Damaged files: half of them at random (bits, swaps, cuts, zeros, moved and doubled bytes), half in
their structure; of models and checkpoints a quarter is edited with the digest put right. CSV,
.npy and Arrow's files (lz4, .ipc: zstd, .arrow: not compressed; with texts, categories and dates)
have no checksums, so that values may change unseen there. Changed files: each is replaced, removed
or written to under a fit that reads it in each pass, before or between iterations; a map keeps
the file that it was made of, so that only a write is a change of it. Bombs: peak
memory of commands that read a small file made to need much, libraries included. Memory: resident
size after 5 and after 40 fits in one process."""


def problem_for(name: str) -> Any:
    rng = RandomStream(0)
    X = rng.standard_normal((N, D), np.float32)
    y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)
    K = KernelOperator(kernels.Gaussian(1.5), X, X)
    if FullProblem in solvers.make(name).problem_types:
        return FullProblem(K, y, 1e-4)
    return NystromProblem.at(K, np.arange(M), y, 1e-4)


def fitted(name: str, path: Path) -> np.ndarray:
    settings, iterations = KILLED[name]
    problem, solver, checkpoint = (
        problem_for(name),
        solvers.make(name, **settings),
        Checkpoint(path),
    )
    state = checkpoint.restore(problem, solver)
    stop = [max_iterations(iterations)]
    result = solve(problem, solver, stop=stop, callbacks=[checkpoint], state=state)
    coef: np.ndarray = result.state.coef.copy()
    return coef


def fitted_by_cells(path: Path) -> np.ndarray:
    X = np.random.default_rng(0).standard_normal((32 * CELLS, D))
    settings = {"lengthscale": 1.5, "penalty": 1e-3, "solver": "direct", "random_state": 0}
    est = KernelRidge(cells=45, callbacks=[Checkpoint(path)], **settings)
    coef: np.ndarray = est.fit(X, np.sin(X[:, 0])).dual_coef_
    return coef


def kills(name: str, count: int, folder: Path) -> Row:
    fit: Callable[[Path], np.ndarray]
    reached: Callable[[Path], int]
    if name == "cells":
        fit, reached, last = fitted_by_cells, parts_of, CELLS
    else:
        fit, last = functools.partial(fitted, name), KILLED[name][1]
        reached = iteration_of
    rng, row = random.Random(name), {"solver": name, "kills": count, "identical": 0, "at": []}
    start = time.perf_counter()
    whole = in_child(lambda: fit(folder / "whole"))
    seconds = time.perf_counter() - start
    for i in range(count):
        path = folder / f"{name}{i}"
        in_child(lambda path=path: fit(path), kill_after=rng.uniform(0.2, 1.0) * seconds)
        row["at"].append(reached(path) if path.exists() else -1)
        age_leftovers(folder)
        resumed = in_child(lambda path=path: fit(path))
        row["identical"] += isinstance(resumed, np.ndarray) and np.array_equal(resumed, whole)
    row["before the end"] = sum(at < last for at in row["at"])
    row["at"] = " ".join(map(str, sorted(row["at"])))
    return row | {"left over": leftovers(folder)}


def iteration_of(path: Path) -> int:
    """Return the iteration of the state in a checkpoint."""
    return load_state(path).iteration


def mid_write(count: int, folder: Path) -> Row:
    """Kill a process that does nothing but write a state of 2 MB."""
    path, rng = folder / "state", random.Random(1)
    states = [State(i, np.full((1 << 18, 1), float(i), dtype=np.float64)) for i in (1, 2)]
    save_state(path, states[0])

    def write() -> None:
        while True:
            for state in states:
                save_state(path, state)

    left = whole = 0
    for _ in range(count):
        in_child(write, kill_after=rng.uniform(0.02, 0.3))
        left += leftovers(folder)
        state = load_state(path)
        whole += bool((state.coef == state.iteration).all())
        age_leftovers(folder)
        save_state(path, states[0])
    row = {"solver": "mid-write", "kills": count, "identical": whole}
    return row | {"at": f"{left} files left by kills", "left over": leftovers(folder)}


# --- damaged files -------------------------------------------------------------------------------


def tables_and_model(folder: Path) -> KernelModel:
    """Write the files that will be damaged, and return a model of their columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, D))
    table = pa.table({name: X[:, j] for j, name in enumerate("abc")})
    codec = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(
        table, folder / "x.parquet", row_group_size=100, write_page_checksum=True, **codec
    )
    pyarrow.csv.write_csv(table, folder / "x.csv")
    np.save(folder / "x.npy", X)
    settings = {"landmarks": 30, "lengthscale": 1.5, "penalty": 1e-4, "random_state": 0}
    est = KernelRidge(**settings, standardize="quantile", metric=np.diag([1.0, 0.5, 0.2])[:, :2])
    model = est.fit(X, np.sin(X[:, 0])).model_
    model.save(folder / "x.model")
    plain = KernelRidge(**settings).fit(X, np.sin(X[:, 0])).model_
    AverageModel((0.5, 0.5), (model, plain)).save(folder / "x.average")
    fitted("sketchysaga", folder / "x.state")
    return model


def mixed_table(folder: Path) -> KernelRidge:
    """Write files of Arrow with columns of several types, and return an estimator of them."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 9, 400)
    texts = pa.array([f"text {code}" if code else None for code in codes])
    numbers = {"number": rng.standard_normal(400), "y": codes + rng.standard_normal(400)}
    days = pa.array(codes, pa.int32()).cast(pa.date32())
    kinds = {"view": texts.cast("string_view"), "category": texts.dictionary_encode()}
    table = pa.table({"text": texts, "day": days, **numbers, **kinds})
    for suffix, codec in ARROW_CODECS.items():
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_file(folder / f"x.{suffix}", table.schema, options=options) as file:
            file.write_table(table, max_chunksize=100)
    known = {"landmarks": 30, "lengthscale": 1.5, "penalty": 1e-4, "random_state": 0}
    return KernelRidge(**known).fit(table, "y")


def damage(kind: str, count: int, folder: Path) -> Row:
    model = tables_and_model(folder)
    new = np.random.default_rng(1).standard_normal((50, D))

    def predicted(path: Path) -> np.ndarray:
        return load_model(path).predict(new)

    def resumed(path: Path) -> np.ndarray:
        return fitted("sketchysaga", path)

    def applied(path: Path) -> np.ndarray:
        rows = open_rows(path)
        check_finite(rows)
        return model.predict(rows)

    def applied_to_table(path: Path) -> np.ndarray:
        predictions: np.ndarray = est.predict(path)
        return predictions

    if kind in ARROW_CODECS:
        est = mixed_table(folder)
    use, key, tensor = {
        **dict.fromkeys(ARROW_CODECS, (applied_to_table, None, "")),
        "model": (predicted, "gramian", "coef"),
        "average": (predicted, "gramian", "1.coef"),
        "state": (resumed, "gramian_state", "coef"),
    }.get(kind, (applied, None, ""))
    path = folder / f"x.{kind}"
    mutants = damaged(path, count, 0, key, tensor)
    counts, said = outcomes(mutants, use, use(path))
    return {
        "file": kind,
        "mutants": count,
        **counts,
        "bugs said": "; ".join(sorted(set(said)))[:200],
    }


def journal_damage(count: int, folder: Path) -> Row:
    """Resume a fit by cells from damaged journals, and count the cells that a flipped bit costs."""
    path, rng = folder / "x.journal", random.Random(0)
    whole = fitted_by_cells(path)
    content = path.read_bytes()
    cells = parts_of(path)

    def ends(*_: object) -> None:
        raise RuntimeError("an endless loop")

    signal.signal(signal.SIGALRM, ends)

    def resumed(mutant: Path) -> np.ndarray:
        signal.alarm(60)
        try:
            return fitted_by_cells(mutant)
        finally:
            signal.alarm(0)

    counts, said = outcomes(damaged(path, count, 0), resumed, whole)
    lost = []
    for _ in range(count):
        mutant = bytearray(content)
        mutant[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(mutant)
        lost.append(cells - parts_of(path))
    row = {"file": "journal", "mutants": count, **counts, "bugs said": "; ".join(sorted(set(said)))}
    return row | {"parts lost by a flipped bit": max(lost)}


def parts_of(path: Path) -> int:
    """Return the number of parts of a journal that can be read."""
    saved = Journal(path, {}, resume=True)
    return sum(saved.part(number) is not None for number in range(CELLS))


# --- disks, processes, memory --------------------------------------------------------------------


def disks(folder: Path) -> list[Row]:
    model = tables_and_model(folder)
    small, closed = folder / "small", folder / "closed"
    small.mkdir()
    closed.mkdir()

    def limited() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        return tried(folder / "x.model")

    def limited_checkpoint() -> str:
        whole = fitted("falkon", folder / "whole")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        same = np.array_equal(fitted("falkon", folder / "limited"), whole)
        return f"the fit ends, coefficients {'identical' if same else 'OTHER'}"

    def tried(path: Path) -> str:
        before = path.read_bytes() if path.exists() else None
        try:
            model.save(path)
        except OSError as error:
            after = path.read_bytes() if path.exists() else None
            kept = before == after and not leftovers(path.parent)
            return f"OSError, old file {'kept' if kept else 'LOST'}: {error.strerror}"
        return "saved"

    def nobody() -> str:
        os.setgid(65534)
        os.setuid(65534)
        return tried(closed / "model")

    rows = [{"fault": "RLIMIT_FSIZE", "outcome": in_child(limited)}]
    rows.append({"fault": "RLIMIT_FSIZE of a checkpoint", "outcome": in_child(limited_checkpoint)})
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(small)]
    outcome = "not tried: this user may not mount a file system"
    with contextlib.suppress(OSError):
        if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
            (small / "ballast").write_bytes(bytes(4096))
            outcome = in_child(lambda: tried(small / "model"))
            subprocess.run(["umount", str(small)], check=False)
    rows.append({"fault": "ENOSPC", "outcome": outcome})
    closed.chmod(0o555)
    outcome = in_child(nobody if os.getuid() == 0 else lambda: tried(closed / "model"))
    rows.append({"fault": "read-only folder", "outcome": outcome})
    closed.chmod(0o755)
    for row in rows:
        row["outcome"] = str(row["outcome"]).replace(str(folder), "")
    return rows


def two_processes(name: str, folder: Path) -> Row:
    """Fit twice at once with one checkpoint."""
    whole = in_child(lambda: fitted(name, folder / "whole"))
    path = folder / "shared"

    def other() -> Any:
        pid = os.fork()  # the second one
        coef = fitted(name, path)
        if pid == 0:
            np.save(folder / "second.npy", coef)
            os._exit(0)
        os.waitpid(pid, 0)
        return coef

    first = in_child(other)
    second = np.load(folder / "second.npy")
    same = sum(np.array_equal(coef, whole) for coef in (first, second))
    return {"solver": name, "processes": 2, "identical": same, "left over": leftovers(folder)}


def works() -> dict[str, Callable[[], Any]]:
    """Return the fits that are repeated: one with each solver, selector and estimator."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = np.sin(X[:, 0])
    known = {"lengthscale": 1.5, "penalty": 1e-3, "max_iter": 3, "random_state": 0}
    found: dict[str, Callable[[], Any]] = {}
    for name in solvers.names():
        full = FullProblem in solvers.make(name).problem_types
        given = KernelRidge(solver=name, landmarks=None if full else 30, **known)
        found[f"solver {name}"] = lambda given=given: given.fit(X, y).predict(X)
    for name in landmarks.names():
        given = KernelRidge(landmarks=landmarks.make(name, m=30), **known)
        found[f"landmarks {name}"] = lambda given=given: given.fit(X, y)
    for name in estimators.__all__:
        kind = getattr(estimators, name)
        if not hasattr(kind, "fit"):
            continue
        target = {"KernelRidgeClassifier": y > 0, "KernelCCA": X[:, :2]}.get(name, y)
        supervised = name in ("KernelRidge", "KernelRidgeClassifier", "KernelCCA")
        arguments = (X, target) if supervised else (X,)
        settings = {"penalty": 1e-3} if supervised else {}
        found[f"estimator {name}"] = lambda kind=kind, a=arguments, s=settings: kind(
            random_state=0, **s
        ).fit(*a)
    return found


def growth(work: Callable[[], Any], count: int) -> tuple[float, float]:
    """Return resident megabytes after five calls and after all of them."""
    early = 0.0
    for i in range(count):
        work()
        if i == min(4, count - 2):
            early = resident_bytes() / 1e6
    return early, resident_bytes() / 1e6


class Campaign:
    """All of it, part by part; what a results file has already is not done again."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.quick = options.quick
        self.tables = Tables("faults", TITLES, NOTES, options)
        self.base = Path(tempfile.mkdtemp(prefix="gramian-faults", dir=options.work))
        self.base.chmod(0o755)

    def folder(self, name: str) -> Path:
        found = self.base / name.replace(" ", "_")
        found.mkdir(parents=True)
        return found

    def kills(self) -> None:
        for name in (*KILLED, "cells"):
            if not self.tables.has("Kills", solver=name):
                count = 2 if self.quick else 20
                self.tables.add("Kills", kills(name, count, self.folder(f"kills {name}")))
        for name in SEARCHES:
            if not self.tables.has("Kills", solver=name):
                folder = self.folder(f"kills {name}")
                self.tables.add("Kills", kill_searches(name, 2 if self.quick else 20, folder))
        if not self.tables.has("Kills", solver="mid-write"):
            self.tables.add("Kills", mid_write(3 if self.quick else 20, self.folder("mid-write")))

    def damage(self) -> None:
        for kind, count in MUTANTS.items():
            if not self.tables.has("Damaged files", file=kind):
                count = 20 if self.quick else count
                found = in_child(lambda k=kind, c=count: damage(k, c, self.folder(k)))
                row = found if isinstance(found, dict) else {"file": kind, "crashed": str(found)}
                self.tables.add("Damaged files", row)
        if not self.tables.has("Damaged files", file="journal"):
            count = 20 if self.quick else 300
            row = in_child(lambda: journal_damage(count, self.folder("journal")))
            self.tables.add("Damaged files", row)

    def changes(self) -> None:
        if not self.tables["Changed files"]:
            self.tables.add("Changed files", *changes(self.folder("changes")))

    def bombs(self) -> None:
        if not self.tables["Bombs"]:
            folder = self.folder("bombs")
            self.tables.add("Bombs", *(measure_bomb(name, folder) for name in BOMBS))

    def disks(self) -> None:
        if not self.tables["Full disks"]:
            self.tables.add("Full disks", *disks(self.folder("disks")))

    def processes(self) -> None:
        for name in ("falkon", "askotch"):
            if not self.tables.has("Two processes", solver=name):
                row = two_processes(name, self.folder(f"two {name}"))
                self.tables.add("Two processes", row)

    def memory(self) -> None:
        for name, work in works().items():
            if not self.tables.has("Memory", what=name):
                found = in_child(lambda work=work: growth(work, 4 if self.quick else 40))
                early, late = found if isinstance(found, tuple) else (float("nan"),) * 2
                said = {} if isinstance(found, tuple) else {"failed": str(found)[:200]}
                row = {"what": name, "after 5 fits, MB": early, "after 40 fits, MB": late}
                self.tables.add("Memory", row | {"growth": late / early - 1} | said)


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    set_blas_threads(1)  # a child has none of its parent's threads
    campaign = Campaign(options)
    try:
        campaign.kills()
        campaign.damage()
        campaign.changes()
        campaign.bombs()
        campaign.disks()
        campaign.processes()
        campaign.memory()
    finally:
        shutil.rmtree(campaign.base, ignore_errors=True)
