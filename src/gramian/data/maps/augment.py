"""Augmentation: functions that change each mini-batch, so that the training set may be virtual.

A function maps rows, targets and a generator to new rows and targets; solvers that stream
mini-batches call it: ``EigenPro3(augment=noise(0.1))``. Any function of this form is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ... import _arrays as xp
from ..._arrays import Array, Float, RandomStream

Augmentation = Callable[[Array, Array, RandomStream], tuple[Array, Array]]
"""From rows (b, d), targets (b, t) and a generator to new rows and targets of the same shapes.

They may be on a device, each on its own; the generator is one of the host."""


@dataclass(frozen=True)
class noise:
    """Add Gaussian noise to the features.

    Parameters
    ----------
    sigma : float
        Standard deviation, in the units of the features.
    """

    sigma: float | int

    def __post_init__(self) -> None:
        if not 0 <= self.sigma < math.inf:
            raise ValueError(f"sigma must be finite and at least 0, not {self.sigma!r}")

    def __call__(
        self, x: Float[Array, "b d"], y: Float[Array, "b t"], rng: RandomStream
    ) -> tuple[Array, Array]:
        """Return changed rows and the same targets."""
        # Drawn on the host and then moved, so that a seed gives the same numbers on every device.
        drawn = xp.multiply_(rng.standard_normal(x.shape, x.dtype), self.sigma)
        return xp.add_(xp.to_device(drawn, xp.device_of(x)), x), y


@dataclass(frozen=True)
class mixup:
    """Mix each row and its target with another row and its target from the batch [1]_.

    Parameters
    ----------
    alpha : float
        The share of the other row has the law Beta(alpha, alpha).

    References
    ----------
    .. [1] Zhang, Cisse, Dauphin, Lopez-Paz, *mixup: Beyond empirical risk minimization*, 2018.
    """

    alpha: float | int = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.alpha < math.inf:
            raise ValueError(f"alpha must be positive and finite, not {self.alpha!r}")

    def __call__(
        self, x: Float[Array, "b d"], y: Float[Array, "b t"], rng: RandomStream
    ) -> tuple[Array, Array]:
        """Return mixed rows and targets."""
        # The ratio of two gamma variables has the law Beta.
        gamma = np.full((2, len(x)), float(self.alpha))
        # For a small alpha both may round to 0: the limit keeps the ratio from 0 / 0.
        first, second = rng.standard_gamma(gamma).clip(min=1e-300)
        share = (first / (first + second))[:, None]
        permutation = rng.permutation(len(x))
        return (
            # One share per row for features and targets, on the device of each.
            xp.lerp(x[permutation], x, xp.cast_like(share, x)),
            xp.lerp(y[permutation], y, xp.cast_like(share, y)),
        )


@dataclass(frozen=True)
class crop_flip:
    """Shift images by up to some pixels and mirror half of them.

    Parameters
    ----------
    shape : sequence of int
        ``(height, width)``, or ``(channels, height, width)``, of the image in a row.
    pad : int, default=4
        Largest shift; new pixels at the border are zero.
    flip : bool, default=True
        Whether to mirror left and right, each image with probability one half.
    """

    shape: Sequence[int]
    pad: int = 4
    flip: bool = True

    def __post_init__(self) -> None:
        if len(self.shape) not in (2, 3) or min(self.shape) < 1:
            raise ValueError(
                "shape must be (height, width) or (channels, height, width), not "
                f"{tuple(self.shape)!r}"
            )
        if self.pad < 0:
            raise ValueError(f"pad must be at least 0, not {self.pad!r}")

    def __call__(
        self, x: Float[Array, "b d"], y: Float[Array, "b t"], rng: RandomStream
    ) -> tuple[Array, Array]:
        """Return changed images and the same targets."""
        b, (height, width) = len(x), self.shape[-2:]
        if x.shape[1] != math.prod(self.shape):
            raise ValueError(
                f"images of shape {tuple(self.shape)} have {math.prod(self.shape)} features, but "
                f"the rows have {x.shape[1]}"
            )
        padded = _pad(x.reshape(b, -1, height, width), self.pad)
        # A shift by pad in each direction is a window of the padded image, one of 2 pad + 1 each
        # way.
        down, right = rng.integers(2 * self.pad + 1, size=(2, b))
        # 1. The rows of each window in its padded image.
        i = (down[:, None] + np.arange(height))[:, None, :, None]
        # 2. The columns, backwards in mirrored images.
        column = np.broadcast_to(np.arange(width), (b, width))
        if self.flip:
            mirrored = rng.random((b, 1), np.float32) < 0.5
            column = np.where(mirrored, width - 1 - column, column)
        j = (right[:, None] + column)[:, None, None, :]
        # 3. All images in one gather, with the same window in each channel.
        channel = np.arange(padded.shape[1])[None, :, None, None]
        return padded[np.arange(b)[:, None, None, None], channel, i, j].reshape(b, -1), y


def _pad(images: Array, width: int) -> Array:
    """Return images with a border of zeros."""
    count, channels, rows, columns = images.shape
    shape = (count, channels, rows + 2 * width, columns + 2 * width)
    padded = xp.zeros(shape, images.dtype, like=images)
    padded[:, :, width : width + rows, width : width + columns] = images
    return padded
