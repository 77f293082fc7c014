"""What ``trainwatch export`` gives to others: whole enough to be judged again, without what they must not know."""

import csv
import gzip
import json
from pathlib import Path

import msgspec
import pytest

from trainwatch.cli import main
from trainwatch.core.model.fact import AttemptStarted, RunCreated
from trainwatch.core.model.observation import GpuReading, GpuSample, LogChunk, Meta, MetricValues, Start, Tick
from trainwatch.core.model.preset import Change
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.latest import ProgressPoint
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.store.trace import TraceWriter

TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    spec = RunSpec(
        id="luca-1", name="luca", command=("python", "train.py"), cwd="/w", created_wall=1.0,
        env={"OWN_SECRET": "mellon-friend"},
    )  # fmt: skip
    return RunDirectory.create(tmp_path / "home", spec)


def test_an_exported_trace_holds_no_secrets(run: RunDirectory, tmp_path: Path) -> None:
    writer = TraceWriter(run.trace)
    writer.write(Meta(t=0, command=("train.py", "--api-key", "xyzzy-1234", TOKEN), settings={"hang": {"min_s": 8.0}}))
    changes = (Change(where="env", key="WANDB_API_KEY", after="plugh-5678"), Change(where="flag", key="--lr", after=1))
    writer.write(Start(t=0.1, attempt=1, pid=7, changes=changes))
    writer.write(LogChunk(t=1, text=f"login with {TOKEN}\npassword=hunter22\nspeak mellon-friend\nstep 3/9\n"))
    writer.write(Tick(t=2))
    writer.close()
    with run.trace.open("ab") as file:
        file.write(gzip.compress(b'{"t":3,"kind":"tick"}')[:-9])

    assert main(["export", "luca", "--trace", str(tmp_path / "shared.jsonl")]) == 0

    text = (tmp_path / "shared.jsonl").read_text()
    for secret in (TOKEN, "xyzzy", "plugh", "hunter22", "mellon"):
        assert secret not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["version"] == 1
    assert lines[0]["settings"] == {"hang": {"min_s": 8.0}}
    assert [line["kind"] for line in lines] == ["meta", "start", "log", "tick"]
    assert "step 3/9" in lines[2]["text"]


def test_export_never_overwrites_a_file(run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.trace.write_bytes(msgspec.json.encode(Tick(t=0)) + b"\n")
    (tmp_path / "mine").write_text("precious")
    assert main(["export", "luca", "--trace", str(tmp_path / "mine")]) == 2
    assert (tmp_path / "mine").read_text() == "precious"
    assert "already exists" in capsys.readouterr().err


@pytest.fixture
def measured(run: RunDirectory) -> RunDirectory:
    """Steps 10 and 20 at 5 s and 15 s of attempt 1, with a loss, a GPU and a number that the trainer logs by name."""
    created = RunCreated(run="luca-1", name="luca", command=("python", "train.py"), cwd="/w", preset="generic")
    with JournalWriter(run.journal) as journal:
        journal.append_all(0.0, 1000.0, (created,))
        journal.append_all(1.0, 1001.0, (AttemptStarted(attempt=1, pid=7),))
    writer = HistoryWriter(run.history)
    for t, step in ((5.0, 10), (15.0, 20)):
        writer.add(ProgressPoint(t=t, progress=Progress(phase="train", step=step, run_step=step, loss=1 / step)))
    writer.add(GpuSample(t=15, gpus=(GpuReading(index=1, mem_used_bytes=5e9),)))
    writer.add(MetricValues(t=10, values={"a, b": 2.0}))
    writer.close()
    return run


def test_export_writes_every_series_with_time_and_step(
    measured: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--csv", "luca"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    found = {(r["metric"], float(r["seconds"])): (r["attempt"], r["step"], float(r["mean"])) for r in rows}
    assert found == {
        ("progress.step", 5.0): ("1", "10", 10.0),
        ("progress.step", 15.0): ("1", "20", 20.0),
        ("progress.loss", 5.0): ("1", "10", 0.1),
        ("progress.loss", 15.0): ("1", "20", 0.05),
        ("gpu1.vram", 15.0): ("1", "20", 5e9),
        ("metric.a, b", 10.0): ("1", "15", 2.0),
    }
    assert next(r for r in rows if r["seconds"] == "5")["time_utc"] == "1970-01-01T00:16:45Z"
    assert {r["metric"]: r["unit"] for r in rows} == {
        "progress.step": "", "progress.loss": "", "gpu1.vram": "bytes", "metric.a, b": ""
    }  # fmt: skip


def test_export_says_why_there_is_nothing(measured: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    for file in measured.path.glob("history.sqlite*"):
        file.write_bytes(b"not a database" * 1000)
    capsys.readouterr()
    assert main(["export", "luca", "--csv"]) == 3
    assert "damaged" in capsys.readouterr().err
    for file in measured.path.glob("history.sqlite*"):
        file.unlink()
    assert main(["export", "luca", "--csv"]) == 3
    assert "no readings yet" in capsys.readouterr().err
