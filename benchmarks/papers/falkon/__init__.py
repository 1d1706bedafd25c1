"""FALKON (Rudi, Carratino, Rosasco 2017): figure 1, tables 1 to 3, theorems 1 to 5."""

from __future__ import annotations

from ..item import Item, impossible
from .costs import (
    conditions_by_rows,
    factor_seconds,
    fast_rates,
    leverage_conditions,
    more_centers,
    relative_errors,
    work_by_rows,
)
from .figures import (
    against_others,
    auc,
    auc_learned_widths,
    figure_1,
    leverage_landmarks,
    memory,
    seconds_slopes,
    sparse_text,
)
from .theorems import (
    all_rows_as_centers,
    condition_numbers,
    costs_in_n,
    exponential_decay,
    learning_rate,
)


def items() -> list[Item]:
    """Return the items of the paper, in its order."""
    return [
        Item("section 3: M = n", "one iteration solves KRR", all_rows_as_centers),
        Item("theorem 1: decay of the error", "exp(-nu t), nu >= 1/2", exponential_decay),
        Item("theorem 2: condition number", "below 17 for M of order 1/lambda", condition_numbers),
        Item("theorem 3: rate of KRR", "error of KRR, t of order log n", learning_rate),
        Item("theorem 4: condition number", "BLESS: M of order N(λ)", leverage_conditions),
        Item("theorem 5: leverage scores", "fewer centers than uniform", leverage_landmarks),
        Item("theorem 5: fast rates", "n^-2/3 for r = γ = 1/2", fast_rates),
        Item("section 3: iterations", "O(n^1/2) without, O(log n) with A", conditions_by_rows),
        Item("section 3: preconditioner", "4/3 M³ operations", factor_seconds),
        Item("table 1: kernel evaluations", "n sqrt(n), without logarithms", costs_in_n),
        Item("table 1: train time", "n M t + M³", seconds_slopes),
        Item("table 1: memory", "M²", memory),
        Item(
            "table 1: other methods",
            "FALKON n^1.5; divide and conquer, random features n^2",
            work_by_rows,
        ),
        Item(
            "figure 1: error by iterations",
            "FALKON needs the fewest (a plot of 100 epochs)",
            figure_1,
        ),
        Item("table 2: Million Songs", "MSE 80.10; D&C 80.35, R. F. 80.93", against_others),
        Item("table 2: relative error", "4.51e-3, KRR 4.55e-3", relative_errors),
        Item("section 5: more centers", "MSE 79.20 with 5e4, 80.10 with 1e4", more_centers),
        Item("table 2: YELP", "RMSE 0.833, 20 minutes", sparse_text),
        Item(
            "table 2: TIMIT",
            "32.3 % errors, 1.5 hours",
            impossible("the speech corpus is licensed and not available"),
        ),
        Item(
            "table 3: SUSY",
            "19.6 % errors, AUC 0.877, 4 minutes",
            impossible("the set (5 million rows) is not available; HIGGS is the next item"),
        ),
        Item("table 3: HIGGS, one width", "AUC 0.825", auc),
        Item("table 3: HIGGS, learned widths", "AUC 0.833", auc_learned_widths),
        Item(
            "table 3: IMAGENET",
            "20.7 % errors, 4 hours",
            impossible("the images and the network's features are not available"),
        ),
    ]
