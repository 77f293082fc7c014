"""A trainer that was started by hand, and a start of the same run beside it; with real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.fakes.e2e_world import until
from tests.fakes.started_by_hand import project_with, started_by_hand
from trainwatch.core.act.adopt import look_at, record_start
from trainwatch.core.app.errors import CliError
from trainwatch.core.app.plan.launch_plan import LaunchPlan, plan_command
from trainwatch.core.app.preflight.checklist import why_not_start
from trainwatch.core.app.preflight.other_trainer import accept, other_trainers, refusal_at_launch
from trainwatch.core.app.queue import start_entry
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.core.app.start.start_choice import Wish, choose_start
from trainwatch.core.config.project import Overrides
from trainwatch.core.model.launch import QueueEntry
from trainwatch.core.store.run_directory import RunDirectory

TRAIN = """\
import argparse, os, time
p = argparse.ArgumentParser()
p.add_argument("--out", default="ckpts"); p.add_argument("--steps"); p.add_argument("--resume")
a = p.parse_args(); os.makedirs(a.out, exist_ok=True)
if os.environ.get("SAVES"):
    with open(a.out + "/step_20.pt", "wb") as f: f.write(bytes(20000))
open(a.out + "/started", "w").close()
if a.resume and os.path.exists(a.resume):
    import torch
    c = torch.load(a.resume); model.load_state_dict(c["model"]); opt.load_state_dict(c["opt"]); first = c["step"]
if os.environ.get("FORK"): os.fork()
time.sleep(120)
"""
Start = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return project_with(TRAIN, tmp_path, monkeypatch)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a process in the folder as a stranger would: no child of this one."""
    known: list[int] = []

    def begin(*words: str, cwd: Path = folder, ready: str | None = "ckpts/started", **env: str) -> int:
        pid = started_by_hand(words, cwd, **env)
        known.append(pid)
        if ready is not None:
            until((cwd / ready).exists, ready)
        return pid

    yield begin
    for pid in known:
        os.killpg(pid, signal.SIGKILL)


def _plan(*words: str, output_dir: str | None = None) -> LaunchPlan:
    return plan_command((sys.executable, "train.py", *words), Overrides(output_dir=output_dir))


def _run(plan: LaunchPlan, folder: Path) -> RunDirectory:
    return RunDirectory(folder.parent / "home" / "runs" / plan.spec.id)


def _pids(plan: LaunchPlan, folder: Path) -> list[int]:
    return [each.process.pid for each in other_trainers(plan, _run(plan, folder))]


def test_the_same_command_in_the_same_folder_is_refused_with_what_to_do(folder: Path, start: Start) -> None:
    plan = _plan("--steps", "300")
    assert why_not_start(plan) is None
    pid = start(sys.executable, "-u", "train.py", "--steps=300", "--resume", "ckpts/step_40.pt")
    found = why_not_start(plan, known=True)
    assert found is not None
    assert found.exit_code == 4
    for words in (f"pid {pid}, since ", "the same training", f"trainwatch adopt --pid {pid}", f"kill {pid}", "--force"):
        assert words in found.sentence
    assert why_not_start(plan, forced=True) is None
    assert f"pid {pid}" in (refusal_at_launch(plan, _run(plan, folder)) or "")


def test_an_argument_that_is_called_as_we_are_makes_no_trainer_ours(folder: Path, start: Start) -> None:
    pid = start(sys.executable, "train.py", "--out", "trainwatch", ready="trainwatch/started")
    assert _pids(_plan("--out", "trainwatch"), folder) == [pid]


@pytest.mark.parametrize(
    ("out", "saves", "evidence"), [("ckpts", "1", ["script"]), ("./ckpts", "", ["weak"]), ("other", "1", [])]
)
def test_other_options_count_if_they_name_the_output_folder(
    folder: Path, start: Start, out: str, saves: str, evidence: Sequence[str]
) -> None:
    """Nothing is open there now. One that has saved nothing since it began may be an evaluation."""
    pid = start(sys.executable, "train.py", "--steps=200", "--out", out, ready=f"{out}/started", SAVES=saves)
    plan = _plan("--steps", "300", "--out", "ckpts")
    assert [each.evidence for each in other_trainers(plan, _run(plan, folder))] == evidence
    assert (f"pid {pid}" in (why_not_start(plan, known=True) or ("", ""))[1]) == bool(evidence)
    assert (refusal_at_launch(plan, _run(plan, folder)) is not None) == (evidence == ["script"])


def test_the_same_command_in_another_folder_is_no_evidence(folder: Path, start: Start) -> None:
    other = folder.parent / "other"
    other.mkdir()
    (other / "train.py").write_text(TRAIN)
    start(sys.executable, "train.py", cwd=other)
    assert _pids(_plan(), folder) == []


def test_what_only_names_the_script_does_not_count(folder: Path, start: Start) -> None:
    start("tail", "-f", "train.py", ready=None)
    start(sys.executable, "-c", "import time; time.sleep(60)", "train.py", ready=None)
    start("sh", "-c", "sleep 60; : trainwatch run -- python train.py", ready=None)
    assert _pids(_plan(), folder) == []


def test_an_attempt_of_any_run_does_not_count(folder: Path, start: Start) -> None:
    start(sys.executable, "train.py", TRAINWATCH_ATTEMPT="/somewhere/attempts/0001")
    assert _pids(_plan(), folder) == []


def test_what_this_process_was_started_with_does_not_count(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "train.py"], cwd=folder) as child:
        try:
            until((folder / "ckpts/started").exists, "files or processes as expected")
            assert _pids(_plan(), folder) == []
        finally:
            child.kill()


def test_one_training_of_several_processes_is_named_once(folder: Path, start: Start) -> None:
    pid = start(sys.executable, "train.py", FORK="1")
    until(lambda: bool(Path(f"/proc/{pid}/task/{pid}/children").read_text()), "files or processes as expected")
    assert _pids(_plan(), folder) == [pid]


def test_a_program_of_another_kind_refuses_a_person_and_never_a_restart(folder: Path, start: Start) -> None:
    (folder / "ckpts").mkdir()
    (folder / "serve.py").write_text("import time\nkept = open('ckpts/study.db', 'a')\ntime.sleep(60)\n")
    start(sys.executable, "serve.py", ready="ckpts/study.db")
    plan = _plan(output_dir="ckpts")
    assert [each.evidence for each in other_trainers(plan, _run(plan, folder))] == ["weak"]
    assert refusal_at_launch(plan, _run(plan, folder)) is None


def test_a_reader_whose_messages_go_to_the_output_folder_does_not_count(folder: Path, start: Start) -> None:
    (folder / "ckpts").mkdir()
    (folder / "serve.py").write_text("import time\ntime.sleep(60)\n")
    start(sys.executable, "serve.py", ready=None, LOG=str(folder / "ckpts/board.log"))
    until((folder / "ckpts/board.log").exists, "files or processes as expected")
    assert _pids(_plan(output_dir="ckpts"), folder) == []


def test_who_starts_beside_it_all_the_same_accepts_exactly_that_process(folder: Path, start: Start) -> None:
    plan = _plan()
    run = RunDirectory.create(folder.parent / "home", plan.spec)
    first = start(sys.executable, "train.py")
    accept(plan, run)
    assert _pids(plan, folder) == []
    second = start(sys.executable, "train.py")
    assert first != second
    assert _pids(plan, folder) == [second]


def test_a_rehearsal_writes_apart(folder: Path, start: Start) -> None:
    start(sys.executable, "train.py")
    plan = _plan()
    spec = msgspec.structs.replace(plan.spec, labels={"rehearsal_of": "x"})
    assert _pids(msgspec.structs.replace(plan, spec=spec), folder) == []


def test_a_start_over_its_checkpoints_names_it(folder: Path, start: Start) -> None:
    pid = start(sys.executable, "train.py")
    (folder / "ckpts" / "step_20.pt").write_bytes(b"\x00" * 2000)
    with pytest.raises(CliError, match=f"pid {pid}"):
        choose_start(_plan(output_dir="ckpts"), Wish())


def test_the_adopted_trainer_of_the_run_itself_does_not_count(folder: Path, start: Start) -> None:
    pid = start(sys.executable, "train.py", FORK="1")
    plan = _plan()
    run = RunDirectory.create(folder.parent / "home", plan.spec)
    record_start(run.attempt(1), look_at(pid), str(folder / "log"))
    assert _pids(plan, folder) == []


def test_the_queue_waits_for_it(folder: Path, start: Start) -> None:
    pid = start(sys.executable, "train.py")
    entry = QueueEntry(
        id=1, key="1", name="train", cwd=str(folder), command=(sys.executable, "train.py"), added_wall=0.0
    )
    began = start_entry(entry)
    assert (began.how, f"pid {pid}" in began.why) == ("later", True)


def test_the_screen_starts_no_supervisor_beside_it(folder: Path, start: Start) -> None:
    pid = start(sys.executable, "train.py")
    run = RunDirectory.create(folder.parent / "home", _plan().spec)
    with pytest.raises(RuntimeError, match=f"pid {pid}.*resume .* --force"):
        MachineRuns().start(run.id, None)
