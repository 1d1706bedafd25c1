"""The command line on a cluster."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramian.cli import main

distributed = pytest.importorskip("distributed")

from distributed.security import Security  # noqa: E402

from gramian.data.dask.connect import connection  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.standard_normal((600, 2)).astype(np.float32)
MODEL = ("--target", "y", "--lengthscale", "2", "--penalty", "1e-4", "--landmarks", "40")


def run(*arguments: object) -> int:
    return main([str(one) for one in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lake")
    for number, part in enumerate(np.split(X, [100, 350])):
        columns = {"a": part[:, 0], "b": part[:, 1], "y": np.sin(part[:, 0]) + part[:, 1]}
        pq.write_table(pa.table(columns), path / f"{number}.parquet")
    return path


@pytest.mark.slow
def test_fit_predict_and_evaluate(folder, tmp_path, capsys):
    given = ("--dask", "local:1")
    model, out = tmp_path / "m.st", tmp_path / "predicted"
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    ) as made:
        given = ("--dask", made.scheduler_address)
        more = ("--dask-keep", "--dask-patience", "1min", "--out", model)
        assert run("fit", folder, *MODEL, *given, *more) == 0, capsys.readouterr().err
        assert "accepts connections without a certificate" in capsys.readouterr().err
        assert run("predict", model, folder, "--out", out, *given) == 0, capsys.readouterr().err
        capsys.readouterr()
        assert run("evaluate", model, folder, *given, "--json") == 0
        there = json.loads(capsys.readouterr().out)
        assert run("evaluate", model, folder, *given, "--metric", "r2", "--json") == 0
        assert json.loads(capsys.readouterr().out)["r2"] == there["r2"]
        assert run("predict", model, folder, "--out", out, *given) == 2
    assert "already exists" in capsys.readouterr().err
    assert sorted(file.name for file in out.iterdir()) == [
        f"part-0000{i}.parquet" for i in range(3)
    ]
    assert [pq.read_metadata(file).num_rows for file in sorted(out.iterdir())] == [100, 250, 250]
    assert run("predict", model, folder, "--out", tmp_path / "all.parquet") == 0
    capsys.readouterr()
    assert run("evaluate", model, folder, "--json") == 0
    expected = json.loads(capsys.readouterr().out)
    assert set(there) == set(expected)
    for name in ("rmse", "mae", "r2", "rmse_of_mean", "mae_of_mean", "r2_of_mean"):
        assert there[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-6)
    here = pq.read_table(tmp_path / "all.parquet")["prediction"].to_numpy()
    np.testing.assert_allclose(pq.read_table(out)["prediction"].to_numpy(), here, atol=1e-6)
    assert np.abs(here - np.sin(X[:, 0]) - X[:, 1]).mean() < 0.02


@pytest.mark.slow
def test_classes_and_their_sets_are_evaluated(tmp_path, capsys):
    data, model = tmp_path / "lake", tmp_path / "m.st"
    data.mkdir()
    labels = np.array(["cat", "dog", "owl"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 1)]
    for number, part in enumerate(np.split(np.arange(600), [100, 350])):
        columns = {"a": X[part, 0], "b": X[part, 1], "y": labels[part]}
        pq.write_table(pa.table(columns), data / f"{number}.parquet")
    assert run("fit", data, *MODEL, "--conformal", "split", "--out", model) == 0
    found = []
    for where in ((), ("--dask", "local:1")):
        capsys.readouterr()
        assert run("evaluate", model, data, *where, "--json") == 0, capsys.readouterr().err
        found.append(json.loads(capsys.readouterr().out))
    here, there = found
    assert list(there) == list(here)
    assert there["confusion"] == here["confusion"]
    assert there["sets_of_0.9"] == here["sets_of_0.9"]
    for name in ("accuracy", "auc", "log_loss", "brier", "calibration_error", "auc_of_majority"):
        assert there[name] == pytest.approx(here[name], rel=1e-6)


@pytest.mark.slow
def test_processes_on_this_machine_end_with_the_command(folder, tmp_path, capsys):
    done = run("plan", folder, *MODEL, "--dask", "local:1")
    assert done == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "falkon with 40 landmarks" in said
    assert "on 1 worker (1 thread): 6" in said  # hundred megabytes: libraries
    done = run("plan", folder, "--target", "y", "--cells", "100", "--dask", "local:1")
    assert done == 0, capsys.readouterr().err
    assert "of each of 7 cells" in capsys.readouterr().out
    assert ", 4 tasks and 9.79 kB sent per pass" in said  # three parts and a merge
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()


@pytest.mark.slow
def test_processes_on_this_machine_listen_to_it_alone():
    psutil = pytest.importorskip("psutil")
    own = psutil.Process()
    before = {c.laddr for c in own.net_connections("inet") if c.status == "LISTEN"}
    with connection(2):
        some = [own, *own.children(recursive=True)]
        found = [c.laddr for one in some for c in one.net_connections("inet")
                 if c.status == "LISTEN"]  # fmt: skip
    others = [address for address in found if address not in before]
    assert len(others) >= 3
    assert {address.ip for address in others} == {"127.0.0.1"}


@pytest.mark.slow
def test_processes_on_this_machine_refuse_other_clients():
    with connection(1) as client:
        workers = client.scheduler_info()["workers"]
        addresses = [client.scheduler.address, *workers, *(w["nanny"] for w in workers.values())]
        for address in addresses:
            host = address.split("://")[1]
            assert connects(f"tls://{host}", client.security)
            assert not connects(f"tls://{host}", Security.temporary())
            assert not connects(f"tcp://{host}", Security())
        port = client.scheduler_info()["services"]["dashboard"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/info/main/workers.html")
        (folder,) = client.run(lambda dask_worker: dask_worker.local_directory).values()
        assert Path(folder).parent.stat().st_mode & 0o777 == 0o700


def connects(address: str, security: Security) -> bool:
    async def identify() -> None:
        arguments = security.get_connection_args("client")
        async with distributed.rpc(address, timeout=1, connection_args=arguments) as other:
            await other.identity()

    try:
        asyncio.run(identify())
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("four", "--dask must be the address of a scheduler, such as tls://scheduler:8786"),
        (
            "local:0",
            "--dask local:NUMBER must have a number of processes, such as local:4, not local:0",
        ),
        ("local:x", "--dask local:NUMBER must have a number of processes"),
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9 within 1 s"),
    ],
)
def test_what_is_no_cluster(given, said, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gramian.data.dask.connect.ANSWER_SECONDS", 1.0)
    assert run("fit", folder, *MODEL, "--dask", given, "--out", tmp_path / "m") == 2
    assert said in capsys.readouterr().err


def test_what_does_not_go_with_a_cluster(folder, tmp_path, capsys):
    file = folder / "0.parquet"
    assert run("fit", file, *MODEL, "--dask-keep", "--out", tmp_path / "m") == 2
    assert "--dask-patience and --dask-keep require --dask" in capsys.readouterr().err
    given = ("--dask", "local:1", "--dask-patience", "soon")
    assert run("plan", folder, *MODEL, *given) == 2
    assert (
        "--dask-patience must be a positive time in seconds or as 10min" in capsys.readouterr().err
    )
    assert run("fit", file, *MODEL, "--dask", "local:1", "--out", tmp_path / "m") == 2
    assert "--dask requires DATA to be a folder of .parquet files" in capsys.readouterr().err


def test_options_of_rows_are_refused_on_a_cluster(folder, tmp_path, capsys):
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    ) as made:
        given = ("--dask", made.scheduler_address, "--out", tmp_path / "m")
        for option in (("--drop-missing-target",), ("--weight", "a")):
            assert run("fit", folder, *MODEL, *given, *option) == 2
            assert f"{option[0]} cannot be combined with --dask" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_without_the_extra(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gramian.data.dask.connect", None)
    assert run("fit", folder, *MODEL, "--dask", "local:1", "--out", tmp_path / "m") == 2
    assert "pip install 'gramian[dask]'" in capsys.readouterr().err


def test_processes_are_not_started_without_certificates(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    assert run("fit", folder, *MODEL, "--dask", "local:1", "--out", tmp_path / "m") == 2
    assert "need cryptography for their certificates" in capsys.readouterr().err
