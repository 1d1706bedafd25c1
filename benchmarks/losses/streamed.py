"""Logistic loss out of core: rows in a file of many times the memory limit."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..lib.process import in_fresh_process, resident_bytes
from ..lib.results import Row
from ..lib.timing import clock

FEATURES, GROUP = 10, 250_000
TEST_ROWS = 20_000
LANDMARKS, LENGTHSCALE, PENALTY = 500, 4.0, 1e-7
LIMIT = "1GB"
LEAST = 1e-12


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, the probabilities of the second class, and labels drawn from them."""
    X = rng.standard_normal((n, FEATURES), np.float32)
    odds = 3 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 2 * np.abs(X[:, 3]) - 1.5
    share = 1 / (1 + np.exp(-odds))
    return X, share, (rng.random(n, np.float32) < share).astype(np.int8)


def written(path: Path, n: int) -> None:
    """Write a Parquet file of n rows, group by group."""
    rng, names = np.random.default_rng(0), [f"x{j}" for j in range(FEATURES)]
    fields = [*((name, pa.float32()) for name in names), ("y", pa.int8())]
    schema = pa.schema(fields)
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, n, GROUP):
            X, _, y = drawn(min(GROUP, n - start), rng)
            columns = dict(zip(names, X.T, strict=True)) | {"y": y}
            writer.write_table(pa.table(columns, schema), row_group_size=GROUP)


class Peaks:
    """The largest memory of this process, looked at ten times a second."""

    def __init__(self) -> None:
        self.anonymous = self.resident = 0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text()
            now = int(status.split("RssAnon:")[1].split()[0]) * 1024
            self.anonymous = max(self.anonymous, now)
            self.resident = max(self.resident, resident_bytes())
            time.sleep(0.1)


def log_loss(share: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of -log p of the right class."""
    right = np.where(y == 1, share, 1 - share)
    return float(-np.log(right.clip(LEAST, 1)).mean())


def fitted(path: Path) -> Row:
    """Fit from the file, and return memory, seconds and the log loss of fresh rows."""
    from gramian import KernelRidgeClassifier

    peaks = Peaks()
    model = KernelRidgeClassifier(
        "gaussian", lengthscale=LENGTHSCALE, penalty=PENALTY, landmarks=LANDMARKS,
        loss="logistic", memory_limit=LIMIT, standardize=True, random_state=0,
    )  # fmt: skip
    with clock() as took:
        model.fit(str(path), "y")
    last: dict[str, Any] = model.history_[-1]
    row: Row = {"landmarks": LANDMARKS, "memory limit": LIMIT, "stopped": model.stop_reason_}
    row |= {"Newton steps": len(model.history_) - 1, "rel_residual": last["rel_residual"]}
    row |= {"cg": sum(step["cg"] for step in model.history_)}
    row |= {"anonymous MB": peaks.anonymous / 1e6, "resident MB": peaks.resident / 1e6}
    row |= {"wall_s": took.wall, "cpu_s": took.cpu}
    X, share, y = drawn(TEST_ROWS, np.random.default_rng(1))
    found = model.predict_proba(pa.table({f"x{j}": X[:, j] for j in range(FEATURES)}))[:, 1]
    row |= {"log loss": log_loss(found, y), "of the truth": log_loss(share, y)}
    return row | {"error": float(((found > 0.5) != y).mean())}


def measured(n: int, work: str | None) -> Row:
    """Write the file, and fit in a process of its own."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        path = Path(folder) / "rows.parquet"
        written(path, n)
        row: Row = {"rows": n, "file MB": path.stat().st_size / 1e6}
        return row | in_fresh_process(fitted, path)
