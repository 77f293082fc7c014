"""trainbeat: what a training tells, what it is asked, and that it is never harmed by it."""

import ast
import importlib.util
import math
import os
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainbeat
from tests.builders import World, judge
from tests.unit.test_judge_recovery import save
from trainbeat import NOTHING, Page, page_path
from trainwatch.core.judge.hang.liveness import ANNOUNCED
from trainwatch.core.model.decision import RequestSave
from trainwatch.core.model.fact import PhaseChanged
from trainwatch.core.model.observation import HEARTBEAT, LogChunk

SOURCE = Path(trainbeat.__file__)


def fresh(name: str = "copied_heartbeat") -> types.ModuleType:
    """The module as a process of its own would load it."""
    spec = importlib.util.spec_from_file_location(name, SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / "attempt"
    folder.mkdir()
    monkeypatch.setenv("TRAINWATCH_ATTEMPT", str(folder))
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    yield str(folder)
    Path(page_path(str(folder))).unlink(missing_ok=True)


def test_what_is_told_is_read_by_the_other_side(attempt: str) -> None:
    beat = fresh()
    assert beat.step(7, loss=0.25, total=100) == NOTHING
    told = Page(page_path(attempt)).read()
    assert told is not None
    assert (told["pid"], told["step"], told["total"], told["loss"], told["phase"]) == (
        os.getpid(),
        7,
        100,
        0.25,
        "train",
    )
    beat.phase("eval")
    assert Page(page_path(attempt)).read()["phase"] == "eval"  # type: ignore[index]
    beat.step(8, loss=math.nan)
    told = Page(page_path(attempt)).read()
    assert told is not None
    assert math.isnan(told["loss"])
    assert Path(page_path(attempt)).stat().st_mode & 0o077 == 0


def test_a_save_is_asked_once_and_a_stop_with_it(attempt: str) -> None:
    beat = fresh()
    beat.step(1)
    page = Page(page_path(attempt))
    page.ask()
    assert beat.step(2) == (True, False)
    assert beat.step(3) == NOTHING
    page.ask(stop=True)
    assert beat.step(4) == (True, True)
    assert not beat.step(5)


def test_a_request_of_before_a_restart_is_not_for_the_next_process(attempt: str) -> None:
    fresh().step(1)
    Page(page_path(attempt)).ask()
    assert not fresh().step(2)


def test_several_processes_save_at_the_same_step(attempt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    first = fresh()
    first.step(50)
    monkeypatch.setenv("RANK", "1")
    second = fresh()
    second.step(50)
    Page(page_path(attempt)).ask()
    saved: dict[str, list[int]] = {"first": [], "second": []}
    for number in range(51, 60):  # the second is one step behind
        if first.step(number):
            saved["first"].append(number)
        if second.step(number - 1):
            saved["second"].append(number - 1)
    assert saved == {"first": [54], "second": [54]}
    assert Page(page_path(attempt)).read()["step"] == 59, "only the first tells its step"  # type: ignore[index]


def test_without_trainwatch_it_does_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRAINWATCH_ATTEMPT", raising=False)
    beat = fresh()
    assert beat.step(1) == NOTHING
    beat.phase("eval")
    monkeypatch.setenv("TRAINWATCH_ATTEMPT", str(tmp_path / "gone"))
    assert fresh().step(1) == NOTHING


class Hostile:
    """A loss that must not be read: on a GPU that would wait, and here it raises."""

    device = "cuda:0"

    def __float__(self) -> float:
        raise AssertionError("a tensor on a GPU was read")


class Broken:
    def __float__(self) -> float:
        raise RuntimeError("no")


def test_no_loss_and_no_step_can_raise_or_wait(attempt: str) -> None:
    beat = fresh()
    assert beat.step(1, loss=Hostile()) == NOTHING
    assert beat.step(2, loss=Broken()) == NOTHING
    assert Page(page_path(attempt)).read()["loss"] is None  # type: ignore[index]
    assert beat.step("what") == NOTHING
    assert beat.step(3) == NOTHING, "it is switched off"
    beat.phase(object())


def test_a_page_of_somebody_else_is_not_used(attempt: str) -> None:
    path = Path(page_path(attempt))
    path.write_bytes(b"x")
    path.chmod(0o666)
    assert fresh().step(1) == NOTHING
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert fresh().step(1) == NOTHING


def test_a_forked_worker_tells_nothing(attempt: str) -> None:
    beat = fresh()
    beat.step(5)
    pid = os.fork()
    if pid == 0:
        beat.step(99)
        os._exit(0)
    os.waitpid(pid, 0)
    assert Page(page_path(attempt)).read()["step"] == 5  # type: ignore[index]


def test_a_copy_of_the_file_runs_alone_and_writes_the_stacks_of_its_threads(attempt: str, tmp_path: Path) -> None:
    shutil.copy(SOURCE, tmp_path / "trainbeat.py")
    code = (
        "import trainbeat, os, sys, time\n"
        "def deep():\n    trainbeat.step(3, loss=0.5, total=9); os.kill(os.getpid(), trainbeat._beat.dump); time.sleep(0)\n"
        "deep(); print('trainwatch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert "in deep" in Path(attempt, trainbeat.DUMP).read_text()
    imports = [
        node for node in ast.walk(ast.parse(SOURCE.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    assert names <= set(sys.stdlib_module_names)
    ast.parse(SOURCE.read_text(), feature_version=(3, 8))


def told(world: World, text: str) -> World:
    return world.see(LogChunk(t=world.t, text=text, source=HEARTBEAT))


def beating(steps: int = 30) -> World:
    world = World(judge()).begin()
    for step in range(1, steps + 1):
        world.wait(1)
        told(world, f"step {step}/1000 loss=0.5\n")
    return world


def test_a_training_that_prints_nothing_advances_by_what_it_tells() -> None:
    world = beating()
    assert world.word == "running"
    assert (world.state.progress.step, world.state.progress.total_steps) == (30, 1000)
    assert world.state.watch.clock.step_s == pytest.approx(1.0, rel=0.1)


def test_a_phase_that_is_told_has_the_deadline_of_that_phase() -> None:
    world = beating()
    told(world, "evaluating\n")
    assert world.state.watch.log_activity.phase == "eval"
    assert "eval" in ANNOUNCED
    assert [fact.phase for fact in world.of(PhaseChanged)][-1] == "eval"


def test_the_log_of_a_training_that_prints_its_steps_stays_the_source_of_progress() -> None:
    world = World(judge()).begin()
    for step in range(1, 30):
        world.wait(1)
        world.see(LogChunk(t=world.t, text=f"step {step}/500 loss=0.5\n"))
        told(world, f"step {step}/1000\n")
    assert world.state.progress.total_steps == 500


def test_a_training_that_tells_its_steps_can_be_asked_for_a_checkpoint() -> None:
    world = save(beating(), "out/step-20", 20).wait(1)
    world.command("save")
    (order,) = world.of(RequestSave)
    assert not order.stop
    world.command("stop")
    assert world.of(RequestSave)[-1].stop, "it ends after it, and no step is lost"
    assert world.word == "stopping"


def test_a_log_that_shows_its_steps_later_becomes_the_source_of_progress() -> None:
    world = beating(5)
    before = world.state.log.reads_beats
    world.wait(1).see(LogChunk(t=world.t, text="step 6/500 loss=0.5\n"))
    after = world.state.log.reads_beats
    told(world, "step 7/1000\n")
    assert (before, after, world.state.progress.total_steps) == (True, False, 500)
