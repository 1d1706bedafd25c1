"""Habits of scikit-learn: the record of a search, loaded parameters, names of other libraries."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import FixedThresholdClassifier, GroupKFold

import gramian
from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeClassifierCV, KernelRidgeCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=150)


@pytest.fixture(scope="module")
def search():
    return KernelRidgeCV(budget="2 s", random_state=0).fit(X, Y)


def test_summary_has_the_steps_and_the_model(search):
    lines = search.summary().splitlines()
    trials = [row for row in search.history_ if row["step"] != "refit"]
    assert lines[0].startswith(f"KernelRidgeCV: {len(trials)} fits in ")
    assert f"score {search.best_score_:.5g}" in lines[0]
    for step in {row["step"] for row in trials}:
        (line,) = (line for line in lines if line.split()[:1] == [step])
        own = [row["error"] for row in trials if row["step"] == step]
        assert line.split()[1:3] == [str(len(own)), f"{min(own):.5g}"]
    main = max(search.members_, key=lambda member: member[0])
    (line,) = (line for line in lines if line.startswith(f"  {main[0]:.2f} x kernel "))
    assert f"penalty {main[1]['penalty']:.3g}" in line
    left_out = ", ".join(search.left_out_) or "nothing"
    assert lines[-1].startswith("left out")
    assert lines[-1].endswith(left_out)


def test_html_of_a_fitted_search_has_its_summary(search):
    assert "<pre>KernelRidgeCV: " in search._repr_html_()
    assert "<pre>KernelRidgeCV: " in search._repr_mimebundle_()["text/html"]
    assert "<pre>KernelRidgeCV: " not in KernelRidgeCV()._repr_html_()
    with pytest.raises(ValueError, match="not fitted"):
        KernelRidgeCV().summary()


def test_a_loaded_search_keeps_its_record(search, tmp_path):
    search.save(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))
    info = loaded.model_.info
    assert [row["step"] for row in info["history"]] == [row["step"] for row in search.history_]
    for saved, row in zip(info["history"], search.history_, strict=True):
        assert saved == {name: None if value != value else value for name, value in row.items()}
    assert [member["penalty"] for member in info["members"]] == [
        values["penalty"] for _, values in search.members_
    ]
    assert loaded.penalty == search.best_params_["penalty"]
    assert isinstance(loaded.kernel, gramian.kernels.Kernel)


@pytest.mark.parametrize("landmarks", [None, 40])
@pytest.mark.parametrize("standardize", [True, False, "quantile"])
def test_loaded_parameters_are_of_the_fit(landmarks, standardize, tmp_path):
    metric = np.array([1.0, 2.0, 0.5])
    est = KernelRidge(
        "gaussian", lengthscale=2.0, penalty=1e-3, landmarks=landmarks, metric=metric,
        standardize=standardize, random_state=0,
    ).fit(X, Y)  # fmt: skip
    est.save(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    assert loaded.kernel == gramian.kernels.Gaussian(2.0)
    assert (loaded.penalty, loaded.landmarks, loaded.standardize) == (1e-3, landmarks, standardize)
    np.testing.assert_array_equal(loaded.metric, metric)
    assert loaded.solver == ("direct" if landmarks is None else "falkon")
    # The same fit again, up to the draw of the landmarks.
    again = loaded.set_params(random_state=0).fit(X, Y)
    np.testing.assert_allclose(again.predict(X), est.predict(X), atol=1e-6)


def test_tables_keep_their_standardisation(tmp_path):
    table = pd.DataFrame(X, columns=list("abc")).assign(
        city=np.array(["a", "b"])[(X[:, 1] > 0) * 1]
    )
    est = KernelRidge("gaussian", lengthscale=2.0, penalty=1e-3).fit(table, Y)
    est.save(tmp_path / "m")
    assert gramian.load(tmp_path / "m").standardize is True


def test_saving_a_loaded_model_keeps_the_facts(tmp_path):
    KernelRidge("gaussian", lengthscale=2.0, penalty=1e-3).fit(X, Y).save(tmp_path / "m")
    loaded = gramian.load(tmp_path / "m")
    assert loaded.model_.info["rows"] == len(X)
    loaded.save(tmp_path / "n")
    assert gramian.load(tmp_path / "n").model_.info == loaded.model_.info


@pytest.mark.parametrize(
    ("kind", "instead"),
    [(KernelRidge, "KernelRidgeClassifier"), (KernelRidgeCV, "KernelRidgeClassifierCV")],
)
@pytest.mark.parametrize("dtype", [object, "U3"])
def test_labels_of_a_regression_name_the_classifier(kind, instead, dtype):
    labels = np.where(Y > 0, "yes", "no").astype(dtype)
    with pytest.raises(ValueError, match=f"y holds text, such as '(no|yes)'.*use {instead}$"):
        kind().fit(X, labels)


def test_texts_of_numbers_are_targets_as_in_scikit_learn():
    est = KernelRidge("gaussian", lengthscale=2.0, penalty=1e-3)
    expected = est.fit(X, Y).predict(X)
    np.testing.assert_allclose(est.fit(X, Y.astype(object)).predict(X), expected)


@pytest.mark.parametrize("kind", [KernelRidge, KernelRidgeCV, KernelRidgeClassifierCV])
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("monotonic_cst", "cannot be constrained"),
        ("n_jobs", "threadpool_limits"),
    ],
)
def test_parameters_of_other_libraries_are_refused_in_words(kind, name, advice):
    with pytest.raises(TypeError, match=f"{kind.__name__} has no parameter '{name}'; .*{advice}"):
        kind(**{name: 1})
    with pytest.raises(ValueError, match=advice):
        kind().set_params(**{name: 1})


def test_groups_scorers_and_verbosity_of_a_search():
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    est = KernelRidgeCV(budget="3 s", random_state=0, scoring=scorer, cv=GroupKFold(3), verbose=0)
    est.fit(X, Y, groups=np.arange(150) // 10)
    assert -0.5 < est.best_score_ < 0


def test_a_threshold_of_scikit_learn_takes_the_classifier():
    labels = np.where(Y > 0, "yes", "no")
    est = KernelRidgeClassifier("gaussian", lengthscale=2.0, penalty=1e-3)
    fixed = FixedThresholdClassifier(est, threshold=0.9, pos_label="yes").fit(X, labels)
    is_yes = fixed.estimator_.predict_proba(X)[:, 1] >= 0.9
    np.testing.assert_array_equal(fixed.predict(X) == "yes", is_yes)
    assert 0 < is_yes.sum() < (labels == "yes").sum()


def test_dir_of_the_package_is_its_names():
    names = [name for name in dir(gramian) if not name.startswith("__")]
    assert names == sorted(gramian.__all__)
