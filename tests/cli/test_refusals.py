"""Whatever is wrong: one line on stderr that says what, exit code 2, and nothing half done."""

from __future__ import annotations

import contextlib
import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plain import PLAIN, PLAIN_OPTIONS

from gramian import KernelModel, KernelRidge
from gramian._files.tensors import read_tensors, write_tensors

FIT = ("--target", "y", "--landmarks", "20")


@pytest.fixture
def refused(error, train, tmp_path):
    """Return a function that runs a fit that must be refused, and gives what it says."""

    def run(*options, data=train, target="y"):
        out = tmp_path / "refused.model"
        said = error("fit", data, "--target", target, *options, "--out", out)
        assert not out.exists()
        return said

    return run


# --- options -------------------------------------------------------------------------------------

OPTIONS = {
    "--penalty 0": "needs a positive penalty, not 0; .*stops early: eigenpro1",
    "--penalty -1": "--penalty must be finite and at least 0, not -1",
    "--penalty nan": "--penalty must be finite and at least 0, not nan",
    "--penalty much": "--penalty must be a number or auto, not much",
    "--penalty auto --landmarks bless:9 --solver direct": "a path that needs --solver falkon",
    "--lengthscale 0": "--lengthscale must be positive and finite, not 0",
    "--lengthscale 1,-2,3": "--lengthscale must be positive and finite, not 1,-2,3",
    "--lengthscale long": "--lengthscale must be a number,.* such as '2 median', not long",
    "--lengthscale 1,2": "2 lengthscales, but the table has 3 features",
    "--kernel rbf": "unknown --kernel 'rbf'; known: .*; did you mean gaussian?",
    "--kernel gausian": "unknown --kernel 'gausian'; known: .*; did you mean gaussian?",
    "--kernel precomputed": "--kernel precomputed requires a kernel matrix, but the command",
    "--kernel sum": "unknown --kernel 'sum'",
    "--solver falcon": "unknown --solver 'falcon'; known: auto, .*; did you mean falkon?",
    "--solver pcg --landmarks 5": "PCG solves FullProblem.*: --solver falkon needs --landmarks",
    "--landmarks 0": "--landmarks must be a whole number above 0, auto, none, .*, not 0",
    "--landmarks bles": "unknown --landmarks 'bles'; known: .*; did you mean bless?",
    "--landmarks bless:": "--landmarks bless:NUMBER must have a whole number above 0, not ''",
    "--landmarks bless:0": "--landmarks bless:NUMBER must have a whole number above 0, not '0'",
    "--landmarks bless:1e-3": "bless:NUMBER must have a whole number above 0, not '1e-3'",
    "--landmarks 1.5": "--landmarks must be a whole number above 0, auto, none, .*, not 1.5",
    "--max-iter 0": "--max-iter must be a whole number of at least 1, not 0",
    "--tol -1": "--tol must be a finite number of at least 0, or 'auto', not -1",
    "--tol nan": "--tol must be a finite number of at least 0, or 'auto', not nan",
    "--seed -1": "--seed must be at least 0 and below .*, not -1",
    f"--seed {10**30}": "--seed must be at least 0 and below",
    f"--max-iter {10**400}": "--max-iter must be below 2.*63, not 1000",
    f"--memory-limit {10**400}": "--memory-limit 1.* is not a size",
    "--engine cuda": "unknown --engine 'cuda'; known: auto.*did you mean torch:cuda or triton",
    "--engine nativ": "unknown --engine 'nativ'; known: .*; did you mean native?",
    "--engine torch:cuda:9": "--engine torch:cuda:9 needs .*(CUDA|gpu).*[Uu]se --engine auto",
    "--checkpoint c --checkpoint-every 0": "--checkpoint-every must be positive and finite, not 0",
    "--memory-limit lots": "--memory-limit lots is not a size",
    "--memory-limit 20MB": "61 rows need .* --memory-limit is 20 MB",
    "--validation 1.5": "--validation must be a fraction between 0 and 1, or a file, not 1.5",
    "--validation 0.001": "--validation 0.001 of 61 rows leaves 61 rows to learn from and 0 to",
    "--validation none.parquet": "there is no file or directory none.parquet",
    "--features a,b,z": "train.parquet has no column z; it has a, b, c, y",
    "--features a,b,a": "the column a is named twice in a,b,a",
    "--features ,": "(no columns to learn from|found 0 columns in --features)",
    "--features a,y": "column y cannot be a feature and the target at once",
    "--features a --ignore b": "--features and --drop cannot be combined; give one of them",
    "--drop a,b,c": "no columns to learn from other than the target y",
    "--ignore z": "has no column z",
    "--history h.txt": "--history h.txt must end in .json or .csv",
    "--task guess": "'guess' is not one of",
    "--kernel poly": "unknown --kernel 'poly'; known: .*; did you mean polynomial?",
    "--kernel jaccard": "did you mean tanimoto?",
    "--budget 30": "--budget without a unit must be at least 10,000 .* a unit, such as '30 s'",
    "--budget soon": "--budget must be a time such as '30 s' .*, not 'soon'",
    "--budget 1e9 --tol 0.1": "--budget and --tol cannot be combined: --budget limits a search",
    "--scoring mae --tol 0.1": "--scoring and --tol cannot be combined: --scoring compares",
    "--scoring accuracy": "--scoring must be one of rmse, mae, .*, which is a metric of a classif",
    "--scoring mean_absolute_error": "--scoring must be .*; did you mean neg_mean_absolute_error?",
    "--metric-rounds 2": "--metric-rounds requires --learn-metric; give both",
    "--learn-metric --metric-rounds 0": "--metric-rounds must be at least 1, not 0",
    "--learn-metric --metric-power 2": "--metric-power must be above 0 and at most 1, not 2",
    "--learn-metric --metric-kernel rbf": "unknown --metric-kernel 'rbf'.*did you mean gaussian",
    "--gamma 0.5": r"No such option: --gamma; use --lengthscale: .* = \(2 \* gamma\)",
    "--alpha 1": "No such option: --alpha; use --penalty: penalty = alpha / n",
    "--length-scale 1": "No such option: --length-scale; use --lengthscale: a number",
    "--n-components 9": "No such option: --n-components; use --landmarks: the number of",
    "--random-state 0": "No such option: --random-state; use --seed. Try",
    "--C 1": r"No such option: --C; use --penalty: penalty = 1 / \(2 \* n \* C\)",
    "--max_iter 5": "No such option: --max_iter; use --max-iter. Try",
    "--penality 5": r"No such option: --penality; did you mean --penalty\?",
    "--exclude a": "No such option: --exclude; use --drop. Try",
    "--frobnicate 1": "No such option: --frobnicate.*fit --help",
}


@pytest.mark.parametrize("options", OPTIONS)
def test_options(refused, options):
    assert_says(refused(*options.split()), OPTIONS[options])


@pytest.mark.parametrize("options", ["--memory-limit 20MB", "--solver pcg --landmarks 5"])
@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--validation", 0.3),
        (
            "--standardize",
            "false",
        ),
    ],
)
def test_what_cannot_fit_is_refused_before_a_pass(refused, monkeypatch, options, more):
    """Features may be many gigabytes; the target is read before."""

    def read(*_):
        raise RuntimeError("features are read")

    monkeypatch.setattr("gramian.data.ParquetRows.blocks", read)
    monkeypatch.setattr("gramian.data.ParquetRows.take", read)
    assert_says(refused(*options.split(), *more), OPTIONS[options].replace("61", r"\d+"))


def assert_says(said: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        raise ValueError(said)


def test_a_table_that_speaks_of_checkpoints_is_none(refused, tmp_path):
    other = tmp_path / "notes.csv"
    other.write_text('key,value\n"gramian_state",1\n')
    said = refused("--checkpoint", other)
    assert "notes.csv is not a checkpoint of gramian, and is not overwritten" in said
    assert "elete" not in said


def test_where_nothing_can_be_written(refused, train, tmp_path):
    assert "is a directory; it must be a file" in refused("--checkpoint", tmp_path)
    assert "is not a writable folder" in refused("--checkpoint", train / "x.ckpt")


WRITES = {
    "fit": "fit TRAIN --target y --landmarks 5 --out PATH.model",
    "checkpoint": "fit TRAIN --target y --landmarks 5 --out m.model --checkpoint PATH.state",
    "history": "fit TRAIN --target y --landmarks 5 --out m.model --history PATH.csv",
    "search": "fit TRAIN --target y --out PATH.model",
    "tune": "tune TRAIN --target y --out PATH.model",
    "predict": "predict MODEL TRAIN --out PATH.csv",
    "folder": "predict MODEL FOLDER --dask local:1 --out PATH",
    "reliability": "evaluate MODEL TRAIN --reliability PATH.png",
    "report": "report MODEL TRAIN --out PATH.html",
    "convert": "convert TRAIN PATH.csv",
    "sample": "sample energy PATH.csv",
}
"""Each command that writes, with the file that it writes."""


@pytest.mark.parametrize("command", WRITES)
@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("s3://KEY:SECRET@bucket/x", "s3://bucket/x.* is an address, but only tables are read"),
        ("none/none/x", "there is no folder none; make it, or give another one"),
    ],
)
def test_outputs_are_refused_before_any_work(
    start, words, command, error, model, train, tmp_path, monkeypatch
):
    def work(*_arguments, **_more):
        raise AssertionError

    for name in ("cli.commands.fit", "cli.commands.search"):
        monkeypatch.setattr(import_module(f"gramian.{name}"), "open_training", work)
    for name in ("cli.commands.predict", "cli.commands.evaluate"):
        monkeypatch.setattr(import_module(f"gramian.{name}"), "load_model", work)
    monkeypatch.setattr(import_module("gramian.report.write"), "resolve_model", work)
    monkeypatch.setattr(import_module("gramian.data.sources.convert"), "as_table", work)
    (tmp_path / "run" / "folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "run")
    if command == "folder":  # the cluster, too, would start for nothing
        monkeypatch.setattr("gramian.cli.app.on_cluster", lambda *_: contextlib.nullcontext())
    places = {"TRAIN": train, "MODEL": model, "FOLDER": tmp_path / "run" / "folder"}
    filled = [str(places.get(word, word)) for word in WRITES[command].split()]
    said = error(*(word.replace("PATH", start) for word in filled))
    assert re.search(words.replace("none;", f"{tmp_path}/run/none;"), said)
    assert "SECRET" not in said
    assert [path.name for path in Path().rglob("*")] == ["folder"]


def test_what_is_read_is_not_overwritten(error, train, tmp_path):
    before = train.read_bytes()
    fit = ("fit", train, "--target", "y", "--landmarks", 20)
    assert "--out" in error(*fit, "--out", train)
    assert "would overwrite an input" in error(*fit, "--out", tmp_path / "." / train.name)
    assert "--history" in error(*fit, "--out", "m", "--history", "h.csv", "--validation", "h.csv")
    assert "--checkpoint and --out are both" in error(*fit, "--out", "m", "--checkpoint", "m")
    assert train.read_bytes() == before


def test_predictions_overwrite_neither_model_nor_data(error, model, fresh, tmp_path):
    before = model.read_bytes(), fresh.read_bytes()
    assert "would overwrite" in error("predict", model, fresh, "--out", fresh)
    assert "would overwrite" in error("predict", model, fresh, "--out", model)
    assert "is a directory" in error("predict", model, fresh, "--out", tmp_path)
    parts = tmp_path / "parts"
    parts.mkdir()
    said = error("predict", model, parts, "--out", parts / "predictions.parquet")
    assert "would become a part of the input data" in said
    assert (model.read_bytes(), fresh.read_bytes()) == before


def test_no_command_of_that_name(error):
    assert "No such command 'train'; did you mean fit?" in error("train")
    assert "No such command 'predcit'; did you mean predict?" in error("predcit")
    assert "No such command 'frobnicate'. Try `gramian --help`" in error("frobnicate")


def test_missing_option(error, train):
    assert "Missing option '--out'" in error("fit", train, "--target", "y")


# --- tables --------------------------------------------------------------------------------------


def test_a_file_that_is_not_there(refused, tmp_path):
    assert "there is no file" in refused(data=tmp_path / "none.parquet")
    assert "there is no file" in refused(data=tmp_path / "none.csv")
    assert "cannot tell the format of" in refused(data=tmp_path / "none.sav")


@pytest.mark.parametrize(
    "more",
    [
        (),
        pytest.param(
            (
                "--standardize",
                "false",
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(("--validation", 0.3), marks=pytest.mark.slow),
    ],
)
def test_a_copy_of_the_target(refused, save, tmp_path, report, more):
    copied = save(copy=pq.read_table(save())["y"])
    said = refused(*more, data=copied)
    assert_says(said, "column 'copy' equals the target in every row.*leave it out with --drop$")
    ignoring = ("--target", "y", "--ignore", "copy", "--out", tmp_path / "y.model")
    assert report("fit", copied, *ignoring)["features"] == 3


def test_a_target_that_is_not_there(refused):
    assert "has no column price; it has a, b, c, y" in refused(target="price")


def test_a_feature_that_is_no_number(refused, save):
    said = refused(data=save(city=[[1.0, 2.0]] * 60 + [[1.0]]))
    assert "'city' has lists of 1 numbers, but 2 in the first row" in said
    assert "leave it out with --drop, or" in said


@pytest.mark.parametrize(
    "more",
    [
        (),
        (
            "--standardize",
            "false",
        ),
        ("--validation", 0.3),
    ],
)
@pytest.mark.parametrize("value", [-np.inf, np.inf])
def test_missing_and_infinite_values_are_named(refused, save, more, value):
    b = np.ones(61)
    b[47] = value
    said = refused(*more, data=save(b=b))
    assert "column 'b'" in said
    assert "row 47" in said


def test_a_missing_target(refused, save):
    y = np.ones(61)
    y[[5, 8]] = np.nan
    assert_says(
        refused(data=save(y=y)),
        r"target 'y' is missing .*NaN or infinite\): 2 of 61, first in row 5 ",
    )


@pytest.mark.parametrize(
    "more",
    [
        (),
        (
            "--standardize",
            "false",
        ),
    ],
)
def test_a_target_too_small_for_products(refused, save, more):
    said = refused(*more, data=save(y=1e-300 * np.arange(61.0)))
    assert_says(said, "the target 'y' is 6e-299 in size, .* round to 0: .*divide the target 'y'")


def test_text_for_a_regression(refused, save):
    said = refused("--task", "regression", data=save(y=["low", "high"] * 30 + ["low"]))
    assert "the target 'y' is text, such as 'low'" in said


def test_numbers_that_are_no_classes(refused):
    assert "continuous" in refused("--task", "classification")


def test_one_class(refused, save):
    assert "one class only" in refused(data=save(y=["low"] * 61))


def test_truncated_parquet(refused, train):
    whole = train.read_bytes()
    train.write_bytes(whole[: len(whole) // 2])
    assert "cannot be read as Parquet: it is cut off, damaged" in refused()


def test_damage_in_the_middle_of_a_parquet_file(refused, train):
    whole = bytearray(train.read_bytes())
    whole[300:900] = b"\xff" * 600
    train.write_bytes(whole)
    assert "cannot be read as Parquet" in refused()


DAMAGED = {
    "npy of shape ()": (np.float64(1), r"x\.npy has shape \(\)"),
    "npy of shape (2, 3, 4)": (np.zeros((2, 3, 4)), r"x\.npy has shape \(2, 3, 4\)"),
    "npy without columns": (np.zeros((5, 0)), r"x\.npy has shape \(5, 0\)"),
    "complex npy": (np.zeros((5, 2), complex), r"x\.npy has type complex128"),
    "longdouble npy": (np.zeros((5, 2), np.longdouble), r"x\.npy has type"),
    "npy of dates": (np.zeros((5, 2), "M8[s]"), r"x\.npy has type datetime64"),
    "npy of bytes": (np.zeros((5, 2), "S3"), r"x\.npy has type"),
    "npy of records": (np.zeros(5, "f4, f4"), r"x\.npy has type"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_arrays_that_are_no_tables(refused, error, tmp_path, name):
    array, words = DAMAGED[name]
    np.save(tmp_path / "x.npy", array)
    assert_says(refused(data=tmp_path / "x.npy", target="0"), words)
    assert_says(error("convert", tmp_path / "x.npy", tmp_path / "y.parquet"), words)


def test_tables_without_columns(refused, error, tmp_path):
    pq.write_table(pa.table({"y": [1.0]}).select([]), tmp_path / "x.parquet")
    assert "x.parquet has 0 columns" in refused(data=tmp_path / "x.parquet")
    assert "0 columns" in error("convert", tmp_path / "x.parquet", tmp_path / "y.csv")


def test_a_text_that_is_none(refused, tmp_path):
    (tmp_path / "x.csv").write_bytes(b"PK\3\4 and so\0on")
    assert_says(refused(data=tmp_path / "x.csv"), r"x\.csv is not a text file: byte 11 is zero")


def test_a_target_that_is_there_twice(refused, tmp_path):
    (tmp_path / "x.csv").write_text("a,y,y\n1,2,3\n")
    assert "x.csv has several columns named y" in refused(data=tmp_path / "x.csv")


def test_many_names_are_cut(refused, save):
    said = refused(data=save(**{f"pixel{i}": np.ones(61) for i in range(781)}), target="pixel78x")
    assert_says(said, "it has a, b, c, y, .* and 765 more; did you mean pixel78")
    assert len(said) < 500


def test_empty_tables(refused, train, tmp_path):
    pq.write_table(pq.read_table(train).slice(0, 0), train)
    assert "has 0 rows" in refused()
    (tmp_path / "empty.csv").write_text("a,b,c,y\n")
    assert "0 rows" in refused(data=tmp_path / "empty.csv")


def test_too_few_rows_for_a_search(refused, save):
    assert_says(refused(data=save(n=4)), "a search needs 5 .*; use one fit, as by --kernel")


def test_one_row_is_a_table(report, save, tmp_path):
    options = ("--target", "y", "--kernel", "gaussian")
    report("fit", save(n=1), *options, "--out", tmp_path / "y.model")


# --- models --------------------------------------------------------------------------------------


@pytest.fixture
def model(fit, train):
    return fit(train, "--landmarks", 20)


@pytest.fixture
def unusable(error, fresh, tmp_path):
    """Return a function that checks that all commands refuse a model, and gives what they say."""

    def run(model):
        out = tmp_path / "predictions.parquet"
        said = {
            error("predict", model, fresh, "--out", out),
            error("evaluate", model, fresh),
            error("info", model),
        }
        assert not out.exists()
        return said.pop() if len(said) == 1 else said

    return run


def test_a_model_that_is_not_there(unusable, tmp_path):
    assert "there is no model file" in unusable(tmp_path / "none.model")


def test_a_truncated_model(unusable, model):
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) - 7])
    assert "is not a gramian model, or was cut off" in unusable(model)


def test_another_file_for_a_model(unusable, train):
    assert "is not a gramian model" in unusable(train)


def test_a_model_of_a_newer_version(unusable, model):
    edit_header(model, lambda header: header | {"format": 99})
    assert "upgrade gramian" in unusable(model)


def test_a_model_with_a_kernel_of_the_future(unusable, model):
    edit_header(model, lambda header: header | {"kernel": {"name": "quantum"}})
    assert "unknown kernel 'quantum'" in unusable(model)


def test_a_model_that_lacks_a_part(unusable, model):
    edit_header(model, lambda header: {k: v for k, v in header.items() if k != "kernel"})
    assert "damaged" in unusable(model)


def edit_header(path: Path, change) -> None:
    """Rewrite what the header of a model says, with the digest that belongs to it."""
    contents = read_tensors(path)
    header = change(json.loads(contents.metadata["gramian"]))
    write_tensors(path, contents.tensors, {"gramian": json.dumps(header)})


def test_features_that_are_not_there(error, model, fresh, tmp_path):
    table = pq.read_table(fresh)
    pq.write_table(table.drop_columns(["a", "c"]), fresh)
    for command in (
        ("predict", model, fresh, "--out", tmp_path / "p.csv"),
        ("evaluate", model, fresh),
    ):
        said = error(*command)
        assert "lacks columns that the model was trained on: a, c; it has b" in said


def test_many_names_to_predict_from_are_cut(error, model, tmp_path):
    data = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"pixel{i}": [1.0] for i in range(782)}), data)
    said = error("predict", model, data, "--out", tmp_path / "p.csv")
    assert "pixel18, pixel19 and 762 more" in said
    assert "pixel20" not in said


def test_a_matrix_of_another_width(error, model, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 5)))
    said = error("predict", model, tmp_path / "x.npy", "--out", tmp_path / "p.csv")
    assert "x.npy lacks columns that the model was trained on" in said


def test_infinite_values_to_predict(error, model, save, tmp_path):
    c = np.ones(61)
    c[13] = np.inf
    said = error("predict", model, save("inf.parquet", c=c), "--out", tmp_path / "p.csv")
    assert_says(said, "inf.parquet contains 1 inf .* row 13, column 'c'")


def test_predictions_in_no_known_format(error, model, fresh, tmp_path):
    assert "expected a name ending in" in error(
        "predict", model, fresh, "--out", tmp_path / "p.xls"
    )


def test_numbers_for_a_model_of_classes(error, fit, save):
    model = fit(save(y=["low", "high"] * 30 + ["low"]), "--landmarks", 20)
    said = error("evaluate", model, save())
    assert "the target 'y' holds numbers, but the model predicts text" in said


def test_a_model_that_does_not_know_its_target(error, report, fresh, tmp_path):
    x = np.random.default_rng(0).standard_normal((30, 3))
    KernelRidge(landmarks=5, **PLAIN).fit(x, x[:, 0]).model_.save(tmp_path / "x.model")
    assert "give --target" in error("evaluate", tmp_path / "x.model", fresh)
    assert report("evaluate", tmp_path / "x.model", fresh, "--target", "y")["rows"] == 17


def test_a_source_that_is_its_target(error, train):
    assert "a file other than the source" in error("convert", train, train)


# --- what is shown -------------------------------------------------------------------------------

ESCAPE = "\x1b]0;owned\x07\u202e\x9b"
"""Renames the window of a terminal, reverses what follows, and starts a command."""


def test_names_and_labels_cannot_write_to_the_terminal(gramian, save, tmp_path):
    labels = np.where(np.arange(60) % 2 == 0, f"a{ESCAPE}", "b")
    data = save(f"x{ESCAPE}.parquet", n=60, **{f"c{ESCAPE}": np.arange(60.0), "y": labels})
    model = tmp_path / f"m{ESCAPE}.model"
    runs = [
        ("fit", data, *FIT, "--out", model),
        ("fit", data, "--target", "none", "--landmarks", 20, "--out", model),
        ("fit", tmp_path / f"none{ESCAPE}.csv", *FIT, "--out", model),
        ("info", model), ("info", model, "--json"),
        ("evaluate", model, data), ("evaluate", model, data, "--json"),
        ("--debug", "info", data), ("fit", f"--{ESCAPE}", data),
    ]  # fmt: skip
    for arguments in runs:
        done = gramian(*arguments)
        said = done.out + done.err
        assert done.code in (0, 2)
        assert r"\x1b" in said or r"\u001b" in said, arguments
        assert not set(ESCAPE[:1] + ESCAPE[-3:]) & set(said), arguments


def test_passwords_of_a_cluster_are_not_shown(error, model, tmp_path):
    for address in ("tcp://user:secret@127.0.0.1:1", "user:secret@127.0.0.1:1"):
        out = ("--dask", address, "--out", tmp_path / "p.csv")
        said = error("predict", model, tmp_path, *out)
        assert "127.0.0.1:1" in said
        assert "secret" not in said


# --- the disk and the program --------------------------------------------------------------------


def test_a_full_disk_leaves_the_old_model(error, model, train, full_disk, tmp_path):
    before, files = model.read_bytes(), sorted(tmp_path.iterdir())
    with full_disk(2048):
        options = ("--target", "y", "--landmarks", 50, *PLAIN_OPTIONS)
        said = error("fit", train, *options, "--out", model)
    assert f"could not write {model}: File too large. The existing file is unchanged" in said
    assert model.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == files
    assert KernelModel.load(model).coef.shape == (20, 1)


def test_a_full_disk_leaves_old_predictions(error, model, save, full_disk, tmp_path):
    data, out = save("long.parquet", n=500), tmp_path / "p.csv"
    out.write_text("prediction\n1.0\n")
    with full_disk(2048):
        said = error("predict", model, data, "--out", out)
    assert "could not write" in said
    assert out.read_text() == "prediction\n1.0\n"


def test_a_bug_is_said_to_be_one(error, train, monkeypatch, gramian):
    def broken(*_arguments):
        raise KeyError("lost")

    monkeypatch.setattr("gramian.cli.commands.info.info", broken)
    assert "KeyError: 'lost'. This is a bug in gramian" in error("info", code=1)
    done = gramian("--debug", "info")
    assert done.code == 1
    assert "Traceback" in done.err


def test_out_of_memory(error, monkeypatch):
    def large(*_arguments):
        raise MemoryError

    monkeypatch.setattr("gramian.cli.commands.info.info", large)
    assert "out of memory; set --memory-limit" in error("info")
