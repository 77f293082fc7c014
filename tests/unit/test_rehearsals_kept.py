"""What a rehearsal proved is remembered for the same command and source, and for nothing else."""

from pathlib import Path

import msgspec
import pytest

from trainwatch.core.app.plan.resume_plan import decided, rehearsed, rehearsed_words, setting_of, sources_of
from trainwatch.core.model.launch import Rehearsal
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.learned import keep_rehearsal

COMMAND = ("python", "src/train.py", "--config=cfg.yaml")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    for name in ("src/train.py", "src/models/net.py", "cfg.yaml", "notes.txt", ".venv/lib/site.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    return RunSpec(id="job", name="job", command=COMMAND, cwd=str(tmp_path), created_wall=0.0)


def keep(spec: RunSpec, **fields: object) -> None:
    result = Rehearsal(run="job", command=spec.command, wall=0.0, **fields)  # type: ignore[arg-type]
    keep_rehearsal(Path(spec.cwd, "home"), spec.cwd, result, sources_of(spec))


def test_a_proof_holds_for_the_same_command_and_source(spec: RunSpec) -> None:
    assert rehearsed_words(spec) is None
    keep(spec, verdict="safe", will="yes")
    assert "resume proven" in (rehearsed_words(spec) or "")
    Path(spec.cwd, "notes.txt").write_text("2\n")
    assert rehearsed_words(spec) is not None, "a file that is no source"
    assert rehearsed(msgspec.structs.replace(spec, command=(*COMMAND, "--lr", "1"))) is None


SHELL = """#!/bin/bash
HERE=$(dirname "$0")
python src/train.py --config="$HERE/cfg.yaml" "$@"
"""


@pytest.mark.parametrize("command", [COMMAND, ("./go.sh",), ("bash", "run")])
@pytest.mark.parametrize("name", ["src/train.py", "src/models/net.py", "cfg.yaml", "src/models/new.py"])
def test_a_proof_holds_no_longer_when_a_script_or_config_changes(
    spec: RunSpec, command: tuple[str, ...], name: str
) -> None:
    """Also one that a shell script names, or that lies beside such a one."""
    for script in ("go.sh", "run"):
        Path(spec.cwd, script).write_text(SHELL)
    spec = msgspec.structs.replace(spec, command=command)
    keep(spec, verdict="safe", will="self")
    assert decided(spec, Preset(name="generic")).resumes
    Path(spec.cwd, name).write_text("2\n")
    assert f"with another {name}, which proves nothing here" in (rehearsed_words(spec) or "")
    assert not decided(spec, Preset(name="generic")).resumes


def test_only_a_proven_resume_by_itself_lets_a_trainer_start_without_being_told(spec: RunSpec) -> None:
    for verdict, will in (("safe", "yes"), ("unsafe", "self"), ("unknown", "self")):
        keep(spec, verdict=verdict, will=will)
        assert not decided(spec, Preset(name="generic")).resumes
    keep(spec, verdict="safe", will="self")
    way = decided(spec, Preset(name="generic")).resume_way
    assert way is not None
    assert way.will == "self"
    assert way.file is not None
    assert way.file.by_itself


def test_a_proof_in_another_setting_of_the_environment_proves_nothing(
    spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(spec.cwd, "src/train.py").write_text('import os\nfresh = not os.environ.get("KEEP")\n')
    monkeypatch.setenv("KEEP", "1")
    keep(spec, verdict="safe", will="self", setting=setting_of(spec))
    monkeypatch.setenv("OTHER", "1")
    assert "resume proven" in (rehearsed_words(spec) or "")
    monkeypatch.delenv("KEEP")
    assert "in another setting, which proves nothing here: KEEP differs" in (rehearsed_words(spec) or "")
    assert not decided(spec, Preset(name="generic")).resumes


def test_a_damaged_file_counts_as_no_rehearsal(spec: RunSpec) -> None:
    keep(spec, verdict="safe", will="self")
    (kept,) = Path(spec.cwd, "home", "rehearsals", "proven").iterdir()
    kept.write_bytes(b'{"version": 1')
    assert rehearsed_words(spec) is None
