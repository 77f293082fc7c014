"""A trainer that cannot read a checkpoint which was verified: passed over once, kept, and cleared by a second one."""

import msgspec
import pytest

from tests.builders import Story, World, judge
from tests.shipped import CATALOGUE
from tests.unit.test_judge_recovery import crash, quick, running, save
from tests.unit.test_judge_resume_listing import resumed
from trainwatch.core.config.shipped import load_remedies
from trainwatch.core.judge.resume.checkpoint_index import DOUBTED
from trainwatch.core.model.checkpoint import LoadRefusal
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.fact import CheckpointsSetAside, RemedyApplied, RemedyProposed
from trainwatch.core.model.observation import CheckpointEvent
from trainwatch.core.model.progress import Why

UNREADABLE = "\nRuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n"
WEIGHTS_ONLY = """
Traceback (most recent call last):
  File "train.py", line 40, in <module>
    state = torch.load(path)
  File "/opt/torch/serialization.py", line 1529, in load
    raise pickle.UnpicklingError(_get_wo_message(str(e))) from None
_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options, do \
those steps only if you trust the source of the checkpoint.
	(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`.
	WeightsUnpickler error: Unsupported global: GLOBAL numpy._core.multiarray.scalar was not an allowed global by default.
"""


def three(**restart: object) -> World:
    """A run with three checkpoints that crashed once and was restarted from the newest."""
    world = running(judge(quick(backoff_s=(0.0,), max_restarts=9, **restart), catalogue=CATALOGUE))
    for step in (10, 20, 40):
        save(world.wait(1.0), f"out/step-{step}", step)
    return crash(world, "\nRuntimeError: CUDA error: unknown error\n")


def test_one_that_the_trainer_cannot_read_is_passed_over_once_and_kept() -> None:
    world = crash(three(), UNREADABLE)
    assert resumed(world) == ["out/step-40", "out/step-20"]
    assert [(fact.paths, fact.why) for fact in world.of(CheckpointsSetAside)] == [(("out/step-40",), DOUBTED)]
    assert "checkpoint" not in [incident.kind for incident in world.incidents]


def test_the_same_last_line_from_the_one_before_clears_both_and_holds() -> None:
    world = crash(crash(three(), UNREADABLE), UNREADABLE)
    assert resumed(world) == ["out/step-40", "out/step-20"]
    assert world.word == "stopped"
    assert world.of(CheckpointsSetAside)[-1] == CheckpointsSetAside(paths=("out/step-40",), why="")
    assert world.why == Why("checkpoints_fine")
    told = world.of(NotifyPeople)[-1]
    assert told.title.endswith("held: the checkpoints are not to blame")
    assert "ends with the same line before its first step: exit code 1: RuntimeError: PytorchStreamReader" in told.body
    crash(world.command("resume"), UNREADABLE)
    assert set(resumed(world)[2:]) == {"out/step-40"}


NO_KEY = """Traceback (most recent call last):
  File "/w/train.py", line 31, in <module>
    epoch = state["meta"]["epoch"]
KeyError: 'meta'
"""
OWN_FORMAT = """Traceback (most recent call last):
  File "/w/lib/io.py", line 8, in restore
    raise ValueError("version 3 of the state is not known")
ValueError: version 3 of the state is not known
"""


@pytest.mark.parametrize("text", [NO_KEY, OWN_FORMAT, WEIGHTS_ONLY])
def test_one_that_the_trainer_twice_does_not_start_with_is_passed_over(text: str) -> None:
    """The newest was tried three times, and the run given up, while the one before it was whole."""
    world = crash(three(), text)
    assert resumed(world) == ["out/step-40", "out/step-40"]
    crash(world, text)
    assert resumed(world)[2:] == ["out/step-20"]
    world.watch(Story(meta=False, step=20).load(10).train(10))
    assert world.word == "running"
    assert not [i for i in world.incidents if i.open]


@pytest.mark.parametrize("text", [NO_KEY, OWN_FORMAT, WEIGHTS_ONLY])
def test_if_the_older_one_ends_with_the_same_line_the_run_is_held_at_the_newest(text: str) -> None:
    world = crash(crash(crash(three(), text), text), text.replace("line 31", "line 32"))
    assert resumed(world) == ["out/step-40", "out/step-40", "out/step-20"]
    assert world.word == "stopped"
    assert resumed(world.command("resume"))[-1] == "out/step-40"


@pytest.mark.parametrize(
    "text",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "ModuleNotFoundError: No module named 'flash_attn'",
        "requests.exceptions.ConnectionError: Max retries exceeded with url: /api",
        "RuntimeError: The server socket has failed to listen on any address: EADDRINUSE, address already in use",
        "OSError: [Errno 28] No space left on device",
        "RuntimeError: CUDA error: unspecified launch failure",
    ],
)
def test_a_cause_that_lies_elsewhere_takes_no_checkpoint_away(text: str) -> None:
    world = three()
    for _ in range(3):
        crash(world, f"\n{text}\n").wait(700.0, every_s=50.0)
    assert set(resumed(world)) == {"out/step-40"}


@pytest.mark.parametrize("error", ["zipfile.BadZipFile: File is not a zip file", UNREADABLE.strip()])
def test_a_resume_that_worked_is_not_blamed_on_its_checkpoint(error: str) -> None:
    """BadZipFile came from a data file, hours after the resume."""
    world = three()
    world.watch(Story(meta=False, step=40).load(10).train(10))
    crash(world, f"\n{error}\n")
    assert resumed(world)[-1] == "out/step-40"


def test_a_message_that_names_another_file_says_nothing_about_the_checkpoint() -> None:
    world = crash(three(), "\nRuntimeError: PytorchStreamReader failed reading zip archive: /data/cache/latents.pt\n")
    assert set(resumed(world)) == {"out/step-40"}


def test_without_another_one_it_is_taken_again_and_nothing_begins_anew() -> None:
    world = running(judge(quick(backoff_s=(0.0,), max_restarts=9), catalogue=CATALOGUE))
    crash(save(world, "out/step-40", 40), "\nRuntimeError: CUDA error: unknown error\n")
    crash(crash(world, UNREADABLE), UNREADABLE)
    assert set(resumed(world)) == {"out/step-40"}


def test_after_a_resume_that_worked_another_one_is_passed_over_once_more() -> None:
    world = crash(three(), UNREADABLE)
    world.watch(Story(meta=False, step=20).load(10).train(30))
    crash(save(world, "out/step-50", 50), "\nRuntimeError: CUDA error: unknown error\n")
    assert resumed(world)[-1] == "out/step-50"
    crash(world, UNREADABLE)
    assert resumed(world)[-1] == "out/step-20"  # step-40 could not be read either


def test_another_save_at_its_path_is_not_passed_over() -> None:
    world = running(judge(quick(backoff_s=(0.0,), max_restarts=9), catalogue=CATALOGUE))
    event(event(world, "step-20", "complete", 1000.0, step=20), "step-40", "complete", 1100.0, step=40)
    crash(crash(world, "\nRuntimeError: CUDA error: unknown error\n"), UNREADABLE)
    assert resumed(world)[-1] == "out/step-20"
    world.watch(Story(meta=False, step=20).load(10).train(25))
    event(world, "step-40", "complete", 1200.0, step=40)
    assert resumed(crash(world, "\nRuntimeError: CUDA error: unknown error\n"))[-1] == "out/step-40"


def event(world: World, name: str, kind: str, mtime: float, **more: object) -> World:
    return world.see(
        CheckpointEvent(t=world.t, path=f"out/{name}", event=kind, mtime=mtime, form="directory", **more)  # type: ignore[arg-type]
    )


REFUSAL = LoadRefusal(place="fit.py:9", objects=("argparse.Namespace",))


def foresees() -> World:
    mind = judge(quick(backoff_s=(0.0,)), catalogue=CATALOGUE, remedies=tuple(load_remedies()))
    return running(mind)


def kept(world: World, path: str, refused: LoadRefusal | None = REFUSAL) -> World:
    event = CheckpointEvent(t=world.t, path=path, event="complete", size_bytes=1e6, refused=refused)
    return world.wait(1.0).see(event)


def foreseen(world: World) -> list[bool]:
    return [incident.open for incident in world.incidents if incident.class_ == "weights_only"]


def test_a_load_that_would_fail_is_told_at_the_first_save_once_with_both_cures() -> None:
    world = foresees()
    for step in (10, 20):
        kept(kept(world, f"out/state-{step}.pt"), f"out/weights-{step}.pt", None)
    assert foreseen(world) == [True]
    assert [fact.name for fact in world.of(RemedyProposed)] == ["load-whole-checkpoints"]
    told = [each for each in world.of(NotifyPeople) if "cannot load" in each.title]
    assert len(told) == 1
    assert "fit.py:9" in told[0].body
    assert "weights_only=False" in told[0].body
    assert "--with load-whole-checkpoints" in told[0].body
    assert world.of(RemedyApplied) == []
    kept(world, "out/state-30.pt", None)
    assert foreseen(world) == [False]


def test_a_variable_does_not_cure_what_the_source_says() -> None:
    world = kept(foresees(), "out/state-10.pt", msgspec.structs.replace(REFUSAL, explicit=True))
    assert foreseen(world) == [True]
    assert world.of(RemedyProposed) == []


def test_a_resume_that_has_worked_refutes_it() -> None:
    world = kept(foresees(), "out/state-10.pt")
    crash(world, "\nRuntimeError: CUDA error: unknown error\n").watch(Story(meta=False, period_s=5.0).load(5).train(40))
    assert resumed(world) == ["out/state-10.pt"]
    assert foreseen(kept(world, "out/state-20.pt")) == [False]
    assert foreseen(kept(world, "out/state-30.pt")) == [False]
