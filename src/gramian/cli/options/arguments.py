"""Arguments and options of the commands that do not set a parameter of a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TABLE_FORMATS = "as .parquet, .csv or .npy; `gramian info` lists all formats."
"""Written out, so that ``--help`` imports no format."""

Data = Annotated[Path, typer.Argument(help=f"Table, {TABLE_FORMATS}")]
Model = Annotated[Path, typer.Argument(help="A model that `gramian fit` wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Memory = Annotated[str, typer.Option(help="Memory for predictions, beside data and libraries.")]
Engine = Annotated[
    str, typer.Option(help="auto, native, torch, triton, torch:cuda:1, triton:cuda:0,1.")
]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Where the files of DATA, a folder, are read: a Dask scheduler, as "
        "tls://scheduler:8786, or local:4 for so many processes here."
    ),
]

OUTPUT_PANEL = "What comes out"

Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
ModelFile = Annotated[Path, typer.Option(help="File for the model.", rich_help_panel=OUTPUT_PANEL)]
FitCheckpoint = Annotated[
    Path | None,
    typer.Option(
        help="File for the state of the fit; a fit that finds it goes on from it.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
CheckpointSeconds = Annotated[
    float,
    typer.Option(
        help="Seconds between two states in that file; the last one is always written.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
HistoryFile = Annotated[
    Path | None,
    typer.Option(
        help=".json or .csv, one row per iteration since the start or the resumption; of a "
        "search, one per trial.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
FitsDeviations = Annotated[
    bool,
    typer.Option(
        "--std",
        help="Find what `gramian predict --std` needs, too: some 2 n³ operations for n rows.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
ConformalMethod = Annotated[
    str | None,
    typer.Option(
        help="Find what `gramian predict --interval` needs, too: split holds back a fifth of "
        "the rows for it, cv+ fits five times.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
TunedModelFile = Annotated[
    Path | None, typer.Option(help="File for the model.", rich_help_panel=OUTPUT_PANEL)
]
TrialsFile = Annotated[
    Path | None,
    typer.Option(
        help="File for the finished trials; a search that finds it resumes after them.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
PredictionsFile = Annotated[
    Path,
    typer.Option(
        help=f"File for predictions, {TABLE_FORMATS} With --dask also a new folder, which gets a "
        "file for each of DATA."
    ),
]
KeptColumns = Annotated[
    str | None, typer.Option(help="Columns of DATA to write beside predictions, as id,date.")
]
WritesProbabilities = Annotated[
    bool,
    typer.Option("--proba", help="Of classes: a column with the probability of each, too."),
]
WritesDeviations = Annotated[
    bool,
    typer.Option(
        "--std", help="Of numbers: a column with the standard deviation, if the fit had --std."
    ),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        help="Share of new rows, such as 0.9, whose truth is between two more columns, or in a "
        "set of classes, if the fit had --conformal."
    ),
]
EscapesFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="In text, such as .csv: an apostrophe before texts that begin with =, +, -, @, "
        "which spreadsheets would compute; numbers stay.",
    ),
]
TruthColumn = Annotated[
    str | None, typer.Option(help="Column with the truth; that of the training by default.")
]
SingleMetric = Annotated[
    str | None,
    typer.Option(
        help="Only this one: rmse, mae, r2; error, accuracy, balanced_accuracy, macro_f1, auc, "
        "log_loss, brier, calibration_error (of the class predicted, in 15 bins)."
    ),
]
ReliabilityPicture = Annotated[
    Path | None,
    typer.Option(
        help=".png, .svg or .pdf for a picture: how often classes came true, by their "
        "probability. Needs matplotlib."
    ),
]
PageFile = Annotated[Path, typer.Option(help="File for the page, .html.")]
TrainingTable = Annotated[
    Path | None,
    typer.Option(
        help="Table of the training: linear ridge and fits with other numbers of landmarks "
        "learn from it, and the residual of the fit is measured. Without it, from DATA."
    ),
]
OptionalModel = Annotated[Path | None, typer.Argument(help="A model that `gramian fit` wrote.")]
NewTable = Annotated[Path, typer.Argument(help=f"New file, {TABLE_FORMATS}")]
FloatType = Annotated[
    str, typer.Option(help="For floating-point columns: float32, float64 or keep.")
]
SampleName = Annotated[str, typer.Argument(help="california_housing or energy.")]
SamplePart = Annotated[str, typer.Option(help="Rows: all, train or test.")]
ShellName = Annotated[str, typer.Argument(help="bash, zsh, fish, powershell or pwsh.")]
