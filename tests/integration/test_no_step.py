"""A real trainer whose log shows no step that is read, until its lines are described: it is not ended for that."""

import signal
import sys

from tests.fakes.e2e_world import World, until

TRAINER = """
import itertools, pickle, time
for sweep in itertools.count(1):
    time.sleep(0.05)
    print(f"sweep {sweep} of 90000  q {1 / sweep:.4f}", flush=True)
    if sweep % 10 == 0:
        with open(f"out/state_{sweep // 10}.pkl", "wb") as file:
            pickle.dump({"weights": [0.5] * 90}, file)
"""


def test_lines_that_are_not_read_end_no_trainer_and_a_new_supervisor_reads_them_by_their_shape(world: World) -> None:
    world.out.mkdir()
    world.write(command=[sys.executable, "train.py"])
    (world.project / "train.py").write_text(TRAINER)
    watcher = world.headless()
    until(lambda: world.story().state == "running", "a save, which shows that it trains")
    status = world.status()
    assert status["progress"]["step"] is None
    shape = r"\bsweep +(?P<step>\d+) of (?P<total_steps>\d+)"
    watcher.signal(signal.SIGTERM)
    watcher.ends()
    world.write(command=[sys.executable, "train.py"], more={"progress": {"shapes": [shape]}})
    world.headless()
    until(lambda: world.status()["progress"]["step"], "a step that is read")
    now = world.status()
    assert (now["attempt"], now["progress"]["total_steps"], now["pid"]) == (1, 90000, status["pid"])
