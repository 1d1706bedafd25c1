"""Whole fits beside other packages: CPU seconds of one thread, errors, memory.

falkon, KeOps and EigenPro 3's own code take part where they can be imported.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from benchmarks.lib.timing import set_blas_threads
from gramian import KernelRidge
from gramian._arrays import RandomStream
from gramian.landmarks import Uniform
from gramian.solvers import Falkon

from ..lib.process import bytes_before_work, in_fresh_process, peak_bytes
from ..lib.tables import Tables, asked
from ..lib.timing import Seconds, clock

CASES = (
    *((100_000, d, 2_000) for d in (4, 20, 90, 784)),
    *((300_000, d, 2_000) for d in (4, 20, 90, 784)),
    *((100_000, d, 10_000) for d in (4, 20, 90)),
    (300_000, 20, 10_000),
)
"""Training rows, features, landmarks."""

TEST, ITERATIONS, EPOCHS, PENALTY, NOISE = 5_000, 10, 1, 1e-6, 0.1
LIMIT = 300
"""CPU seconds of one fit and what it predicts: one that takes longer is ended."""

TOUCHED_BYTES = 6 << 30

ROUNDS = 1
FITS = "Fits"
NOTES = f"""\
One thread, float32, each fit in a process of its own. Rows are normal; y is a smooth function of
two directions and noise of {NOISE}. Gaussian kernel of lengthscale sqrt(d), penalty {PENALTY}
(scikit-learn: alpha = n {PENALTY}), landmarks drawn uniformly, {ITERATIONS} iterations of FALKON.
`fit s` is CPU time of the fit, choice of landmarks and checks of arguments included, `predict s`
that of {TEST:,} test rows, whose root mean squared error is `error`; `MB` is the largest memory
beside the data. `times` is `fit s` over that of gramian with the same solver. The least of the
rounds, of one where a fit takes more than a minute; contenders take turns, on a machine that
others use. Before each fit a process writes to {TOUCHED_BYTES >> 30} gigabytes, which a virtual
machine has to return first. What takes more than {LIMIT} s is ended.

- gramian: `KernelRidge(solver="falkon")`, which keeps kernel entries where these fit, as falkon and
  Nystroem do; never stored: with a memory limit of 1.2 GB and two matrices of M x M beside, which
  leaves no room for them; float32 alone: `Falkon(refine=False)`, whose products all run in float32,
  as falkon's do, where the default takes float64 if predictions would differ by a tenth of their
  spread (here with 4 features); gramian, eigenpro3: `solver="eigenpro3"`.
- falkon, stored: `keops_active="no"`, which stores the kernel matrix if there is memory; never
  stored: with `never_store_kernel=True` as well; KeOps: `keops_active="force"`, where it was asked
  for (`--only contender="falkon, KeOps"`).
- Nystroem: scikit-learn's `Nystroem` and `Ridge` on float32 features.
- EigenPro 3: one epoch by its authors' code, whose calls of SciPy were brought up to date, beside
  one of gramian's, which has a penalty of its own."""


@dataclass(frozen=True)
class Task:
    """Rows drawn from a seed, and what is fitted to them."""

    n: int
    d: int
    m: int

    def rows(self) -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((self.n + TEST, self.d), dtype=np.float32)
        a, b = rng.standard_normal((2, self.d)).astype(np.float32) / np.sqrt(self.d)
        y = np.sin(2 * X @ a) + np.cos(X @ b) + NOISE * rng.standard_normal(len(X))
        y = y.astype(np.float32)
        return X[:-TEST], y[:-TEST], X[-TEST:], y[-TEST:]

    @property
    def lengthscale(self) -> float:
        return float(np.sqrt(self.d))


Fit = Callable[[Task, np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]


def _gramian(task: Task, X: np.ndarray, y: np.ndarray, **settings: Any) -> Any:
    est = KernelRidge(
        kernel="gaussian", lengthscale=task.lengthscale, penalty=PENALTY, landmarks=Uniform(task.m),
        standardize=False, tol=0.0, random_state=0, **settings,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return est.fit(X, y).predict


def gramian(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    return _gramian(task, X, y, solver="falkon", max_iter=ITERATIONS)


def gramian_never_stored(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    limit = f"{1200 + 16 * task.m**2 // 10**6}MB"
    return _gramian(task, X, y, solver="falkon", max_iter=ITERATIONS, memory_limit=limit)


def gramian_float32(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    return _gramian(task, X, y, solver=Falkon(refine=False), max_iter=ITERATIONS)


def gramian_eigenpro3(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    return _gramian(task, X, y, solver="eigenpro3", max_iter=EPOCHS)


def nystroem(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    features = Nystroem(
        kernel="rbf", gamma=0.5 / task.lengthscale**2, n_components=task.m, random_state=0
    ).fit(X)
    ridge = Ridge(alpha=len(X) * PENALTY, copy_X=False).fit(features.transform(X), y)
    return lambda rows: ridge.predict(features.transform(rows))


def _falkon(task: Task, X: np.ndarray, y: np.ndarray, **settings: Any) -> Any:
    import falkon
    from torch import from_numpy

    options = falkon.FalkonOptions(use_cpu=True, cg_tolerance=1e-16, debug=False, **settings)
    kernel = falkon.kernels.GaussianKernel(sigma=task.lengthscale, opt=options)
    model = falkon.Falkon(
        kernel=kernel, penalty=PENALTY, M=task.m, maxiter=ITERATIONS, seed=0, options=options
    )
    model.fit(from_numpy(X), from_numpy(y[:, None]))
    return lambda rows: model.predict(from_numpy(rows))[:, 0].numpy()


def falkon_stored(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    return _falkon(task, X, y, keops_active="no")


def falkon_never_stored(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    return _falkon(task, X, y, keops_active="no", never_store_kernel=True)


def falkon_keops(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    return _falkon(task, X, y, keops_active="force", never_store_kernel=True)


def eigenpro3(task: Task, X: np.ndarray, y: np.ndarray) -> Any:
    from eigenpro3.kernels import gaussian
    from eigenpro3.models import KernelModel
    from eigenpro3.utils import svd
    from torch import from_numpy

    eigh = svd.linalg.eigh
    svd.linalg.eigh = lambda a, eigvals: eigh(a, subset_by_index=eigvals)
    rows, values = from_numpy(X), from_numpy(y[:, None])
    order = from_numpy(RandomStream(0).permutation(len(rows)))

    def kernel(x: Any, z: Any) -> Any:
        return gaussian(x, z, task.lengthscale)

    model = KernelModel(1, rows[order[: task.m]], kernel, X=rows, y=values)
    model.fit(model.train_loaders, epochs=EPOCHS)
    return lambda new: (kernel(from_numpy(new), model.centers) @ model.weights)[:, 0].numpy()


CONTENDERS: dict[str, tuple[Fit, str | None]] = {
    "gramian": (gramian, None),
    "gramian, never stored": (gramian_never_stored, None),
    "gramian, float32 alone": (gramian_float32, None),
    "falkon, stored": (falkon_stored, "falkon"),
    "falkon, never stored": (falkon_never_stored, "falkon"),
    "falkon, KeOps": (falkon_keops, "falkon"),
    "Nystroem": (nystroem, None),
    "gramian, eigenpro3": (gramian_eigenpro3, None),
    "EigenPro 3": (eigenpro3, "eigenpro3"),
}
"""Each with the package that it needs."""

BASELINE = {"EigenPro 3": "gramian, eigenpro3"}
"""Contenders that are compared with another solver of gramian than FALKON, by its name."""


def measure(name: str, task: Task) -> dict[str, float]:
    """Fit and predict once, in this process."""
    set_blas_threads(1)
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT + 30, LIMIT + 30))
    X, y, X_test, y_test = task.rows()
    small = Task(500, task.d, 50)
    work = CONTENDERS[name][0]
    if name != "EigenPro 3":  # which takes no fewer than 5,000 rows
        work(small, X[: small.n], y[: small.n])  # which loads, and compiles, what is needed once
    before = bytes_before_work()
    with threadpool_limits(1):
        with clock() as fit:
            predictor = work(task, X, y)
        with clock() as predict:
            told = predictor(X_test)
    return _row(fit, predict, float(np.sqrt(np.mean((told - y_test) ** 2))), before)


def _row(fit: Seconds, predict: Seconds, error: float, before: int) -> dict[str, float]:
    megabytes = (peak_bytes() - before) / 1e6
    return {"fit s": fit.cpu, "predict s": predict.cpu, "error": error, "MB": megabytes}


def touch_memory() -> None:
    """Write to as much memory as the largest fit takes.

    A virtual machine gives memory that nobody uses back to its host, so that the first process to
    write to it pays several seconds: otherwise the first contender would pay for all.
    """
    np.ones(TOUCHED_BYTES // 8)


def needs_memory(task: Task) -> bool:
    """Return whether fits are large enough for new memory to matter; not for a quick try."""
    return 4 * task.n * task.m > TOUCHED_BYTES // 100


def _measured(name: str, task: Task) -> dict[str, Any]:
    """Return what a fit in a process of its own took, or why it took nothing: peers may fail."""
    try:
        return in_fresh_process(measure, name, task)
    except BrokenProcessPool:
        return {"note": f"ended after {LIMIT} s"}
    except Exception as error:
        if name.startswith("gramian"):
            raise
        return {"note": f"{type(error).__name__}: {error}"[:80]}


def rounds_of(task: Task, names: list[str], rounds: int) -> list[dict[str, Any]]:
    """Return the least of some rounds, in which contenders take turns."""
    best: dict[str, dict[str, Any]] = {}
    for turn in range(rounds):
        for name in names:
            if turn > 0 and best[name].get("fit s", LIMIT) > 60:
                continue  # a second round would tell little
            if needs_memory(task):
                in_fresh_process(touch_memory)
            found = _measured(name, task)
            if found.get("fit s", LIMIT) <= best.get(name, found).get("fit s", LIMIT):
                best[name] = found
    rows = []
    for name in names:
        base = best.get(BASELINE.get(name, "gramian"), {}).get("fit s")
        about = {"n": task.n, "d": task.d, "M": task.m, "contender": name, **best[name]}
        if base and "fit s" in best[name]:
            about["times"] = best[name]["fit s"] / base
        rows.append(about)
    return rows


def main(options: argparse.Namespace) -> None:
    tables = Tables("peers", (FITS,), NOTES, options)
    present = [
        name for name, (_, package) in CONTENDERS.items() if package is None or find_spec(package)
    ]
    for n, d, m in ((4_000, 4, 200),) if options.quick else CASES:
        key = {"n": n, "d": d, "M": m}
        names = [name for name in present if asked(key | {"contender": name}, options.only)]
        if not options.only:
            names = [name for name in names if name != "falkon, KeOps"]
        names = [name for name in names if not tables.has(FITS, **key, contender=name)]
        if names:
            tables.add(FITS, *rounds_of(Task(n, d, m), names, 1 if options.quick else ROUNDS))
