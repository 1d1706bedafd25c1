r"""Recursive feature machine: fit a predictor, learn a metric from its gradients, and repeat.

The loop of the recursive feature machine [1]_, in its symbols: fit f with the kernel of the metric
M, set M to the mean of the outer products of the gradients of f, and repeat. Departures:

* f has about 1,000 landmarks and is fitted to a sample, for any number of rows: M is an average of
  gradients, which needs far fewer centers than predictions do.
* Gradients are taken at rows that are not landmarks: at a center of a kernel with a kink, the kink
  determines the gradient.
* Rows are mapped by :math:`R = M^{p}`, so that every kernel and engine works with the metric. The
  first round compares the powers p = 1/2 (the paper's) and 1/4 (a flatter metric), and later rounds
  use the better one. For a kernel of the l1 distance, R is the root of the diagonal of M: rotations
  have no meaning for it.
* The lengthscale is the median distance of the mapped rows, measured in each round.
* Penalty, power and round are chosen on held-out rows, and rounds continue as long as the error
  falls. A fixed number either stops too early on sets with few relevant features (on pumadyn32nm,
  with 4 of 32, the error was 1.01, 0.67, 0.34, 0.15, 0.10 of the variance after 0 to 5 rounds), or
  concentrates M too far on others (on kin40k 0.135, 0.053, 0.057 and 0.063 after 0 to 3, with the
  Laplacian).

References
----------
.. [1] Radhakrishnan, Beaglehole, Pandit, Belkin, *Mechanism for feature learning in neural networks
   and backpropagation-free machine learning models*, Science 383, 2024, algorithm 1.
.. [2] Beaglehole, Holzmuller, Radhakrishnan, Belkin, *xRFM: accurate, scalable, and interpretable
   feature learning models for tabular data*, 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .. import _arrays as xp
from .._arrays import Array, Float, RandomStream
from .._messages.checks import as_count
from ..data import LinearMap
from ..engines import Engine
from ..kernels import Kernel
from ..kernels.base import kernels
from ..operators import CostMeter, KernelOperator
from ..paths.sample import Sample, SampleFit, fit_sample
from .base import LearnedMetric, Round, SampledMetric, metrics
from .outer_products import map_of, outer_products

FIRST_ROUND_LOSS = 1.1
"""Largest error of the first round, relative to the start: the second often makes up for it."""

ROUND_GAIN = 0.99
"""Largest error of a round, relative to the least so far, after which rounds continue."""


@dataclass(frozen=True, eq=False)
class RoundFit:
    """Metric of a round, and the best fit with it.

    - `map`: map of the rows; None before the first round.
    - `gradients`: the matrix M whose power is the map, with a largest diagonal entry of 1; None
      before the first round.
    """

    map: LinearMap | None
    gradients: Float[Array, "d d"] | None
    number: int
    power: float
    fit: SampleFit

    def record(self) -> Round:
        """Return the `Round` that the user sees."""
        lengthscale = getattr(self.fit.kernel, "lengthscale", None)
        return Round(self.number, self.fit.loss, self.fit.penalty, lengthscale)


@metrics.register("learned")
@dataclass(frozen=True)
class RecursiveFeatureMachine(SampledMetric):
    r"""The recursive feature machine: M is the mean outer product of gradients of the predictor.

    Use it, as ``metric="learned"``, if some features, or mixtures of them, matter more than others.

    Parameters
    ----------
    rounds : int, default=10
        Largest number of metrics to learn, each from the previous one. Rounds end when the error
        falls by less than a hundredth.
    powers : tuple of float, default=(0.5, 0.25)
        Powers p of M as maps of the rows; the first round compares all. Kernels of the l1 distance
        use only the first power.
    landmarks : int, default=1000
        Number of centers of the predictor.
    rows : int, default=8000
        Largest number of rows of the predictor's fit; at most a fifth as many are held out.
    gradient_rows : int, default=2000
        Largest number of rows at which gradients are computed.
    kernel : str or None, default=None
        Name of the kernel of the predictor, with the median lengthscale; None: the kernel of the
        fit.

    Notes
    -----
    Cost of a round, with n rows, m landmarks, s gradient rows and p powers: p (n m kernel
    evaluations, n m² operations), s m d for gradients and d³. On one core 0.3 to 0.5 s by default.

    It does not help if all directions matter equally. Importances are no evidence of causes: a
    feature that copies another shares its importance.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit, Belkin, *Mechanism for feature learning in neural
       networks and backpropagation-free machine learning models*, Science 383, 2024.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian import KernelRidge
    >>> from gramian.data import sample_path
    >>> from gramian.metric import RecursiveFeatureMachine
    >>> energy = pd.read_parquet(sample_path("energy"))
    >>> train, test = (energy[energy["split"] == k].drop(columns="split") for k in (0, 1))
    >>> metric = RecursiveFeatureMachine(rounds=3, landmarks=200)
    >>> est = KernelRidge(
    ...     "gaussian", lengthscale="median", penalty=1e-6, metric=metric, random_state=0
    ... )
    >>> est = est.fit(train, "target")
    >>> len(est.metric_history_), round(float(est.score(test)), 2)
    (4, 1.0)
    """

    rounds: int = 10
    powers: tuple[float, ...] = (0.5, 0.25)
    landmarks: int = 1000
    rows: int = 8000
    gradient_rows: int = 2000
    kernel: str | None = None

    def __post_init__(self) -> None:
        for name in ("rounds", "landmarks", "rows", "gradient_rows"):
            as_count(getattr(self, name), name)
        if not self.powers or not all(0 < power <= 1 for power in self.powers):
            raise ValueError(f"powers must be above 0 and at most 1, not {self.powers!r}")
        if self.kernel is not None:
            kernels.make(self.kernel, lengthscale="median")  # raises ValueError for unknown names

    def learn_sample(
        self,
        kernel: Kernel,
        sample: Sample,
        *,
        rng: RandomStream,
        engine: str | Engine = "auto",
    ) -> LearnedMetric:
        if self.kernel is not None:
            kernel = kernels.make(self.kernel, lengthscale="median")
        fits = list(self.learn_from(sample, kernel, engine=engine))
        best = min(fits, key=lambda r: r.fit.loss)
        d = sample.X.shape[1]
        M = xp.eye(d, xp.float64) if best.gradients is None else best.gradients
        shares = xp.diagonal(M) / xp.diagonal(M).sum()
        map_ = LinearMap(scales=xp.ones(d, xp.float32)) if best.map is None else best.map
        return LearnedMetric(map_, shares, M, tuple(r.record() for r in fits))

    def learn_from(
        self,
        sample: Sample,
        kernel: Kernel,
        *,
        engine: str | Engine = "auto",
        meter: CostMeter | None = None,
    ) -> Iterator[RoundFit]:
        """Yield the fits of all rounds; the first round has no metric.

        Parameters
        ----------
        sample : Sample
        kernel : Kernel
            A kernel; its lengthscale should be a multiple of the median, so that each round
            measures it.
        engine : str or Engine, default="auto"
        meter : CostMeter, optional
        """
        sample, meter = sample.first(self.rows), meter or CostMeter()

        def fit(R: LinearMap | None) -> SampleFit:
            mapped = sample.with_map(R)
            return fit_sample(mapped, kernel, landmarks=self.landmarks, engine=engine, meter=meter)

        # Kernels of the l1 distance change under rotations, so M keeps only its diagonal.
        diagonal = getattr(kernel, "norm", 2.0) == 1.0
        best = lowest = RoundFit(None, None, 0, 1.0, fit(None))
        yield best
        powers = self.powers[:1] if diagonal else self.powers
        for number in range(1, self.rounds + 1):
            M = self._outer_products(sample, best, engine, meter)
            if M is None:
                return
            fits = []
            for power in powers:
                R = map_of(M, power, diagonal=diagonal)
                fits.append(RoundFit(R, M, number, power, fit(R)))
                yield fits[-1]
            best = min(fits, key=lambda r: r.fit.loss)
            # Later rounds keep the power that the first round has chosen.
            powers = (best.power,)
            # `lowest` is the best round before this one.
            if best.fit.loss > (FIRST_ROUND_LOSS if number == 1 else ROUND_GAIN) * lowest.fit.loss:
                return
            lowest = min(lowest, best, key=lambda r: r.fit.loss)

    def _outer_products(
        self, sample: Sample, last: RoundFit, engine: str | Engine, meter: CostMeter
    ) -> Float[Array, "d d"] | None:
        """Return M = G'G in float64, scaled to a largest diagonal entry of 1; None if G is zero."""
        # Landmarks are the first rows of the sample, so the rows after them are no centers.
        m, s = len(last.fit.centers), self.gradient_rows
        X, w = sample.X[m : m + s], sample.weights
        root = None if w is None else xp.sqrt(w[m : m + s])
        if len(X) < min(s, m):
            # Too few such rows. Held-out rows are no landmarks, so they come next.
            X = xp.concat([X, sample.held_X, sample.X[:m]])[:s]
            if w is not None and sample.held_weights is not None:
                root = xp.sqrt(xp.concat([w[m:], sample.held_weights, w[:m]])[:s])
        # Gradients at mapped rows; `outer_products` pulls them back to the features, where M is
        # defined.
        mapped = X if last.map is None else last.map.forth(X)
        K = KernelOperator(last.fit.kernel, mapped, last.fit.centers, engine, meter=meter)
        return outer_products(K, mapped, xp.cast(last.fit.coef, X.dtype), last.map, root)
