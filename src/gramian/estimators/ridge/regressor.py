"""KernelRidge: the regressor."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from ..._parameters.parameters import FitParameters
from ..._parameters.types import *  # `get_type_hints` looks for types of inherited fields here
from ...fitting import Generators, TrainingData
from ...fitting.inputs.targets import target_tensor, training_targets
from .. import validation
from ..base import restore_on_error
from ..types import Columns, RowsLike, TargetsLike, Weights
from . import plan as planning
from .fit import continue_fit, fit_model, more_rows, solver_streams, warn_of
from .regression import KernelRegressor


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
        function ``k(a, b)`` of two objects of any type: X is a list of n objects, and it is called
        in Python for each pair, which a warning tells the cost of first; see docs/kernels.md.
    lengthscale : float, sequence of d floats, or str, default="auto"
        In the units of the features, which are standardised by default; one for all, or
        one each. ``"median"``: the median distance within 1,000 random rows, mapped by the metric
        if there is one; ``"2 median"``: a multiple of it; ``"auto"``: the best multiple. The
        Gaussian kernel's ``gamma`` in scikit-learn is ``1 / (2 * lengthscale**2)``.
    penalty : float, sequence of t floats, or "auto", default="auto"
        The ridge :math:`\lambda` per sample: scikit-learn's ``alpha / n``. 0: only for solvers that
        are stopped early, like ``"eigenpro2"``. ``"auto"``: the best on held-out rows, or, with
        landmarks of `BlessR` or `Bless`, chosen with these from their path of penalties. A
        sequence: one for each target, of ``"direct"``, ``"pcg"`` and ``"falkon"``, which share the
        kernel matrix; closed forms and intervals have one for all.
    landmarks : None, int, "auto", array of shape (m, d), path or Selector, default="auto"
        The centers. None: all rows. A number: that many random distinct rows. The name of a
        selector, one of `gramian.landmarks.names`: ``sqrt(n) * log(n)`` rows, chosen by it.
        ``"auto"``: all rows up to 30,000 (10,000 with a penalty that is given), if the solver takes
        them, and of any number if it takes nothing else. Beyond, and for solvers that need
        landmarks, ``sqrt(n) * log(n)``, chosen by the accelerated recursion of `RecursiveRLS`, or
        at random where rows can only be read in order. More than there are rows: a warning, then
        all. Points, or the path of a table of them, are in the units of X.
    standardize : bool, "quantile" or "auto", default="auto"
        Whether features are given mean 0 and deviation 1 first, by the rows of the fit and their
        weights. Sparse rows stay as they are, and so do features that a kernel takes as given, such
        as counts by ``"tanimoto"``. ``"quantile"``: they are then made normal by up to 1,000
        quantiles of 20,000 rows, which takes the weight from far values; features of two values
        stay, and sparse rows are refused. ``"auto"``: True, or ``"quantile"`` if kernels,
        lengthscales or penalties are compared by rows that are held out and it is better there. The
        model keeps the maps: predictions take rows as X has them.
    standardize_target : bool or None, default=None
        Whether numeric targets are, too; None: as the features. A target that does not vary is
        predicted exactly. With both False the function is the same as scikit-learn's `KernelRidge`.
    metric : None, "learned", Metric, LinearMap or array, default=None
        A linear map of the features, after they are standardised: distances are between mapped
        rows. ``"learned"``, or an object of `gramian.metric`: from a sample of the rows, before the
        fit. An array of shape (d, k), or (d,) for a factor each: the map itself. Sparse rows take
        factors only.
    cells : None, int, "median_splits", "kmeans", "random" or Partition, default=None
        Cells, each with a kernel ridge regression of all its rows: exact kernels on many rows, with
        a cost that is linear in their number. A number: the rows of a cell, at most, of a tree of
        median splits along principal directions; an object of `gramian.cells` says more, such as
        the width of the bands across which predictions are blended. See the notes.
    loss : str or Loss, default="squared"
        What errors cost: one of `gramian.losses.names`, or an object. ``"huber"``: outliers pull
        little; ``"quantile"``, ``Quantile((0.1, 0.5, 0.9))``: quantiles, one or several that do not
        cross; ``"expectile"``; ``"poisson"``, ``"gamma"``: counts and positive numbers, whose mean
        is predicted and its logarithm learned. Minimised by `Newton`, at several times the cost,
        with all rows as centers up to 2,000, and landmarks beyond. The penalty means the same: half
        the square is a loss. Kernel and lengthscale that are "auto" are chosen by squared errors,
        the penalty by the loss on held-out rows. It excludes cells, early stopping and warm
        starts.
    cv : None, int, splitter or iterable of pairs, default=None
        Folds for values ``"auto"``, without effect otherwise. None: a random fifth of the rows is
        held out, 2,000 at most; up to 1,000 rows each is left out once. A number of
        shuffled folds, each held out once. A splitter of scikit-learn, such as
        ``TimeSeriesSplit(5)``, or pairs of row numbers to train and to test on: folds may overlap,
        and need not have all rows. One that needs groups is given as ``list(splitter.split(X, y,
        groups))``.
    solver : str or Solver, default="auto"
        One of `gramian.solvers.names`: ``"direct"``, ``"pcg"``, ``"askotch"``, ``"eigenpro2"`` (all
        rows), ``"falkon"``, ``"eigenpro3"``, ``"sketchysaga"`` (landmarks), ..., or an object.
        ``"auto"``: falkon with landmarks; without, direct up to 10,000 rows if it fits in memory
        (3,000 if the penalty is chosen and is not tiny), pcg up to 400,000 if 100 columns of n
        numbers fit into a quarter of it, else askotch.
    max_iter : int, default=100
        Iterations of an iterative solver; of askotch passes over all pairs, n / b iterations each.
    tol : float or "auto", default="auto"
        Estimated error of the predictions on the rows, against the exact solution, at which it
        stops: the root mean square over the standard deviation of the target, the largest of all
        targets; ``"prediction_error"`` in ``history_``.
        ``"auto"``: 1e-6; where the penalty is chosen, a twentieth of the error that was found then,
        in units of the target, between 1e-6 and 5e-3: the error falls no more below that.
    engine : str or Engine, default="auto"
        See `gramian.operators.choose_engine`.
    memory_limit : int, str or None, default=None
        Bytes that a fit or a prediction may allocate, such as ``"500MB"``; the given data and the
        libraries are not counted. None: the memory of the machine.
    callbacks : sequence of callables, default=()
        See `gramian.callbacks`.
    warm_start : bool, default=False
        Whether `fit` starts from the landmarks and coefficients of the last fit.
    centers_file : str, Path or None, default=None
        A ``.npy`` file for the landmarks, standardised if features are, which are then mapped from
        this file. None: they are in memory; or, if they take more than the memory for
        blocks (half of the memory besides factors, at most 1 GiB), in a temporary file for the
        lifetime of the model, in the folder that ``TMPDIR`` names.
    early_stopping : bool, default=False
        Whether rows are held out to stop when the error on them no longer falls; see the notes.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out. Without effect if there is a `Validate`
        among the callbacks, whose rows are used instead.
    patience : int, default=5
        Looks in a row without a new minimum of the error after which early stopping ends the fit.
    time_limit : float or None, default=None
        Seconds after which a fit ends, with a warning: all counts from when the rows have been
        checked, choosing landmarks and building preconditioners too. Looked at between two
        iterations, and between two levels of a path of penalties; without effect on a closed form
        and on ``partial_fit``.
    conformal : "split", "cv+" or None, default=None
        How `predict_interval` gets its errors of rows that a fit has not seen. ``"split"``: a fifth
        of the rows, at most 4,000, is held back before anything is chosen; the theorem holds.
        ``"cv+"``: five more fits, each without a fold. None: at the first call, from rows of the
        training; see there, and docs/intervals.md.
    random_state : int, RandomState or None, default=None
        For random landmarks, the median heuristic, held-out rows and random solvers.

    Attributes
    ----------
    model_ : KernelModel
        Predicts without scikit-learn, and saves itself: ``est.model_.save(path)``.
    dual_coef_ : ndarray of shape (m,) or (m, t)
    landmark_index_ : ndarray of shape (m,), or None
        Row numbers of the landmarks, among the rows of positive weight.
    solver_settings_ : dict
        Automatic choices of the solver, such as batch and step, if any.
    penalty_ : float, or ndarray of shape (t,)
        The one given, or the one chosen; of each target if so given.
    path_ : list of dict, or None
        A row for each penalty that was tried, the largest first: ``penalty``, ``landmarks``,
        ``effective_dimension``, ``error`` (held-out, the smaller the better, infinite where the
        solver diverged), ``fold_errors``, ``iterations`` (over all folds), ``kernel_evaluations``,
        ``seconds``. None if the penalty was given.
    n_iter_ : int
    stop_reason_ : str
        One of `gramian.solvers.StopReason`: "converged", "max_iterations", "early_stopping", ...
    history_ : list of dict
        A row per iteration; ``pandas.DataFrame(est.history_)`` makes a table.
    best_iteration_ : int or None
        With early stopping, the iteration whose coefficients were kept; `n_iter_` is the last.
    validation_error_ : float or None
        With early stopping, their error on the held-out rows, weighted by ``sample_weight``: the
        root mean squared error, as ``valid_rmse`` in `history_`; of a classifier the share of wrong
        labels, ``valid_error``. It is the least of all iterations, and so optimistic; other rows
        give an honest estimate.
    solver_, engine_, kernel_ : object
        The chosen ones; the kernel with its lengthscale.
    objects_ : list
        Of a kernel that is a function: the objects that predictions compare new ones with.
    metric_ : ndarray of shape (d, k) or (d,), or None
        The map of the features, learned or given: x is compared as ``x @ metric_``, or with factors
        as ``x * metric_``. A learned matrix is a symmetric root of the metric.
    metric_history_ : list of dict, or None
        A row for each round in which a metric was learned: ``round``, ``error`` on held-out rows,
        ``penalty``, ``lengthscale``.
    loo_predictions_, gcv_, log_marginal_likelihood_
        Of the rows of the training, each without itself; see docs/deviations.md.
    feature_importances_ : ndarray of shape (d,)
        Shares of the features of ``feature_names_in_`` in the variation of predictions, of sum 1,
        summed over encoded columns. Of a learned metric: its diagonal. Else, computed at the first
        for: mean squares of the gradients at up to 2,000 centers, with respect to the features as
        they are scaled. They describe the model and are no causal claim.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only if all features have names.

    See Also
    --------
    sklearn.kernel_ridge.KernelRidge : The same function with ``penalty = alpha / n``, for as many
    rows as a dense n x n matrix allows.

    Notes
    -----
    The encoding of a table, and quantiles, use each row of positive weight once: weights affect
    only the fit, and the standardisation of tables of numbers. Along a
    path of penalties means of the target in the levels of a category come from other rows, not from
    other folds: with columns of many levels, and ``cv`` of groups or times, use `TableEncoder` in a
    pipeline.

    Errors of a path and on held-out rows are in units of the targets; for several standardised
    targets, errors of a path are shares of their variances.

    Kernel, lengthscale and penalty that are ``"auto"`` are chosen before the fit, on at most 8,000
    rows and at about its cost. Kernels (Laplacian, Matern 3/2, Gaussian, and the Laplacian of the
    l1 distance unless rows are sparse or mapped by a matrix) are screened with 500 landmarks; then
    the lengthscale is halved or doubled as long as the error falls, at all penalties at once, by
    fits with all these rows as centers, or with as many landmarks as the fit has, 1,000 at most. Up
    to 1,000 rows, and for sparse rows or a memory limit below 1 GiB by 1,000 of them, errors are
    leave-one-out errors, in closed form; where all rows are centers, kernels are compared
    by the geometric mean of that error and of the spread under the marginal likelihood, which also
    measures a kernel away from the rows. The product of rows and penalty is chosen, and stays
    for more rows. Given values restrict the choice: ``KernelRidge("gaussian",
    lengthscale="median", penalty=1e-6)`` chooses nothing. `kernel_`, `penalty_` and the log show
    the choices. With ``warm_start``, and in later calls of `partial_fit`, the first
    choice stays. `KernelRidgeCV` searches further.

    With ``cells`` each cell has the same kernel and the same ridge, the penalty times the number of
    all rows, so that one cell is the plain fit; one cell chooses values ``"auto"``, at its
    density. Predictions are weighted means over the cells of a row, by weights that sum to one
    and change linearly across bands. Where the solver diverges in a cell its ridge is raised
    tenfold, which the log says. `history_` has a row for each cell, the one of largest residual
    last. Landmarks, callbacks that look at iterations, early stopping and warm starts do not go
    with cells; a `Checkpoint` keeps each cell that is ready.

    Several cells are solved at once, one on each core: by threads, or where cells are short and
    many by processes of 0.4 GB each, if ``memory_limit`` has room for them. Rows are held in
    memory, cell by cell, or in a temporary file if they and their
    coefficients would take more than half of ``memory_limit``: three passes over `X`, which may be
    a Parquet file larger than memory.

    ``penalty="auto"``, with ``landmarks=BlessR(m=1000)`` or ``"bless_r"``: it passes through a
    decreasing sequence of penalties with landmarks for each. FALKON is fitted to the rows that are
    not held out at one after the other, starting from the last function, and compared by the mean
    squared error (weighted by ``sample_weight``) on those that are, until three in a row are no
    better, though not before a quarter of the effective dimension; then at the best to all rows.
    With `m` landmarks fits continue beyond the end of the path, each penalty a quarter of the last.
    Preconditioners are built once for each penalty. Landmarks are chosen among all rows: they do
    not look at targets. If the last penalty of all is the best, there is a warning.

    ``early_stopping=True``: the error on held-out rows is measured after each iteration, of askotch
    after each pass, and after the last. The coefficients of its minimum are kept, whatever ended
    the fit, and there is no further fit to all rows. A solver with a closed form has one state;
    its error is measured. A `Checkpoint` keeps the best state, too. With ``warm_start`` give a
    ``random_state``: otherwise rows that the last fit has learned from are held out.
    ``penalty="auto"`` divides the other rows.

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
    conformal: str | None = None
    random_state: RandomState = None

    plan = planning.plan
    check_memory = planning.check_memory

    def fit(
        self,
        X: RowsLike,
        y: TargetsLike,
        sample_weight: Weights = None,
        *,
        columns: Columns = None,
    ) -> KernelRidge:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Arrow table, tensor, path or RowSource
            n rows of d features; or a table: a path, or a frame of pandas, polars, Arrow, DuckDB.
            Columns of a table that are no numbers, or have gaps, are encoded, see `TableEncoder`.
        y : str, tuple of str, or array-like of shape (n,) or (n, t)
            The name of a column of X, names of t columns, or values.
        sample_weight : array-like of shape (n,), optional
            A weight that is a whole number is a repeated row; but see the notes on tables.
        columns : sequence of str, optional
            Columns of a table to learn from; all but the target by default.

        Returns
        -------
        KernelRidge
            Itself. If fitting fails, the last fit is kept.

        Raises
        ------
        ValueError
            If the input or a parameter cannot be used, or does not fit in memory; if a column of a
            file or a table, or any that has a name, equals a target in every row; if the largest
            number of a target, unless it is 0, is not between 1e-140 and 1e140 in size (1e-25 and
            1e25 with float32 rows).
        """
        settings, rng = self._settings(), Generators.seeded(self._state())
        with restore_on_error(self):
            whole_rows = self._regression_data(X, y, sample_weight, columns, settings, rng)
            fitted = fit_model(self, whole_rows, target_tensor, rng)
            warn_of(UserWarning, fitted.end_of_path())
            warn_of(ConvergenceWarning, fitted.stalled() or fitted.unfinished())
        return self

    @available_if(solver_streams)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: RowsLike, y: TargetsLike, sample_weight: Weights = None
    ) -> KernelRidge:
        """Go on with one pass over more rows: ``solver="eigenpro3"`` or ``"sketchysaga"``.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            Of any number of rows. Kernel and landmarks of the first call stay.

        Returns
        -------
        KernelRidge
            Itself. If it fails, it is as it was before.

        Notes
        -----
        Preconditioners are built from the rows of each call: they should be some thousands.
        """
        settings = self._settings()
        with restore_on_error(self):
            rows, y = more_rows(self, X, y)
            weights = validation.weight_tensor(sample_weight, len(rows))
            targets = training_targets(y, rows.dtype)
            data = TrainingData(rows, targets, weights, feature_names=self._names())
            fitted = continue_fit(self, settings, data)
            self._one_dimensional = np.ndim(y) == 1
            warn_of(ConvergenceWarning, fitted.stalled())
        return self
