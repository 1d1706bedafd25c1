"""Notes: what the tables of `losses` say and how they were measured."""

from __future__ import annotations

from . import streamed
from .runs import EPSILON, MOST, THEIRS, TOLERANCE
from .worth import FEW, LANDMARKS

NOTES = f"""\
All with one thread. In the first tables all methods minimise the same: the mean loss and half the
penalty times the squared norm, Gaussian kernel of half the median distance, the first m of the
rows (standardized, drawn at random) as landmarks, no constant. Functions of
landmarks are evaluated in extended precision, those of features in float64; "above the least" is
relative to the least objective that any method found. Where landmarks are nearly the same (skin),
features miss directions that float64 cannot tell in K_mm, and their least is not that of all.

- gramian: `solve(LossProblem, Newton(), tol={TOLERANCE:g})`, float64 and float32 rows.
- sklearn: on whitened features K_nm V s^-1/2 (float64, kept in memory), C = 1 / (n penalty),
  `fit_intercept=False`, tol={THEIRS:g}, at most {MOST:,} iterations. Huber: it measures the
  deviation s of errors, and epsilon {EPSILON}, alpha mean delta = epsilon s, penalty = alpha s / n.
  `QuantileRegressor` has another penalty (absolute values): a primal-dual interior point on the
  same features stands for it, whose dual bounds the minimum.
- falkon: `LogisticFalkon` at the same landmarks, penalties 1e-2, 1e-4, ... with 3 iterations, then
  3 steps of 8 at the one asked, as its documentation advises; "longer": 10 of 20.
- dense Newton: on the same features, steps with the whole second derivative.
- steps / passes: Newton steps (iterations of lbfgs; of falkon steps of its path), and kernel
  evaluations by n m. CPU seconds: with making the features (once: n m evaluations).

Crossing: test rows whose quantiles do not increase, as predicted and before they are sorted;
`KernelRidge(loss=Quantile(levels), landmarks={FEW})`. Held-out rows: `landmarks={LANDMARKS}`, the
other settings at their defaults, with that loss, and with squared errors, used as the column says
(a constant is added from a fifth of the rows, held out); mean losses in units of the loss, mean
deviances of Poisson and Gamma; ratios below 1 are for the loss. "Wrong targets": a twentieth of the
training targets is ten times too large.

Out of core: generated rows of {streamed.FEATURES} normal float32 features in one Parquet file,
`KernelRidgeClassifier("gaussian", lengthscale={streamed.LENGTHSCALE:g},
penalty={streamed.PENALTY:g}, landmarks={streamed.LANDMARKS}, loss="logistic",
memory_limit="{streamed.LIMIT}", standardize=True)`, one thread, with other work beside.
"anonymous MB": the largest memory that is no file's. Log loss and error of fresh rows, and the log
loss of the probabilities that labels are drawn from."""
