"""Conversions: from the files as they are published to the tables that the benchmarks read.

Each function takes the folder of the downloaded files and returns features and target, in float32
or as small integers, and the split (0: train, 1: test) in the last column. Nothing is standardized.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

WINDS = [
    "N",
    "NNE",
    "NE",
    "ENE",
    "E",
    "ESE",
    "SE",
    "SSE",
    "S",
    "SSW",
    "SW",
    "WSW",
    "W",
    "WNW",
    "NW",
    "NNW",
]
FINGERPRINT_BITS = 1024


def random_split(rows: int) -> np.ndarray:
    """Return 1 for a fifth of the rows, drawn with seed 0, and 0 for the others."""
    split = np.zeros(rows, dtype=np.int8)
    split[np.random.default_rng(0).permutation(rows)[: round(0.2 * rows)]] = 1
    return split


def table(features: pd.DataFrame, target: Any, split: np.ndarray | None = None) -> pd.DataFrame:
    """Return features, target and split; the random one where no other is given."""
    out = features.reset_index(drop=True)
    out["target"] = np.asarray(target)
    return out.assign(split=random_split(len(out)) if split is None else split)


def beijing_pm25(raw: Path) -> pd.DataFrame:
    """Return hourly PM2.5 of 12 stations without incomplete rows; winds as sine and cosine."""
    stations = sorted(raw.glob("PRSA_Data_*_20130301-20170228.csv"))
    data = pd.concat([pd.read_csv(path, na_values=" ") for path in stations])
    data = data.drop(columns=["No", "PM10"]).dropna()
    angle = 2 * np.pi * data["wd"].map(WINDS.index) / len(WINDS)
    features = data.drop(columns=["wd", "station", "PM2.5"])
    features = features.assign(wd_sin=np.sin(angle), wd_cos=np.cos(angle)).astype(np.float32)
    for name in sorted(data["station"].unique()):
        features[f"st_{name}"] = (data["station"] == name).astype(np.uint8)
    return table(features, data["PM2.5"].astype(np.float32))


def nycflights(raw: Path) -> pd.DataFrame:
    """Return arrival delays with the eight features of the airline set; times in minutes."""
    flights = pd.read_csv(raw / "flights.csv.zip")
    planes = pd.read_csv(raw / "planes.csv")[["tailnum", "year"]]
    data = flights.merge(planes, on="tailnum", how="left", suffixes=("", "_built"))
    date = pd.to_datetime(data[["year", "month", "day"]])
    features = pd.DataFrame(
        {
            "plane_age": data["year"] - data["year_built"],
            "distance": data["distance"],
            "air_time": data["air_time"],
            "dep_time": data["dep_time"] // 100 * 60 + data["dep_time"] % 100,
            "arr_time": data["arr_time"] // 100 * 60 + data["arr_time"] % 100,
            "day_of_week": date.dt.dayofweek + 1,
            "day_of_month": data["day"],
            "month": data["month"],
            "target": data["arr_delay"],
        }
    )
    complete = features.dropna().astype(np.float32)
    return table(complete.drop(columns="target"), complete["target"])


def airs_co2(raw: Path) -> pd.DataFrame:
    """Return CO2 by longitude, latitude and day, of the first half of May 2003."""
    data = pd.read_csv(raw / "AIRS_05_2003.csv")
    data = data[data["day"] <= 15]
    features = data[["lon", "lat"]].astype(np.float32).assign(day=data["day"].astype(np.int32))
    return table(features, data["co2avgret"].astype(np.float32))


def adult_a9a(raw: Path) -> pd.DataFrame:
    """Return the 123 binary features of LIBSVM's a9a, and its split."""
    parts = [(raw / name).read_text().splitlines() for name in ("a9a", "a9a.t")]
    lines = [line.split() for part in parts for line in part]
    X = np.zeros((len(lines), 123), dtype=np.uint8)
    for row, line in zip(X, lines, strict=True):
        row[[int(entry.removesuffix(":1")) - 1 for entry in line[1:]]] = 1
    features = pd.DataFrame(X, columns=[f"x{j}" for j in range(1, 124)])
    split = np.repeat(np.array([0, 1], np.int8), [len(part) for part in parts])
    return table(features, np.array([line[0] for line in lines]).astype(np.int32), split)


def skin(raw: Path) -> pd.DataFrame:
    """Return colors as B, G and R; the target is 1 for skin and 2 for other pixels."""
    data = pd.read_csv(raw / "Skin_NonSkin.txt", sep="\t", names=list("BGRy"), dtype=str)
    data = data[data["B"] != "B"].astype(np.int32)  # some copies have a line of names
    return table(data[list("BGR")].astype(np.uint8), data["y"])


def of_pmlb(raw: Path, name: str, target: type[np.generic]) -> pd.DataFrame:
    """Return a table of the Penn Machine Learning Benchmarks."""
    data = pd.read_csv(raw / f"{name}.tsv.gz", sep="\t").astype(np.float32)
    return table(data.drop(columns="target"), data["target"].astype(target))


def kddcup(raw: Path) -> pd.DataFrame:
    """Return network connections, categories as numbers; the target is the kind of attack."""
    return of_pmlb(raw, "kddcup", np.int32)


def magic(raw: Path) -> pd.DataFrame:
    """Return gamma rays (0) and hadrons (1) in a Cherenkov telescope."""
    return of_pmlb(raw, "magic", np.int32)


def california_housing(raw: Path) -> pd.DataFrame:
    """Return median house values in dollars, with the columns of StatLib's "houses"."""
    return of_pmlb(raw, "537_houses", np.float32)


def fashion_mnist(raw: Path) -> pd.DataFrame:
    """Return 28 x 28 pixels from 0 to 255, row by row, and the split of the authors."""
    names = ("train", "t10k")
    labels = [read_idx(raw / f"{name}-labels-idx1-ubyte.gz") for name in names]
    images = [read_idx(raw / f"{name}-images-idx3-ubyte.gz") for name in names]
    X = np.concatenate(images).reshape(-1, 784)
    split = np.repeat(np.array([0, 1], np.int8), [len(part) for part in labels])
    features = pd.DataFrame(X, columns=[f"p{j}" for j in range(784)])
    return table(features, np.concatenate(labels).astype(np.int32), split)


def read_idx(path: Path) -> np.ndarray:
    """Return an array of bytes in the IDX format: two zeros, type, dimensions, sizes, values."""
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is not an IDX file of bytes")
    start = 4 + 4 * content[3]
    return np.frombuffer(content, np.uint8, offset=start).reshape(
        np.frombuffer(content[4:start], ">u4")
    )


def qm9_gap_31k(raw: Path) -> pd.DataFrame:
    """Return counts of ECFP4 fragments, by RDKit, and the HOMO-LUMO gap in eV."""
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    data = pd.read_csv(raw / "qm9.csv")
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=FINGERPRINT_BITS)
    counts = [
        generator.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(smiles))
        for smiles in data["SMILES"]
    ]
    names = [f"fp{j}" for j in range(FINGERPRINT_BITS)]
    features = pd.DataFrame(np.array(counts, dtype=np.uint8), columns=names)
    return table(features.assign(smiles=data["SMILES"]), data["gap"].astype(np.float32))


MOST_SEASONS = 20
"""Seasons of a series at most, the last ones."""


def series(raw: Path) -> pd.DataFrame:
    """Return twenty series, one below the other: name, steps of a season, step, value.

    Steps without a value are left out.
    """
    read = {path.stem: pd.read_csv(path, na_values="NA") for path in sorted(raw.glob("*.csv"))}
    monthly = ("AirPassengers", "UKDriverDeaths", "USAccDeaths", "co2", "deaths", "manaus")
    quarterly = ("JohnsonJohnson", "UKgas", "austres", "presidents")
    found = [(name, 12, read[name][name]) for name in (*monthly, "nottem")]
    found += [(name, 12, read["economics"][name]) for name in ("psavert", "unemploy")]
    # A row is a year, a column a month.
    found.append(("elnino", 12, pd.Series(read["elnino"].iloc[:, 1:].to_numpy().ravel())))
    found += [(name, 4, read[name][name]) for name in quarterly]
    found += [(name, 4, read["macrodata"][name]) for name in ("realinv", "tbilrate", "unemp")]
    found += [(f"nox_{name}", 7, read["ambientNOxCH"][name]) for name in ("ad", "ba", "zg")]
    return pd.concat([_one_series(*parts) for parts in found], ignore_index=True)


def _one_series(name: str, period: int, values: pd.Series) -> pd.DataFrame:
    # Days have more seasons than years: a year of them is some fifty weeks.
    most = (MOST_SEASONS if period > 7 else 52) * period
    last = values.to_numpy(np.float64)[-most:]
    data = pd.DataFrame({"step": np.arange(len(last)), "value": last})
    data.insert(0, "period", period)
    data.insert(0, "name", name)
    return data.dropna()
