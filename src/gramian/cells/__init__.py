"""Cells: regions of the rows, each with a model of its own, and how rows are routed to them.

A partition is an object per algorithm, like selectors and solvers: it grows cells from a sample,

    median_splits   a tree of median splits along principal directions
    kmeans          nearest centers
    random          random subsets, whose models are averaged: a control

and cells say which of them a row belongs to, with weights that sum to one.
"""

from .base import Cells, Partition, Share, cells_from_parts, divide_rows, kinds, partitions
from .centers import CenterCells, KMeansCells
from .median_splits import MedianSplits
from .random import MeanCells, RandomCells
from .tree import TreeCells

__all__ = [
    "Cells",
    "CenterCells",
    "KMeansCells",
    "MeanCells",
    "MedianSplits",
    "Partition",
    "RandomCells",
    "Share",
    "TreeCells",
    "cells_from_parts",
    "divide_rows",
    "kinds",
    "partitions",
]
