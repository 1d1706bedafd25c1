"""ASkotch (Rathore and others 2024): figures 1 to 14, table 1, theorem 5.1, appendices B and C."""

from __future__ import annotations

from ..item import Item, impossible
from .ablations import (
    convergence_rate,
    dampings,
    dual_condition,
    iteration_costs,
    power_steps,
    printed_convexity,
    sampling_powers,
    sketch_matrices,
    solves_with_matrices,
)
from .against import (
    more_inducing_points,
    saga_is_linear,
    single_precision,
    slow_end,
    smape,
)
from .figures import (
    ablation,
    against_falkon,
    against_pcg,
    fixed_rate,
    gap_by_rank,
    half_a_million,
    linear_convergence,
    number_of_blocks,
    saga,
)
from .sizes import (
    eight_sets,
    generated_rows,
    momentum_by_block,
    momentum_on_sets,
    small_residuals,
)


def items() -> list[Item]:
    """Return the items of the paper, in its order."""
    return [
        Item("figure 1: Taxi, n = 1e8, 12 GB", "ASkotch below FALKON", half_a_million),
        Item("figure 1: 1e8 generated rows", "12 GB of a GPU", generated_rows),
        Item("section 6: eight sets by time", "ASkotch below PCG", eight_sets),
        Item("section 6: cause, iterations", "not in the paper", small_residuals),
        Item("section C.5: momentum by time", "ASkotch below Skotch", momentum_on_sets),
        Item("section C.5: cause, blocks", "not in the paper", momentum_by_block),
        Item("figures 2 and 4: molecules", "ASkotch below FALKON and PCG", against_falkon),
        Item("figures 3 and 5: SUSY, HIGGS", "ASkotch above PCG", against_pcg),
        Item("figure 2: SMAPE of HOMO", "ASkotch below FALKON and PCG", smape),
        Item("figures 4 and 5: single precision", "PCG is unstable", single_precision),
        Item("table 1: iteration", "O(n b), storage O(n)", iteration_costs),
        Item("lemma 3.1: dual", "the primal squares the condition number", dual_condition),
        Item("algorithm 3: power steps", "10 steps", power_steps),
        Item("figure 7: linear convergence", "ASkotch and Skotch linear", linear_convergence),
        Item("figure 7: μ = λ, as printed", "ASkotch below Skotch", printed_convexity),
        Item("theorem 5.1: rate", "1 - τ in an iteration", convergence_rate),
        Item("theorem: rate of fixed blocks", "at most the bound", fixed_rate),
        Item(
            "figure 7: acceleration",
            "ASkotch below Skotch",
            lambda scale: ablation(
                "figure 9 momentum",
                "acceleration",
                "ASkotch, rank 100",
                "Skotch, rank 100",
                "fresh blocks lose it",
            ),
        ),
        Item("section C.5: momentum by rank", "the gain shrinks as the rank grows", gap_by_rank),
        Item("section 3: β", "β = 0 recommended, 1 in theory", sampling_powers),
        Item("section 3: damping", "ρ = λ + last eigenvalue", dampings),
        Item("section B.2: test matrices", "normal, SRHT, sparse sign", sketch_matrices),
        Item("section B.2: in ASkotch", "normal, SRHT, sparse sign", solves_with_matrices),
        Item("figure 8: SketchySAGA", "linear convergence", saga_is_linear),
        Item("figure 14: SketchySAGA", "with 1e6 centers below FALKON", more_inducing_points),
        Item("figure 14: equal centers", "not in the paper", saga),
        Item("figure 14: cause", "not in the paper", slow_end),
        Item(
            "figure 9: rank",
            "larger ranks are faster",
            lambda scale: ablation(
                "figure 9", "rank", "rank 200", "rank 10", "small ranks suffice"
            ),
        ),
        Item(
            "figures 10 and 11: preconditioner",
            "far faster with it",
            lambda scale: ablation(
                "figure 10", "preconditioner", "nystrom", "none", "no difference"
            ),
        ),
        Item(
            "figures 12 and 13: blocks",
            "more blocks: less time to an error, up to 10 to 100 blocks",
            number_of_blocks,
        ),
        Item(
            "figure 6: Taxi in single precision",
            "ASkotch below FALKON",
            impossible("the records (1e8 rows) are not available; figure 1 in their place"),
        ),
    ]
