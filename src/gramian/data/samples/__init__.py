"""Small real data sets of the package; their sources are in the README of this folder."""

from __future__ import annotations

from pathlib import Path

_SAMPLE_FOLDER = Path(__file__).parent


def sample_path(name: str) -> Path:
    """Return the path of a data set that ships with the package.

    Parameters
    ----------
    name : str
        ``"california_housing"`` (20,640 rows, 8 features) or ``"energy"`` (768 rows, 8 features).

    Returns
    -------
    Path
        A Parquet file: features, then ``target``, then ``split`` (0 = train, 1 = test).

    Raises
    ------
    ValueError
        If there is no such data set; the error lists the existing ones.

    Examples
    --------
    >>> sample_path("energy").name
    'energy.parquet'
    """
    sample_names = sorted(path.stem for path in _SAMPLE_FOLDER.glob("*.parquet"))
    if name not in sample_names:
        raise ValueError(
            f"there is no sample data set {name!r}; choose one of {', '.join(sample_names)}"
        )
    return _SAMPLE_FOLDER / f"{name}.parquet"
