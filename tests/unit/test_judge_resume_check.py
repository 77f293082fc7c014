"""Whether a resume was taken, and what follows if it was not."""

from typing import Any

import msgspec
import pytest

from tests.builders import Story, World, judge
from tests.shipped import read_progress
from tests.unit.test_judge_branches import notes
from tests.unit.test_judge_recovery import crash, running, save, story
from trainwatch.core.judge.progress import START, AttemptProgress, Former, begin_attempt, with_beat
from trainwatch.core.judge.resume.resume_check import check_count, resume_in_words
from trainwatch.core.model.decision import StartAttempt
from trainwatch.core.model.fact import ProgressMade
from trainwatch.core.model.observation import CheckpointEvent, LogChunk
from trainwatch.core.model.preset import Preset

NO_STEP: dict[str, Any] = {"number": 2, "resume_from": "e.pt", "resume_verdict": "open"}
KOHYA = Preset(name="kohya", resume="weights")
RESUMED = AttemptProgress(
    number=2, resume_from="out/step-400", resume_position=400, resume_step=400, resume_verdict="open"
)


def step(number: int, total: int | None = 1000, *, loss: bool = True, epoch: str = "") -> str:
    """A redraw of a bar."""
    rate = "?it/s" if number == 0 else "1.00it/s"
    bar = f"{number}/{'?' if total is None else total} [00:01<00:59, {rate}{', avr_loss=0.5' if loss else ''}]"
    return f"{epoch}steps:  5%|5  | {bar}"


def follow(
    attempt: AttemptProgress, *lines: str, before: tuple[str, ...] = (), at_once: bool = False
) -> tuple[AttemptProgress, str]:
    """Read the log of an attempt, line by line or ``at_once``. ``before``: the log of the attempt before."""
    reading, verdict = START, "open"
    for line in before:
        reading = read_progress(reading, line + "\n")
    reading = begin_attempt(reading, resumed=attempt.resume_from is not None, began=attempt.began)
    for text in ["\n".join((*lines, ""))] if at_once else [line + "\n" for line in lines]:
        beats, reading = reading.certain.heartbeats, read_progress(reading, text)
        now = reading.certain
        read = now.progress
        if now.heartbeats == beats:
            continue
        attempt = with_beat(attempt, read.run_step, 1.0, epoch=read.epoch, first_step=now.opening.first_step)
        if verdict == "open":
            attempt, verdict = check_count(attempt, now)
    return attempt, verdict


def proof_after(attempt: AttemptProgress, *steps: int) -> str:
    return follow(attempt, *map(step, steps))[1]


@pytest.mark.parametrize(
    ("steps", "proof"),
    [
        ((401,), "taken"),
        ((0, 401), "taken"),  # a bar is drawn at 0 and then jumps
        ((0,), "open"),
        ((1, 2), "open"),
        ((1, 2, 3), "anew"),
        ((380,), "taken"),  # noticed late, named a little off
    ],
)
def test_resume_verdict_follows_from_the_first_printed_steps(steps: tuple[int, ...], proof: str) -> None:
    assert proof_after(RESUMED, *steps) == proof


def test_weights_whose_bar_goes_on_at_the_usual_distance_of_its_lines_are_not_counted_twice() -> None:
    """The attempt before ended with two lines close to each other: *step 720 of 420* in the report."""
    told = msgspec.structs.replace(RESUMED, weights_only=True, former=Former(widest_gap=4), named=("log",))
    began = "steps:  40%|4  | 400/1000 [00:00<?, ?it/s]"
    after, proof = follow(told, began, step(404), step(407))
    assert (proof, after.position, after.step_offset) == ("taken", 407, 0)
    anew, _ = follow(told, step(0), step(4), step(8))
    assert anew.position == 408


def test_bar_that_counts_what_is_left_shows_that_the_resume_was_taken() -> None:
    told = msgspec.structs.replace(RESUMED, former=Former(total=1000))
    after, proof = follow(told, step(1, 600), step(2, 600), at_once=True)
    assert (proof, after.position) == ("taken", 402)
    assert resume_in_words(after) == "resume verified: step-400 holds step 400, first step after it 401"
    assert proof_after(told, 1, 2, 3) == "anew"


def epochs(first: int, *, of: int = 60) -> tuple[str, ...]:
    """The first lines of an epoch of a bar per epoch."""
    return (f"Epoch {first}/9", *(step(n, of) for n in range(1, 5)))


def test_bar_that_restarts_in_each_epoch_is_checked_by_the_epoch() -> None:
    late = msgspec.structs.replace(RESUMED, resume_epoch=7)
    assert follow(late, *epochs(0), before=(*epochs(0), *epochs(1)))[1] == "unclear"
    after, proof = follow(late, *epochs(7), before=(*epochs(0), *epochs(1)))
    assert (proof, after.first_step) == ("taken", 421)
    first = msgspec.structs.replace(RESUMED, resume_epoch=0)
    assert follow(first, *epochs(0), before=(*epochs(0), *epochs(1)))[1] == "unclear"


def test_the_epoch_of_a_checkpoint_without_a_step_is_compared_with_the_first_one() -> None:
    """timm and others name their checkpoints by epochs; one that begins anew prints the first epoch again."""
    told = AttemptProgress(**NO_STEP, resume_epoch=1, former=Former(fresh_epoch=0))
    assert follow(told, *epochs(0), before=(*epochs(0), *epochs(1)))[1] == "unclear"
    after, proof = follow(told, *epochs(2), before=(*epochs(0), *epochs(1)))
    assert (proof, resume_in_words(after)) == (
        "taken",
        "resume verified: e.pt holds epoch 1, first step after it at or before 121",
    )
    noticed = msgspec.structs.replace(told, resume_position=123)  # three steps after its save
    assert follow(noticed, *epochs(2), before=(*epochs(0), *epochs(1)))[0].first_step == 121
    assert follow(noticed, *epochs(0), before=(*epochs(0), *epochs(1)))[1] == "unclear"


def labelled(label: str, first: int, last: int, of: int) -> tuple[str, ...]:
    """Redraws of a bar that counts within an epoch."""
    return tuple(f"{label}:  5%|5  | {n}/{of} [00:01<00:09,  1.00it/s, loss=0.5]" for n in range(first, last + 1))


@pytest.mark.parametrize(("at", "label"), [(30, "epoch 0"), (90, "epoch 2"), (100, "epoch 2")])
def test_what_is_left_of_an_epoch_shows_that_the_resume_was_taken(at: int, label: str) -> None:
    former = Former(shows_losses=True, fresh_epoch=0)
    told = msgspec.structs.replace(RESUMED, resume_step=at, resume_position=at, former=former)
    after, proof = follow(told, *labelled(label, 1, 6, 40 - at % 40), before=labelled("epoch 0", 1, 35, 40))
    assert (proof, after.position, after.first_step) == ("taken", at + 6, at + 1)


def test_a_resume_that_cannot_be_seen_is_not_told_as_recovered_from_its_checkpoint() -> None:
    world = save(running(steps=10), "out/step-8", 8)
    world.answer("start_attempt", told_resume=True, resume="state")
    crash(world).watch(story(6))
    (incident,) = world.incidents
    assert incident.ending == "recovered: it trains again; whether it resumed from step-8 cannot be seen"
    assert (incident.lost_steps, incident.resumed_from) == (None, None)


@pytest.mark.parametrize("at_once", [False, True])
def test_the_steps_of_a_bar_that_names_no_epoch_are_those_before_the_next_epoch(at_once: bool) -> None:
    """Lightning's first bar after a resume counts 1/? to 12/?: at 12 it was told as resumed by itself from step 11."""
    told = AttemptProgress(**NO_STEP, resume_step=24, former=Former(bar_total=12))
    first = [f"Training: |  | {n}/? [00:01<00:00,  1.00it/s, v_num=1, train_loss=1.0]" for n in range(1, 13)]
    before = tuple(f"Epoch {e}:  8%|8  | 1/12 [00:01<00:11,  1.00it/s, v_num=0, train_loss=1.0]" for e in (0, 1))
    later = "Epoch 3:  8%|8  | 1/12 [00:01<00:11,  1.00it/s, v_num=1, train_loss=1.0]"
    assert follow(told, *first, before=before, at_once=at_once)[1] == "open"
    found, proof = follow(told, *first, later, before=before, at_once=at_once)
    assert (proof, found.elsewhere, found.resumed_at) == ("taken", False, 24)
    assert resume_in_words(found) == "resume verified: e.pt holds step 24"


def test_lines_without_a_loss_are_no_steps_if_those_of_steps_have_one() -> None:
    """A bar of the whole run whose first batches are passed over counted from 1: it was ended as started over."""
    told = msgspec.structs.replace(RESUMED, former=Former(shows_losses=True))
    passed = [step(n, loss=False) for n in (1, 80, 160, 240, 320, 399)]
    for at_once in (False, True):
        assert follow(told, *passed, at_once=at_once)[1] == "open"
        assert follow(told, *passed, step(401), at_once=at_once)[0].first_step == 401
        assert follow(told, *passed, step(401, loss=False), at_once=at_once)[1] == "taken"
    assert follow(told, *map(step, (1, 2, 3)))[1] == "anew"


def test_a_first_line_that_a_training_from_the_beginning_prints_too_proves_nothing() -> None:
    told = msgspec.structs.replace(RESUMED, resume_step=50, resume_position=50, former=Former(printed_every=50))
    begins_at_50 = msgspec.structs.replace(told, former=Former(printed_every=50, fresh_step=50))
    assert proof_after(begins_at_50, 50, 100, 150) == "unclear"
    begins_at_0 = msgspec.structs.replace(told, former=Former(printed_every=50, fresh_step=1))  # it prints 0, 50, 100
    assert proof_after(begins_at_0, 50) == "taken"
    assert proof_after(told, 50) == "taken"


def test_a_save_between_two_lines_of_the_log_keeps_its_step() -> None:
    """Lines every 20 steps and a save at 50: "the log counts 40 there" was said of it."""
    world = World(judge()).begin().watch(Story(meta=False, period_s=5.0).load(10).train(40, every=20))
    world = save(world, "out/step-50", 50)
    crash(world).watch(Story(meta=False, period_s=5.0, step=50).load(10).train(50, every=20))
    assert "resume verified: step-50 holds step 50, first step after it at or before 60" in notes(world)


def test_a_log_that_counts_in_another_unit_shows_it_by_its_first_step() -> None:
    after, proof = follow(RESUMED, step(1601, 4000))
    said = "resume verified: step-400 holds step 400 (the log counts 1600 there), first step after it 1601"
    assert (proof, after.stride, resume_in_words(after)) == ("taken", 4, said)
    sparse = follow(RESUMED, step(1605, 4000))[0]
    assert resume_in_words(sparse).endswith("first step after it at or before 1605")


def test_an_epoch_that_is_later_than_the_first_is_the_proof_if_no_step_can_be_told() -> None:
    told = AttemptProgress(**NO_STEP, resume_epoch=3, former=Former(fresh_epoch=1))
    after, proof = follow(told, *epochs(4), before=(*epochs(0), *epochs(1)))
    assert (proof, resume_in_words(after)) == (
        "taken",
        "resume verified: e.pt holds epoch 3, first step after it at or before 241",
    )
    at_4 = msgspec.structs.replace(told, first_epoch=4.0)
    assert resume_in_words(at_4) == "resume verified: e.pt holds epoch 3, the log goes on in epoch 4"


def test_a_later_epoch_proves_a_resume_of_a_log_and_a_checkpoint_without_steps() -> None:
    """A table with a row for each epoch (fastai), and a file that holds the epoch: nothing was said of its resume."""
    told = AttemptProgress(**NO_STEP, resume_epoch=1, former=Former(fresh_epoch=0))
    after, proof = follow(told, epoch_line(2).strip())
    assert (proof, resume_in_words(after)) == (
        "taken",
        "resume verified: e.pt holds epoch 1, the log goes on in epoch 2",
    )
    assert follow(told, epoch_line(0).strip())[1] == "unclear"
    assert follow(told, "Epoch 2")[1] == "open"
    unknown = msgspec.structs.replace(told, former=Former())
    assert follow(unknown, "Epoch 2")[1] == "open"
    assert follow(unknown, "Epoch 2", "Epoch 3", "Epoch 4")[1] == "unclear"


def test_lines_that_go_far_faster_than_a_step_are_of_batches_that_are_passed_over() -> None:
    told = msgspec.structs.replace(RESUMED, former=Former(pace_s=1.0))
    passed = [step(n, loss=False).replace("1.00it/s", "900.0it/s") for n in (1, 80, 160, 240, 320, 399)]
    assert follow(told, *passed)[1] == "open"
    assert follow(told, *passed, step(401, loss=False))[0].first_step == 401
    assert follow(told, *(step(n, loss=False) for n in (1, 2, 3)))[1] == "anew"


def test_the_total_of_an_epoch_is_not_what_is_left() -> None:
    """At the beginning of the last epoch the two are the same: Keras that began anew was told as resumed."""
    told = msgspec.structs.replace(
        RESUMED, resume_step=540, resume_position=540, former=Former(total=600, bar_total=60)
    )
    assert follow(told, *epochs(0), before=(*epochs(0), *epochs(1)))[1] == "unclear"


def test_command_without_a_place_for_the_resume_path_warns_that_it_started_over() -> None:
    world = save(running())
    world.answer("start_attempt", told_resume=False, resume="none")
    crash(world).watch(story(10))
    assert world.word == "running"
    assert "write {resume} where its path belongs" in world.incidents[-1].reason


def test_command_without_a_place_for_the_resume_path_is_reported_at_launch() -> None:
    # Given a resume point so early that the printed steps prove nothing
    world = save(running(steps=10), "out/step-8", 8)
    world.answer("start_attempt", told_resume=False, resume="none", order={"resume_from": "out/step-8"})
    crash(world)
    assert "step-8 cannot be passed to the command (write {resume} where its path belongs)" in notes(world)

    # When it moves
    world.watch(story(3))

    # Then nobody says that it resumed
    (ending,) = [i.ending for i in world.incidents if i.kind == "crash"]
    assert ending is not None
    assert ending.startswith("recovered: started over")


@pytest.mark.parametrize("every", [1, 10])
def test_weights_of_a_script_whose_counter_continues_were_resumed(every: int) -> None:
    # Given a script that is told the step, and counts on from it
    world = World(judge(preset=KOHYA)).begin().watch(Story(meta=False, period_s=5.0).load(10).train(60, every=every))
    save(world, "out/m-step000060.safetensors", 60)
    world.answer("start_attempt", told_resume=True, resume="weights", resume_named=["command line"])
    crash(world)

    # When the first step that it prints is the next one
    world.watch(Story(meta=False, period_s=5.0, step=60).load(10).train(30, every=every))

    # Then nothing is added to it
    first = "61" if every == 1 else "at or before 70"
    assert f"resume verified: m-step000060.safetensors holds step 60, first step after it {first}" in notes(world)
    assert (world.state.attempt.position, world.state.attempt.step_offset) == (90, 0)


def test_epochs_add_up_over_attempts_that_resume_weights() -> None:
    world = running(judge(preset=KOHYA))
    for n in range(2):
        world.answer("start_attempt", told_resume=True, resume="weights", resume_named=["derived config"])
        world.see(CheckpointEvent(t=world.t, path=f"out/net-{n}.safetensors", event="complete", epoch=4, mtime=world.t))
        crash(world).watch(Story(meta=False, period_s=5.0).load(10).train(30 + n))
    starts = world.of(StartAttempt)
    assert [s.epochs_done for s in starts] == [None, 4, 8]
    assert [s.steps_done for s in starts] == [None, 40, 70]


def test_checkpoint_keeps_its_own_step_if_the_log_counts_batches() -> None:
    # Given two batches a step: checkpoint 10 comes at batch 20, checkpoint 20 at batch 40
    world = save(running(steps=20), "out/step-10", 10)
    on = Story(meta=False, period_s=5.0, step=20)
    save(world.watch(on.train(20)), "out/step-20", 20)

    # When it is resumed from
    crash(world).watch(Story(meta=False, period_s=5.0, step=40).load(10).train(10))

    # Then nobody reads that it holds batch 40
    told = "resume verified: step-20 holds step 20 (the log counts 40 there), first step after it 41"
    assert told in notes(world)


def test_a_bar_of_the_rest_counts_on_from_the_resume_point() -> None:
    """``tqdm(range(start, n))``: status told step 1 of 10,220 of a run whose report told 41."""
    world = crash(save(running(steps=50), "out/step-40", 40))
    for number in range(1, 8):
        world.see(LogChunk(t=world.t + 6.0, text=step(number, 10_220)))
    shown = world.of(ProgressMade)[-1]
    assert (shown.progress.run_step, shown.step_offset, shown.overall_step) == (1, 40, 41)


def epoch_line(epoch: float, loss: float = 0.5) -> str:
    return f"{{'loss': {loss}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {epoch:g}}}\n"


def of_epochs(world: World, *epochs: float) -> World:
    for epoch in epochs:
        world.see(LogChunk(t=world.t + 5.0, text=epoch_line(epoch)))
    return world


def resumed_by_epochs(*after: float) -> World:
    """A log without steps: a save of step 20 at epoch 1.67, a crash, and a resume that prints these epochs."""
    world = save(of_epochs(World(judge()).begin(), 0.5, 1.0, 1.667), "out/checkpoint-20", 20)
    return of_epochs(crash(world), *after)


def test_resume_of_a_log_without_steps_is_proven_by_its_epoch() -> None:
    world = resumed_by_epochs(2.083)
    assert "resume verified: checkpoint-20 holds step 20, the log goes on in epoch 2.083" in notes(world)
    assert [i.open for i in world.incidents] == [False]
    assert "0 steps lost" in str(world.incidents[0].ending)


def test_log_without_steps_between_both_places_proves_nothing() -> None:
    assert "cannot be seen in its output" in notes(resumed_by_epochs(1.25))


def test_what_a_supervisor_has_not_read_shows_no_other_checkpoint() -> None:
    world = save(running())
    world.answer("start_attempt", told_resume=True, resume="state")
    crash(world).see(LogChunk(t=world.t + 5.0, text="", skipped_bytes=5000))
    world.see(LogChunk(t=world.t + 5.0, text=step(89) + "\n"))
    assert "resume verified: step-40 holds step 40, first step after it at or before 89" in notes(world)


def test_steps_that_go_on_without_a_known_checkpoint_are_not_lost() -> None:
    def line(n: int) -> str:
        return f"Epoch {(n - 1) // 12} | Step {(n - 1) % 12 + 1}/12 | Loss 1.0\n"

    on = Story(meta=False, period_s=5.0)
    world = World().begin().watch(Story(meta=False, period_s=5.0).load(10).train(30, line=line))
    on.step = 24
    crash(world).watch(on.load(10).log("Epoch 2 | Batchsize: 8 | Steps: 12\n").train(4, line=line))
    assert [i.ending for i in world.incidents] == ["recovered: resumed by itself at step 24, 6 steps lost"]
