"""Services: predictions of one row beside other packages, and requests to a small FastAPI server.

The second table needs fastapi and uvicorn, which gramian does not.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ..lib.process import THREADS
from ..lib.results import Row
from ..lib.tables import Tables, asked
from .waits import BEFORE, measured

ROWS, REQUESTS = "One row", "Requests"
CENTERS, FEATURES, COUNT, CLIENTS = 2_000, 20, 2_000, (1, 8)
SERVERS = ("none", "scikit-learn", "LightGBM", "gramian")
ROUNDS = 10
"""Turns in which the servers get their requests, so that other load on the machine is shared."""

NOTES = f"""\
Models of {CENTERS:,} centers and {FEATURES} features in float64, Gaussian kernel; one thread.
gramian: `KernelRidge(landmarks={CENTERS})` with standardised inputs, or with inputs mapped to
normal quantiles. scikit-learn: `KernelRidge` of {CENTERS:,} rows, the same kernel. LightGBM: 200
trees of 31 leaves. `before`: the sources of an earlier commit ({BEFORE}).

One row: CPU microseconds of a call of `predict`, the least of 15 means of 200 calls, on a machine
that others use; `model` is the `KernelModel` without its estimator. The last column is a call with
an array of 5,000 rows.

Requests: a row of {FEATURES} numbers as JSON, by name, {COUNT:,} requests over 1 or 8 open
connections from another process of the machine to uvicorn with one worker, and an `async` function
of FastAPI that calls `predict`. gramian takes the dict, the others a list of its values; `none`
answers with a constant. The servers run side by side and get a tenth of their requests in turn.
p50 and p99: milliseconds that a client waits. `CPU ms`: CPU time of the server for a request. `MB`:
resident memory. `cold CPU s`: CPU time up to the first answer, with imports; gramian's server
imports `gramian.model` alone, and Arrow imports pandas where it is installed, as here."""

MODELS = f"""
import pickle, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
folder = sys.argv[1]
rng = np.random.default_rng(0)
X = rng.standard_normal((10_000, {FEATURES}))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(X))
names = [f"x{{i}}" for i in range({FEATURES})]
frame = dict(zip(names, X.T)) | {{"y": y}}
import pandas as pd
import gramian
for name, how in (("standard", True), ("quantile", "quantile")):
    est = gramian.KernelRidge("gaussian", lengthscale=4.0, penalty=1e-6, landmarks={CENTERS},
        solver="falkon", standardize=how, random_state=0)
    est.fit(X, y).save(f"{{folder}}/{{name}}-array.model")
    est.fit(pd.DataFrame(frame), "y").save(f"{{folder}}/{{name}}.model")
from sklearn.kernel_ridge import KernelRidge
peer = KernelRidge(kernel="rbf", gamma=1 / 32, alpha=2e-3).fit(X[:{CENTERS}], y[:{CENTERS}])
pickle.dump(peer, open(f"{{folder}}/scikit-learn.pkl", "wb"))
try:
    from lightgbm import LGBMRegressor
except ImportError:
    pass
else:
    peer = LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1).fit(X, y)
    pickle.dump(peer, open(f"{{folder}}/LightGBM.pkl", "wb"))
"""

ONE_ROW = f"""
import json, pickle, sys, time, warnings
import numpy as np, pandas as pd, polars as pl
warnings.simplefilter("ignore")
folder, what = sys.argv[1:]
rng = np.random.default_rng(1)
X = rng.standard_normal((5_000, {FEATURES}))
row = dict(zip([f"x{{i}}" for i in range({FEATURES})], X[0].tolist()))
def least(work, calls, rounds):
    found = []
    work()
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(calls):
            work()
        found.append((time.process_time() - start) / calls)
    return min(found)
found = {{}}
if what in ("standard", "quantile"):
    import gramian
    est, named = (gramian.load(f"{{folder}}/{{what}}{{end}}.model") for end in ("-array", ""))
    frames = dict(pandas=pd.DataFrame([row]), polars=pl.DataFrame([row]))
    works = dict(model=lambda: est.model_.predict(X[:1]), array=lambda: est.predict(X[:1]))
    works |= {{name: lambda frame=frame: named.predict(frame) for name, frame in frames.items()}}
    works |= {{"dict": lambda: named.predict(row), "dict of lists": lambda: named.predict(lists)}}
    lists = {{name: [value] for name, value in row.items()}}
else:
    est = pickle.load(open(f"{{folder}}/{{what}}.pkl", "rb"))
    works = dict(array=lambda: est.predict(X[:1]))
for name, work in works.items():
    try:
        found[f"{{name}} us"] = 1e6 * least(work, 200, 15)
    except (TypeError, ValueError):
        found[f"{{name}} us"] = None
found["5,000 rows ms"] = 1e3 * least(lambda: est.predict(X), 1, 9)
print(json.dumps(found))
"""

SERVER = """
import pickle, sys
folder, what, port = sys.argv[1:]
if what == "gramian":
    from gramian.model import load_model
    model = load_model(f"{folder}/standard.model")
    predict = lambda row: float(model.predict(row)[0, 0])
elif what == "none":
    predict = lambda row: 0.0
else:
    model = pickle.load(open(f"{folder}/{what}.pkl", "rb"))
    predict = lambda row: float(model.predict([list(row.values())])[0])
import uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.post("/predict")
async def answer(row: dict[str, float]) -> float:
    return predict(row)
uvicorn.run(app, port=int(port), log_level="warning", access_log=False)
"""


def main(options: argparse.Namespace) -> None:
    tables = Tables("serving", (ROWS, REQUESTS), NOTES, options)
    os.environ |= dict.fromkeys(THREADS, "1")
    here: dict[str, str | None] = {"now": None}
    if BEFORE in os.environ:
        here = {"before": str(Path(os.environ[BEFORE]).resolve())} | here
    with TemporaryDirectory() as folder:
        # Of the earlier sources, whose files both can read.
        _run(MODELS, next(iter(here.values())), folder)
        _time_rows(tables, options, here, folder)
        _time_requests(tables, options, folder)


def _run(code: str, sources: str | None, *arguments: str) -> Row | None:
    """Run code with arguments in a fresh process; return what it prints last."""
    head = f"import sys; sys.argv[1:] = {list(arguments)!r}\n"
    return measured(head + code + "\nprint('null')" * (code is MODELS), sources)


def _time_rows(
    tables: Tables, options: argparse.Namespace, here: dict[str, str | None], folder: str
) -> None:
    cases = [("gramian", inputs, name) for inputs in ("standard", "quantile") for name in here]
    cases += [(name, "", "") for name in ("scikit-learn", "LightGBM")]
    for package, inputs, sources in cases:
        row = {"package": package, "inputs": inputs, "sources": sources}
        there = inputs or (Path(folder) / f"{package}.pkl").exists()
        if not there or tables.has(ROWS, **row) or not asked({"table": ROWS} | row, options.only):
            continue
        found = _run(ONE_ROW, here.get(sources), folder, inputs or package)
        tables.add(ROWS, row | (found or {}))


def _time_requests(tables: Tables, options: argparse.Namespace, folder: str) -> None:
    servers = [name for name in SERVERS if _has_server(folder, name)]
    missing = [k for k in CLIENTS if not tables.has(REQUESTS, clients=k)]
    if not missing or not asked({"table": REQUESTS}, options.only) or not find_spec("uvicorn"):
        return
    with ExitStack() as stack:
        running = {name: stack.enter_context(_server(folder, name)) for name in servers}
        cold = {name: _cpu_seconds(pid) for name, (_, pid) in running.items()}
        for clients in missing:
            count = (COUNT // 20 if options.quick else COUNT) // ROUNDS
            waits: dict[str, list[float]] = {name: [] for name in servers}
            cpu = dict.fromkeys(servers, 0.0)
            for _, (name, (port, pid)) in itertools.product(range(ROUNDS), running.items()):
                before = _cpu_seconds(pid)
                waits[name] += _send(port, clients, count)
                cpu[name] += _cpu_seconds(pid) - before
            for name, (_, pid) in running.items():
                centiles = statistics.quantiles(waits[name], n=100)
                row = {
                    "package": name,
                    "clients": clients,
                    "p50 ms": 1e3 * centiles[49],
                    "p99 ms": 1e3 * centiles[98],
                    "CPU ms": 1e3 * cpu[name] / len(waits[name]),
                    "MB": _resident_bytes(pid) / 1e6,
                    "cold CPU s": cold[name],
                }
                tables.add(REQUESTS, row)


def _has_server(folder: str, name: str) -> bool:
    return name in ("none", "gramian") or (Path(folder) / f"{name}.pkl").exists()


@contextmanager
def _server(folder: str, name: str) -> Iterator[tuple[int, int]]:
    """Start a server; return its port and its process once it has answered."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SERVER, folder, name, str(port)]
    with subprocess.Popen(command, env=os.environ) as server:
        try:
            _wait(port)
            yield port, server.pid
        finally:
            server.terminate()


def _wait(port: int) -> None:
    """Return when the server has answered."""
    for _ in range(1200):
        try:
            _ask(http.client.HTTPConnection("127.0.0.1", port), 1)
            return
        except ConnectionError:
            time.sleep(0.05)
    raise TimeoutError("the server does not start")


def _ask(connection: http.client.HTTPConnection, count: int) -> list[float]:
    """Return the seconds of each request."""
    body = json.dumps({f"x{i}": 0.1 * i for i in range(FEATURES)})
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        seconds.append(time.perf_counter() - start)
        if answer.status != 200:
            raise ValueError(f"status {answer.status}: {text!r}")
    return seconds


def _send(port: int, clients: int, count: int) -> list[float]:
    """Return the seconds of requests by clients at once."""
    found: list[float] = []

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        found.extend(_ask(connection, count // clients))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
