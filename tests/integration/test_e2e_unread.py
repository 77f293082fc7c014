"""Trainers whose saves nobody reads but they: the newest is handed to the trainer, with real processes."""

import sys

import pytest

from tests.fakes.e2e_world import World
from tests.tiers import SECOND_TIER

TRAINER = """
import argparse, json, os, sys, time, zipfile
parser = argparse.ArgumentParser()
parser.add_argument("--resume", dest="source")
args = parser.parse_args()
place = os.path.join("res", "ults")
os.makedirs(place, exist_ok=True)
def save(step):
    SAVE
    json.dump({"rmse": 1 / step}, open(f"{place}/metrics_{step}.json", "w"))
    json.dump({"lr": 0.1}, open(f"{place}/config.json", "w"))
def load(path):
    LOAD
first = load(args.source) if args.source else 0
with open("truth.txt", "a") as truth:
    truth.write(f"{first} {os.path.basename(args.source or '')}\\n")
starts = len(open("truth.txt").read().splitlines())
for step in range(first + 1, 61):
    time.sleep(0.12)
    print(f"step {step}/60 loss {2 / step:.4f}", flush=True)
    if step % 10 == 0:
        save(step)
        time.sleep(0.4)
    if starts == 1 and step == 37:
        print("RuntimeError: CUDA error: unspecified launch failure", file=sys.stderr)
        os._exit(1)
"""
ARCHIVE = (
    """
    with zipfile.ZipFile(f"{place}/agent_{step}_steps.zip", "w") as z:
        z.writestr("data", str(step)); z.writestr("policy.bin", os.urandom(900)); time.sleep(0.1)
    open(f"{place}/agent_replay_buffer_{step}_steps.pkl", "wb").write(os.urandom(9000))
""",
    """
    return int(zipfile.ZipFile(path).read("data"))
""",
    "agent_30_steps.zip",
)
BINARY = (
    """
    with open(f"{place}/trees{step}.ubj", "wb") as file:
        file.write(b"{L\\x00\\x00learner" + os.urandom(50 * step) + f"#{step}".encode()); time.sleep(0.1)
""",
    """
    return int(open(path, "rb").read().rpartition(b"#")[2])
""",
    "trees30.ubj",
)
TEXT = (
    """
    with open(f"{place}/round{step}.json", "w") as file:
        json.dump({"trees": [[0.5] * 20] * step, "step": step}, file); time.sleep(0.1)
""",
    """
    return json.load(open(path))["step"]
""",
    "round30.json",
)
MEMBERS = (
    """
    import torch
    folder = f"{place}/SAVE+{step}"; os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/model.ckpt", "wb") as file:
        torch.save({"w": torch.ones(8)}, file); time.sleep(0.1)
    torch.save({"m": torch.ones(8)}, f"{folder}/optimizer.ckpt")
    open(f"{folder}/counter.ckpt", "w").write(f"step: {step}\\n")
""",
    """
    return int(open(f"{path}/counter.ckpt").read().split()[1])
""",
    "SAVE+30",
)


@pytest.mark.parametrize(
    ("case", "told"),
    [
        pytest.param(case, told, id=f"{name}-{'told' if told else 'found'}", marks=() if first == told else SECOND_TIER)
        for name, case, first in (
            ("archive", ARCHIVE, False), ("binary", BINARY, None), ("text", TEXT, None), ("text member", MEMBERS, None),
        )
        for told in (True, False)
    ],
)  # fmt: skip
def test_the_newest_save_is_handed_to_the_trainer(world: World, case: tuple[str, str, str], told: bool) -> None:
    save, load, newest = case
    if case is MEMBERS:
        pytest.importorskip("torch")
    (world.project / "train.py").write_text(
        TRAINER.replace("SAVE\n", f"{save.strip()}\n").replace("LOAD", load.strip())
    )
    command = [sys.executable, "train.py", "--resume", "{resume}"]
    world.write(command=command, output_dir="res/ults", more={"watch": {"settle_s": 1}})
    if not told:
        text = (world.project / "trainwatch.toml").read_text()
        (world.project / "trainwatch.toml").write_text(text.replace('output_dir = "res/ults"\n', ""))

    watcher = world.headless("--interval", "1")

    assert watcher.ends() == 0, watcher.said
    assert (world.project / "truth.txt").read_text().splitlines() == ["0 ", f"30 {newest}"]
    assert not list(world.project.glob("res/ults/SAVE*/.*")), "nothing is written into a checkpoint"


WITH_TORCH = """
import argparse, os, time, torch
parser = argparse.ArgumentParser()
parser.add_argument("--warm", dest="source")
known = parser.parse_args()
os.makedirs("res", exist_ok=True)
first = 0
if known.source:
    held = torch.load(known.source, map_location="cpu"WAY)
    model.load_state_dict(held["model"]); optimizer.load_state_dict(held["optimizer"]); first = held["step"]
for step in range(first + 1, 31):
    time.sleep(0.15)
    print(f"step {step}/30 loss {2 / step:.4f}", flush=True)
    if step == 8:
        torch.save({"model": {"w": torch.ones(9)}, "optimizer": {}, "step": step, "options": HELD}, "res/at-8.pt")
"""


@SECOND_TIER
@pytest.mark.parametrize(
    ("way", "held", "refused"),
    [("", "known", True), ("", "vars(known)", False), (", weights_only=False", "known", False)],
)
def test_a_load_that_torch_would_refuse_is_told_at_the_first_save(
    world: World, way: str, held: str, refused: bool
) -> None:
    pytest.importorskip("torch")
    (world.project / "train.py").write_text(WITH_TORCH.replace("WAY", way).replace("HELD", held))
    world.write(command=[sys.executable, "train.py"], output_dir="res", more={"watch": {"settle_s": 1}})
    watcher = world.headless("--interval", "1")
    assert watcher.ends() == 0, watcher.said
    found = [incident for incident in world.story().incidents if incident.class_ == "weights_only"]
    assert bool(found) is refused
    assert not found or ("argparse.Namespace" in found[0].reason and "train.py:9" in found[0].explanation)
