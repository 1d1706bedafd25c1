"""The regressor `KernelRidge`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from ..._parameters.fit_parameters import FitParameters
from ..._parameters.types import *  # `get_type_hints` looks for types of inherited fields here
from ...conformal import ConformalMethod
from ..base import restore_on_error
from ..types import RowsLike, TargetsLike, Weights
from . import fit as of_one_fit
from .fit import continue_fit, more_rows, solver_streams, warn_of
from .regressor_methods import KernelRegressor


# The parameters of a fit, with their types and defaults, are declared in
# `_parameters/fit_parameters.py`: the class inherits them, and adds fields of its own.
@dataclass(eq=False, repr=False)
class KernelRidge(KernelRegressor, FitParameters):
    r"""Kernel ridge regression on data of any size.

    Minimises :math:`\frac1N \sum_i w_i (f(x_i) - y_i)^2 + \lambda \|f\|^2` over combinations of
    kernels at all rows, or at m landmarks.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        One of `gramian.kernels.names`, or a kernel object with its own lengthscale. ``"auto"``: the
        best of four kernels on rows that are held out, see the notes. ``"precomputed"``: X is the
        n x n matrix of the kernel, an array or a memory map, and new rows have n columns. A
        function ``k(a, b)`` of two objects of any type: X is a list of n objects; a warning
        estimates the cost of calling the function in Python for each pair; see docs/kernels.md.
    lengthscale : float, sequence of d floats, or str, default="auto"
        In the units of the features, which are standardised by default; one for all, or
        one each. ``"median"``: the median distance within 1,000 random rows, mapped by the metric
        if there is one; ``"2 median"``: a multiple of it; ``"auto"``: the best multiple, of a
        kernel object the numbers that it has. The Gaussian kernel's ``gamma`` in scikit-learn is
        ``1 / (2 * lengthscale**2)``. ``"likelihood"``: all hyper-parameters of the kernel, which
        may be a sum or a product, and a penalty ``"auto"`` maximise the marginal likelihood, from
        the values of the object on; ``"leave_one_out"``: they minimise the leave-one-out error.
        Both use all rows up to 2,000, and a random sample of 2,000 beyond; see docs/kernels.md.
    penalty : float, sequence of t floats, or "auto", default="auto"
        The ridge :math:`\lambda` per sample: scikit-learn's ``alpha / n``. 0: only for solvers that
        stop early, such as ``"eigenpro2"``. ``"auto"``: the best on held-out rows, or, with
        landmarks of `BlessR` or `Bless`, chosen with these from their path of penalties. A
        sequence: one per target, for ``"direct"``, ``"pcg"`` and ``"falkon"``, which share the
        kernel matrix; closed forms and intervals require a single penalty.
    landmarks : None, int, "auto", array of shape (m, d), path or Selector, default="auto"
        The centers. None: all rows. A number: that many random distinct rows. The name of a
        selector, one of `gramian.landmarks.names`: ``sqrt(n) * log(n)`` rows of its choice.
        ``"auto"``: all rows up to 30,000 (10,000 with a given penalty) if the solver supports
        them, and any number of rows if it supports nothing else. Beyond, and for solvers that need
        landmarks, ``sqrt(n) * log(n)``, chosen by the accelerated recursion of `RecursiveRLS`, or
        at random if rows can only be read in order. A number above the number of rows gives a
        warning, then all rows. Points, or the path of a table of points, are in the units of X.
    standardize : bool, "quantile" or "auto", default="auto"
        Whether to scale features to mean 0 and standard deviation 1, over the weighted rows of the
        fit. Sparse rows stay unscaled, as do features of kernels on raw values, such as counts with
        ``"tanimoto"``. ``"quantile"``: a further map to normal values by up to 1,000 quantiles of
        20,000 rows, which reduces the effect of outliers; binary features stay, and sparse rows
        raise an error. ``"auto"``: True, or ``"quantile"`` if it is better in a comparison of
        kernels, lengthscales or penalties on held-out rows. The model contains the maps:
        predictions take rows in the units of X.
    standardize_target : bool or None, default=None
        Whether to scale numeric targets; None: as the features. A constant target is predicted
        exactly. With both False the function equals that in scikit-learn's `KernelRidge`.
    metric : None, "learned", Metric, LinearMap or array, default=None
        A linear map of the standardised features: distances are between mapped rows.
        ``"learned"``, or an object of `gramian.metric`: learned from a sample of the rows before
        the fit. An array: the map itself, of shape (d, k), or (d,) for a factor per feature. Sparse
        rows support only factors.
    cells : None, int, "median_splits", "kmeans", "random" or Partition, default=None
        Cells, each with a kernel ridge regression of all its rows: exact kernels on many rows, at
        linear cost in the number of rows. A number: the most rows of a cell in a tree of median
        splits along principal directions; an object of `gramian.cells` sets more, such as the width
        of the bands that blend predictions. See the notes.
    loss : str or Loss, default="squared"
        Loss function: one of `gramian.losses.names`, or an object. ``"huber"``: robust to outliers;
        ``"quantile"``, ``Quantile((0.1, 0.5, 0.9))``: one quantile, or several that do not cross;
        ``"expectile"``; ``"poisson"``, ``"gamma"``: the mean of counts or positive numbers, from
        its learned logarithm. Minimised by `Newton`, at several times the cost, with all rows as
        centers up to 2,000, and landmarks beyond. The penalty means the same: half the square is a
        loss. "auto" chooses kernel and lengthscale by squared errors, the penalty by the loss on
        held-out rows. It excludes cells, early stopping and warm starts.
    cv : None, int, splitter or iterable of pairs, default=None
        Folds for values ``"auto"``, without effect otherwise. None: a random fifth of the rows is
        held out, 2,000 at most; up to 1,000 rows, leave-one-out. A number of shuffled folds, each
        held out once. A splitter of scikit-learn, such as ``TimeSeriesSplit(5)``, or pairs of
        training and test row numbers: folds may overlap, and need not cover all rows. With groups,
        pass ``list(splitter.split(X, y, groups))``.
    solver : str or Solver, default="auto"
        One of `gramian.solvers.names`: ``"direct"``, ``"pcg"``, ``"askotch"``, ``"eigenpro2"`` (all
        rows), ``"falkon"``, ``"eigenpro3"``, ``"sketchysaga"`` (landmarks), ..., or an object.
        ``"auto"``: falkon with landmarks; without, direct up to 3,000 rows if it fits in memory,
        and up to 10,000 pcg that goes over to direct if it converges slowly (``solver_settings_``
        is then ``{"direct": True}``); pcg up to 400,000 rows if 100 columns of n numbers fit into a
        quarter of the memory, else askotch.
    max_iter : int, default=100
        Iterations of a solver; for askotch, passes over all pairs of n / b iterations each.
    tol : float or "auto", default="auto"
        Estimated error of the predictions on the rows, relative to the exact solution, at which the
        solver stops: root mean square divided by the standard deviation of the target, the largest
        over targets; ``"prediction_error"`` in ``history_``. ``"auto"``: 1e-6; if the penalty is
        chosen, a twentieth of the error found by that choice, in units of the target, between 1e-6
        and 5e-3, below which the error no longer falls.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes that a fit or a prediction may allocate, such as ``"500MB"``; the given data and the
        libraries are not counted. None: the memory of the machine.
    callbacks : sequence of callables, default=()
        See `gramian.callbacks`.
    verbose : int or "auto", default=0
        0: silent; 1: a progress bar in a terminal or a notebook, elsewhere a line every half minute
        on the standard error; 2: also a line for each iteration; "auto": 1 in a notebook, else 0.
    warm_start : bool, default=False
        Whether `fit` starts from the landmarks and coefficients of the last fit.
    centers_file : str, Path or None, default=None
        A ``.npy`` file for the landmarks (standardised if features are), which the model then maps
        into memory. None: landmarks stay in memory; or, if they exceed the memory for blocks (half
        of the memory besides factors, at most 1 GiB), in a temporary file in the folder ``TMPDIR``
        for the lifetime of the model.
    early_stopping : bool, default=False
        Whether to hold rows out, and stop when their error no longer falls; see the notes.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out. A `Validate` callback replaces these rows
        with its own.
    patience : int, default=5
        Consecutive validations without a new minimum of the error that end the fit.
    time_limit : float or None, default=None
        Seconds after which a fit ends, with a warning. The time starts after the check of the rows
        and includes landmarks and preconditioners. It is checked between iterations, and between
        levels of a path of penalties; closed forms and ``partial_fit`` ignore it.
    conformal : str, ConformalMethod or None, default=None
        Method of `predict_interval`, one of `gramian.conformal.names`, or an object. ``"split"``: a
        fifth of the rows, at most 4,000, is held out before any choice, so that the coverage
        theorem holds. ``"cv+"``: five more fits, each without a fold; every row has a score, for
        few rows. ``"cqr"``: the rows of "split" move two fitted quantiles, for skewed noise;
        ``ConformalQuantiles(0.8)`` for intervals of the level 0.8. None: "split" with training
        rows, at the first call; see `predict_interval` and docs/intervals.md.
    conformal_groups : str, int or None, default=None
        Name of a column, or number of a feature, of few values: intervals are calibrated among the
        rows of each value, and a share of at least ``level`` of each group is inside. Groups with
        too few calibration rows for a level are compared with the rows of all groups, with a
        warning.
    random_state : int, RandomState or None, default=None
        For random landmarks, the median heuristic, held-out rows and random solvers.

    Attributes
    ----------
    model_ : KernelModel
        Model that predicts without scikit-learn; ``est.model_.save(path)`` saves it.
    dual_coef_ : ndarray of shape (m,) or (m, t)
    landmark_index_ : ndarray of shape (m,), or None
        Row numbers of the landmarks, among the rows of positive weight.
    solver_settings_ : dict
        Automatic choices of the solver, such as batch and step, if any.
    penalty_ : float, or ndarray of shape (t,)
        The given or chosen penalty; one per target for a given sequence.
    path_ : list of dict, or None
        A row for each penalty of the path, the largest first: ``penalty``, ``landmarks``,
        ``effective_dimension``, ``error`` (held-out, the smaller the better, infinite if the
        solver diverged), ``fold_errors``, ``iterations`` (over all folds), ``kernel_evaluations``,
        ``seconds``. None if the penalty was given.
    n_iter_ : int
    stop_reason_ : str
        One of `gramian.solvers.StopReason`: "converged", "max_iterations", "early_stopping", ...
    history_ : list of dict
        A row per iteration; ``pandas.DataFrame(est.history_)`` makes a table.
    best_iteration_ : int or None
        With early stopping, the iteration of the kept coefficients; `n_iter_` counts all
        iterations.
    validation_error_ : float or None
        With early stopping, the error of that iteration on the held-out rows, weighted by
        ``sample_weight``: the root mean squared error, as ``valid_rmse`` in `history_`; for a
        classifier the share of wrong labels, ``valid_error``. It is the minimum over iterations,
        and so optimistic; other rows give an unbiased estimate.
    solver_, engine_, kernel_ : object
        The chosen solver, engine and kernel, which has its lengthscale.
    objects_ : list
        If the kernel is a function: the objects with which predictions compare new objects.
    metric_ : ndarray of shape (d, k) or (d,), or None
        The learned or given map of the features x: ``x @ metric_``, or with factors
        ``x * metric_``. A learned matrix is a symmetric root of the metric.
    metric_history_ : list of dict, or None
        A row for each round of learning a metric: ``round``, ``error`` on held-out rows,
        ``penalty``, ``lengthscale``.
    loo_predictions_, gcv_, log_marginal_likelihood_
        Leave-one-out results of the training rows; see docs/deviations.md.
    feature_importances_ : ndarray of shape (d,)
        Shares of the features of ``feature_names_in_`` in the variation of predictions, with sum 1,
        summed over encoded columns. With a learned metric: its diagonal. Else, computed at the
        first access: mean squares of the gradients at up to 2,000 centers, with respect to the
        scaled features. They describe the model, not causes.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if all features have names.

    See Also
    --------
    sklearn.kernel_ridge.KernelRidge : The same function, by a dense n x n matrix; alpha is n times
        the penalty.

    Notes
    -----
    The encoding of a table, and quantiles, use each row of positive weight once: weights affect
    only the fit, and the standardisation of tables of numbers. Along a path of penalties, the mean
    targets of category levels come from other rows, not from other folds: with columns of many
    levels, and ``cv`` by groups or time, use `TableEncoder` in a pipeline.

    Held-out errors, including those along a path, are in units of the targets; for several
    standardised targets, errors along a path are shares of their variances.

    Kernel, lengthscale and penalty that are ``"auto"`` are chosen before the fit, on at most 8,000
    rows and at about its cost. Kernels (Laplacian, Matern 3/2, Gaussian, and the Laplacian of the
    l1 distance unless rows are sparse or mapped by a matrix) are screened with 500 landmarks; then
    the lengthscale is halved or doubled as long as the error falls, at all penalties at once, by
    fits with all these rows as centers, or with the landmarks of the fit, 1,000 at most. Up to
    1,000 rows, and on 1,000 rows if rows are sparse or the memory limit is below 1 GiB, errors are
    leave-one-out errors, in closed form; if all rows are centers, kernels are compared by the
    geometric mean of that error and of the spread under the marginal likelihood, which also
    measures a kernel away from the rows. The choice fixes the product of rows and penalty for more
    rows. Given values restrict the choice: ``KernelRidge("gaussian",
    lengthscale="median", penalty=1e-6)`` chooses nothing. `kernel_`, `penalty_` and the log show
    the choices. ``warm_start`` and later calls of `partial_fit` keep the first choice.
    `KernelRidgeCV` searches further.

    With ``cells`` each cell has the same kernel and the same ridge, the penalty times the number of
    all rows, so that a single cell equals the plain fit; one cell chooses values ``"auto"``, at its
    density. Predictions are weighted means over the cells of a row; the weights sum to one and
    change linearly across bands. If the solver diverges in a cell, its ridge is raised tenfold,
    with a remark in the log. `history_` has a row for each cell, with the largest residual last.
    Cells exclude landmarks, callbacks on iterations, early stopping and warm starts; a `Checkpoint`
    keeps each finished cell.

    Cells are solved in parallel, one on each core: by threads, or, for many short cells, by
    processes of 0.4 GB each if they fit into ``memory_limit``. Rows are kept in memory, cell by
    cell, or in a temporary file if they and their coefficients exceed half of ``memory_limit``:
    three passes over `X`, which may be a Parquet file larger than memory.

    ``penalty="auto"``, with ``landmarks=BlessR(m=1000)`` or ``"bless_r"``: a path of decreasing
    penalties, with landmarks for each. FALKON fits the training rows at one penalty after the
    other, each from the last function, and the mean squared error on held-out rows (weighted by
    ``sample_weight``) compares them, until three in a row are no better, though not before a
    quarter of the effective dimension; then it fits all rows at the best. With `m` landmarks, fits
    continue beyond the end of the path, each penalty a quarter of the last. Preconditioners are
    built once for each penalty. Landmarks are chosen among all rows, because they do not depend on
    targets. If the last penalty is the best, there is a warning.

    ``early_stopping=True``: the error on held-out rows is measured after each iteration (askotch:
    each pass), and after the last. The fit keeps the coefficients of the minimum, however it ended,
    and does not refit all rows. A solver with a closed form has one state, whose error is measured.
    A `Checkpoint` also keeps the best state. With ``warm_start`` set a ``random_state``: otherwise
    the held-out rows include training rows of the last fit. ``penalty="auto"`` splits the other
    rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> est = KernelRidge(landmarks=20, lengthscale=1.0, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(est.predict([[1.0]])[0] - np.sin(1.0)) < 1e-3)
    True
    """

    _: KW_ONLY
    conformal: str | ConformalMethod | None = None
    conformal_groups: str | int | None = None
    random_state: RandomState = None

    fit = of_one_fit.fit
    plan = of_one_fit.plan
    check_memory = of_one_fit.check_memory

    @available_if(solver_streams)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: RowsLike, y: TargetsLike, sample_weight: Weights = None
    ) -> KernelRidge:
        """Continue with one pass over more rows: ``solver="eigenpro3"`` or ``"sketchysaga"``.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            Any number of rows. Kernel and landmarks of the first call stay.

        Returns
        -------
        KernelRidge
            Itself. If the call fails, the estimator is unchanged.

        Notes
        -----
        Each call builds preconditioners from its rows, which should be a few thousand.
        """
        settings = self._settings()
        with restore_on_error(self):
            rows, y = more_rows(self, X, y)
            fitted = continue_fit(self, settings, self._read_rows(rows, y, sample_weight))
            warn_of(ConvergenceWarning, fitted.stall_warning())
        return self
