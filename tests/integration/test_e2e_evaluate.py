"""Checkpoints of a real run get scores beside it; nothing that an evaluation does changes the run."""

import sys

from tests.fakes.e2e_world import World, lives, until
from tests.tiers import SECOND_TIER
from trainwatch.core.act.evaluator import MARK
from trainwatch.core.model.decision import EvaluateCheckpoint
from trainwatch.core.processes import all_processes, marked_with
from trainwatch.core.store.history_reader import HistoryReader

SCORE = """
import json, os, pathlib, sys, time
path = pathlib.Path(sys.argv[1])
with open("calls.txt", "a") as file:
    file.write(path.name + " begins\\n")
gate = pathlib.Path("gate")
while gate.exists():
    time.sleep(0.02)
step = int(path.stem[-8:])
if step == 60:
    sys.exit("no luck")
print(json.dumps({"fid": float(abs(step - 40) + 1)}))
with open("calls.txt", "a") as file:
    file.write(path.name + " ends\\n")
"""


def write(world: World, *trainer: str) -> None:
    (world.project / "score.py").write_text(SCORE)
    command = [sys.executable, "score.py", "{checkpoint}"]
    world.write(
        *trainer, more={"evaluate": {"command": command, "memory_bytes": 2e9}, "hang": {"min_s": 60, "max_s": 60}}
    )


def calls(world: World) -> list[str]:
    file = world.project / "calls.txt"
    return file.read_text().splitlines() if file.exists() else []


def listed(world: World) -> dict[int, tuple[float | None, bool]]:
    found = world.asks("checkpoints", "list", str(world.out), "--json").json["checkpoints"]
    return {row["step"]: (row["score"], row["best"]) for row in found}


@SECOND_TIER
def test_each_checkpoint_of_a_run_gets_its_score_and_one_that_fails_is_unknown(world: World) -> None:
    write(world, "--steps", "80", "--save-every", "20", "--step-time", "0.05")
    watcher = world.headless()
    assert watcher.ends() == 0
    assert listed(world) == {20: (21.0, False), 40: (1.0, True), 60: (None, False), 80: (41.0, False)}
    names = [f"net-step{step:08d}.safetensors" for step in (20, 40, 60, 80)]
    assert sorted(line for line in calls(world) if line.endswith("begins")) == [f"{name} begins" for name in names]
    story = world.story()
    assert story.state == "finished"
    assert [(i.kind, i.class_, i.open) for i in story.incidents] == [("checkpoint", "evaluation", False)]
    assert "no luck" in story.evaluations[str(world.out / names[2])].why
    assert len(story.attempts) == 1
    with HistoryReader(world.run.history) as history:
        assert [name for name in history.metrics() if "fid" in name] == ["evaluate/fid"]
        assert history.highest("metric.evaluate/fid") == 41.0


@SECOND_TIER
def test_a_killed_supervisor_takes_its_evaluation_along_and_nothing_is_measured_twice(world: World) -> None:
    (world.project / "gate").touch()
    write(world, "--steps", "60", "--save-every", "20", "--step-time", "0.05", "--hold-at", "45")
    first = world.headless()
    until(lambda: len(calls(world)) == 1, "an evaluation runs")
    (order,) = world.decisions(EvaluateCheckpoint)
    place = world.run.evaluations / f"{order.id:06d}"
    running = [process.pid for process in marked_with(str(place), all_processes().values(), MARK)]
    assert running
    first.murder()
    until(lambda: not any(lives(pid) for pid in running), "it ended with its supervisor")
    assert world.alive()

    (world.project / "gate").unlink()
    second = world.headless()
    until(
        lambda: {20, 40} <= {step for step, (score, _) in listed(world).items() if score is not None}, "both have one"
    )
    second.murder()
    third = world.headless()
    (world.out / "go").touch()
    assert third.ends() == 0
    ended = [line for line in calls(world) if line.endswith("ends")]
    assert sorted(ended) == [f"net-step{step:08d}.safetensors ends" for step in (20, 40)]
    assert world.lives() == world.lives()[:1]
