"""Paths of penalties: coefficients for many penalties from the same kernel entries."""

from .closed_form import direct_path, nystrom_path
from .full import FullPath, Stage

__all__ = ["FullPath", "Stage", "direct_path", "nystrom_path"]
