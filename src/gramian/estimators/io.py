"""Loading of an estimator from a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data.encoding.columns.numeric import Number
from ..model import Model, load_model
from .ridge.classifier import KernelRidgeClassifier
from .ridge.regressor import KernelRidge


def load(path: str | Path) -> KernelRidge | KernelRidgeClassifier:
    """Load an estimator that predicts and scores from a file of `gramian fit` or `save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    KernelRidge or KernelRidgeClassifier
        Estimator with the attributes that predictions need. Its parameters are the kernel, penalty,
        solver, number of landmarks and maps of the fit; for a mean of models, of the largest one.
        ``model_.info`` has further facts, of a search its trials.

    Raises
    ------
    FileNotFoundError, ValueError
        As in `KernelModel.load`.
    """
    model = load_model(path)
    kind = KernelRidge if model.classes is None else KernelRidgeClassifier
    return kind(**_parameters_of(model)).with_model(model)


def _parameters_of(model: Model) -> dict[str, Any]:
    """Return the parameters of a fit of the largest part of a model, without a search."""
    part = max(zip(model.shares, model.parts, strict=True), key=lambda pair: pair[0])[1]
    encoding = model.encoding
    columns = () if encoding is None else encoding.columns
    numbers = {column.numbers for column in columns if isinstance(column, Number)}
    is_standardized = part.standardizer is not None or "standard" in numbers
    is_quantile = part.quantiles is not None or "quantile" in numbers
    facts: dict[str, Any] = dict(model.info)
    if "members" in facts:
        facts |= max(facts["members"], key=lambda member: member["weight"])
    return {
        "kernel": part.kernel,
        "standardize": "quantile" if is_quantile else is_standardized,
        "metric": None if part.metric is None else part.metric.array,
        # Without a record, as in files of earlier versions, the parameters stay at their defaults.
        **({"penalty": facts["penalty"]} if "penalty" in facts else {}),
        **({"solver": facts["solver"]} if "solver" in facts else {}),
        **({"landmarks": facts.get("landmarks")} if "method" in facts else {}),
    }
