"""The commands and their arguments; their work is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .inputs.cluster import on_cluster
from .options.decorator import options_from
from .options.options import FitOptions, TuneOptions
from .outputs.report import show

app = typer.Typer(
    help="Kernel ridge regression at any size, from tables in Parquet, CSV and other files.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

TABLE = "as .parquet, .csv or .npy; `gramian info` lists all formats."
"""Not asked of the formats: ``--help`` waits for none of them."""

Data = Annotated[Path, typer.Argument(help=f"Table, {TABLE}")]
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
OUTPUT = "What comes out"


def _version(asked: bool) -> bool:
    if asked:
        from .. import __version__

        typer.echo(f"gramian {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def gramian(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which version this is.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Kernel ridge regression at any size, from tables in Parquet, CSV and other files."""


@app.command()
@options_from(FitOptions)
def fit(
    data: Data,
    options: FitOptions,
    out: Annotated[Path, typer.Option(help="File for the model.", rich_help_panel=OUTPUT)],
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File for the state of the fit; a fit that finds it goes on from it.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(
            help="Seconds between two states in that file; the last one is always written.",
            rich_help_panel=OUTPUT,
        ),
    ] = 60.0,
    history: Annotated[
        Path | None,
        typer.Option(
            help=".json or .csv, one row per iteration since the start or the resumption; of a "
            "search, one per trial.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    std: Annotated[
        bool,
        typer.Option(
            "--std",
            help="Find what `gramian predict --std` needs, too: some 2 n³ operations for n rows.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    conformal: Annotated[
        str | None,
        typer.Option(
            help="Find what `gramian predict --interval` needs, too: split holds back a fifth of "
            "the rows for it, cv+ fits five times.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find a model for a table and save it; or make one fit, if an option describes the model.

    With none of the options below "The model" and "The fit", a search chooses kernel, inputs,
    learned metric, lengthscale and penalty on rows that it holds out, and fits all rows last. With
    any of them, or --checkpoint without --budget, it is one fit, and Parquet is streamed, never
    loaded as a whole.
    """
    if options.of_a_model:
        from .commands.fit import fit as run

        with on_cluster(options.dask, data, options.dask_patience, options.dask_keep):
            found = run(data, options, out, checkpoint, history, checkpoint_every, std, conformal)
        show(found, as_json)
    else:
        from ..callbacks import Checkpoint
        from .commands.search import fit as search

        callback = None if checkpoint is None else Checkpoint(checkpoint)
        show(search(data, options, out, history, std, conformal, callback), as_json)


@app.command()
@options_from(TuneOptions)
def tune(
    data: Data,
    options: TuneOptions,
    out: Annotated[
        Path | None, typer.Option(help="File for the model.", rich_help_panel=OUTPUT)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File for the finished trials; a search that finds it resumes after them.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search as `gramian fit` does, and say what was tried, and what each step gained.

    The last line is a command that makes the best fit once more without a search.
    """
    from .commands.tune import tune as run

    show(run(data, options, out, checkpoint), as_json)


@app.command()
@options_from(FitOptions)
def plan(data: Data, options: FitOptions, as_json: Json = False) -> None:
    """Say what a fit, or a search, would need: rows, memory, kernel evaluations, seconds."""
    from .commands.plan import plan as run

    with on_cluster(options.dask, data, options.dask_patience, options.dask_keep):
        found = run(data, options)
    show(found, as_json)


@app.command()
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            help=f"File for predictions, {TABLE} With --dask also a new folder, which gets a "
            "file for each of DATA."
        ),
    ],
    keep: Annotated[
        str | None, typer.Option(help="Columns of DATA to write beside predictions, as id,date.")
    ] = None,
    proba: Annotated[
        bool,
        typer.Option("--proba", help="Of classes: a column with the probability of each, too."),
    ] = False,
    std: Annotated[
        bool,
        typer.Option(
            "--std", help="Of numbers: a column with the standard deviation, if the fit had --std."
        ),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            help="Share of new rows, such as 0.9, whose truth is between two more columns, or in a "
            "set of classes, if the fit had --conformal."
        ),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="In text, such as .csv: an apostrophe before texts that begin with =, +, -, @, "
            "which spreadsheets would compute; numbers stay.",
        ),
    ] = False,
    memory_limit: Memory = "1GB",
    engine: Engine = "auto",
    dask: Dask = None,
    as_json: Json = False,
) -> None:
    """Predict the rows of a table. Columns are found by name, others are ignored."""
    from .commands.predict import predict as run

    with on_cluster(dask, data):
        found = run(
            model, data, out, keep, memory_limit, engine, proba, std, interval,
            escape_formulas=escape_formulas, in_folder=dask is not None,
        )  # fmt: skip
    show(found, as_json)


@app.command()
def evaluate(
    model: Model,
    data: Data,
    target: Annotated[
        str | None, typer.Option(help="Column with the truth; that of the training by default.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Only this one: rmse, mae, r2; error, accuracy, balanced_accuracy, macro_f1, auc, "
            "log_loss, brier, calibration_error (of the class predicted, in 15 bins)."
        ),
    ] = None,
    reliability: Annotated[
        Path | None,
        typer.Option(
            help=".png, .svg or .pdf for a picture: how often classes came true, by their "
            "probability. Needs matplotlib."
        ),
    ] = None,
    memory_limit: Memory = "1GB",
    engine: Engine = "auto",
    dask: Dask = None,
    as_json: Json = False,
) -> None:
    """Compare predictions with the truth, and with what a constant would have reached."""
    from .commands.evaluate import evaluate as run

    with on_cluster(dask, data):
        found = run(model, data, target, memory_limit, engine, metric, reliability)
    show(found, as_json)


@app.command()
def report(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="File for the page, .html.")],
    target: Annotated[
        str | None, typer.Option(help="Column with the truth; that of the training by default.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            help="Table of the training: linear ridge and fits with other numbers of landmarks "
            "learn from it, and the residual of the fit is measured. Without it, from DATA."
        ),
    ] = None,
    memory_limit: Memory = "1GB",
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Write what a model is worth on a table as one HTML page, with pictures. Needs matplotlib."""
    from .page import report as run

    show(run(model, data, target, out, train, memory_limit, engine), as_json)


@app.command()
def info(
    model: Annotated[Path | None, typer.Argument(help="A model that `gramian fit` wrote.")] = None,
    as_json: Json = False,
) -> None:
    """Describe a model; without one, this installation and machine."""
    from .commands.info import info as run

    show(run(model), as_json)


@app.command()
def convert(
    source: Data,
    target: Annotated[Path, typer.Argument(help=f"New file, {TABLE}")],
    dtype: Annotated[
        str, typer.Option(help="For floating-point columns: float32, float64 or keep.")
    ] = "keep",
    as_json: Json = False,
) -> None:
    """Rewrite a table in another format, a little at a time."""
    from .commands.convert import convert as run

    show(run(source, target, dtype), as_json)


@app.command()
def sample(
    name: Annotated[str, typer.Argument(help="california_housing or energy.")],
    out: Annotated[Path, typer.Argument(help=f"New file, {TABLE}")],
    part: Annotated[str, typer.Option(help="Rows: all, train or test.")] = "all",
    as_json: Json = False,
) -> None:
    """Write a data set that ships with gramian, to try things on."""
    from .commands.sample import sample as run

    show(run(name, out, part), as_json)


@app.command()
def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh, fish, powershell or pwsh.")],
) -> None:
    """Print a script that lets a shell complete: eval "$(gramian completion bash)"."""
    from .commands.completion import show as run

    run(shell)
