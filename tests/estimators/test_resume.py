"""A fit that was interrupted goes on from its checkpoint to the same result, bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain import PLAIN
from threads import blas_threads

from gramian import (
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
)
from gramian.callbacks import Checkpoint
from gramian.search.samples import sampled_fit as sampled
from gramian.solvers import Falkon

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 3))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)
WEIGHT = RNG.uniform(0, 2, 90)

# A factor of all rows would leave no iterations to be interrupted in.
SETTINGS: dict[str, dict[str, Any]] = {
    "falkon": {"landmarks": 20, "solver": Falkon("landmarks")},
    "refined": {"landmarks": 20, "solver": Falkon("landmarks", refine=True)},
    "points": {"landmarks": X[:15] + 0.1, "solver": Falkon("landmarks")},
    "pcg": {"solver": "pcg", "penalty": 1e-2},
}

# A dozen iterations are enough to be interrupted in.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class PowerCut:
    """Ends the process, as far as a callback can, after some iterations."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, problem: Any, state: Any) -> None:
        if state.iteration == self.after:
            raise SystemExit


def estimator(name: str, path: Path, *more: Any, kind: type = KernelRidge) -> Any:
    callbacks = [Checkpoint(path), *more]
    return kind(callbacks=callbacks, random_state=0, max_iter=12, **(PLAIN | SETTINGS[name]))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("after", [0, 1, 6])
def test_the_same_result_bit_by_bit(name, dtype, after, tmp_path):
    x = X.astype(dtype)
    whole = estimator(name, tmp_path / "whole").fit(x, Y, WEIGHT)
    with pytest.raises(SystemExit):
        estimator(name, tmp_path / "state", PowerCut(after)).fit(x, Y, WEIGHT)
    resumed = estimator(name, tmp_path / "state").fit(x, Y, WEIGHT)
    np.testing.assert_array_equal(resumed.dual_coef_, whole.dual_coef_)
    assert resumed.n_iter_ == whole.n_iter_
    assert resumed.history_[0]["iteration"] == after
    assert resumed.history_[-1]["rel_residual"] == whole.history_[-1]["rel_residual"]


def test_twice_interrupted(tmp_path):
    whole = estimator("falkon", tmp_path / "whole").fit(X, Y)
    for after in (2, 5):
        with pytest.raises(SystemExit):
            estimator("falkon", tmp_path / "state", PowerCut(after)).fit(X, Y)
    resumed = estimator("falkon", tmp_path / "state").fit(X, Y)
    np.testing.assert_array_equal(resumed.dual_coef_, whole.dual_coef_)


def test_a_finished_fit_is_not_done_again(tmp_path):
    first = estimator("falkon", tmp_path / "state").fit(X, Y)
    again = estimator("falkon", tmp_path / "state").fit(X, Y)
    assert len(again.history_) == 1
    np.testing.assert_array_equal(again.dual_coef_, first.dual_coef_)


def test_a_classifier(tmp_path):
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    whole = estimator("falkon", tmp_path / "whole", kind=KernelRidgeClassifier).fit(X, labels)
    interrupted = estimator("falkon", tmp_path / "state", PowerCut(3), kind=KernelRidgeClassifier)
    with pytest.raises(SystemExit):
        interrupted.fit(X, labels)
    resumed = estimator("falkon", tmp_path / "state", kind=KernelRidgeClassifier).fit(X, labels)
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


def test_other_landmarks_are_refused_and_the_remedy_is_named(tmp_path):
    path = tmp_path / "state"
    KernelRidge(landmarks=10, callbacks=[Checkpoint(path)], **PLAIN).fit(X, Y)
    with pytest.raises(ValueError, match=r"centers.* differ.*set random_state"):
        KernelRidge(landmarks=10, callbacks=[Checkpoint(path)], **PLAIN).fit(X, Y)
    KernelRidge(landmarks=10, callbacks=[Checkpoint(path, resume=False)], **PLAIN).fit(X, Y)


@pytest.mark.parametrize("penalty", [1e-6, np.float64(1e-6), np.array(1e-6)[()]])
def test_the_type_of_a_number_is_no_difference(penalty, tmp_path):
    est = estimator("falkon", tmp_path / "state").fit(X, Y)
    est.set_params(penalty=penalty).fit(X, Y)
    assert len(est.history_) == 1


def test_other_data_are_refused(tmp_path):
    estimator("falkon", tmp_path / "state").fit(X, Y)
    with pytest.raises(ValueError, match=r"targets.* differ"):
        estimator("falkon", tmp_path / "state").fit(X, Y + 1)
    with pytest.raises(ValueError, match=r"rows.* differ"):
        estimator("falkon", tmp_path / "state").fit(np.flip(X, axis=0).copy(), Y)


def test_another_number_of_threads_changes_rounding_only(tmp_path):
    with pytest.raises(SystemExit):
        estimator("falkon", tmp_path / "state", PowerCut(4)).fit(X, Y)
    with blas_threads(2):
        resumed = estimator("falkon", tmp_path / "state").fit(X, Y)
    whole = estimator("falkon", tmp_path / "whole").fit(X, Y)
    np.testing.assert_allclose(resumed.predict(X), whole.predict(X), rtol=1e-6, atol=1e-7)


SEARCH: dict[str, Any] = {"budget": 3_000_000, "random_state": 0}


class TestSearches:
    """A search that was killed goes on after its last trial."""

    @staticmethod
    def record(est: Any) -> tuple[Any, ...]:
        timed = ("seconds", "elapsed")
        rows = [{name: row[name] for name in row if name not in timed} for row in est.history_]
        coefs = [part.coef for part in est.model_.parts]
        scores = np.asarray(est.cv_results_["squared_error"]).tobytes()
        return [c.tobytes() for c in coefs], repr(rows), scores, est.kernel_evaluations_

    @staticmethod
    def killed(path: Path, after: int, kind: type = KernelRidgeCV, y: Any = Y[:, 0]) -> None:
        count = []

        def watch(trial: Any) -> None:
            count.append(trial)
            if len(count) == after:
                raise SystemExit

        with pytest.raises(SystemExit):
            kind(callbacks=[Checkpoint(path), watch], **SEARCH).fit(X, y)

    @pytest.mark.parametrize("after", [1, 7, 12])
    @pytest.mark.parametrize("kind", [KernelRidgeCV, KernelRidgeClassifierCV])
    def test_the_same_model_and_record(self, kind, after, tmp_path, monkeypatch):
        y = Y[:, 0] if kind is KernelRidgeCV else Y[:, 0] > 0
        whole = kind(**SEARCH).fit(X, y)
        self.killed(tmp_path / "c", after, kind, y)
        counted, real = [], sampled.fit_sample
        monkeypatch.setattr(
            sampled, "fit_sample", lambda *a, **m: counted.append(1) or real(*a, **m)
        )
        resumed = kind(callbacks=[Checkpoint(tmp_path / "c")], **SEARCH).fit(X, y)
        assert self.record(resumed) == self.record(whole)
        again = len(counted)
        kind(callbacks=[Checkpoint(tmp_path / "c")], **SEARCH).fit(X, y)
        assert len(counted) == again  # nothing is left
        kind(**SEARCH).fit(X, y)
        assert again < len(counted) - again

    def test_times_of_finished_trials_are_kept(self, tmp_path):
        search = SEARCH | {"budget": "1 h", "kernel": "gaussian", "metric": None}
        est = KernelRidgeCV(callbacks=[Checkpoint(tmp_path / "c")], **search).fit(X, Y[:, 0])
        again = KernelRidgeCV(callbacks=[Checkpoint(tmp_path / "c")], **search).fit(X, Y[:, 0])
        for name in ("seconds", "elapsed"):
            expected = [row[name] for row in est.history_ if row["step"] != "refit"]
            found = [row[name] for row in again.history_ if row["step"] != "refit"]
            assert found[:-1] == pytest.approx(expected[:-1], abs=1e-6)

    @pytest.mark.parametrize(
        ("more", "y", "message"),
        [
            ({"budget": 4_000_000}, Y[:, 0], "budget differ"),
            ({"random_state": 1}, Y[:, 0], "random_state"),
            ({"kernel": "gaussian"}, Y[:, 0], "settings differ"),
            ({"scoring": "neg_mean_absolute_error"}, Y[:, 0], "scoring differ"),
            ({}, Y[:, 1], "targets differ"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_another_search_is_refused(self, more, y, message, tmp_path):
        self.killed(tmp_path / "c", 1)
        with pytest.raises(ValueError, match=message):
            KernelRidgeCV(callbacks=[Checkpoint(tmp_path / "c")], **SEARCH | more).fit(X, y)

    def test_a_search_that_no_checkpoint_resumes_is_refused(self, tmp_path):
        est = KernelRidgeCV(callbacks=[Checkpoint(tmp_path / "c")])
        with pytest.raises(ValueError, match="random_state=None"):
            est.fit(X, Y[:, 0])
