"""Checks of the parameters of a search: its space and its folds."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence

from ..._messages.checks import is_integer
from ...fitting.settings.splitters import is_pairs, is_splitter
from ...kernels import names as names_of_kernels
from ...kernels._lengthscale import medians
from ...kernels.base import kernels
from ...metric import RecursiveFeatureMachine
from ...search import INPUT_SCALINGS, L1_KERNEL, RADIAL_KERNELS

AUTO_VALUE = "auto"


def kernels_of(setting: object) -> tuple[str, ...]:
    """Return the names of the kernels to choose among."""
    if setting is None or (isinstance(setting, str) and setting == AUTO_VALUE):
        return (*RADIAL_KERNELS, L1_KERNEL)
    names = (setting,) if isinstance(setting, str) else setting
    if not isinstance(names, Sequence) or not len(names):
        raise ValueError(f"kernel must be 'auto', a name or a list of names, not {setting!r}")
    for name in names:
        usable = [kernel_name for kernel_name in names_of_kernels() if _is_usable(kernel_name)]
        if name not in usable:
            raise ValueError(
                f"kernel must be 'auto', or names of kernels that a search can compare: "
                f"{', '.join(usable)}, not {name!r}{kernels.hint(name)}"
            )
    # A repeated name would only repeat its trials.
    return tuple(dict.fromkeys(names))


def _is_usable(name: str) -> bool:
    """Return whether a kernel has a median lengthscale, and accepts mapped features."""
    kernel = kernels.make(name)
    return kernel.stationary and not kernel.unscaled_features(1)


def inputs_of(setting: object) -> tuple[str, ...]:
    """Return the names of the inputs to choose among."""
    if isinstance(setting, str) and setting == AUTO_VALUE:
        return INPUT_SCALINGS
    # True and False differ in the scale of the features, which `SearchSettings.standardize` sets.
    if isinstance(setting, bool):
        return ("standard",)
    if isinstance(setting, str) and setting == "quantile":
        return ("quantile",)
    raise ValueError(f"standardize must be 'auto', True, False or 'quantile', not {setting!r}")


def multiples_of(setting: object) -> tuple[float, ...] | None:
    """Return the lengthscales as multiples of the median; None to search for a lengthscale."""
    if setting is None or (isinstance(setting, str) and setting == AUTO_VALUE):
        return None
    values = [setting] if isinstance(setting, str) or not isinstance(setting, Sequence) else setting
    multiples = [medians(value) for value in values]
    if not multiples or any(multiple is None or multiple <= 0 for multiple in multiples):
        raise ValueError(
            "lengthscale must be 'auto', or one or several multiples of the median distance, such "
            f"as ['0.5 median', 'median', '2 median'], not {setting!r}"
        )
    return tuple(sorted({multiple for multiple in multiples if multiple is not None}))


def folds_of(setting: object) -> object:
    """Return the checked ``cv``, with an iterator of pairs as a tuple."""
    # An iterator would be empty in the second of several passes.
    cv = tuple(setting) if isinstance(setting, Iterator) else setting
    if cv is None or is_splitter(cv) or is_pairs(cv) or (is_integer(cv) and cv >= 2):
        return cv
    raise ValueError(
        "cv must be None, a number of folds of at least 2, a splitter such as KFold(5), or a list "
        f"of pairs of training and test row numbers, not {reprlib.repr(cv)}"
    )


def machine_of(setting: object) -> RecursiveFeatureMachine | None:
    """Return the recursive feature machine that learns a metric; None to learn no metric."""
    if setting is None:
        return None
    if isinstance(setting, str) and setting in (AUTO_VALUE, "learned"):
        return RecursiveFeatureMachine()
    if isinstance(setting, RecursiveFeatureMachine):
        return setting
    raise ValueError(
        f"metric must be 'auto', 'learned', None or a RecursiveFeatureMachine, not {setting!r}"
    )
