"""KernelRidgeCV: the regressor that chooses everything by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...fitting import Generators
from ..base import restore_on_error
from ..ridge.regression import KernelRegressor
from ..types import Columns, RowsLike, TargetsLike, Weights
from .base import KernelRidgeSearch, refuse_remote


@dataclass(eq=False, repr=False)
class KernelRidgeCV(KernelRegressor, KernelRidgeSearch):
    r"""Kernel ridge regression that chooses kernel, metric, lengthscale and penalty by itself.

    Rows are held out; kernels and inputs are screened on a sample, a metric is learned for each
    kind of distance, and what looks best is fitted with all rows as centers, all penalties at once,
    while the lengthscale walks to where the error is least. Then all rows are fitted.

    Parameters
    ----------
    kernel : "auto", str or sequence of str, default="auto"
        Names of kernels to choose among; ``"auto"``: ``"laplacian"``, ``"matern32"``,
        ``"gaussian"`` and ``"l1_laplacian"``.
    lengthscale : "auto", or one or several multiples of the median, default="auto"
        Such as ``["0.5 median", "2 median"]``: of the distances of rows as they are mapped.
    metric : "auto", None, "learned" or RecursiveFeatureMachine, default="auto"
        None: no metric is learned. ``"auto"``: one is, and is taken if it predicts better.
    standardize : "auto", bool or "quantile", default="auto"
        Whether features are given mean 0 and deviation 1, or are made normal by their quantiles;
        ``"auto"`` tries both. Columns of a table that are encoded are scaled by their encoding.
    average : bool, default=True
        Whether the weighted mean of several fits may be the result: mostly more accurate, and each
        of them costs in predictions.
    cv : None, int, splitter or iterable of pairs, default=None
        How rows are held out. None: five folds of fewer than 1,500 rows, else a random fifth, at
        most 2,000 rows. Beyond 20,000 rows the sample and the cells that choose obey it; the rows
        that all cells are checked on are fewer.
    test_fraction : float or None, default=None
        Fraction of the rows, drawn at random, that neither the search nor its fits see, for an
        estimate without the optimism of `best_score_`: `test_score_`. The model is not refitted
        with them. Where rows depend on each other, as in groups or over time, a random part is
        optimistic, too: hold rows out by group or time, and use `score`.
    scoring : str or None, default=None
        What fits are compared by: None, ``"neg_root_mean_squared_error"`` or ``"r2"``: the squared
        error; ``"neg_mean_absolute_error"``. Samples, and penalties of a fit, are compared by the
        squared error.
    budget : str, int or "auto", default="auto"
        Time on the clock, such as ``"30 s"`` or ``"2 min"``; or a number of kernel evaluations,
        with which the search is the same on each machine. ``"auto"``: all steps, seconds for
        hundreds of rows, minutes from 20,000 rows on; `plan` says how many.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes for predictions, for reading tables, and for the rows that become cells, fewer of
        which take part if they are too many; a search that would take more even so is refused, see
        `plan`.
    callbacks : sequence of callables, default=()
        Called with each `gramian.search.Trial`; one that returns True ends the search. A
        `Checkpoint` keeps each finished trial, and the last fits: the same search, with the same
        `random_state`, resumes after a kill, to the same bits unless the budget is a time.
    conformal : "split", "cv+" or None, default=None
        As in `KernelRidge`. The folds of ``"cv+"`` do not repeat the search: they have its kernels,
        maps and penalties.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    model_ : KernelModel or AverageModel
        Predicts without scikit-learn, and saves itself.
    best_params_ : dict
        Parameters of a `KernelRidge` that repeats the member of largest weight without a search, up
        to random draws.
    best_score_ : float
        The negative mean squared error on held-out rows, or the score that was asked for (R2 with
        the variance of all rows). It is the best of all trials on these rows, and so optimistic;
        its fits have fewer rows than the last one, which offsets a part. For an honest estimate
        see ``test_fraction``, or ``cross_val_score(KernelRidgeCV(), X, y)``, which holds out each
        row once.
    test_score_ : float or None
        The same score of `model_` on the rows of ``test_fraction``, by which nothing is chosen.
    best_index_ : int
        Its row in `cv_results_`.
    cv_results_ : dict
        A row for each recipe and penalty: ``params``, ``step``, ``mean_test_score``,
        ``rank_test_score``, ``squared_error``, ``seconds``, ``elapsed``, ``evaluations``. The steps
        ``"screen"``, ``"metric"``, ``"kernel"`` and ``"landmarks"`` are fits with few landmarks;
        they have no score if one other than the squared error was asked for.
    history_ : list of dict
        Trials in their order, with errors and gains over earlier trials.
    members_ : list of (weight, dict)
        Of the mean; a single one of weight 1 if the model is not a mean.
    kernel_evaluations_ : int
    interrupted_ : bool
        Whether Ctrl-C ended the search: the model is the best until then.
    kernel_, dual_coef_, metric_ : of the model; for a mean, tuples with an item for each member
    loo_predictions_, gcv_
        Of the rows of the training, each without itself; see docs/deviations.md.
    feature_importances_ : ndarray of shape (d,)
        Shares in the diagonal of the learned metric; no causal claim.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)

    See Also
    --------
    KernelRidge : One fit with parameters that are given.

    Notes
    -----
    Beyond 20,000 rows it chooses inputs, metric and kernels on a random sample of 20,000, and
    divides all rows into cells, each with a fit of its own (see ``cells`` of `KernelRidge`).
    Lengthscale and penalty are chosen by three of the cells, at full density; the budget says how
    large cells are, from 1,000 to 40,000 rows, 10,000 without one. Where there is more time, cells
    of the other distance, l1 or Euclidean, are fitted, too, if it is close. One row in fifty is
    held out from all cells, 10,000 at most. Cells have as many rows as `memory_limit` has room for,
    and 4 GiB of them at most: a random part, as the log and `plan` say. Where that is no more than
    the sample, all rows are fitted with landmarks.

    A result that predicts held-out rows no better than the mean is replaced by the mean.

    The steps, the kernels and the multiples they begin with come from a study on real tables, see
    docs/accuracy.md. Sources: Radhakrishnan et al., Science 383, 2024 (the recursive feature
    machine); Caruana et al., ICML 2004 (weights of the mean).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidgeCV
    >>> X = np.random.default_rng(0).uniform(-3, 3, (200, 3))
    >>> est = KernelRidgeCV(budget="20 s", random_state=0).fit(X, np.sin(X[:, 0]))
    >>> est.score(X, np.sin(X[:, 0])) > 0.99
    True
    """

    def fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights = None,
        *,
        columns: Columns = None,
    ) -> KernelRidgeCV:
        """Search, and fit the result to all rows.

        Parameters
        ----------
        X, y, sample_weight, columns : as in `KernelRidge.fit`

        Returns
        -------
        KernelRidgeCV
            Itself. If it fails, the last fit is kept.

        Raises
        ------
        ValueError
            If the input or a parameter cannot be used, there are fewer than five rows, or rows are
            sparse and a parameter requires a map of them.
        """
        settings, seed = self._search_settings(classes=False), self._seed()
        refuse_remote(X)
        with restore_on_error(self):
            rng = Generators.seeded(np.random.RandomState(seed))
            whole_rows = self._regression_data(X, y, sample_weight, columns, self._settings(), rng)
            self._search(settings, whole_rows, seed)
        return self
