"""Arguments and options of the commands that do not set a parameter of a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...scoring.table import MAIN_METRIC, metrics_of

TABLE_FORMATS = "as .parquet, .csv or .npy; `gramian info` lists all formats."
"""Written out, so that ``--help`` imports no format."""

Data = Annotated[Path, typer.Argument(help=f"Table, {TABLE_FORMATS}")]
Model = Annotated[Path, typer.Argument(help="A model that `gramian fit` wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Memory = Annotated[str, typer.Option(help="Memory for predictions, besides data and libraries.")]
Engine = Annotated[
    str, typer.Option(help="auto, native, numpy, triton, torch:cuda:1, triton:cuda:0,1.")
]
Dask = Annotated[
    str | None,
    typer.Option(
        help="Dask cluster that reads the files of DATA, a folder: address of a scheduler, such as "
        "tls://scheduler:8786, or local:4 for four processes on this machine."
    ),
]

OUTPUT_PANEL = "Output"
NAMES_OF_METRICS = "; ".join(", ".join(metrics_of(task)) for task in MAIN_METRIC)


def _show_version(value: bool) -> bool:
    if value:
        from ... import __version__

        typer.echo(f"gramian {__version__}")
        raise typer.Exit
    return value


ShowsVersion = Annotated[
    bool,
    typer.Option(
        "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
ModelFile = Annotated[Path, typer.Option(help="File for the model.", rich_help_panel=OUTPUT_PANEL)]
FitCheckpoint = Annotated[
    Path | None,
    typer.Option(
        help="File for the state of the fit; a fit resumes from an existing file.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
CheckpointSeconds = Annotated[
    float,
    typer.Option(
        help="Seconds between writes of that file; the last state is always written.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
HistoryFile = Annotated[
    Path | None,
    typer.Option(
        help=".json or .csv, with a row per iteration since the start or the last resumption; for "
        "a search, a row per trial.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
FitsDeviations = Annotated[
    bool,
    typer.Option(
        "--std",
        help="Also prepare `gramian predict --std`: about 2 n³ operations for n rows.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
ConformalMethod = Annotated[
    str | None,
    typer.Option(
        help="Also prepare `gramian predict --interval`: split holds out a fifth of the rows, "
        "cv+ fits five times, cqr fits quantiles. `gramian info` lists the methods.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
ConformalGroups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column whose values are groups: the coverage then holds in each of them.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
TunedModelFile = Annotated[
    Path | None, typer.Option(help="File for the model.", rich_help_panel=OUTPUT_PANEL)
]
TrialsFile = Annotated[
    Path | None,
    typer.Option(
        help="File for the finished trials; a search resumes from an existing file.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
PredictionsFile = Annotated[
    Path,
    typer.Option(
        help=f"File for predictions, {TABLE_FORMATS} With --dask also a new folder, with a file "
        "for each file of DATA."
    ),
]
KeptColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns of DATA to write next to predictions, as id,date; repeat the option for "
        "names with commas."
    ),
]
WritesProbabilities = Annotated[
    bool,
    typer.Option("--proba", help="For classes: also a column with the probability of each class."),
]
WritesDeviations = Annotated[
    bool,
    typer.Option(
        "--std",
        help="For numbers: also a column with the standard deviation, if the fit had --std.",
    ),
]
Coverage = Annotated[
    float | None,
    typer.Option(
        help="Coverage, such as 0.9, of prediction intervals in two more columns, or of sets of "
        "classes, if the fit had --conformal."
    ),
]
EscapesFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="In text files, such as .csv: write an apostrophe before texts that begin with =, +, "
        "-, @, which spreadsheets would compute; numbers stay.",
    ),
]
TruthColumn = Annotated[
    str | None,
    typer.Option(help="Column with the true target; by default the target of the training."),
]
SingleMetric = Annotated[
    str | None,
    typer.Option(
        help=f"Only this metric: {NAMES_OF_METRICS}; or a scorer of scikit-learn, such as "
        "neg_mean_absolute_percentage_error."
    ),
]
ReliabilityPicture = Annotated[
    Path | None,
    typer.Option(
        help=".png, .svg or .pdf for a reliability diagram: observed shares of classes by their "
        "predicted probability. Needs matplotlib."
    ),
]
Background = Annotated[
    Path | None,
    typer.Option(
        "--train",
        help="Training table, whose rows are the background and the similar rows. Without it, the "
        "centers of the model are the background.",
    ),
]
ContributionsFile = Annotated[
    Path | None,
    typer.Option(help=f"File for the contributions of each row, {TABLE_FORMATS}"),
]
ExplainedOutput = Annotated[
    str,
    typer.Option(
        help="raw: values before the link, decision values of classes; prediction: predictions, "
        "probabilities of classes."
    ),
]
ExplanationSeed = Annotated[
    int, typer.Option("--seed", help="Seed of the background and of sampled values.")
]
PageFile = Annotated[Path, typer.Option(help="File for the page, .html.")]
TrainingTable = Annotated[
    Path | None,
    typer.Option(
        help="Training table, for fits of linear ridge and of other numbers of landmarks, and for "
        "the residual of the model. Without it, these fits use rows of DATA."
    ),
]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column by whose values errors are divided; by default up to three categorical "
        "columns of the model.",
    ),
]
AllColumns = Annotated[
    bool, typer.Option("--all", help="All columns and names; otherwise long lists are shortened.")
]
OptionalModel = Annotated[Path | None, typer.Argument(help="A model that `gramian fit` wrote.")]
ExportedFile = Annotated[Path, typer.Argument(help="New file, .onnx.")]
ShowsCard = Annotated[
    bool, typer.Option("--card", help="Print a model card in Markdown, to complete by hand.")
]
NewTable = Annotated[Path, typer.Argument(help=f"New file, {TABLE_FORMATS}")]
FloatType = Annotated[
    str, typer.Option(help="For floating-point columns: float32, float64 or keep.")
]
SampleName = Annotated[str, typer.Argument(help="california_housing or energy.")]
SamplePart = Annotated[str, typer.Option(help="Rows: all, train or test.")]
