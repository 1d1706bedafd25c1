"""Commands of gramian and their arguments.

A command imports the code that it needs when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from .inputs.cluster import on_cluster
from .options import arguments
from .options.decorator import options_from
from .options.help import COMMAND_EXAMPLES
from .options.options import DropMissing, FitOptions, TuneOptions
from .options.reading import ReadingOptions
from .outputs.report import STANDARD_OUTPUT, show, write_standard_output

app = typer.Typer(
    help="Kernel ridge regression at any size, from tables in Parquet, CSV and other files.",
    pretty_exceptions_enable=False,
)


@app.callback()
def gramian(
    debug: arguments.Debug = False,
    version: arguments.ShowsVersion = False,
) -> None:
    """Kernel ridge regression at any size, from tables in Parquet, CSV and other files."""


@app.command(epilog="Example: " + COMMAND_EXAMPLES["fit"])
@options_from(FitOptions)
def fit(
    data: arguments.Data,
    options: FitOptions,
    out: arguments.ModelFile,
    checkpoint: arguments.FitCheckpoint = None,
    checkpoint_every: arguments.CheckpointSeconds = 60.0,
    history: arguments.HistoryFile = None,
    std: arguments.FitsDeviations = False,
    conformal: arguments.ConformalMethod = None,
    conformal_groups: arguments.ConformalGroups = None,
    as_json: arguments.Json = False,
) -> None:
    """Search for a model of a table and save it; with options of the model, make a single fit.

    Without options of "Model" and "Fit", a search chooses kernel, inputs, learned metric,
    lengthscale and penalty on held-out rows, then fits all rows. With any of them, or with
    --checkpoint but no --budget, it is a single fit, and Parquet is streamed, never loaded whole.
    """
    # Imported by the command that runs: the others, and --help, start without NumPy.
    from ..callbacks import Checkpoint
    from .outputs.uncertainty import Calibration

    calibration, seconds = Calibration(conformal, conformal_groups), checkpoint_every
    if options.of_a_model:
        from .commands.fit import fit as run

        saved = None if checkpoint is None else Checkpoint(checkpoint, every_seconds=seconds)
        with on_cluster(options.dask, data, options.dask_patience, options.dask_keep):
            report = run(data, options, out, history, std, calibration, saved)
    else:
        from .commands.search import fit as search

        # ``--dask`` is an option of a single fit: a search always reads local rows.
        callback = None if checkpoint is None else Checkpoint(checkpoint)
        report = search(data, options, out, history, std, calibration, callback)
    show(report, as_json, "gramian info --all")


@app.command(epilog="Example: " + COMMAND_EXAMPLES["tune"])
@options_from(TuneOptions)
def tune(
    data: arguments.Data,
    options: TuneOptions,
    out: arguments.TunedModelFile = None,
    checkpoint: arguments.TrialsFile = None,
    as_json: arguments.Json = False,
) -> None:
    """Search as `gramian fit` does, and show the trials and the gain of each step.

    The last line is a command that repeats the best fit without a search.
    """
    from .commands.tune import tune as run

    show(run(data, options, out, checkpoint), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["plan"])
@options_from(FitOptions)
def plan(data: arguments.Data, options: FitOptions, as_json: arguments.Json = False) -> None:
    """Show the cost of a fit, or of a search: rows, memory, kernel evaluations, seconds."""
    from .commands.plan import plan as run

    with on_cluster(options.dask, data, options.dask_patience, options.dask_keep):
        report = run(data, options)
    show(report, as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["predict"])
@options_from(ReadingOptions)
def predict(
    model: arguments.Model,
    data: arguments.Data,
    options: ReadingOptions,
    out: arguments.PredictionsFile,
    keep: arguments.KeptColumns = None,
    proba: arguments.WritesProbabilities = False,
    std: arguments.WritesDeviations = False,
    interval: arguments.Coverage = None,
    escape_formulas: arguments.EscapesFormulas = False,
    memory_limit: arguments.Memory = "1GB",
    engine: arguments.Engine = "auto",
    dask: arguments.Dask = None,
    as_json: arguments.Json = False,
) -> None:
    """Predict the rows of a table. Columns are matched by name; others are ignored."""
    from .commands.predict import predict as run

    def write(path: Path) -> Mapping[str, Any]:
        return run(
            model, data, path, keep, memory_limit, engine, proba, std, interval,
            escape_formulas=escape_formulas, in_folder=dask is not None, read=options.read,
        )  # fmt: skip

    if str(out) == STANDARD_OUTPUT:
        write_standard_output(write)
        return
    with on_cluster(dask, data):
        report = write(out)
    show(report, as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["evaluate"])
@options_from(ReadingOptions)
def evaluate(
    model: arguments.Model,
    data: arguments.Data,
    options: ReadingOptions,
    target: arguments.TruthColumn = None,
    metric: arguments.SingleMetric = None,
    reliability: arguments.ReliabilityPicture = None,
    drop_missing_target: DropMissing = False,
    memory_limit: arguments.Memory = "1GB",
    engine: arguments.Engine = "auto",
    dask: arguments.Dask = None,
    as_json: arguments.Json = False,
) -> None:
    """Measure the errors of a model, and of the best constant prediction, on a table."""
    from .commands.evaluate import evaluate as run

    with on_cluster(dask, data):
        report = run(
            model, data, target, memory_limit, engine, metric, reliability, options.read,
            drop_missing_target,
        )  # fmt: skip
    show(report, as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["explain"])
@options_from(ReadingOptions)
def explain(
    model: arguments.Model,
    data: arguments.Data,
    options: ReadingOptions,
    train: arguments.Background = None,
    out: arguments.ContributionsFile = None,
    output: arguments.ExplainedOutput = "raw",
    seed: arguments.ExplanationSeed = 0,
    as_json: arguments.Json = False,
) -> None:
    """Explain predictions: how much each column moves them, and similar training rows of a row."""
    from .commands.explain import explain as run

    show(run(model, data, train, out, output, seed, options.read), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["report"])
@options_from(ReadingOptions)
def report(
    model: arguments.Model,
    data: arguments.Data,
    options: ReadingOptions,
    out: arguments.PageFile,
    target: arguments.TruthColumn = None,
    train: arguments.TrainingTable = None,
    groups: arguments.GroupColumn = None,
    drop_missing_target: DropMissing = False,
    memory_limit: arguments.Memory = "1GB",
    engine: arguments.Engine = "auto",
    as_json: arguments.Json = False,
) -> None:
    """Write the performance of a model on a table as one HTML page. Needs the extra `plots`."""
    from .commands.report import report as run

    numbers = run(
        model, data, out, train, options.read,
        target=target, groups=groups, drop_missing_target=drop_missing_target,
        memory_limit=memory_limit, engine=engine,
    )  # fmt: skip
    show(numbers, as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["export"])
def export(
    model: arguments.Model, target: arguments.ExportedFile, as_json: arguments.Json = False
) -> None:
    """Write a model in the format of ONNX, for other runtimes. Needs the extra `onnx`."""
    from .commands.export import export as run

    show(run(model, target), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["info"])
def info(
    model: arguments.OptionalModel = None,
    all_columns: arguments.AllColumns = False,
    card: arguments.ShowsCard = False,
    as_json: arguments.Json = False,
) -> None:
    """Describe a model; without a model, describe this installation and machine."""
    from .commands.info import info as run
    from .commands.info import show_card

    if card:
        show_card(model)
        return
    show(run(model, not (all_columns or as_json)), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["convert"])
@options_from(ReadingOptions)
def convert(
    source: arguments.Data,
    target: arguments.NewTable,
    options: ReadingOptions,
    dtype: arguments.FloatType = "keep",
    as_json: arguments.Json = False,
) -> None:
    """Rewrite a table in another format, in bounded memory."""
    from .commands.convert import convert as run

    show(run(source, target, dtype, options.read), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["sample"])
def sample(
    name: arguments.SampleName,
    out: arguments.NewTable,
    part: arguments.SamplePart = "all",
    as_json: arguments.Json = False,
) -> None:
    """Write a sample data set of gramian as a table."""
    from .commands.sample import sample as run

    show(run(name, out, part), as_json)
