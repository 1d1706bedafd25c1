"""The regressor `KernelRidgeCV`, which searches for its parameters."""

from __future__ import annotations

from dataclasses import dataclass

from ..ridge.regressor_methods import KernelRegressor
from .base import KernelRidgeSearch


@dataclass(eq=False, repr=False)
class KernelRidgeCV(KernelRegressor, KernelRidgeSearch):
    r"""Kernel ridge regression that chooses kernel, metric, lengthscale and penalty by itself.

    The search holds rows out, screens kernels and inputs on a sample, and learns a metric for each
    kind of distance. It fits the best candidates with all rows as centers, at all penalties at
    once, and moves the lengthscale to the least error. Then it fits all rows.

    Parameters
    ----------
    kernel : "auto", str, Kernel or sequence of these, default="auto"
        Kernels to choose among; ``"auto"``: ``"laplacian"``, ``"matern32"``, ``"gaussian"`` and
        ``"l1_laplacian"``. The numbers of a kernel object are the start: before the search, all its
        hyper-parameters maximise the marginal likelihood (for classes, minimise the leave-one-out
        error) of up to 2,000 rows, held-out rows among them. With objects, or kernels such as
        ``"tanimoto"`` of features as given, the search learns no metric and maps no features.
    lengthscale : "auto", or one or several multiples of the median, default="auto"
        Such as ``["0.5 median", "2 median"]``, of the distances between mapped rows.
    metric : "auto", None, "learned" or RecursiveFeatureMachine, default="auto"
        None: no metric. ``"auto"``: a metric is learned, and used if it predicts better.
    standardize : "auto", bool or "quantile", default="auto"
        Whether to scale features to mean 0 and standard deviation 1, or to map them to normal
        values by quantiles; ``"auto"`` tries both. Encoded columns are scaled by their encoding.
    average : bool, default=True
        Whether the result may be a weighted mean of several fits: usually more accurate, but each
        fit adds to the cost of predictions.
    blend : None or "lightgbm", default=None
        ``"lightgbm"``: the model is the mean of the result of the search and of boosted trees, with
        the weight that is best on the held-out rows; at weight 1 without trees. Requires the extra
        ``trees``. Trees see the rows as the kernel does, in a table its encoded columns, and have
        the time that the search leaves, at least a twentieth of the budget.
    cv : None, int, splitter or iterable of pairs, default=None
        Held-out rows. None: five folds below 1,500 rows, three of them below 2,000 rows, else a
        random fifth, at most 2,000 rows.
        Beyond 20,000 rows it applies to the sample and to the cells that choose; the check of all
        cells uses fewer rows.
    test_fraction : float or None, default=None
        Fraction of the rows, drawn at random, that neither the search nor its fits use, for an
        estimate without the optimism of `best_score_`: `test_score_`. The model is not refitted
        with them. If rows depend on each other, as in groups or over time, a random part is also
        optimistic: hold rows out by group or time, and use `score`.
    scoring : str, callable or None, default=None
        Score that compares fits: None, ``"neg_root_mean_squared_error"`` or ``"r2"``: the squared
        error; a metric of `gramian evaluate`, such as ``"mae"``, ``"relative_error"`` or
        ``"smape"``, whose score is negative if less is better; the name of any other scorer of
        scikit-learn; or a scorer, such as from `sklearn.metrics.make_scorer`. A scorer is called
        with the predictions of held-out rows, in place of an estimator and X. Samples, and
        penalties of a fit, always use the squared error.
    budget : str, int or "auto", default="auto"
        Wall-clock time, such as ``"30 s"`` or ``"2 min"``; CPU time, such as ``"30 cpu s"``, summed
        over threads, which other programs on the machine hardly change; or a number of kernel
        evaluations, which makes the search the same on each machine. ``"auto"``: until nothing is
        gained, seconds for hundreds of rows, minutes from 20,000 rows on; see `plan`.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes for predictions, for reading tables, and for the rows of cells; if these exceed it,
        fewer rows take part. A search that still exceeds it raises an error, see `plan`.
    callbacks : sequence of callables, default=()
        Functions of each `gramian.search.Trial`; True ends the search. A `Checkpoint` keeps each
        finished trial, and the last fits: the same search, with the same `random_state`, resumes
        after a kill, to the same bits unless the budget is a time.
    verbose : int or "auto", default="auto"
        0: silent; 1: a progress bar in a terminal or a notebook, elsewhere a line every half minute
        on the standard error; 2: also a line for each trial; "auto": 1 in a notebook, else 0.
    conformal : str, ConformalMethod or None, default=None
        As in `KernelRidge`. The folds of ``"cv+"`` do not repeat the search: they use its kernels,
        maps and penalties.
    conformal_groups : str, int or None, default=None
        As in `KernelRidge`.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    model_ : KernelModel, AverageModel or BlendModel
        Model that predicts without scikit-learn, and can be saved.
    best_params_ : dict
        Parameters of a `KernelRidge` that repeats the member of largest weight without a search,
        except for random draws.
    best_score_ : float
        The negative mean squared error on held-out rows, or the score of ``scoring`` (R2 with the
        variance of all rows). It is the best of all trials on these rows, and so optimistic; its
        fits have fewer rows than the last one, which offsets a part. For an unbiased estimate see
        ``test_fraction``, or ``cross_val_score(KernelRidgeCV(), X, y)``, which holds out each row
        once.
    test_score_ : float or None
        The same score of `model_` on the rows of ``test_fraction``, which affect no choice.
    best_index_ : int
        Row of the best trial in `cv_results_`.
    cv_results_ : dict
        A row for each recipe and penalty: ``params``, ``step``, ``mean_test_score``,
        ``rank_test_score``, ``squared_error``, ``seconds``, ``elapsed``, ``evaluations``. The steps
        ``"screen"``, ``"metric"``, ``"kernel"`` and ``"landmarks"`` are fits with few landmarks;
        they have no score if ``scoring`` is not the squared error.
    history_ : list of dict
        Trials in order, with errors and gains over earlier trials.
    members_ : list of (weight, dict)
        Members of the mean; a single member of weight 1 if the model is not a mean.
    blend_weight_ : float
        Weight of the kernel model in a blend with trees; 1 without trees.
    kernel_evaluations_ : int
    interrupted_ : bool
        Whether Ctrl-C ended the search: the model is then the best so far.
    kernel_, dual_coef_, metric_ : of the model; for a mean, tuples with an item for each member
    loo_predictions_, gcv_
        Leave-one-out results of the training rows; see docs/deviations.md.
    feature_importances_ : ndarray of shape (d,)
        Shares in the diagonal of the learned metric. They describe the model, not causes.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)

    See Also
    --------
    KernelRidge : A single fit with given parameters.

    Notes
    -----
    Beyond 20,000 rows the search chooses inputs, metric and kernels on a random sample of 20,000,
    and splits all rows into cells, each with its own fit (see ``cells`` of `KernelRidge`). Three of
    the cells choose lengthscale and penalty, at full density; the budget sets the size of cells,
    from 1,000 to 40,000 rows, 10,000 without a budget. If time remains, cells of the other
    distance, l1 or Euclidean, are also fitted if it is close. One row in fifty is held out from all
    cells, 10,000 at most. Cells have the rows that `memory_limit` allows, at most 4 GiB: a random
    part, which the log and `plan` report. If these are no more than the sample, all rows are
    fitted with landmarks.

    If the result predicts held-out rows no better than the mean, the mean replaces it.

    The steps, the kernels and the first multiples come from a study on real tables, see
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
