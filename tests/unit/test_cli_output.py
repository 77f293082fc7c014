"""What verbs print: control characters are escaped, and a dry run shows the plan as text."""

import json
import sys
from pathlib import Path

import pytest

from tests.fakes.checkpoint_layouts import safetensors_file
from trainwatch.cli import main
from trainwatch.cli.events import event_line
from trainwatch.core.model.decision import Record
from trainwatch.core.model.fact import Fact, IncidentOpened, Note, RunCreated
from trainwatch.core.model.run import Evidence, Incident, RunSpec
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.run_directory import RunDirectory

NASTY = "a\x1b[31mred\nsecond\x07"
TAMED = "a\\x1b[31mred\\nsecond\\x07"


@pytest.fixture
def run(folder: Path) -> RunDirectory:
    spec = RunSpec(id="nasty-1", name=NASTY, command=("c",), cwd=str(folder), created_wall=0.0)
    directory = RunDirectory.create(folder / "home", spec)
    with JournalWriter(directory.journal) as journal:
        journal.append_all(
            0.0, 0.0, (RunCreated(run="nasty-1", name=NASTY, command=("c", NASTY), cwd="/", preset="g"),)
        )
    return directory


@pytest.mark.parametrize("words", [["status"], ["events"], ["runs"], ["report"], ["stop", "--yes"], ["--headless"]])
def test_control_characters_in_a_name_are_escaped(
    words: list[str], run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    if words == ["--headless"]:
        with JournalWriter(run.journal) as journal:
            from trainwatch.core.model.fact import StateChanged

            journal.append_all(1.0, 1.0, (StateChanged(state="finished", reason="it is done"),))
    main(words)
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err
    assert "\x07" not in told.out + told.err
    if words != ["runs"]:
        assert TAMED in told.out + told.err


def line(fact: Fact) -> str:
    told = event_line(Record(seq=1, t=0.0, wall=0.0, fact=fact))
    assert told is not None
    return told


def test_events_keep_line_breaks_and_escape_control_characters() -> None:
    assert line(Note(text="a\tb\x1b")).endswith("  a       b\\x1b")
    evidence = (Evidence(what="RuntimeError: \x1b[1mbold"),)
    incident = Incident(
        id=1,
        t=0.0,
        wall=0.0,
        kind="crash",
        class_="unknown",
        severity="danger",
        reason="r",
        evidence=evidence,
        attempt=1,
    )
    assert line(IncidentOpened(incident=incident)).split("\n")[1].endswith("evidence: RuntimeError: \\x1b[1mbold")


def test_a_dry_run_shows_problems_and_changes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--dry-run", "--json", "--", "nosuchcmd", "--output_dir", "out"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert "nosuchcmd" in plan["problem"]
    assert plan["output_dir"] == str(folder / "out")
    assert main(["check", "--json", "--", "nosuchcmd"]) == 1
    failed = {c["name"] for c in json.loads(capsys.readouterr().out)["checks"] if c["result"] == "fail"}
    assert failed == {"command"}
    assert main(["run", "--dry-run", "--json", "--preset", "nope", "--", "nosuchcmd"]) == 2
    assert json.loads(capsys.readouterr().out).keys() == plan.keys()
    assert main(["run", "--dry-run", "--", "nosuchcmd"]) == 0
    assert "problem  " in capsys.readouterr().out
    (folder / "train_network.py").touch()
    kohya = ["run", "--dry-run", "--preset", "kohya", "--profile", "balanced", "--", sys.executable, "train_network.py"]
    assert main(kohya) == 0
    told = capsys.readouterr().out
    assert "problem  " not in told
    assert "--cache_latents: not set -> on" in told
    assert "None ->" not in told


@pytest.mark.parametrize(
    "words",
    [
        ["export", "nasty-1", "--trace", "nowhere/t.jsonl"],
        ["report", "nasty-1", "-o", "nowhere/r.md"],
        ["checkpoints", "list", "nowhere"],
        ["checkpoints", "backup", "model.safetensors", "nowhere/copy.safetensors"],
        ["replay", "nowhere/t.jsonl"],
    ],
)
def test_a_missing_folder_is_exit_code_3_with_every_verb(
    words: list[str], run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    run.trace.write_text('{"t":0,"kind":"tick"}\n')
    safetensors_file(Path.cwd()).rename("model.safetensors")
    assert main(words) == 3
    told = capsys.readouterr().err
    assert "nowhere" in told
    assert told.count("\n") == 1


SECRETS = ("hf_AbCdEfGhIjKlMnOp1234", "hunter22xyz", "k3y-of-ann", "s3cr3tw0rd")


@pytest.mark.parametrize(
    "words",
    [["status"], ["status", "--json"], ["events"], ["events", "--json"], ["runs", "--json"], ["report"],
     ["report", "--json"], ["report", "--format", "html"], ["report", "-o", "r.md"], ["stop", "--yes"],
     ["run", "--dry-run", "--output-dir", "o", "--", "echo", "--api_key", "k3y-of-ann", "https://u:hunter22xyz@h/"],
     ["run", "--", "./nope", "--api_key=k3y-of-ann"], ["diagnose", "train.log"], ["diagnose", "train.log", "--json"]],
)  # fmt: skip
def test_no_verb_prints_a_secret(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = "RuntimeError: 401 for https://u:hunter22xyz@h/ hf_AbCdEfGhIjKlMnOp1234 (s3cr3tw0rd)"
    command = ("python", "t.py", "--api_key", "k3y-of-ann", "--url", "https://u:hunter22xyz@h/")
    spec = RunSpec(
        id="r-1", name="r", command=command, cwd=str(folder), created_wall=0.0, env={"X_TOKEN": "s3cr3tw0rd"}
    )  # fmt: skip
    run = RunDirectory.create(folder / "home", spec)
    (folder / "train.log").write_text(f"Traceback (most recent call last):\n{error.replace('s3cr3tw0rd', 'x')}\n")
    incident = Incident(
        id=1, t=1.0, wall=1.0, attempt=1, kind="crash", class_="unknown", reason=error, evidence=(Evidence(what=error),)
    )  # fmt: skip
    with JournalWriter(run.journal) as journal:
        created = RunCreated(run="r-1", name="r", command=command, cwd="/", preset="g")
        journal.append_all(0.0, 0.0, (created, IncidentOpened(incident=incident), Note(text=error)))
    main(words)
    told = capsys.readouterr()
    written = "".join(path.read_text() for path in folder.glob("r.md"))
    assert told.out + told.err + written
    for secret in SECRETS:
        assert secret not in told.out + told.err + written
    if "--json" in words:
        json.loads(told.out.splitlines()[0])


@pytest.mark.parametrize("sign", ["\u202e", "\x9b", "\u2066", "\U000e0041", "\u2028"])
def test_json_has_no_raw_sign_that_acts_on_a_terminal(
    sign: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"a{sign}b-step00000010.safetensors"
    safetensors_file(tmp_path).rename(path)
    assert main(["checkpoints", "list", str(tmp_path), "--json"]) == 0
    out = capsys.readouterr().out
    assert sign not in out
    assert path.name in {Path(found["path"]).name for found in json.loads(out)["checkpoints"]}
    assert main(["checkpoints", "list", str(tmp_path)]) == 0
    assert sign not in capsys.readouterr().out
