"""Description of a model: its settings, for `gramian info` and the report, and its card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..data import LinearMap
from ..explain.columns import resolve_model
from ..model import BlendModel, KernelPart, Model
from ..model.importances import largest_importances
from ..scoring.truth import DIGEST_KEY

HIDDEN_SETTINGS = ("columns", "feature_names", "classes", "trained")
"""Settings that the card shows in sections of their own, or not at all."""


def describe_model(model: Model) -> dict[str, Any]:
    """Return the settings of a model by name, in nested mappings; a missing setting is None."""
    hidden = ("columns", "history", DIGEST_KEY)
    about = {name: value for name, value in model.info.items() if name not in hidden}
    parts = [_about_part(part) for part in model.parts]
    weights = model.shares if len(parts) > 1 else None
    if weights is None:
        (own,) = parts
    else:
        own = {"average": {f"model_{i + 1}": part for i, part in enumerate(parts)}}
    return {
        "weights": weights,
        "blend": describe_blend(model),
        **own,
        "features": model.features,
        "feature_names": model.feature_names,
        "outputs": model.outputs,
        "classes": model.classes,
        "probabilities": None if model.classes is None else model.class_map.to_dict(),
        "standard_deviations": all(part.variance is not None for part in model.parts) or None,
        "intervals": None if model.conformal is None else model.conformal.describe(),
        "importances": largest_importances(model),
        "columns": None if model.encoding is None else model.encoding.describe(),
        "trained": about,
    }


def describe_blend(model: Model) -> dict[str, Any] | None:
    """Return the weights of a blend and the rounds of its trees; None for other models."""
    if not isinstance(model, BlendModel):
        return None
    return {
        "kernel_weight": model.weight,
        "lightgbm_weight": round(1 - model.weight, 2),
        "rounds": sum(model.trees.rounds),
    }


def _about_part(model: KernelPart) -> dict[str, Any]:
    quantiles, metric = model.quantiles, model.metric
    return {
        "kernel": model.kernel.to_dict(),
        "centers": len(model.centers),
        "cells": None if model.cells is None else model.cells.cells.count,
        "standardized": None if model.encoding else model.standardizer is not None,
        "quantiles": None if quantiles is None else f"of {len(quantiles.columns)} features",
        "metric": None if metric is None else _about_metric(metric, model.importances is not None),
    }


def _about_metric(metric: LinearMap, learned: bool) -> str:
    kind = f"{metric.inputs} factors"
    if metric.matrix is not None:
        kind = f"matrix of {metric.inputs} x {metric.outputs}"
    return f"{'learned' if learned else 'given'}: {kind}"


def model_card(model: Any, name: str = "model") -> str:
    """Return a model card in Markdown: data, settings and use of a model.

    The front matter has the names of Hugging Face's model cards [1]_. The sections on intended use
    and on limits are for the author.

    Parameters
    ----------
    model : estimator, Model, or path
    name : str, default="model"
        Title of the card, and name of the file in its example.

    References
    ----------
    .. [1] Mitchell et al., *Model cards for model reporting*, FAccT 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> from gramian.report import model_card
    >>> X = np.arange(20.0)[:, None]
    >>> est = KernelRidge("gaussian", lengthscale=1.0, penalty=1e-6).fit(X, X[:, 0])
    >>> print(model_card(est).splitlines()[6])
    # model
    """
    resolved = resolve_model(model)
    about = describe_model(resolved)
    task = "regression" if resolved.classes is None else "classification"
    target = ", ".join(resolved.target or ())
    lines = [
        "---", "library_name: gramian", f"pipeline_tag: tabular-{task}", "tags: [kernel-methods]",
        "---", "", f"# {name}", "",
        f"A {task} by kernel ridge regression{f' of {target}' if target else ''}.", "",
        "## Intended use", "", "<!-- Who uses the predictions, for what, and for what not. -->", "",
        "## Training", "", *_table(dict(_flatten(about["trained"]))), "",
        "## Columns", "", *_table(_columns(resolved, about)), "",
    ]  # fmt: skip
    if resolved.classes is not None:
        lines += ["## Classes", "", ", ".join(map(str, resolved.classes)), ""]
    settings = {key: value for key, value in about.items() if key not in HIDDEN_SETTINGS}
    lines += [
        "## Settings", "", *_table(dict(_flatten(settings))), "",
        "## Limits", "",
        "Errors on rows unlike the training rows may be larger than on held-out rows.", "",
        "<!-- Rows and groups for which the model was not tested, known errors. -->", "",
        "## Use", "", "```python", "import gramian", "",
        f'predictions = gramian.load("{name}").predict(rows)', "```",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _columns(model: Model, about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the treatment of each column."""
    if about["columns"] is not None:
        return about["columns"]
    names = model.feature_names or [f"feature {k}" for k in range(model.features)]
    return dict.fromkeys(names, "number")


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        name = f"{prefix}{key.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{name}: ")
        elif value is not None:
            yield name, f"{value:.6g}" if isinstance(value, float) else value


def _table(rows: Mapping[str, Any]) -> list[str]:
    """Return a table of names and values; bars and line ends in them are escaped."""
    return ["| | |", "|---|---|", *(f"| {_cell(k)} | {_cell(v)} |" for k, v in rows.items())]


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", r"\|")
