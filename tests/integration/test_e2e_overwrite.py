"""A trainer whose start deletes what it saved: no restart loses a checkpoint, and it resumes, with real processes."""

import sys

import pytest

from tests.fakes.e2e_world import World
from tests.fakes.torch_stand_in import stand_in
from tests.tiers import second

TRAINER = """
import argparse, glob, os, shutil, sys, time
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--place", default="out")
PARSER
args = parser.parse_args()
BEGIN
os.makedirs(args.place, exist_ok=True)
first = 0
if source:
    state = torch.load(source)
    model, first = state["model"], state["step"]
with open("truth.txt", "a") as truth:
    truth.write(f"{first}\\n")
starts = len(open("truth.txt").read().splitlines())
for step in range(first + 1, 61):
    time.sleep(0.02)
    print(f"step {step}/60 loss {2 / step:.4f}", flush=True)
    if step % 10 == 0:
        torch.save({"model": {"w": torch.ones(8, 8)}, "optimizer": {"m": torch.ones(8)}, "step": step},
                   os.path.join(args.place, f"step_{step}.pt"))
        time.sleep(0.4)
    if starts == 1 and step == 37:
        print("RuntimeError: CUDA error: unspecified launch failure", file=sys.stderr)
        os._exit(1)
"""


@pytest.fixture(autouse=True)
def no_torch(world: World) -> None:
    world.env["PYTHONPATH"] = stand_in(world.short / "torch")


EXCLUDES = (
    """parser.add_argument("--overwrite", action="store_true"); parser.add_argument("--resume", action="store_true")""",
    """
if args.overwrite and args.resume:
    sys.exit("cannot do both")
if os.path.exists(args.place) and os.listdir(args.place):
    if args.overwrite:
        shutil.rmtree(args.place)
    elif not args.resume:
        sys.exit("there is something in it")
saves = sorted(glob.glob(args.place + "/step_*.pt"), key=lambda name: int(name.rpartition("_")[2][:-3]))
source = saves[-1] if args.resume else None
""",
    ("--overwrite",),
)
ALWAYS = (
    """parser.add_argument("--restore")""",
    """
shutil.rmtree(args.place, ignore_errors=True)
source = args.restore
""",
    (),
)
AROUND = (ALWAYS[0], ALWAYS[1].replace("args.place", '"deep"'), ("--place", "deep/out"))
"""It deletes a folder around the one that it saves to: a copy beside that one would go with it."""


@pytest.mark.parametrize(
    "case",
    [second(EXCLUDES), second(ALWAYS), AROUND],
    ids=["excludes resuming", "always", "around"],
)
def test_no_restart_loses_a_checkpoint(world: World, case: tuple[str, str, tuple[str, ...]]) -> None:
    declared, begin, options = case
    (world.project / "train.py").write_text(TRAINER.replace("PARSER", declared).replace("BEGIN", begin))
    command = [sys.executable, "train.py", *options]
    world.write(command=command, output_dir="deep/out" if "deep/out" in options else "out")

    watcher = world.headless()

    assert watcher.ends() == 0, watcher.said
    assert (world.project / "truth.txt").read_text().split() == ["0", "30"]
    there = {path.name for folder in world.project.glob("[od]*") for path in folder.rglob("*.pt")}
    assert there == {f"step_{step}.pt" for step in (10, 20, 30, 40, 50, 60)}
    assert not list(world.project.glob("*/**/*.kept"))
    assert "deleted as attempt" not in watcher.said or options != EXCLUDES[2]


NEWEST = """
saves = sorted(glob.glob(args.place + "/step_*.pt"), key=lambda name: int(name.rpartition("_")[2][:-3]))
source = saves[-1] if saves else None
"""


OF_ALL = """
os.makedirs(args.place, exist_ok=True)
saves = os.listdir(args.place)
source = None
if saves:
    source = os.path.join(args.place, max(saves, key=lambda name: int(name.split("_")[1][:-3])))
"""


def test_a_trainer_that_takes_every_file_for_a_save_finds_none_of_ours(world: World) -> None:
    (world.project / "train.py").write_text(TRAINER.replace("PARSER", "").replace("BEGIN", OF_ALL))
    world.write(command=[sys.executable, "train.py"])

    watcher = world.headless()

    assert watcher.ends() == 0, watcher.said
    assert (world.project / "truth.txt").read_text().split() == ["0", "30"]


@pytest.mark.parametrize("keep", [second("1"), ""])
def test_a_shell_script_that_deletes_unless_a_variable_is_set(world: World, keep: str) -> None:
    (world.project / "train.py").write_text(TRAINER.replace("PARSER", "").replace("BEGIN", NEWEST))
    (world.project / "go.sh").write_text(f'[ -n "$KEEP" ] || rm -rf out\n{sys.executable} train.py\n')
    world.write(command=["bash", "go.sh"])
    env = {**world.env, "KEEP": keep}
    if not keep:
        refused = world.begin("run", env=env)
        assert refused.ends() == 1, refused.said
        assert "restart: go.sh deletes out at the start (`rm -rf out`, decided by `[ -n $KEEP ]`)" in refused.said
        assert not (world.project / "truth.txt").exists()

    watcher = world.begin("run", *([] if keep else ["--force"]), env=env)

    assert watcher.ends() == 0 or not keep, watcher.said
    assert (world.project / "truth.txt").read_text().split() == ["0", "30" if keep else "0"]
    assert ("was deleted as attempt 2 began; copies are in" in watcher.said) is not bool(keep)
    kept = {path.name for path in (world.project / "out.kept").rglob("*.pt")}
    assert keep or kept >= {"step_10.pt", "step_20.pt", "step_30.pt"}
