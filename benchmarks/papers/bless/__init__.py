"""BLESS (Rudi, Calandriello, Carratino, Rosasco 2018): figures 1 to 5, theorems 1 and 2."""

from __future__ import annotations

from ..item import Item
from .figures import (
    automatic_penalty,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    lower_ends,
    other_size,
)
from .gap import by_data, by_landmarks, by_preconditioner, physics
from .theorems import (
    all_levels,
    all_sizes,
    as_good_as_krr,
    dimension_of_samples,
    oversampling_needed,
    runtime_by_penalty,
    uniform_columns,
)


def items() -> list[Item]:
    """Return the items of the paper, in its order."""
    return [
        Item("theorem 1 (a): all rows", "within 1/2 and 2 for t = 1", all_levels),
        Item("theorem 1 (a): oversampling", "q2 of order log(n) / t²", oversampling_needed),
        Item("theorem 1 (b): sizes", "|J_h| <= q2 d_eff at all levels", all_sizes),
        Item("theorem 2: error", "error of KRR, t of order log n", as_good_as_krr),
        Item("lemma 1: effective dimension", "within 1/3 and 3", dimension_of_samples),
        Item("table 1: run time", "1/λ candidates, d_eff columns", runtime_by_penalty),
        Item("table 1: uniform columns", "1/λ in place of d_eff", uniform_columns),
        Item(
            "figure 1: accuracy of scores",
            "BLESS 1.06 (0.57 to 2.03), SQUEAK 1.06 (0.70 to 1.48), uniform 1.09 (0.22 to 3.75)",
            figure_1,
        ),
        Item("figure 1: other n", "n = 70,000 alone", other_size),
        Item("figure 2: seconds against n", "flat for BLESS, BLESS-R", figure_2),
        Item(
            "figure 3: stability",
            "4.4 decades of penalties, uniform 2.5",
            figure_3,
        ),
        Item("figure 3: cause", "not in the paper", lower_ends),
        Item("figure 4: SUSY", "5 iterations in place of 20", figure_4),
        Item("figure 4: our preconditioner", "not in the paper", automatic_penalty),
        Item("figure 4: cause, preconditioner", "not in the paper", by_preconditioner),
        Item("figure 4: cause, landmarks", "not in the paper", by_landmarks),
        Item("figure 4: cause, data", "not in the paper", by_data),
        Item("figure 5: HIGGS", "10 iterations in place of 20", physics),
    ]
