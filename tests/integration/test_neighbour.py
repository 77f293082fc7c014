"""A second training beside the run, which nobody started with trainwatch: its files are its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER
from trainwatch.core.act.launch.output_locks import NAME
from trainwatch.core.model.decision import CopyAside, StartAttempt
from trainwatch.core.model.fact import OutputKnown

TRAINER = """
import argparse, json, os, signal, struct, time
options = argparse.ArgumentParser()
for name in ("place", "name", "resume"):
    options.add_argument(f"--{name}")
options.add_argument("--value", type=float, default=0.5)
options.add_argument("--steps", type=int, default=60)
told = options.parse_args()
head = json.dumps({"w": {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}}).encode()
first = int(told.resume.rpartition("_")[2].partition(".")[0]) if told.resume else 0
os.makedirs(told.place, exist_ok=True)
for step in range(first + 1, told.steps + 1):
    time.sleep(0.05)
    print(f"step {step}/{told.steps} loss {1 / (step + 1):.4f}", flush=True)
    if step % 10 == 0:
        place = f"{told.place}/{told.name}_{step}.safetensors"
        with open(f"{told.place}/.{told.name}.part", "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head)
            file.flush()
            time.sleep(0.3)
            file.write(struct.pack("<64f", *[told.value] * 64))
        os.rename(f"{told.place}/.{told.name}.part", place)
    if step == 35 and not first and told.name == "mine":
        time.sleep(2.0)
        os.kill(os.getpid(), signal.SIGKILL)
print("training done", flush=True)
"""


def words(place: str, name: str, *more: str) -> list[str]:
    return [sys.executable, "train.py", "--place", place, "--name", name, *more]


@contextmanager
def neighbour(folder: Path, place: str) -> Iterator[Path]:
    """A training with NaN in its files that saves all the time; its folder."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAINER)
    argv = words(place, "theirs", "--value", "nan", "--steps", "100000")
    with (folder.parent / "theirs.log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log)
    try:
        until(lambda: list((folder / place).glob("theirs_*")), "the neighbour saves")
        yield folder / place
    finally:
        process.kill()
        process.wait()


@SECOND_TIER
@pytest.mark.parametrize(
    ("beside", "theirs", "mine"),
    [(".", "out_b", "out_a"), (".", "both", "both"), ("../project-b", "runs/b", "runs/a")],
)
def test_a_crash_is_resumed_from_the_runs_own_save_whatever_a_neighbour_writes(
    world: World, beside: str, theirs: str, mine: str
) -> None:
    (world.project / "train.py").write_text(TRAINER)
    world.write(command=words(mine, "mine", "--resume", "{resume}"))
    toml = world.project / "trainwatch.toml"
    toml.write_text(toml.read_text().replace('output_dir = "out"\n', ""))

    with neighbour(world.project / beside, theirs) as other:
        watcher = world.begin("run", "--headless", "--yes")
        assert watcher.ends() == 0, watcher.said
        starts = [order.resume_from for order in world.decisions(StartAttempt)]
        known = {r.fact.folder for r in world.records() if isinstance(r.fact, OutputKnown)}

        assert len(starts) == 2, watcher.said
        assert Path(starts[1]).name.startswith("mine_"), watcher.said
        assert known == {str(world.project / mine)}
        assert not world.decisions(CopyAside)
        assert theirs == mine or not (other / NAME).exists()
        assert not list(world.project.rglob("*.kept"))
