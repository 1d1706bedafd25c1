"""gramian among the models of AutoGluon, and in benchmarks that use its interface.

TabArena and AutoMLBenchmark run models as subclasses of AutoGluon's ``AbstractModel``. This one
runs the search of gramian within the time that AutoGluon gives it:

    from autogluon.tabular import TabularPredictor
    from autogluon_model import GramianModel

    predictor = TabularPredictor("price").fit(train, hyperparameters={GramianModel: {}})

Install ``autogluon.tabular`` and gramian in one environment. AutoGluon converts the columns
before the model sees them: texts to categories or bags of words, dates to numbers.
"""

from __future__ import annotations

from typing import Any

from autogluon.core.models import AbstractModel

TIME_SHARE = 0.8
"""Share of the time limit for the search; the rest is for loading, copies and a slow last fit."""

PLAIN_SECONDS = 2.0
"""Least time for a search; less time fits the defaults of `KernelRidge`."""


class GramianModel(AbstractModel):
    """Search for a kernel ridge regression or classification of a table.

    Hyper-parameters are the parameters of `gramian.KernelRidgeCV`, or of its classifier, such as
    ``budget`` and ``conformal``. The default budget follows the time limit of AutoGluon.
    """

    ag_key = "GRAMIAN"
    ag_name = "Gramian"

    def _fit(
        self,
        X: Any,
        y: Any,
        time_limit: float | None = None,
        num_cpus: int = 1,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> None:
        import gramian

        X = self.preprocess(X, is_train=True)
        parameters = {"random_state": 0, **self._get_model_params()}
        is_regression = self.problem_type == "regression"
        if time_limit is not None and time_limit * TIME_SHARE < PLAIN_SECONDS:
            parameters.pop("budget", None)
            model = gramian.KernelRidge if is_regression else gramian.KernelRidgeClassifier
        else:
            if time_limit is not None:
                parameters.setdefault("budget", f"{TIME_SHARE * time_limit:.1f} s")
            model = gramian.KernelRidgeCV if is_regression else gramian.KernelRidgeClassifierCV
        self.model = model(**parameters).fit(X, y, sample_weight=sample_weight)

    @classmethod
    def supported_problem_types(cls) -> list[str]:
        """Return the kinds of targets that the model predicts."""
        return ["binary", "multiclass", "regression"]

    def _more_tags(self) -> dict[str, bool]:
        # The search holds out rows of its own, so that a refit to all rows needs no others.
        return {"can_refit_full": True}
