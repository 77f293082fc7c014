"""Counters that begin again in each epoch: none is the step of the run, or compared with that of a checkpoint.

Seen: ``for step, batch in enumerate(tqdm(loader))``, 25 batches in an epoch, killed in the third one and resumed.
"""

from collections.abc import Iterable

import msgspec
import pytest

from tests.builders import World, judge
from tests.fakes.feed import healthy
from tests.unit.test_judge_branches import ANYWHERE, GENERIC, notes
from tests.unit.test_judge_recovery import quick
from trainwatch.cli.status_text import status_lines
from trainwatch.core.app.runs.supervisor_life import progress_in
from trainwatch.core.judge.progress import AttemptProgress, whole_epochs
from trainwatch.core.judge.recovery.attempts import shown_progress
from trainwatch.core.model.decision import StopAttempt
from trainwatch.core.model.fact import IncidentOpened, StateChanged
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk
from trainwatch.core.model.preset import resume_support
from trainwatch.core.model.progress import Progress, ToldLength
from trainwatch.core.views.state.status import status_object
from trainwatch.core.views.state.verdict import where

FOUR = ToldLength(epochs=4, epochs_by="--epochs 4")


def plain(_epoch: int, n: int, total: int) -> str:
    """One redraw of a bar without a label."""
    return f"\r{100 * n // total:3d}%|###   | {n}/{total} [00:{n % 60:02d}<00:09,  1.00s/it]"


def with_loss(_epoch: int, n: int, total: int) -> str:
    return f"\r{100 * n // total:3d}%|###   | {n}/{total} [00:{n % 60:02d}<00:09,  1.00s/it, loss=0.5]"


def labelled(epoch: int, n: int, total: int) -> str:
    return f"\rEpoch {epoch + 1}/4: {100 * n // total:3d}%|###   | {n}/{total} [00:{n % 60:02d}<00:09,  1.00s/it]"


def lines(epoch: int, n: int, _total: int) -> str:
    return f"epoch {epoch} step {n - 1} loss 0.5\n"


def run(told: ToldLength | None = FOUR) -> World:
    known = {} if told is None else {"": told}
    mind = judge(quick(backoff_s=(0.0,)), GENERIC, resume_support=resume_support(GENERIC, ANYWHERE), told=known)
    return World(mind).begin()


def train(world: World, shape: object, epoch: int, steps: Iterable[int], total: int = 25) -> World:
    """A step a second; the line of an epoch's bar ends with its last step."""
    for n in steps:
        text = shape(epoch, n, total)  # type: ignore[operator]
        world.wait(1.0).see(LogChunk(t=world.t, text=text + ("\n" if n == total and text[0] == "\r" else "")))
    return world


def save(world: World, path: str, step: int | None, epoch: int | None) -> World:
    event = CheckpointEvent(
        t=world.t, path=path, event="complete", step=step, epoch=epoch, size_bytes=1e6, mtime=world.t, form="file"
    )
    return world.see(event)


def kill(world: World) -> World:
    world.see(Exit(t=world.t + 0.5, signal=9)).wait(2.0)
    assert world.live == 2
    return world


def classes(world: World) -> list[str]:
    return [e.incident.class_ for e in world.of(IncidentOpened)]


def killed_in_the_third_epoch(
    shape: object, told: ToldLength | None = FOUR, *, within: bool = False, base: int = 0, path: str = "ckpt_{}.pt"
) -> World:
    """``within``: each checkpoint holds the index of the last batch of its epoch, not of the run. ``base``: of epochs."""
    world = run(told)
    for epoch in (0, 1):
        train(world, shape, epoch, range(1, 26))
        train(world, shape, epoch + 1, (1,))  # the save is noticed a step later
        save(world, f"out/{path.format(epoch)}", 24 if within else 25 * (epoch + 1) - 1, epoch + base)
        train(world, shape, epoch + 1, range(2, 5))
    return kill(train(world, shape, 2, range(5, 12)))


# --- within its first epoch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "told"), [(plain, FOUR), (with_loss, FOUR), (lines, FOUR), (lines, None)])
def test_an_epoch_that_is_trained_again_after_a_resume_is_no_start_over(shape: object, told: ToldLength | None) -> None:
    """It was saved in the middle of its first epoch, and trains that epoch again: the attempt was ended for it."""
    world = save(train(run(told), shape, 0, range(1, 41), 60), "out/mid_40.pt", 39, 0)
    world = train(kill(train(world, shape, 0, range(41, 51), 60)), shape, 0, range(1, 31), 60)

    assert not world.of(StopAttempt)
    assert "resume verified" not in notes(world)


def test_a_trainer_that_numbers_the_epochs_that_are_left_has_not_started_over() -> None:
    def left(epoch: int, n: int, total: int) -> str:
        return with_loss(epoch, n, total).replace("\r", f"\rEpoch {epoch + 1}/2: ")

    def all_of_them(epoch: int, n: int, total: int) -> str:
        return with_loss(epoch, n, total).replace("\r", f"\rEpoch {epoch + 1}/4: ")

    world = train(killed_in_the_third_epoch(all_of_them), left, 0, range(1, 20))
    assert not world.of(StopAttempt)


# --- a step within the epoch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [plain, with_loss, labelled, lines])
def test_a_step_within_its_epoch_is_not_compared_with_the_step_of_the_run(shape: object) -> None:
    world = killed_in_the_third_epoch(shape, within=True)

    first, second = world.state.saved.checkpoints.known
    assert (first.step, first.of_epoch) == (24, False)
    assert (second.step, second.of_epoch) == (None, True)
    assert second.position is not None
    assert abs(second.position - 49) <= 1


def test_epochs_that_are_numbered_from_the_first_again_are_further_ones_where_the_loss_goes_on() -> None:
    """It saved at 40 and 80 once more in each attempt: that paid nothing back, and two ends at 100 were one place."""
    world = run(None)
    for done in range(0, 10, 2):
        for epoch, last in ((1, 40), (2, 40), (3, 20)):
            for n in range(1, last + 1):
                loss = 2.0 - 0.1 * (done + epoch) + 0.001 * (n % 7)
                world.see(LogChunk(t=world.t + 1.0, text=f"Epoch [{epoch}/50] Step [{n}/40] loss: {loss:.4f}\n"))
            if last == 40:
                save(world, "out/last.pt", None, epoch)
        world.see(Exit(t=world.t + 0.5, signal=9)).wait(2.0)
    assert (world.word, world.state.policy.budget.best) == ("starting", 400)


def test_a_file_that_is_written_again_loses_the_step_of_its_first_save() -> None:
    world = killed_in_the_third_epoch(labelled, within=True, path="last.pt")

    (known,) = world.state.saved.checkpoints.known
    assert (known.step, known.of_epoch, known.epoch) == (None, True, 1)


def test_a_resume_from_such_a_checkpoint_is_seen_by_the_epoch() -> None:
    """*resumed by itself: first step at or before 53; it was told to resume from last.pt (step 24)*."""
    world = killed_in_the_third_epoch(labelled, within=True)
    world.answer("verify_checkpoint", verdict="complete", step=24)

    world = train(world, labelled, 2, range(1, 9))

    assert "resume verified: ckpt_1.pt holds epoch 1, first step after it" in notes(world)
    assert world.state.attempt.resume_step is None


def test_a_step_in_a_checkpoint_that_is_verified_before_the_launch_stays_one_of_the_epoch() -> None:
    world = run()
    world.answer("verify_checkpoint", verdict="complete", step=24).answer(
        "verify_checkpoint", verdict="complete", step=24
    )
    for epoch in (0, 1):
        train(world, labelled, epoch, range(1, 26))
        save(train(world, labelled, epoch + 1, (1,)), f"out/ckpt_{epoch}.pt", 24, epoch)
        train(world, labelled, epoch + 1, range(2, 5))
    kill(world)
    assert world.state.attempt.resume_from == "out/ckpt_1.pt"
    assert world.state.attempt.resume_step is None
    again = CheckpointEvent(t=world.t, path="out/ckpt_1.pt", event="complete", step=24, epoch=1, size_bytes=1e6,
                            mtime=world.state.saved.checkpoints.known[-1].mtime, form="file")  # fmt: skip
    assert next(k for k in world.see(again).state.saved.checkpoints.known if k.path == "out/ckpt_1.pt").step is None


# --- bars without a number after a resume --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "told", "base", "epochs", "state", "reason"),
    [
        (with_loss, FOUR, 0, (2, 3), "finished", "in epoch 4 of 4 (by --epochs 4)"),
        (lines, FOUR, 0, (2, 3), "finished", "in epoch 4 of 4 (by --epochs 4)"),
        (with_loss, ToldLength(epochs=40, epochs_by="--epochs 40"), 0, (2, 3), "ended_early", ""),
        (with_loss, FOUR, 1, (2,), "ended_early", "in epoch 3 of 4 (by --epochs 4)"),
        (with_loss, None, 0, (2, 3), "finished", "(step 25 of 25 of an epoch)"),
    ],
    ids=["a bar", "lines", "clearly short", "one epoch is missing, the place is known", "without a length"],
)
def test_the_end_with_0_of_bars_without_a_number_after_a_resume(
    shape: object, told: ToldLength | None, base: int, epochs: tuple[int, ...], state: str, reason: str
) -> None:
    """*exit code 0, but the last progress is in epoch 2 of 4*, at the end of the fourth."""
    world = killed_in_the_third_epoch(shape, told, base=base)
    for epoch in epochs:
        train(world, shape, epoch, range(1, 26))
    world.see(Exit(t=world.t + 1.0, code=0))

    assert world.of(StateChanged)[-1].state == state
    assert reason in world.of(StateChanged)[-1].reason


def test_the_step_of_the_run_goes_on_from_where_it_resumed_whether_epochs_count_from_0_or_1() -> None:
    """*step 2 of 100* after a resume from epoch 0, which was the first one that was done."""
    for base in (0, 1):
        world = run()
        train(world, plain, 0, range(1, 26))
        save(train(world, plain, 1, (1,)), "out/ckpt.pt", None, base)
        world = train(kill(train(world, plain, 1, range(2, 9))), plain, 1, range(1, 4))
        shown = shown_progress(world.judge.knowledge, world.state)
        assert (shown.run_step, shown.run_total_steps, shown.of_part) == (28, 100, False)


def test_after_a_resume_at_a_place_that_is_not_known_no_step_of_the_run_is_shown() -> None:
    world = train(killed_in_the_third_epoch(plain, None), plain, 2, range(1, 5))
    shown = shown_progress(world.judge.knowledge, world.state)
    assert (shown.step, shown.run_step, shown.any_step, shown.of_part) == (4, None, None, True)


@pytest.mark.parametrize(
    ("stored", "at", "found"),
    [(0, 25, 1), (1, 24, 1), (1, 50, 2), (2, 52, 2), (None, 50, 2), (0, 50, None), (3, 50, None), (1, 38, None)],
)
def test_epochs_that_were_done_are_told_by_the_place_and_the_number_together(
    stored: int | None, at: int, found: int | None
) -> None:
    assert whole_epochs(AttemptProgress(resume_epochs=stored, resume_position=at), 25) == found
    assert whole_epochs(AttemptProgress(resume_epochs=stored), 25) is None
    assert whole_epochs(AttemptProgress(resume_epochs=stored, resume_position=at), None) is None


# --- in words ------------------------------------------------------------------------------------------------------


def test_a_step_of_an_epoch_is_shown_as_one() -> None:
    part = Progress(phase="train", step=4, total_steps=25, of_part=True)
    now = healthy()
    story = msgspec.structs.replace(now.story, progress=part, progress_attempt=0)
    seen = msgspec.structs.replace(now, story=story, progress=part, progress_t=now.now_t)
    status = status_object(seen, run="a")

    assert where(seen)[0] == "step 4 of 25 of an epoch"
    assert status["overall"] == {"step": None, "total_steps": None}
    assert "step 4 of 25 of an epoch" in "\n".join(status_lines(status))


def test_the_end_of_a_resumed_log_shows_no_step_of_the_run_if_its_bars_have_no_number(tmp_path: object) -> None:
    log = f"{tmp_path}/train.log"
    with open(log, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write("".join(plain(0, n, 25) for n in range(26)) + "\n" + plain(1, 7, 25) + "\n")
    assert progress_in(log).any_step == 32
    assert progress_in(log, resumed=True).any_step is None
