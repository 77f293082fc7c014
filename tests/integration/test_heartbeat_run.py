"""A trainer that uses trainbeat and prints nothing, supervised."""

import sys
from pathlib import Path

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER
from trainbeat import page_path

TRAINER = """
import os, pathlib, sys, time
import trainbeat
out, at = pathlib.Path(sys.argv[1]), 0
out.mkdir(exist_ok=True)
for step in range(1, 3000):
    time.sleep(0.02)
    wanted = trainbeat.step(step, loss=1 / step, total=3000)
    if wanted:
        head = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        (out / "new").write_bytes(len(head).to_bytes(8, "little") + head + bytes(4))
        (out / "new").rename(out / f"step-{step}.safetensors")
    if wanted.stop:
        print("stopped at", step)
        break
"""


@SECOND_TIER
def test_a_stop_saves_at_the_step_and_loses_none(world: World) -> None:
    (world.project / "train.py").write_text(TRAINER)
    command = [sys.executable, "train.py", "out", "{resume}"]
    world.write(command=command)
    world.headless()
    world.in_state("running")
    until(lambda: world.status()["progress"]["step"], "its steps are known")
    assert world.asks("save").code == 0
    first = until(lambda: list(world.out.glob("step-*.safetensors")), "the checkpoint")
    assert len(first) == 1
    assert world.asks("stop", "--yes").code == 0
    world.in_state("stopped")
    newest = max(int(path.stem.partition("-")[2]) for path in world.out.glob("step-*.safetensors"))
    assert f"stopped at {newest}" in world.log()
    assert world.story().attempts[-1].code == 0
    page = Path(page_path(world.attempt().directory))
    until(lambda: not page.exists(), "its page is removed")
