"""What ``trainwatch export`` gives to others: whole enough to be judged again, without what they must not know."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from trainwatch.cli import main
from trainwatch.core.model.observation import LogChunk, Meta, Start, Tick
from trainwatch.core.model.preset import Change
from trainwatch.core.model.run import RunSpec
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
