"""What ``trainwatch run`` does where something stands already: begins, goes on, or refuses and names the ways."""

import io
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.fakes.checkpoint_layouts import safetensors_file
from trainwatch.cli import main
from trainwatch.cli.events import EventPrinter
from trainwatch.core import processes, spool
from trainwatch.core.act.launch import locks
from trainwatch.core.act.launch.locks import Owner
from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.operate import goes_on_waiting, require_checked
from trainwatch.core.app.plan.launch_plan import plan_command, plan_launch, plan_project
from trainwatch.core.app.plan.trainer_folders import partly_used_when_adopted
from trainwatch.core.app.runs.output_claim import rival_of
from trainwatch.core.app.runs.supervisor_life import as_found
from trainwatch.core.app.start.project_run import create_run, give_command, project_run
from trainwatch.core.app.start.start_choice import StartChoice, Wish, choose_start, read_way_again, resumes_by_itself
from trainwatch.core.config.project import Overrides
from trainwatch.core.model.fact import ActionWithheld, AttemptEnded, AttemptStarted, RunCreated, StateChanged
from trainwatch.core.model.launch import Rehearsal, queued
from trainwatch.core.model.observation import Command
from trainwatch.core.model.progress import PLAIN, Why
from trainwatch.core.model.run import OutputPlace, RunState
from trainwatch.core.store.journal import JournalWriter, load_story
from trainwatch.core.store.learned import keep_rehearsal, source_digests
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory

COMMAND = ("true", "--resume", "{resume}", "--output_dir", "out")
NO_PLACE = ("true", "--output_dir", "out")
replace = msgspec.structs.replace
pytestmark = pytest.mark.usefixtures("folder")


class Usage(NamedTuple):
    """As ``shutil.disk_usage`` has it, in bytes."""

    total: int
    used: int
    free: int


def saved(name: str = "model-step00000020.safetensors") -> Path:
    Path("out").mkdir(exist_ok=True)
    return safetensors_file(Path("out")).rename(Path("out") / name)


def ran(
    command: tuple[str, ...] = COMMAND,
    state: RunState = "running",
    step: int | None = 30,
    reason: str = "r",
    why: Why = PLAIN,
) -> RunDirectory:
    """A run of this command that was launched once, as its journal shows it; nothing of it lives."""
    spec = plan_command(command).spec
    run = RunDirectory.create(Path(os.environ["TRAINWATCH_HOME"]), msgspec.structs.replace(spec, created_wall=1.0))
    created = RunCreated(run=spec.id, name=spec.name, command=command, cwd=spec.cwd, preset=spec.preset)
    ended = AttemptEnded(attempt=1, how="lost", last_step=step)
    with JournalWriter(run.journal) as journal:
        facts = (created, AttemptStarted(attempt=1, pid=1), ended, StateChanged(state=state, reason=reason, why=why))
        journal.append_all(1.0, 2.0, facts)
    run.attempt(1).mkdir()
    return run


def chosen(command: tuple[str, ...] = COMMAND, **wish: object) -> StartChoice:
    return choose_start(plan_command(command), msgspec.convert(wish, Wish))


def refused(command: tuple[str, ...] = COMMAND, code: ExitCode = ExitCode.OWNED, **wish: object) -> str:
    with pytest.raises(CliError) as error:
        chosen(command, **wish)
    assert error.value.code is code
    return str(error.value)


@pytest.mark.parametrize("state", ["running", "backing_off", "interrupted", "starting"])
def test_a_run_that_was_interrupted_goes_on(state: RunState) -> None:
    run = ran(state=state)
    saved()
    choice = chosen()
    assert choice.known == run
    assert choice.first is None
    assert "going on with it" in choice.said


def test_only_a_queued_run_is_started_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its supervisor waits for room. Refused, it was over, and each run behind it in the same minute."""
    plan = plan_command(COMMAND)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(10**9, 10**9, 0))
    with pytest.raises(CliError, match="disk: 0 B free"):
        create_run(plan)
    ready = create_run(plan_launch(queued(plan.spec, "3f2a:")))
    assert ready.claim is not None
    ready.claim.release()


FULL = "the disk is full; it continues when 903 kB are free (0 B were) in /out"


def test_a_run_that_is_held_for_a_full_disk_is_waited_with_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: refused for the full disk, by ``run`` and by the ``resume`` that the report named."""
    run = ran(state="backing_off", reason=FULL, why=Why("disk_full"))
    saved()
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(10**9, 10**9, 0))
    choice = chosen()
    assert (choice.known, choice.first, choice.waits_for_room) == (run, None, True)
    assert FULL in choice.said
    assert create_run(plan_command(COMMAND), choice).first is None
    plain = Command(t=0.0, verb="resume", by="command line")
    assert require_checked(run, plain, forced=False) is None
    assert goes_on_waiting(run, plain) == f"held: {FULL}"
    assert f"the restart is held: {FULL}" in as_found(run, load_story(run.journal)).state_reason
    for other in (replace(plain, fresh=True), replace(plain, checkpoint="out/x"), replace(plain, verb="restart")):
        assert goes_on_waiting(run, other) == ""
    with pytest.raises(CliError, match="disk: 0 B free"):
        require_checked(run, replace(plain, fresh=True), forced=False)


def test_a_supervisor_in_the_foreground_says_what_the_run_it_takes_over_waits_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before: *supervisor 4711 watches*, and nothing more for hours."""
    run = ran(state="backing_off", reason=FULL, why=Why("disk_full"))
    EventPrinter(run, as_json=False).begin(load_story(run.journal))
    assert capsys.readouterr().out.startswith(f"held: {FULL} (since ")
    EventPrinter(run, as_json=True).begin(load_story(run.journal))
    EventPrinter(run, as_json=False).begin(load_story(ran(("true", "b")).journal))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("state", ["finished", "given_up", "stopped"])
def test_a_run_that_ended_is_refused_and_the_ways_are_named(state: RunState) -> None:
    run = ran(state=state)
    saved()
    message = refused()
    for way in (f"trainwatch resume {run.id}", "run --from newest", "--from PATH", "run --fresh", "-- NEW COMMAND"):
        assert way in message
    assert "model-step00000020" in message


@pytest.mark.parametrize("state", ["finished", "given_up", "stopped"])
def test_only_what_works_is_named_if_the_command_has_no_place_for_a_checkpoint(state: RunState, folder: Path) -> None:
    """It named `--from newest`, which was refused, too."""
    run = ran(NO_PLACE, state=state)
    saved()
    message = refused(NO_PLACE)
    assert "--from" not in message
    assert f"`trainwatch resume {run.id}`" not in message
    for way in (f"trainwatch resume {run.id} -- NEW COMMAND", "run --fresh"):
        assert way in message
    proven = Rehearsal(run="true", command=NO_PLACE, wall=0.0, verdict="safe", will="self")  # after a repair
    keep_rehearsal(folder / "home", str(folder), proven, source_digests(NO_PLACE, str(folder)))
    assert (f"go on with it: `trainwatch resume {run.id}`" in refused(NO_PLACE)) == (state != "finished")
    assert "by itself" in (read_way_again(run) or "")
    assert run.load_spec().resumes


def test_a_run_whose_saves_are_of_an_unknown_make_is_not_written_over() -> None:
    ran(state="given_up", step=None)
    Path("out").mkdir()
    Path("out/weights.npz").write_bytes(os.urandom(5000))
    assert "weights.npz" in refused()


def test_checkpoints_that_no_known_run_made_are_not_written_over() -> None:
    saved()
    message = refused()
    assert "of no run that is known here" in message
    assert "run --from newest" in message
    other = ran(("true", "--lr", "3", "--output_dir", "out"), state="finished")
    message = refused()
    assert f"of run {other.id}" in message
    assert f"`trainwatch resume {other.id}`" in message
    assert f"`trainwatch resume {other.id} -- NEW COMMAND`" in message


def test_a_run_of_another_folder_or_working_folder_does_not_matter(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran((*COMMAND[:-1], "elsewhere"), state="finished")
    assert chosen() == StartChoice()
    ran(state="finished")
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    assert chosen() == StartChoice()


def test_an_unknown_output_folder_may_hold_what_the_run_made() -> None:
    ran(("true",), state="finished")
    assert "its output folder is not known" in refused(("true",))
    ran(("true", "x"), state="running")
    assert "give --output-dir D" in refused(("true", "x"))
    ran(("true", "y"), state="given_up", step=None)
    assert chosen(("true", "y")) == StartChoice()
    saved()
    run = ran(("true", "z"), state="stopped")
    run.save_outputs((OutputPlace(folder=str(Path("out").absolute()), why="seen"),))
    message = refused(("true", "z"))
    assert "model-step00000020" in message, "where it was seen to save"
    assert f"`trainwatch resume {run.id}`" not in message


def test_an_interrupted_run_that_cannot_be_told_its_checkpoint_is_refused() -> None:
    run = ran(NO_PLACE)
    saved()
    message = refused(NO_PLACE)
    assert "has no place for the checkpoint" in message
    assert f"trainwatch resume {run.id} -- NEW COMMAND" in message


@pytest.mark.parametrize(
    "words",
    [
        ("--resume_from_checkpoint", "latest"),
        ("--resume", "--lr", "3"),
        ("--auto-resume",),
        ("train.resume=true",),
        ("--ckpt", "out/model-step00000020.safetensors"),
        ("--init=out/model-step00000020.safetensors",),
    ],
)
def test_a_command_that_goes_on_by_itself_is_started(words: tuple[str, ...]) -> None:
    saved()
    choice = chosen((*NO_PLACE, *words))
    assert choice.known is None
    assert "goes on by itself" in choice.said


BY_ITSELF = """
import os, torch
path = "out/snapshot.pt"
model, optimizer, start = make(), make_optimizer(), 0
if os.path.exists(path):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    start = state["step"]
for step in range(start, 100):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)
"""


def test_a_script_that_goes_on_by_itself_is_started_from_its_newest_checkpoint(folder: Path) -> None:
    """Its state of trainwatch was deleted: the same command was refused, although it would not begin anew."""
    (folder / "train.py").write_text(BY_ITSELF)
    saved()
    choice = chosen(("python", "train.py", "--output_dir", "out"))
    assert choice.known is None
    assert choice.checkpoint == str(folder / "out" / "model-step00000020.safetensors")
    assert "by itself (train.py:" in choice.said
    (folder / "out" / "model-step00000020.safetensors").write_bytes(b"torn")
    refused(("python", "train.py", "--output_dir", "out"))


@pytest.mark.parametrize(
    "words",
    [
        ("--resume", "false"),
        ("--resume", "{resume}"),
        ("--resume", "pretrained.pt"),
        ("--resume_download",),
        ("--no-resume",),
        ("--init", "out"),
        ("resume",),
    ],
)
def test_other_words_do_not_say_that_a_command_goes_on_by_itself(words: tuple[str, ...]) -> None:
    saved()
    there = ()
    assert not resumes_by_itself((*NO_PLACE, *words), there)
    refused((*NO_PLACE, *words))


def test_from_a_checkpoint_is_a_new_run_or_goes_on_with_the_known_one(folder: Path) -> None:
    path = saved()
    for given in ("newest", str(path), path.name, str(folder / path)):
        assert chosen(checkpoint=given).checkpoint == str(folder / path), given
    run = ran(state="finished")
    choice = chosen(checkpoint="newest")
    assert choice.known == run
    assert choice.first is not None
    assert (choice.first.verb, choice.first.checkpoint) == ("resume", str(folder / path))


def test_from_a_checkpoint_that_is_not_there_or_not_usable_nothing_is_started() -> None:
    assert "no checkpoint to go on from" in refused(code=ExitCode.NOT_FOUND, checkpoint="newest")
    path = saved()
    assert "no such checkpoint" in refused(code=ExitCode.NOT_FOUND, checkpoint="nope")
    how = "`trainwatch run --from newest -- true --output_dir out --resume '{resume}'` (once the script has an option"
    assert how in refused(NO_PLACE, code=ExitCode.FAILED, checkpoint="newest")
    path.write_bytes(path.read_bytes()[:-2])
    assert "cannot be resumed from" in refused(code=ExitCode.FAILED, checkpoint=str(path))


def test_a_run_that_lives_is_neither_started_again_nor_over(folder: Path) -> None:
    run = ran()
    saved()
    with SupervisorLock(run.lock):
        for wish in ({}, {"fresh": True}, {"checkpoint": "newest"}):
            assert f"run {run.id} of this command is running" in refused(**wish)
    own = processes.own_process()  # stands for a trainer whose supervisor was killed
    identity = {"boot_id": processes.boot_id(), "pid": own.pid, "start_ticks": own.start_ticks}
    start = {"attempt": 1, "trainer": identity, "runner": None, "wall": 1.0, "log": "x"}
    spool.write(str(run.attempt(1)), spool.START, start)
    assert chosen().known == run
    assert "watching it" in chosen().said
    refused(fresh=True)
    refused(checkpoint="newest")


def asked(command: tuple[str, ...] = COMMAND) -> RunDirectory:
    """A run that is held with an open question."""
    run = ran(command, state="stopped")
    question = ActionWithheld(
        action="start", ask="restart?", would="restarted", why="it crashed", asks=True, waits=True
    )
    with JournalWriter(run.journal) as journal:
        journal.append_all(1.0, 3.0, (question,))
    return run


def test_a_supervisor_that_waits_beside_a_run_that_is_over_blocks_nothing(folder: Path) -> None:
    run = ran(state="stopped")
    path = saved()
    with SupervisorLock(run.lock):
        assert rival_of(plan_command((*COMMAND, "--lr", "1")).spec) is None
        assert f"`trainwatch resume {run.id}`" in refused()
        assert chosen(fresh=True).known is None
        choice = chosen(checkpoint="newest")
    assert (choice.known, choice.supervised) == (run, True)
    assert choice.first is not None
    assert choice.first.checkpoint == str(path.absolute())


def test_a_supervisor_whose_question_waits_is_named_with_what_answers_it(folder: Path) -> None:
    run = asked()
    saved()
    with SupervisorLock(run.lock):
        for wish in ({}, {"fresh": True}, {"checkpoint": "newest"}):
            message = refused(**wish)
            for way in (f"resume {run.id}`", f"resume {run.id} --from CHECKPOINT`", "--fresh`", f"stop {run.id}`"):
                assert way in message
        assert f"trainwatch stop {run.id}" in str(rival_of(plan_command((*COMMAND, "--lr", "1")).spec))


def test_a_refused_start_is_suggested_as_it_was_typed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ran(state="finished")
    saved()
    assert main(["run", "--output-dir", "out", "--name", "a b", "--headless", "--", *COMMAND]) == ExitCode.OWNED
    said = capsys.readouterr().err
    typed = "--output-dir out --name 'a b' --headless -- true --resume '{resume}' --output_dir out"
    assert f"`trainwatch run --from newest {typed}`" in said
    assert f"`trainwatch run --fresh {typed}`" in said
    assert f"`trainwatch resume {run.id} --from newest`" in said
    assert main(["run", *COMMAND, "--dry-run"]) == ExitCode.OWNED
    assert "--dry-run went to the trainer" in capsys.readouterr().err


def test_a_state_of_nobody_that_is_not_understood_is_not_written_over(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "last.pkl").write_bytes(pickle.dumps({"step": 40, "w": [0.5] * 100}))
    assert "last.pkl" in refused()


def test_a_refused_start_makes_nothing_and_the_dry_run_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved()
    before = sorted(p.name for p in (folder / "out").iterdir())
    assert main(["run", "--detach", "--", *COMMAND]) == 4
    assert main(["run", "--dry-run", "--json", "--", *COMMAND]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "of no run that is known here" in shown["problem"]
    assert shown["start"] is None
    assert main(["run", "--dry-run", "--json", "--from", "newest", "--", *COMMAND]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["problem"], shown["checkpoint"]) == (None, str(folder / "out" / before[0]))
    assert main(["run", "--dry-run", "--fresh", "--", *COMMAND]) == 0
    assert "may write over model-step00000020" in capsys.readouterr().out
    assert sorted(p.name for p in (folder / "out").iterdir()) == before
    assert not (folder / "home").exists()


@pytest.mark.parametrize("toml", ["", '[run]\nname = "n"\ncommand = ["true"]\noutput_dir = "out"\n'])
def test_begin_anew_over_checkpoints_is_refused_if_nobody_can_be_asked(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, toml: str
) -> None:
    """Without a terminal, as from cron or a script; of a command and of a project."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    if toml:
        (folder / "trainwatch.toml").write_text(toml)
    path = saved()
    before = path.read_bytes()
    assert main(["run", "--detach", "--fresh", *(() if toml else ("--", *COMMAND))]) == ExitCode.OWNED
    said = capsys.readouterr().err
    assert "may write over model-step00000020" in said
    assert "add --yes" in said
    assert path.read_bytes() == before
    assert not (folder / "home").exists()


TOML = '[run]\nname = "n"\ncommand = ["true"]\noutput_dir = "out"\n'
TOML_RESUMES = TOML.replace('"true"', '"true", "--resume", "{resume}"')


def test_a_project_whose_state_was_deleted_does_not_begin_over_its_checkpoints(folder: Path) -> None:
    (folder / "trainwatch.toml").write_text(TOML)
    saved()
    plan = plan_project(None)
    assert plan is not None
    owner = Owner(plan.spec.id, 1.0, str(folder / "home"))
    killed = locks.here(owner, locks.SUPERVISOR)._replace(pid=2**22 + 1)
    descriptor = os.open("out/.trainwatch.lock", os.O_RDWR | os.O_CREAT, 0o600)
    locks.write_slot(descriptor, locks.SUPERVISOR, killed)
    os.close(descriptor)
    with pytest.raises(CliError, match="over what is there: `trainwatch run --fresh`"):
        project_run(None, to_start=True)
    assert not (folder / "home").exists()
    looked_at = project_run(None).run  # the screen makes the run's folder before anything is started
    with pytest.raises(CliError, match="run --fresh`"):
        project_run(None, to_start=True)
    assert looked_at.attempt_folders() == []


def test_a_project_that_is_not_known_goes_on_from_the_newest_checkpoint_in_its_folder(folder: Path) -> None:
    (folder / "trainwatch.toml").write_text(TOML_RESUMES)
    os.utime(saved("model-step00000010.safetensors"), (5.0, 5.0))
    path = saved()
    ready = project_run(None, to_start=True)
    assert ready.claim is not None
    ready.claim.release()
    assert "of no run that is known here (model-step00000020.safetensors" in ready.said
    assert "going on from model-step00000020.safetensors" in ready.said
    assert ready.run.load_spec().begin_from == str(folder / path)


@pytest.mark.parametrize(
    ("toml", "why"),
    [
        (TOML, "write {resume} where its path belongs"),
        (TOML_RESUMES.replace("[run]", '[run]\npreset = "never"'), 'never resumes (resume = "none")'),
    ],
)
def test_a_project_that_is_not_known_begins_over_no_checkpoint(folder: Path, toml: str, why: str) -> None:
    (folder / "presets").mkdir()
    (folder / "presets" / "never.toml").write_text('name = "never"\nresume = "none"\n')
    (folder / "trainwatch.toml").write_text(toml)
    path = saved()
    before = path.read_bytes()
    with pytest.raises(CliError) as error:
        project_run(None, to_start=True)
    assert error.value.code is ExitCode.OWNED
    assert why in str(error.value)
    assert "trainwatch run --fresh" in str(error.value)
    assert path.read_bytes() == before
    assert not (folder / "home").exists()


def test_a_project_that_is_not_known_begins_beside_what_nobody_can_go_on_from(folder: Path) -> None:
    """A stale folder without weights and a cut file kept ``--headless`` from starting."""
    (folder / "trainwatch.toml").write_text(TOML_RESUMES)
    path = saved()
    path.write_bytes(path.read_bytes()[:-2])
    cut = path.read_bytes()
    stale = path.parent / "checkpoint-90"
    stale.mkdir()
    (stale / "trainer_state.json").write_text('{"global_step": 90}')
    ready = project_run(None, to_start=True)
    assert ready.claim is not None
    ready.claim.release()
    assert "none of them is whole: beginning anew" in ready.said
    (copy,) = (folder / "out.kept").glob(f"*/**/{path.name}")
    path.write_bytes(b"")  # as a save does: in place
    assert copy.read_bytes() == cut
    assert f"kept a copy of {path.name} in {folder / 'out.kept'}" in ready.said
    assert ready.run.load_spec().begin_from is None


def test_a_project_whose_trainer_finds_the_newest_checkpoint_by_itself_is_started(folder: Path) -> None:
    (folder / "trainwatch.toml").write_text(TOML + '[restart]\nif_not_told = "go_on"\n')
    saved()
    ready = project_run(None, to_start=True)
    assert ready.claim is not None
    ready.claim.release()
    assert "finds the newest one by itself" in ready.said


def test_resume_with_a_new_command_keeps_run_and_folder(folder: Path) -> None:
    run = ran(state="given_up")
    said = give_command(run, ("env", "LR=3", *COMMAND))
    assert "LR=3" in said
    spec = run.load_spec()
    assert spec.command == ("env", "LR=3", *COMMAND)
    assert (spec.id, spec.created_wall, spec.output_dir) == (run.id, 1.0, str(folder / "out"))
    with pytest.raises(CliError, match="that is another run") as error:
        give_command(run, ("true", "--output_dir", "out2"))
    assert error.value.code is ExitCode.USAGE
    with pytest.raises(CliError, match="command not found"):
        give_command(run, ("no-such-program", "--output_dir", "out"))
    assert run.load_spec() == spec


def test_options_given_again_are_those_of_the_run_that_goes_on() -> None:
    run = ran()
    saved()
    plan = plan_command(COMMAND, Overrides(max_restarts=9))
    ready = create_run(plan)
    assert ready.run == run
    assert run.load_spec().settings.restart.max_restarts == 9
    assert run.load_spec().created_wall == 1.0


def without_journal(command: tuple[str, ...]) -> RunDirectory:
    """A run that was launched once, whose journal somebody deleted."""
    run = ran(command)
    start = {"version": 1, "attempt": 1, "wall": 50.0, "log": "train.log", "runner": None}
    start["trainer"] = {"boot_id": "another boot", "pid": 1, "start_ticks": 1}
    spool.write(str(run.attempt(1)), spool.START, start)
    run.journal.unlink()
    return run


def test_a_run_whose_journal_was_deleted_is_not_one_that_never_started_and_not_begun_anew() -> None:
    run = without_journal(("true", "train"))
    story = as_found(run, load_story(run.journal))
    assert (story.state, [attempt.number for attempt in story.attempts]) == ("interrupted", [1])
    assert "its journal is missing" in story.state_reason
    with pytest.raises(CliError, match="was interrupted"):
        chosen(("true", "train"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[run]\ncommand = ["true"]\n', "trainwatch.toml is not used for this command: it does not apply. To use it"),
        ('[run]\ncomand = ["true"]\n', 'trainwatch.toml:2: unknown key "comand"; did you mean "command"?'),
        ("[notify\n", "refuses it: trainwatch.toml:1: not TOML: "),
        ("[notify]\nurls = []\n", "trainwatch.toml: no [run]"),
        ('[hosts.box1]\nssh = "box1"\n', ""),
    ],
)
def test_what_is_said_of_a_trainwatch_toml_beside_a_command(
    text: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "trainwatch.toml").write_text(text)
    assert main(["run", "--dry-run", "--", "true"]) == 0
    told = capsys.readouterr().err
    assert said in told
    assert ("not used" in told) is bool(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[run]\ncommand = ["true"]\n[hang]\nmin_s = 60\n[notify]\nurls = []\n',
            "[hang], [notify] apply to the adopted",
        ),
        ('[run]\ncommand = ["true"]\n', "is not used for an adopted training"),
        ('[run]\ncommand = ["true"]\n[profiles]\nuse = "x"\n[hang]\nmin_s = 60\n', "of [profiles] the ladder alone"),
        ('[hosts.box1]\nssh = "box1"\n', None),
        (None, None),
    ],
)
def test_an_adopted_training_is_told_what_of_a_trainwatch_toml_applies(
    text: str | None, said: str | None, folder: Path
) -> None:
    if text is not None:
        (folder / "trainwatch.toml").write_text(text)
    told = partly_used_when_adopted()
    assert (told is None) == (said is None)
    assert (said or "") in (told or "")
