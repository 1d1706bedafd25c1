"""Models: what predicts, of one kernel or the mean of several, and the file that it is kept in."""

from __future__ import annotations

from .base import Label, Model
from .kernel_model import KernelModel

__all__ = ["KernelModel", "Label", "Model"]
