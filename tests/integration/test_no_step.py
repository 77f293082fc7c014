"""A real trainer whose log shows no step that is read, until its lines are described: it is not ended for that."""

import signal
import sys

from tests.fakes.e2e_world import World, until, world
from trainwatch.core.model.attempt import NO_STEP, Incident

__all__ = ["world"]

TRAINER = """
import itertools, pickle, time
for sweep in itertools.count(1):
    time.sleep(0.05)
    print(f"sweep {sweep} of 90000  q {1 / sweep:.4f}", flush=True)
    if sweep % 10 == 0:
        with open(f"out/state_{sweep // 10}.pkl", "wb") as file:
            pickle.dump({"weights": [0.5] * 90}, file)
"""


def told(world: World) -> Incident | None:
    return next((i for i in world.story().incidents if i.class_ == NO_STEP), None)


def test_lines_that_are_not_read_are_told_with_the_form_to_write_and_a_new_supervisor_reads_them(world: World) -> None:
    world.out.mkdir()
    world.write(command=[sys.executable, "train.py"])
    (world.project / "train.py").write_text(TRAINER)
    watcher = world.headless()
    incident = until(lambda: told(world), "the incident")
    shape = r"\bsweep +(?P<step>\d+) of (?P<total_steps>\d+)"
    assert f"shapes = ['{shape}'] under [progress] in trainwatch.toml" in incident.explanation
    status = world.status()
    assert (status["state"], status["progress"]["step"]) == ("running", None)
    watcher.signal(signal.SIGTERM)
    watcher.ends()
    world.write(command=[sys.executable, "train.py"], more={"progress": {"shapes": [shape]}})
    world.headless()
    until(lambda: (i := told(world)) is not None and i.ending == "a step is read", "a step that is read")
    now = world.status()
    assert (now["attempt"], now["progress"]["total_steps"], now["pid"]) == (1, 90000, status["pid"])
