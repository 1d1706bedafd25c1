"""EigenPro 3 (Abedsoltan, Belkin, Pandit 2023): figures 1 to 6, tables 1 and 2."""

from __future__ import annotations

from ..item import Item, impossible
from .ablations import (
    augmentation_by_epochs,
    delayed_projection,
    dense_algorithm,
    digits,
    epoch_costs,
    noise_by_size,
    ranks,
)
from .figures import (
    against_falkon,
    augmentation,
    beyond_memory,
    copies_as_centers,
    kmeans_centers,
    many_rows,
    more_centers,
    more_rows,
)


def items() -> list[Item]:
    """Return the items of the paper, in its order."""
    return [
        Item("figures 1 and 2: more rows", "more rows help at a fixed model size", more_rows),
        Item("figure 3: more centers", "accuracy rises with the centers", more_centers),
        Item("lemma 4: algorithm 1", "iteration (26)", dense_algorithm),
        Item("section 2.1: rank", "a larger q trains faster", ranks),
        Item("table 1: cost", "p (m + s) + T_ep2, linear in p for 1 epoch", epoch_costs),
        Item("section 5: projection", "inexact in place of p³", delayed_projection),
        Item("figure 4: noise", "gains on Fashion-MNIST (a plot)", noise_by_size),
        Item("figure 4: cause", "not in the paper", augmentation_by_epochs),
        Item("figure 4: augmentation", "gains with the images as centers", augmentation),
        Item("figure 4: copies as centers", "not in the paper", copies_as_centers),
        Item("figure 5: FALKON", "better than FALKON by larger models (a plot)", against_falkon),
        Item("figure 5: memory", "FALKON at most 256,000 centers", beyond_memory),
        Item("figure 6: 1.2e8 rows", "memory does not grow with rows", many_rows),
        Item("table 2: digits", "91.89 and 87.24 % at p = 100 (MNIST)", digits),
        Item("table 2: k-means centers", "78.66 and 76.24 % at p = 100", kmeans_centers),
        Item(
            "figure 3: ImageNet, Webvision, Librispeech",
            "up to 10^6 centers",
            impossible("features of these networks, and a machine with several GPUs"),
        ),
    ]
