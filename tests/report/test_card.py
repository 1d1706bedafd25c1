"""Model cards: facts of the model, and Markdown that survives odd names."""

import numpy as np
import pandas as pd

from gramian import KernelRidge, KernelRidgeClassifier
from gramian.report import model_card

X = np.random.default_rng(0).normal(size=(60, 2))


def test_card_has_columns_target_and_settings():
    table = pd.DataFrame({"a|b": X[:, 0], "city": np.array(["Rome", "Oslo"])[(X[:, 1] > 0) * 1]})
    table["y"] = X[:, 0] ** 2
    card = model_card(KernelRidge("gaussian", lengthscale=2.0, penalty=1e-3).fit(table, "y"), "m")
    assert "# m\n\nA regression by kernel ridge regression of y." in card
    assert r"| a\|b | number, standardised |" in card
    assert "| city | category of 2 levels, one column each |" in card
    assert "| kernel: name | gaussian |" in card
    assert "| penalty | 0.001 |" in card


def test_card_of_classes_names_them():
    est = KernelRidgeClassifier("gaussian", lengthscale=2.0, penalty=1e-3).fit(X, X[:, 0] > 0)
    card = model_card(est)
    assert "pipeline_tag: tabular-classification" in card
    assert "## Classes\n\nFalse, True\n" in card
    assert "| feature 1 | number |" in card
