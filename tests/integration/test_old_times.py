"""A trainer whose saves have times from before the run: nothing begins anew over them."""

import os
import sys

from tests.fakes.checkpoint_layouts import safetensors_file
from tests.fakes.e2e_world import World

TRAINER = """
import os, pathlib, sys, time
out, name, first = pathlib.Path(sys.argv[1]), "last.safetensors", sys.argv[2] if len(sys.argv) > 2 else ""
with (out / "begun.txt").open("a") as file:
    file.write(f"{first or 'anew'}\\n")
for number in range(6):
    time.sleep(0.1)
    print(f"loss {1 / (number + 2):.4f}", flush=True)
    place = out / (name + ".tmp")
    place.write_bytes(pathlib.Path("model/luca-000004.safetensors").read_bytes())
    os.utime(place, (1_000_000_000, 1_000_000_000))
    os.replace(place, out / name)
    if number == 3 and not first:
        time.sleep(1.5)
        sys.exit("RuntimeError: CUDA error: unknown error")
print("training done", flush=True)
"""


def begun(world: World) -> list[str]:
    return (world.out / "begun.txt").read_text().split()


def write(world: World) -> None:
    """A project whose output folder has a checkpoint of another training, written by a clock that was ahead."""
    (world.project / "train.py").write_text(TRAINER)
    safetensors_file(world.project / "model")
    world.out.mkdir(exist_ok=True)
    other = safetensors_file(world.out)
    os.utime(other, (2_000_000_000, 2_000_000_000))
    world.write(command=[sys.executable, "train.py", str(world.out), "{resume}"])


def test_a_run_resumes_from_saves_with_a_time_from_before_it_beside_those_of_another_training(world: World) -> None:
    write(world)

    watcher = world.begin("run", "--headless", "--fresh", "--yes")

    assert watcher.ends() == 0, watcher.said
    assert begun(world) == ["anew", str(world.out / "last.safetensors")], watcher.said
