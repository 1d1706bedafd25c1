"""Cells: regions of the features that have their own models, and the assignment of rows.

A partition is an algorithm that grows cells from a sample; each is one class:

    median_splits   a tree of median splits along principal directions
    kmeans          nearest centers
    random          random subsets, whose models are averaged: a control

Cells return the cells of a row, with weights of sum one.
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
