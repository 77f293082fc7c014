"""A real trainer that exits with 0 halfway; only its command says how many steps there are."""

import sys

from tests.fakes.e2e_world import World

TRAINER = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--leave-at", type=int, default=0)
args = parser.parse_args()
for step in range(1, args.steps + 1):
    time.sleep(0.02)
    if step == args.leave_at:
        sys.exit(0)
    print(json.dumps({"it": step, "metrics": {"train_loss": 1 / step}}), flush=True)
"""


def ended(world: World, *words: str) -> tuple[int, str, str]:
    world.write(command=[sys.executable, "train.py", *words])
    (world.project / "train.py").write_text(TRAINER)
    done = world.do("--headless")
    return done.code, world.story().state, world.story().state_reason


def test_a_run_that_leaves_halfway_with_exit_0_ended_early_and_can_be_resumed(world: World) -> None:
    """It was "finished, nothing needs you" at step 99 of 200, and `resume` refused."""
    code, state, reason = ended(world, "--steps", "200", "--leave-at", "80")
    assert (code, state) == (1, "ended_early"), reason
    assert reason == "exit code 0, but the last progress is step 79 of 200 (by --steps 200)"
    shown = world.asks("resume", "--dry-run")
    assert "finished" not in shown.out + shown.err


def test_an_exception_that_the_trainer_survived_is_in_the_report_of_a_finished_run(world: World) -> None:
    """The report said that nothing went wrong."""
    world.write(command=[sys.executable, "train.py", "--steps", "60"])
    caught = (
        "import traceback\ntry:\n    raise ValueError('upload: 403')\nexcept ValueError:\n    traceback.print_exc()\n"
    )
    (world.project / "train.py").write_text(TRAINER.replace("for step", f"{caught}for step"))
    assert world.do("--headless").code == 0
    said = world.asks("report").out
    assert (world.story().state, "nothing went wrong" in said) == ("finished", False)
    assert "its log shows an exception that it survived" in said
    assert "ValueError: upload: 403" in said
