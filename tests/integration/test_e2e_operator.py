"""What a person can say to a running supervisor, from another terminal."""

import signal
from pathlib import Path

import pytest

from tests.fakes.e2e_world import HASTY, World, until
from tests.tiers import second
from trainwatch.core import processes
from trainwatch.core.model.decision import RunAtEnd

LONG = ("--steps", "3000", "--step-time", "0.02", "--save-every", "20")


SOON_HUNG = {"hang": HASTY["hang"]}
"""Health is told each second: six times are longer than a hang takes, and a busy machine stops no step for so long."""


def said(world: World, *words: str, code: int = 0) -> str:
    done = world.asks(*words)
    assert done.code == code, done
    return done.out + done.err


def states(world: World) -> set[str]:
    process = processes.read_process(world.attempt(world.story().attempts[-1].number).trainer.pid)
    return {process.state} if process is not None else set()


def command_of(world: World, number: int) -> str:
    line = Path(f"/proc/{world.attempt(number).trainer.pid}/cmdline").read_bytes()
    return line.replace(b"\0", b" ").decode()


def test_stop_holds_restarts_until_resume(world: World) -> None:
    world.write(*LONG)
    first = world.headless()
    world.at_step(30)
    waits = world.begin("wait")
    assert "a supervisor watches it" in said(world, "forget", world.run.id, "--yes", code=4)

    said(world, "stop", "--yes")
    story = world.in_state("stopped")
    assert not world.alive(1)
    assert "interrupted at step" in world.log(1)
    assert waits.ends() == 6
    said(world, "wait", "--until", "finished", code=6)
    said(world, "wait", "--until", "needs-you")
    said(world, "status", "--exit-code", code=6)
    stopped_at = world.steps(1)[-1]
    assert story.incidents == ()
    assert first.process.poll() is None, "it goes on watching, to take the resume"

    said(world, "resume")
    world.at_step(stopped_at + 5, 2)
    story = world.in_state("running")
    assert story.attempts[-1].resume_step == stopped_at, "the checkpoint that it saved on the way out"
    assert world.steps(2)[0] == stopped_at + 1

    said(world, "stop", "--yes")
    world.in_state("stopped")
    first.signal(signal.SIGTERM)
    assert first.ends() == 0
    again = world.headless()
    assert again.ends() == 6
    assert "trainwatch resume" in again.said
    assert len(world.lives()) == 2


def test_a_stop_waits_for_the_checkpoint_that_the_trainer_was_asked_for(world: World) -> None:
    world.write(
        "--steps",
        "400",
        "--step-time",
        "0.02",
        "--save-every",
        "1000",
        "--save-on",
        "USR1",
        save_signal="USR1",
    )
    watcher = world.headless(env={"SLURM_JOB_ID": "7"})
    world.at_step(30)
    said(world, "stop", "--yes")
    story = world.in_state("stopped")
    assert "as asked" in world.log(1)
    assert len(story.checkpoints) == 1
    assert [a.ok for a in story.actions if a.kind == "request_save"] == [True]
    said(world, "resume")
    world.at_step((story.checkpoints[0].step or 0) + 2, 2)
    assert world.story().attempts[-1].resume_step == story.checkpoints[0].step
    world.in_state("running")
    watcher.signal(signal.SIGUSR1)  # of a scheduler, before the limit of its job
    assert watcher.ends() == 0
    assert "save by SIGUSR1" in watcher.said


def test_resume_starts_a_supervisor_and_uses_the_named_checkpoint(world: World) -> None:
    world.write(*LONG)
    first = world.headless()
    world.at_step(70)
    said(world, "kill", "--yes")
    world.in_state("stopped")
    assert "interrupted" not in world.log(1)
    checkpoint, damaged = (world.out / f"net-step000000{step}.safetensors" for step in (40, 60))
    damaged.write_bytes(damaged.read_bytes()[:-8])
    before = world.story()
    why = said(world, "resume", "--from", str(damaged), code=1)
    assert "net-step00000060.safetensors cannot be resumed from" in why
    assert (world.story().state, world.story().incidents) == ("stopped", before.incidents)
    assert len(world.lives()) == 1
    first.signal(signal.SIGTERM)
    first.ends()

    assert "no such checkpoint" in said(world, "resume", "--from", "nowhere.safetensors", code=3)
    out = said(world, "resume", "--from", str(checkpoint))

    assert "supervisor" in out
    world.at_step(45, 2)
    status = world.status()
    assert status["supervisor"]["alive"]
    assert world.steps(2)[0] == 41
    assert world.story().attempts[-1].resume_from == str(checkpoint)
    assert world.story().budget_used == 0
    said(world, "kill", "--yes")
    world.in_state("stopped")


def test_a_paused_tree_is_stopped_and_no_hang_is_declared(world: World) -> None:
    world.write(*LONG, more=SOON_HUNG)
    watcher = world.headless()
    world.at_step(30)
    said(world, "pause")
    world.in_state("paused")
    until(lambda: states(world) == {"T"}, "state T")
    before = world.steps()[-1]
    until(lambda: watcher.said.count("health: job: paused") >= 6, "longer than a hang takes")
    assert (world.story().state, world.steps()[-1]) == ("paused", before)

    said(world, "resume")
    world.at_step(before + 10)
    story = world.in_state("running")
    assert story.incidents == ()
    assert world.status()["attempt"] == 1


def test_a_profile_switch_takes_effect_at_the_next_checkpoint_or_now(world: World) -> None:
    folder = world.project / "profiles"
    folder.mkdir()
    (folder / "brisk.toml").write_text('title = "Brisk"\nflags = ["--step-time", "0.01"]\n')
    (folder / "calm.toml").write_text('title = "Calm"\nflags = ["--step-time", "0.03"]\n')
    # It waits at step 30 until all is said: on a busy machine a checkpoint would come in between.
    world.write(*LONG, "--save-every", "50", "--hold-at", "30")
    world.headless()
    world.at_step(30)
    assert 'no profile "brisc"; did you mean "brisk"' in said(world, "profile", "brisc", code=3)
    said(world, "profile", "brisk")
    until(lambda: world.story().profile_pending, "the pending profile")
    assert len(world.story().attempts) == 1
    (world.out / "go").touch()
    world.at_step(55, 2)
    story = world.in_state("running")
    assert story.profile == "brisk"
    resumed, last = story.attempts[-1].resume_step, world.steps(1)[-1]
    assert resumed in {last, last // 50 * 50}, "the newest checkpoint, or the one it saved as it ended"
    assert "--step-time 0.01" in command_of(world, 2)

    said(world, "profile", "calm", "--now")
    world.at_step(60, 3)
    assert world.in_state("running").profile == "calm"
    assert "--step-time 0.03" in command_of(world, 3)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), second(signal.SIGINT, 130)])
def test_a_signal_ends_the_supervisor_alone_and_its_training_is_stopped_all_the_same(
    world: World, number: int, code: int
) -> None:
    world.write(*LONG)
    watcher = world.headless()
    world.at_step(10)
    world.in_state("running")
    watcher.signal(number)
    assert watcher.ends() == code
    world.at_step(world.steps()[-1] + 10)
    status = world.status()
    assert (status["state"], status["supervisor"]["alive"]) == ("running", False)
    assert world.alive()
    assert "a new supervisor" in said(world, "stop", "--yes")
    story = world.in_state("stopped")
    assert not world.alive()
    assert [a.how for a in story.attempts] == ["stopped"]


def test_the_command_of_the_end_is_run_once_and_not_by_a_later_supervisor(world: World) -> None:
    """A supervisor that is killed before it is run, while a checkpoint is copied, leaves it to the next one."""
    (world.project / "end.sh").write_text('echo "$1" >> ended; sleep 60; echo over >> ended\n')
    (world.project / "copy.sh").write_text("[ -e copies ] || { touch copies; sleep 600; }\n")
    more = {"end": {"at_finish": ["sh", "end.sh", "finish"]}, "backup": {"command": ["sh", "copy.sh", "{checkpoint}"]}}
    world.write("--steps", "30", "--step-time", "0.01", more=more)
    first = world.headless()
    world.in_state("finished")
    until((world.project / "copies").exists, "a checkpoint is copied")
    first.murder()
    ended = world.project / "ended"
    assert not ended.exists()
    second = world.headless()
    until(lambda: ended.exists() and ended.read_text() == "finish\n", "the command runs")
    second.murder()
    assert world.headless().ends() == 0
    assert ended.read_text() == "finish\n", "it ended with its supervisor, and is not run again"
    assert [d.event for d in world.decisions(RunAtEnd)] == ["finish"]
