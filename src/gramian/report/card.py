"""Model card: a description of a model in Markdown, to complete and to store with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..explain.columns import resolve_model
from ..model import Model
from .description import describe_model

HIDDEN_SETTINGS = ("columns", "feature_names", "classes", "trained")
"""Settings that the card shows in sections of their own, or not at all."""


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
        columns: Mapping[str, Any] = about["columns"]
        return columns
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
