"""Paths of penalties: coefficients for many penalties from the same kernel entries."""

from .direct import direct_path
from .full import FullPath, Stage
from .nystrom import nystrom_path

__all__ = ["FullPath", "Stage", "direct_path", "nystrom_path"]
