"""What is said of the resume of a run that goes on is what its dry run said, and what happens at a crash."""

import sys

import pytest

from tests.fakes.e2e_world import World
from tests.tiers import SECOND_TIER

SCRIPT = """
import glob, os, pickle, time
OFF
first, out = 0, "out"
os.makedirs(out, exist_ok=True)
LOAD
for step in range(first, 3000):
    print(f"steps:   1%|#| {step + 1}/3000 [00:01<00:59, 50.00it/s, loss=1.0]", flush=True)
    time.sleep(0.02)
"""
LOAD = """
if GO_ON:
    with open(max(glob.glob(out + "/*.pkl")), "rb") as file:
        first = pickle.load(file)["step"]
"""
STRICT = "import argparse\np = argparse.ArgumentParser()\np.parse_args()\n"
OPEN = "import sys\nlr = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"


@SECOND_TIER
@pytest.mark.parametrize(
    ("text", "words", "will"),
    [
        (SCRIPT.replace("OFF", "GO_ON = False").replace("LOAD", LOAD), (), "no"),
        (SCRIPT.replace("OFF", STRICT).replace("LOAD", ""), (), "no"),
        (SCRIPT.replace("OFF", OPEN).replace("LOAD", ""), ("--trained-agent", "{resume}"), "unknown"),
    ],
    ids=["switched off", "a strict parser", "an option of an unknown parser"],
)
def test_status_says_what_the_dry_run_said(world: World, text: str, words: tuple[str, ...], will: str) -> None:
    (world.project / "t.py").write_text(text)
    command = ("--", sys.executable, "t.py", *words)
    dry = world.asks("run", "--dry-run", "--json", *command).json
    assert dry["resume"]["will"] == will

    assert world.do("run", "--detach", *command).code == 0

    world.at_step(5)
    assert world.status()["resume"] == dry["resume"]
    assert world.attempt(1).trainer.pid
    world.asks("kill", "--yes")
    world.in_state("stopped")
    world.asks("kill", "--yes")
