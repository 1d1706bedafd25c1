"""Commands of gramian and their arguments.

A command imports the code that it needs when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from .inputs.cluster import on_cluster
from .options.arguments import (
    AllColumns,
    Background,
    CheckpointSeconds,
    ConformalGroups,
    ConformalMethod,
    ContributionsFile,
    Coverage,
    Dask,
    Data,
    Debug,
    Engine,
    EscapesFormulas,
    ExplainedOutput,
    ExplanationSeed,
    ExportedFile,
    FitCheckpoint,
    FitsDeviations,
    FloatType,
    GroupColumn,
    HistoryFile,
    Json,
    KeptColumns,
    Memory,
    Model,
    ModelFile,
    NewTable,
    OptionalModel,
    PageFile,
    PredictionsFile,
    ReliabilityPicture,
    SampleName,
    SamplePart,
    ShowsCard,
    ShowsVersion,
    SingleMetric,
    TrainingTable,
    TrialsFile,
    TruthColumn,
    TunedModelFile,
    WritesDeviations,
    WritesProbabilities,
)
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
    debug: Debug = False,
    version: ShowsVersion = False,
) -> None:
    """Kernel ridge regression at any size, from tables in Parquet, CSV and other files."""


@app.command(epilog="Example: " + COMMAND_EXAMPLES["fit"])
@options_from(FitOptions)
def fit(
    data: Data,
    options: FitOptions,
    out: ModelFile,
    checkpoint: FitCheckpoint = None,
    checkpoint_every: CheckpointSeconds = 60.0,
    history: HistoryFile = None,
    std: FitsDeviations = False,
    conformal: ConformalMethod = None,
    conformal_groups: ConformalGroups = None,
    as_json: Json = False,
) -> None:
    """Search for a model of a table and save it; with options of the model, make a single fit.

    Without options of "Model" and "Fit", a search chooses kernel, inputs, learned metric,
    lengthscale and penalty on held-out rows, then fits all rows. With any of them, or with
    --checkpoint but no --budget, it is a single fit, and Parquet is streamed, never loaded whole.
    """
    from .outputs.uncertainty import Calibration

    calibration = Calibration(conformal, conformal_groups)
    if options.of_a_model:
        # Imported by the command that runs: the others, and --help, start without NumPy.
        from ..callbacks import Checkpoint
        from .commands.fit import fit as run

        seconds = checkpoint_every
        saved = None if checkpoint is None else Checkpoint(checkpoint, every_seconds=seconds)
        with on_cluster(options.dask, data, options.dask_patience, options.dask_keep):
            report = run(data, options, out, history, std, calibration, saved)
        show(report, as_json, "gramian info --all")
    else:
        from ..callbacks import Checkpoint
        from .commands.search import fit as search

        # ``--dask`` is an option of a single fit: a search always reads local rows.
        callback = None if checkpoint is None else Checkpoint(checkpoint)
        report = search(data, options, out, history, std, calibration, callback)
        show(report, as_json, "gramian info --all")


@app.command(epilog="Example: " + COMMAND_EXAMPLES["tune"])
@options_from(TuneOptions)
def tune(
    data: Data,
    options: TuneOptions,
    out: TunedModelFile = None,
    checkpoint: TrialsFile = None,
    as_json: Json = False,
) -> None:
    """Search as `gramian fit` does, and show the trials and the gain of each step.

    The last line is a command that repeats the best fit without a search.
    """
    from .commands.tune import tune as run

    show(run(data, options, out, checkpoint), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["plan"])
@options_from(FitOptions)
def plan(data: Data, options: FitOptions, as_json: Json = False) -> None:
    """Show the cost of a fit, or of a search: rows, memory, kernel evaluations, seconds."""
    from .commands.plan import plan as run

    with on_cluster(options.dask, data, options.dask_patience, options.dask_keep):
        report = run(data, options)
    show(report, as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["predict"])
@options_from(ReadingOptions)
def predict(
    model: Model,
    data: Data,
    options: ReadingOptions,
    out: PredictionsFile,
    keep: KeptColumns = None,
    proba: WritesProbabilities = False,
    std: WritesDeviations = False,
    interval: Coverage = None,
    escape_formulas: EscapesFormulas = False,
    memory_limit: Memory = "1GB",
    engine: Engine = "auto",
    dask: Dask = None,
    as_json: Json = False,
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
    model: Model,
    data: Data,
    options: ReadingOptions,
    target: TruthColumn = None,
    metric: SingleMetric = None,
    reliability: ReliabilityPicture = None,
    drop_missing_target: DropMissing = False,
    memory_limit: Memory = "1GB",
    engine: Engine = "auto",
    dask: Dask = None,
    as_json: Json = False,
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
    model: Model,
    data: Data,
    options: ReadingOptions,
    train: Background = None,
    out: ContributionsFile = None,
    output: ExplainedOutput = "raw",
    seed: ExplanationSeed = 0,
    as_json: Json = False,
) -> None:
    """Explain predictions: how much each column moves them, and similar training rows of a row."""
    from .commands.explain import explain as run

    show(run(model, data, train, out, output, seed, options.read), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["report"])
@options_from(ReadingOptions)
def report(
    model: Model,
    data: Data,
    options: ReadingOptions,
    out: PageFile,
    target: TruthColumn = None,
    train: TrainingTable = None,
    groups: GroupColumn = None,
    drop_missing_target: DropMissing = False,
    memory_limit: Memory = "1GB",
    engine: Engine = "auto",
    as_json: Json = False,
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
def export(model: Model, target: ExportedFile, as_json: Json = False) -> None:
    """Write a model in the format of ONNX, for other runtimes. Needs the extra `onnx`."""
    from .commands.export import export as run

    show(run(model, target), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["info"])
def info(
    model: OptionalModel = None,
    all_columns: AllColumns = False,
    card: ShowsCard = False,
    as_json: Json = False,
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
    source: Data,
    target: NewTable,
    options: ReadingOptions,
    dtype: FloatType = "keep",
    as_json: Json = False,
) -> None:
    """Rewrite a table in another format, in bounded memory."""
    from .commands.convert import convert as run

    show(run(source, target, dtype, options.read), as_json)


@app.command(epilog="Example: " + COMMAND_EXAMPLES["sample"])
def sample(
    name: SampleName,
    out: NewTable,
    part: SamplePart = "all",
    as_json: Json = False,
) -> None:
    """Write a sample data set of gramian as a table."""
    from .commands.sample import sample as run

    show(run(name, out, part), as_json)
