"""``trainwatch check --after`` on a real run."""

import math
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.e2e_world import World
from trainwatch.core.app.preflight.after_run import After, check_final, check_log, check_loss
from trainwatch.core.model.checkpoint import Checkpoint, Listing
from trainwatch.core.model.run import AttemptStory, RunSpec
from trainwatch.core.model.story import RunStory


def test_check_after_a_run_finds_a_damaged_checkpoint(world: World) -> None:
    world.write("--steps", "100", "--save-every", "20", "--crash-at", "50")
    assert world.headless().ends() == 0
    done = world.asks("check", "--after", "--json")
    assert done.code == 0, done
    found = {c["name"]: c for c in done.json["checks"]}
    assert [n for n, c in found.items() if c["result"] == "pass"] == [
        "ended", "log", "loss", "checkpoints", "final model", "quality", "record",
    ]  # fmt: skip
    assert found["ended"]["found"] == "finished, in 2 attempts"
    assert "every byte of the newest 3 was read" in found["checkpoints"]["found"]
    assert f"prune {world.out} --keep 3" in found["kept"]["remedy"]
    assert "checkpoints backup" in found["backup"]["remedy"]
    assert "trainwatch report" in found["record"]["found"]

    newest = max(world.out.glob("*.safetensors"), key=lambda path: path.stat().st_mtime)
    newest.write_bytes(newest.read_bytes()[:-1])
    done = world.asks("check", "--after", "--json", "--run", "job")
    assert done.code == 1
    found = {c["name"]: c for c in done.json["checks"]}
    assert found["checkpoints"]["result"] == "fail"
    assert newest.name in found["checkpoints"]["found"]
    assert found["final model"]["result"] == "warn"


class Ended(NamedTuple):
    """A run that printed up to ``printed`` in its last attempt; its checkpoints hold ``stored``."""

    printed: tuple[int, ...]
    stored: tuple[int, ...]
    stride: int = 1
    ended_t: float | None = None


@pytest.mark.parametrize(
    ("run", "result"),
    [
        (Ended((360,), (45, 90), stride=4), "pass"),
        (Ended((361,), (84, 85), stride=4), "warn"),
        (Ended((360,), (180, 270)), "warn"),
        (Ended((240, 120), (200, 120)), "pass"),
        (Ended((240, 120), (240, 100)), "warn"),
        (Ended((360,), (360, 120)), "pass"),
        (Ended((360,), (45, 90), ended_t=510.0), "pass"),
        (Ended((360,), (45, 350), ended_t=510.0), "warn"),
        (Ended((360,), (45, 90), ended_t=2000.0), "warn"),
    ],
    ids=[
        "a stored step is four printed ones", "steps after the last save", "no save at the end",
        "a restart that counts anew", "a restart that counts anew and saves too early",
        "a copy of an earlier best state is the newest", "a whole ratio, saved at the end", "some steps are missing",
        "saved long before the end",
    ],
)  # fmt: skip
def test_check_after_a_run_counts_the_last_checkpoint_and_the_log_in_one_unit(run: Ended, result: str) -> None:
    attempts = tuple(
        AttemptStory(number=n, t=n * 100.0, wall=0.0, last_step=last, ended_t=run.ended_t)
        for n, last in enumerate(run.printed, 1)
    )
    before = len(run.printed) > 1
    saved = [
        Checkpoint(path=f"c-{step}", name=f"c-{step}", kind="directory", step=step, epoch=None, size_bytes=1,
                   mtime=150.0 if before and number else 500.0, verdict="complete")
        for number, step in enumerate(reversed(run.stored))
    ]  # fmt: skip
    found = check_final(
        After(
            spec=RunSpec(id="x", name="x", command=("true",), cwd="/", created_wall=0.0),
            story=RunStory(attempts=attempts, stride=run.stride),
            listing=Listing(checkpoints=tuple(saved), resume_point=None),
        ),
        saved,
    )
    assert found.result == result, found.found


def after(*losses: float, log: Path | None = None) -> After:
    spec = RunSpec(id="x", name="x", command=("true",), cwd="/", created_wall=0.0)
    attempt = AttemptStory(number=1, t=0.0, wall=0.0, log=None if log is None else str(log))
    listing = Listing(checkpoints=(), resume_point=None)
    return After(spec=spec, story=RunStory(attempts=(attempt,)), listing=listing, losses=losses)


@pytest.mark.parametrize(
    ("losses", "result"),
    [((2.0, 1.0), "pass"), ((1.0, 1.0), "warn"), ((1.0, math.nan), "fail"), ((1.0,), "warn"), ((), "warn")],
)
def test_check_after_a_run_judges_the_loss(losses: tuple[float, ...], result: str) -> None:
    assert check_loss(after(*losses)).result == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("step 1\n", "pass"),
        ("bar 1\rbar 2\r", "pass"),
        ("step 1\nst", "warn"),
        ("", "warn"),
        ("x\nTraceback (most recent call last):\nValueError\n", "warn"),
        (None, "fail"),
    ],
)
def test_check_after_a_run_judges_the_log(tmp_path: Path, text: str | None, result: str) -> None:
    log = tmp_path / "train.log"
    if text is not None:
        log.write_bytes(text.encode())
    assert check_log(after(log=log)).result == result
