"""A run whose script had no option for a checkpoint: how it resumes is read again when a person resumes it."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER, second
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.core.app.screen.store_feed import StoreFeed
from trainwatch.core.model.observation import Command
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.store.lock import is_held
from trainwatch.core.views.incidents import incident_card

WITHOUT = """
import argparse, os, sys, time
import numpy as np
from safetensors.numpy import load_file, save_file
parser = argparse.ArgumentParser()
parser.add_argument("--out", default="out")
OPTION
args = parser.parse_args()
os.makedirs(args.out, exist_ok=True)
net, first = np.zeros(4), 0
LOAD
for step in range(first, 3000):
    print(f"steps:   1%|#| {step + 1}/3000 [00:01<00:59, 50.00it/s, loss=1.0]", flush=True)
    time.sleep(0.02)
    if (step + 1) % 20 == 0:
        target = f"{args.out}/net-{step + 1}.safetensors"
        save_file({"net": net, "step": np.array([step + 1])}, target + ".tmp", {"ss_steps": str(step + 1)})
        os.replace(target + ".tmp", target)
    if step + 1 == 70 and not first and os.path.exists("crash"):
        sys.exit("AttributeError: no such thing")
"""
OPTION = 'parser.add_argument("--resume")'
LOAD = """
if args.resume:
    state = load_file(args.resume)
    net, first = state["net"], int(state["step"][0])
"""


def script(world: World, *, option: bool) -> None:
    text = WITHOUT.replace("OPTION", OPTION if option else "").replace("LOAD", LOAD if option else "")
    (world.project / "t.py").write_text(text)


def started(world: World, *, crashes: bool = True) -> str:
    """A run by a command alone, which has saved, and is over. Returns its id."""
    script(world, option=False)
    if crashes:
        (world.project / "crash").touch()
    command = ("--output-dir", "out", "--", sys.executable, "t.py")
    dry = world.asks("run", "--dry-run", "--json", *command).json
    assert dry["resume"]["will"] == "no"
    done = world.asks("run", "--detach", *command)
    assert done.code == 0, done
    assert "Resume: NO" in done.out + done.err
    if crashes:
        world.in_state("given_up")
        until(lambda: not is_held(world.run.lock), "its supervisor ends")
    else:
        world.at_step(50)
        assert world.status()["resume"] == dry["resume"]
        world.asks("stop", "--yes")
        world.in_state("stopped")
    return world.run.id


def ended(world: World) -> None:
    world.asks("kill", "--yes")
    world.in_state("stopped")
    world.asks("kill", "--yes")
    until(lambda: not is_held(world.run.lock), "its supervisor ends")


def resumed(world: World) -> RunStory:
    """The story once the second attempt is in it: the log may be ahead of the journal."""
    return until(lambda: story if len((story := world.story()).attempts) == 2 else None, "the second attempt")


def test_a_run_without_a_way_to_resume_names_the_commands_that_work_and_they_do(world: World) -> None:
    run = started(world)
    fresh, new = f"`trainwatch resume {run} --fresh`", f"`trainwatch resume {run} -- NEW COMMAND`"
    for words in (("report",), ("report", "--short"), ("events",), ("resume",)):
        done = world.asks(*words)
        told = done.out + done.err
        assert fresh in told, (words, told)
        assert new in told, (words, told)
        assert done.code == (1 if words == ("resume",) else 0)
    card = incident_card(Situation(story=world.story()), 1)
    assert card is not None
    (choice,) = [each.text for each in card.choices if each.act == "resume"]
    assert choice == "resume, once the script has an option that takes the path of a checkpoint, or begin anew"
    assert len(world.story().attempts) == 1

    script(world, option=True)
    done = world.asks("resume", run)
    assert done.code == 0, done
    assert "Resume: yes (`--resume …`, t.py:7)" in done.err
    world.at_step(75, 2)
    story = resumed(world)
    assert story.attempts[-1].resume_step == 60
    assert story.run is not None
    assert story.run.resume is not None
    assert story.run.resume.will == "yes"
    assert "Resume: yes" in world.asks("events").out
    ended(world)

    Path(world.project / "crash").unlink()
    assert world.asks("resume", run, "--fresh").code == 0
    world.at_step(5, 3)
    assert world.steps(3)[0] == 1
    ended(world)


@pytest.mark.parametrize("from_screen", [False, second(True)])
def test_restart_of_a_training_that_runs_uses_the_option_that_the_script_has_now(
    world: World, from_screen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: refused, as if the script had none; stop and resume took it."""
    script(world, option=False)
    assert world.asks("run", "--detach", "--output-dir", "out", "--", sys.executable, "t.py").code == 0
    until(lambda: sum(c.verdict == "complete" for c in world.story().checkpoints) > 1, "two checkpoints")
    refused = world.asks("restart", "--yes")
    assert refused.code == 1, refused
    assert "--fresh" in refused.err
    script(world, option=True)

    if from_screen:
        for name, value in world.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(world.project)
        reply = StoreFeed(world.run, 0.0).send(Command(t=0.0, verb="restart", by="the screen"))
        assert reply.ok, reply
    else:
        done = world.asks("restart", "--yes")
        assert done.code == 0, done
        assert "Resume: yes (`--resume …`, t.py:7)" in done.err

    until(lambda: len(world.story().attempts) == 2, "the next attempt")
    first, second = world.story().attempts
    assert first.how == "stopped", "the former supervisor left it running"
    assert (second.resume_step or 0) >= 40
    ended(world)


@pytest.mark.parametrize("supervised", [second(False), True])
def test_the_screen_uses_it_too(world: World, supervised: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(world, crashes=not supervised)
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.project)
    script(world, option=True)
    order = Command(t=0.0, verb="resume", by="the screen")

    if supervised:  # the supervisor of the stopped run waits
        assert is_held(world.run.lock)
        reply = StoreFeed(world.run, 0.0).send(order)
        assert reply.ok, reply
    else:
        MachineRuns().start(run, order)

    until(lambda: len(world.story().attempts) == 2, "the next attempt")
    assert (world.story().attempts[-1].resume_step or 0) >= 40
    ended(world)


@SECOND_TIER
def test_a_new_command_is_resumed_as_its_own_script_says(world: World) -> None:
    run = started(world)
    script(world, option=True)
    (world.project / "t.py").rename(world.project / "u.py")

    done = world.asks("resume", run, "--", sys.executable, "u.py")

    assert done.code == 0, done
    world.at_step(75, 2)
    assert resumed(world).attempts[-1].resume_step == 60
    assert world.status()["resume"]["will"] == "yes"
    ended(world)


def test_resume_with_other_settings_waits_for_the_stop_that_was_ordered(world: World) -> None:
    slow = {"restart": {"interrupt_grace_s": 8}}
    world.write("--steps", "3000", "--step-time", "0.02", "--save-every", "20", "--deaf", more=slow)
    world.headless()
    world.at_step(30)
    refused = world.asks("resume", "--set", "step_time=0.03")
    assert refused.code == 4, "nobody ordered its end"
    assert "is training (pid" in refused.err
    assert world.asks("stop", "--yes").code == 0

    done = world.asks("resume", "--set", "step_time=0.03")

    assert done.code == 0, done
    assert "waits for the end of its training" in done.err
    until(lambda: len(world.story().attempts) == 2, "the next attempt")
    line = Path(f"/proc/{world.attempt(2).trainer.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    assert "--step-time 0.03" in line, line
    ended(world)


@SECOND_TIER
def test_a_supervisor_that_is_terminated_while_nothing_runs_says_so(world: World) -> None:
    world.write("--steps", "3000", "--step-time", "0.02", "--save-every", "20", more={"restart": {"backoff_s": [90]}})
    watcher = world.headless()
    world.at_step(50)
    os.kill(world.attempt(1).trainer.pid, signal.SIGKILL)
    world.in_state("backing_off")

    watcher.signal(signal.SIGTERM)

    assert watcher.ends() == 0
    assert "requested by SIGTERM; nothing of the run is running" in watcher.said
    assert "the training continues" not in watcher.said
