"""Estimators as parts of scikit-learn: searches, clones, pickles, pipelines."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from plain import PLAIN
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian import KernelRidge, KernelRidgeClassifier, kernels
from gramian.callbacks import Checkpoint, Progress, Validate
from gramian.landmarks import Uniform
from gramian.solvers import Direct, Falkon

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 2))
Y = np.sin(3 * X[:, 0]) * X[:, 1]


class TestKernelParameters:
    kernel = 2.0 * (kernels.Gaussian([1.0, 2.0]) * kernels.Polynomial(degree=2))

    def test_names_and_values(self):
        found = self.kernel.get_params()
        assert found["kernel__first__lengthscale"] == (1.0, 2.0)
        assert found["kernel__second__degree"] == 2
        assert self.kernel.get_params(deep=False).keys() == {"kernel", "factor"}

    def test_a_kernel_is_replaced_and_not_changed(self):
        other = self.kernel.set_params(factor=3.0, kernel__first__lengthscale=0.5)
        assert other == 3.0 * (kernels.Gaussian(0.5) * kernels.Polynomial(degree=2))
        assert self.kernel.kernel.first.lengthscale == (1.0, 2.0)

    def test_a_new_part_and_its_parameter_at_once(self):
        other = self.kernel.set_params(kernel=kernels.Laplacian(1.0), kernel__lengthscale=4.0)
        assert other == 2.0 * kernels.Laplacian(4.0)
        est = KernelRidge(**PLAIN).set_params(kernel=kernels.Gaussian(1.0), kernel__lengthscale=4.0)
        assert est.kernel == kernels.Gaussian(4.0)

    def test_a_clone_has_an_equal_kernel(self):
        assert clone(KernelRidge(self.kernel, penalty=1e-6)).kernel == self.kernel

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"scale": 1.0}, "Scaled has no parameter 'scale'; it has kernel, factor"),
            ({"kernel__third": 1.0}, "Product has no parameter 'third'; it has first, second"),
            ({"factor__x": 1.0}, "factor=2.0 of Scaled has no parameters"),
            ({"factor": -1.0}, "positive"),
        ],
    )
    def test_what_there_is_not(self, wrong, message):
        with pytest.raises(ValueError, match=message):
            self.kernel.set_params(**wrong)

    def test_a_name_has_no_parameters(self):
        with pytest.raises(ValueError, match=r"kernel__lengthscale requires a kernel object"):
            KernelRidge("gaussian", lengthscale="median", penalty=1e-6).set_params(
                kernel__lengthscale=2.0
            )

    def test_a_wrong_name_is_refused_as_by_scikit_learn(self):
        with pytest.raises(ValueError, match=r"no parameter 'penalti'; did you mean penalty\?"):
            KernelRidge(self.kernel, penalty=1e-6).set_params(penalti=1.0)


class TestGridSearch:
    def test_over_landmarks(self):
        est = KernelRidge(lengthscale=0.7, random_state=0, penalty=1e-5, kernel="gaussian")
        search = GridSearchCV(est, {"landmarks": [5, 50]}, cv=3).fit(X, Y)
        few, many = search.cv_results_["mean_test_score"]
        assert search.best_params_ == {"landmarks": 50}
        assert many > few + 0.1  # five landmarks cannot follow this function
        assert len(search.best_estimator_.landmark_index_) == 50

    def test_over_solver_objects(self):
        # With a factor of all rows one iteration would be enough.
        choices = [Falkon("landmarks"), Falkon(preconditioner_penalty=0.1), Direct()]
        est = KernelRidge(
            landmarks=20,
            random_state=0,
            penalty=1e-3,
            tol=1e-10,
            max_iter=500,
            kernel="gaussian",
            lengthscale="median",
        )
        fits = [clone(est).set_params(solver=solver).fit(X, Y) for solver in choices]
        assert [fit.solver_ for fit in fits] == choices
        # the same function, by other ways
        assert fits[1].n_iter_ > fits[0].n_iter_ > 1
        assert fits[2].history_[-1].keys() != fits[0].history_[-1].keys()
        search = GridSearchCV(est, {"solver": choices}, cv=2).fit(X, Y)
        scores = search.cv_results_["mean_test_score"]
        np.testing.assert_allclose(scores, scores[0], rtol=1e-5)
        assert search.best_estimator_.solver_ == search.best_params_["solver"]

    def test_a_solver_that_stops_early_changes_the_scores(self):
        # One iteration shows the preconditioner only; one of all rows would show the solution.
        est = KernelRidge(
            landmarks=40,
            random_state=0,
            penalty=1e-4,
            callbacks=[once],
            kernel="gaussian",
            lengthscale="median",
        )
        grid = {"solver": [Falkon("landmarks"), Falkon(preconditioner_penalty=10.0), Direct()]}
        scores = GridSearchCV(est, grid, cv=3).fit(X, Y).cv_results_["mean_test_score"]
        assert len(set(np.round(scores, 6))) == 3

    def test_over_the_parameters_of_a_kernel_object(self):
        kernel = kernels.Gaussian(5.0) + 0.1 * kernels.Linear()
        est = KernelRidge(kernel, penalty=1e-5, random_state=0, lengthscale="median")
        grid = {"kernel__first__lengthscale": [0.7, 50.0], "kernel__second__factor": [0.1, 2.0]}
        search = GridSearchCV(est, grid, cv=3).fit(X, Y)
        assert search.best_params_["kernel__first__lengthscale"] == 0.7
        assert search.best_estimator_.kernel_.first == kernels.Gaussian(0.7)
        assert est.kernel is kernel
        assert kernel.first.lengthscale == 5.0

    def test_over_kernels_and_selectors(self):
        grid = {
            "kernel": [kernels.Gaussian(0.7), kernels.Linear()],
            "landmarks": [None, Uniform(30), X[:10]],
        }
        search = GridSearchCV(KernelRidge(random_state=0, **PLAIN), grid, cv=2).fit(X, Y)
        assert search.best_params_["kernel"] == kernels.Gaussian(0.7)

    def test_of_a_classifier_in_a_pipeline(self):
        pipeline = make_pipeline(StandardScaler(), KernelRidgeClassifier(random_state=0, **PLAIN))
        grid = {"kernelridgeclassifier__landmarks": [3, 60]}
        search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y > 0)
        assert search.best_params_["kernelridgeclassifier__landmarks"] == 60
        assert search.score(X, Y > 0) > 0.9


def once(problem: Any, state: Any) -> bool:
    return state.iteration >= 1


SETTINGS: list[dict[str, Any]] = [
    {},
    {"landmarks": 10, "solver": Falkon(refine=True)},
    {"landmarks": Uniform(7), "kernel": 2.0 * kernels.Gaussian(1.0)},
    {"landmarks": X[:5], "lengthscale": [1.0, 2.0]},
]


@pytest.mark.parametrize("settings", SETTINGS)
class TestCopies:
    def test_clone(self, settings):
        est = KernelRidge(random_state=0, **(PLAIN | settings)).fit(X, Y)
        copy = clone(est)
        assert not hasattr(copy, "model_")
        np.testing.assert_array_equal(copy.fit(X, Y).predict(X), est.predict(X))

    def test_pickle(self, settings):
        est = KernelRidge(random_state=0, **(PLAIN | settings)).fit(X, Y)
        again = pickle.loads(pickle.dumps(est))
        np.testing.assert_array_equal(again.predict(X), est.predict(X))
        assert again.history_ == est.history_

    def test_set_params_is_what_the_next_fit_does(self, settings):
        changed = KernelRidge(**PLAIN).fit(X, Y).set_params(random_state=0, **settings).fit(X, Y)
        fresh = KernelRidge(random_state=0, **(PLAIN | settings)).fit(X, Y)
        np.testing.assert_array_equal(changed.predict(X), fresh.predict(X))


def test_callbacks_can_be_cloned_and_pickled(tmp_path):
    callbacks = [Progress(), Checkpoint(tmp_path / "state", resume=False), Validate(X, Y)]
    est = KernelRidge(landmarks=10, callbacks=callbacks, random_state=0, **PLAIN).fit(X, Y)
    assert pickle.loads(pickle.dumps(est)).score(X, Y) == est.score(X, Y)
    assert clone(est).fit(X, Y).score(X, Y) == est.score(X, Y)


def test_copies_and_other_models_have_no_training_rows():
    est = KernelRidge(landmarks=10, random_state=0, **PLAIN).fit(X, Y)
    assert len(est._training.rows) == len(X)
    assert pickle.loads(pickle.dumps(est))._training is None
    assert est.with_model(est.model_)._training is None
