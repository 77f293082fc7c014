"""Whether a resume was taken, and what follows if it was not."""

from typing import Any

import pytest

from tests.builders import Story, World, judge
from tests.unit.test_judge_recovery import crash, quick, running, save, story
from trainwatch.core.judge.attempt_progress import AttemptProgress, with_beat
from trainwatch.core.judge.resume.resume_check import check_resume
from trainwatch.core.judge.text.reading import Reading
from trainwatch.core.judge.text.run_count import RunCount
from trainwatch.core.model.decision import GiveUp, NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.fact import Note
from trainwatch.core.model.observation import CheckpointEvent, LogChunk
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.progress import Progress

KOHYA = Preset(name="kohya", resume="weights")
RESUMED = AttemptProgress(
    number=2, resume_from="out/step-400", resume_position=400, resume_step=400, resume_verdict="open"
)


def proof_after(attempt: AttemptProgress, *steps: int | None, **reading: object) -> str:
    for step in steps:
        attempt = with_beat(attempt, step, 1.0)
    return check_resume(attempt, Reading(**reading))[1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "proof"),
    [
        ((401,), "taken"),
        ((0, 401), "taken"),  # a bar is drawn at 0 and then jumps
        ((0,), "open"),
        ((1, 2), "open"),
        ((1, 2, 3), "ignored"),
        ((380,), "taken"),  # noticed late, named a little off
    ],
)
def test_resume_verdict_follows_from_the_first_printed_steps(steps: tuple[int, ...], proof: str) -> None:
    assert proof_after(RESUMED, *steps) == proof


def test_bar_that_counts_what_is_left_shows_that_the_resume_was_taken() -> None:
    attempt = with_beat(with_beat(AttemptProgress(**fields(total_before=1000)), 1, 1.0), 2, 2.0)
    after, proof = check_resume(attempt, Reading(progress=Progress(step=2, total_steps=600)))
    assert proof == "taken"
    assert after.position == 402
    assert proof_after(attempt, 3, progress=Progress(step=3, total_steps=1000)) == "ignored"


def test_bar_that_restarts_in_each_epoch_is_checked_by_the_epoch() -> None:
    late = AttemptProgress(**fields(resume_epoch=7))
    assert proof_after(late, 1, 2, 3, progress=Progress(step=3, epoch=1), run=RunCount(per_epoch=True)) == "ignored"
    assert proof_after(late, 1, 2, 3, progress=Progress(step=3, epoch=8), run=RunCount(per_epoch=True)) == "taken"
    first = AttemptProgress(**fields(resume_epoch=0))
    assert proof_after(first, 1, 2, 3, progress=Progress(step=3, epoch=1), run=RunCount(per_epoch=True)) == "unclear"


def test_bar_without_a_total_where_the_one_before_had_one_proves_nothing() -> None:
    attempt = AttemptProgress(**fields(bar_total_before=12, resume_epoch=1))
    assert proof_after(attempt, 1, 2, 3, 4, progress=Progress(step=4)) == "open"
    assert proof_after(attempt, 1, 2, 3, progress=Progress(step=3, total_steps=12)) == "ignored"
    later = Progress(step=1, total_steps=12, epoch=3)
    assert proof_after(attempt, 1, progress=later, run=RunCount(per_epoch=True)) == "taken"


def test_epoch_of_the_checkpoint_proves_a_resume_whose_steps_count_anew() -> None:
    told = AttemptProgress(**fields(resume_epoch=2))
    attempt = with_beat(with_beat(told, 0, 1.0), 1, 2.0)
    after, proof = check_resume(attempt, Reading(progress=Progress(step=1, total_steps=800, epoch=3)))
    assert (proof, after.position) == ("taken", 401)
    assert proof_after(told, 0, progress=Progress(step=0, total_steps=800, epoch=3)) == "open"
    assert proof_after(told, 1, 2, 3, progress=Progress(step=3, total_steps=800, epoch=1)) == "ignored"


def test_a_count_that_climbs_past_half_of_the_resume_point_proves_nothing() -> None:
    """Lightning's first bar after a resume counts 1/? to 12/?: at 12 it was told as resumed by itself from step 11."""
    told = AttemptProgress(number=2, resume_from="a.ckpt", resume_step=24, resume_verdict="open", bar_total_before=12)
    for step in range(1, 13):
        told = with_beat(told, step, 1.0)
        assert check_resume(told, Reading(progress=Progress(step=step)))[1] == "open"
    later = Reading(progress=Progress(step=1, total_steps=12, epoch=3), run=RunCount(per_epoch=True))
    found, proof = check_resume(with_beat(told, 37, 2.0), later)
    assert (proof, found.elsewhere, found.first_step, found.resumed_at) == ("taken", False, 25, 24)


def test_a_bar_that_is_drawn_at_0_many_times_does_not_hide_the_epoch() -> None:
    """Five lines at step 0 before the first step: a run that was rightly resumed at epoch 3 was ended and given up."""
    told = AttemptProgress(**fields(resume_epoch=2, resume_verdict="open"))
    for _ in range(5):
        told = with_beat(told, 0, 1.0)
    after, proof = check_resume(with_beat(told, 1, 2.0), Reading(progress=Progress(step=1, total_steps=800, epoch=3)))
    assert (proof, after.position) == ("taken", 401)


def test_lines_before_the_first_step_prove_nothing() -> None:
    assert proof_after(RESUMED, 0, 0, 0, 0, progress=Progress(step=0, epoch=1)) == "open"
    assert proof_after(RESUMED, None, progress=Progress(epoch=1)) == "open"
    assert proof_after(RESUMED, None, None, None, progress=Progress(epoch=1)) == "unclear"


def test_batches_that_are_passed_over_prove_no_resume() -> None:
    # diffusers draws the batches of the epoch before the resume point, too
    attempt, reading = AttemptProgress(**fields()), Reading(run=RunCount(per_epoch=True))
    for step in (393, 397, 400):
        attempt = with_beat(attempt, step, 1.0)
        assert check_resume(attempt, reading)[1] == "open"
    after, proof = check_resume(with_beat(attempt, 401, 1.0), reading)
    assert (proof, after.first_step, after.elsewhere) == ("taken", 401, False)
    for _ in range(20):
        attempt = with_beat(attempt, 399, 1.0)
    assert check_resume(attempt, reading)[1] == "taken"  # the epoch is done again from its beginning


def test_resume_at_a_low_step_is_unclear() -> None:
    assert proof_after(AttemptProgress(**fields(resume_position=5, resume_step=5)), 1) == "unclear"


def fields(**more: Any) -> dict[str, Any]:
    return {
        "number": 2,
        "resume_from": "out/a",
        "resume_position": 400,
        "resume_step": 400,
        "resume_verdict": "open",
        **more,
    }


def resumed_but_started_over(world: World) -> World:
    return crash(save(world)).watch(story(6))


def test_resume_that_was_not_taken_ends_the_attempt_and_gives_up() -> None:
    world = resumed_but_started_over(running())
    assert world.word == "given_up"
    assert world.decisions[-3:] == ["stop_attempt", "give_up", "end_watch"]
    assert world.of(StopAttempt)[-1].mode == "gentle"
    assert "resume did not take: told to resume at step 40, but it counts from 1" in world.of(GiveUp)[0].reason
    assert "if_resume_not_taken" in world.of(NotifyPeople)[-1].body
    assert [n.event for n in world.of(NotifyPeople)] == ["incident", "restart", "incident", "give_up"]


def test_resume_that_was_not_taken_only_warns_if_the_setting_is_go_on() -> None:
    world = resumed_but_started_over(running(judge(quick(if_resume_not_taken="go_on"))))
    assert world.word == "running"
    assert [(i.kind, i.severity) for i in world.incidents] == [("crash", "danger"), ("resume", "warning")]


def test_start_from_the_beginning_needs_no_resume_check() -> None:
    world = save(running()).command("restart", fresh=True).watch(story(10))
    assert world.word == "running"
    assert world.incidents == []


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
    assert "step-8 cannot be passed to the command (write {resume} where its path belongs)" in _notes(world)

    # When it moves
    world.watch(story(3))

    # Then nobody says that it resumed
    (ending,) = [i.ending for i in world.incidents if i.kind == "crash"]
    assert ending is not None
    assert ending.startswith("recovered: started over")


def test_resume_that_was_taken_is_noted_in_the_journal() -> None:
    world = save(running())
    world.answer("start_attempt", told_resume=True, resume="state")
    bar = "\rsteps:   0%|          | 41/10260 [00:01<1:00:00,  2.50s/it, avr_loss=0.09]"
    crash(world).see(LogChunk(t=world.t + 5.0, text=bar))
    assert "resume verified: step-40 holds step 40, first step after it 41" in _notes(world)


def test_last_save_of_an_attempt_that_started_over_is_no_resume_point() -> None:
    world = save(running())
    crash(world)
    world.silent = {"stop_attempt"}
    world.watch(story(6))
    world.see(CheckpointEvent(t=world.t, path="out/step-6", event="complete", step=6, mtime=world.t))
    world.silent = set()
    world.command("kill").command("resume")
    assert world.of(StartAttempt)[-1].resume_from == "out/step-40"


def test_weights_named_in_the_derived_config_were_resumed() -> None:
    world = save(running(judge(preset=KOHYA)), "out/net-000004.safetensors")
    world.answer("start_attempt", told_resume=True, resume="weights", resume_named=["derived config"])
    crash(world).watch(story(5))
    assert world.word == "running"
    assert "named in the derived config; the printed step starts again" in _notes(world)
    assert world.state.attempt.position == 45
    assert [i.open for i in world.incidents] == [False]


@pytest.mark.parametrize("every", [1, 10])
def test_weights_of_a_script_whose_counter_continues_were_resumed(every: int) -> None:
    # Given a script that is told the step, and counts on from it
    world = World(judge(preset=KOHYA)).begin().watch(Story(meta=False, period_s=5.0).load(10).train(60, every=every))
    save(world, "out/m-step000060.safetensors", 60)
    world.answer("start_attempt", told_resume=True, resume="weights", resume_named=["command line"])
    crash(world)

    # When the first step that it prints is the next one
    on = Story(meta=False, period_s=5.0)
    on.step = 60
    world.watch(on.load(10).train(30, every=every))

    # Then nothing is added to it
    assert f"resume verified: m-step000060.safetensors holds step 60, first step after it {60 + every}" in _notes(world)
    assert (world.state.attempt.position, world.state.attempt.step_offset) == (90, 0)


def test_new_count_with_distant_lines_is_no_continued_count() -> None:
    world = World(judge(preset=KOHYA)).begin().watch(Story(meta=False, period_s=5.0).load(10).train(100, every=50))
    save(world, "out/m-step000040.safetensors", 40)
    world.answer("start_attempt", told_resume=True, resume="weights", resume_named=["command line"])
    crash(world).watch(Story(meta=False, period_s=5.0).load(10).train(50, every=50))
    assert "the printed step starts again" in _notes(world)
    assert world.state.attempt.step_offset > 0


def test_weights_named_in_the_log_were_resumed() -> None:
    world = save(running(judge(preset=KOHYA)), "out/net-000004.safetensors")
    world.answer("start_attempt", told_resume=True, resume="weights")
    crash(world).see(LogChunk(t=world.t, text="load network weights from: out/net-000004.safetensors\n"))
    world.watch(story(5))
    assert "named in the log" in _notes(world)


def test_weights_named_nowhere_were_not_resumed() -> None:
    world = save(running(judge(preset=KOHYA)), "out/net-000004.safetensors")
    world.answer("start_attempt", told_resume=True, resume="weights")
    crash(world).watch(story(5))
    assert world.word == "given_up"
    assert "neither the derived config nor the log names net-000004.safetensors" in world.of(GiveUp)[0].reason


def test_whole_state_of_a_weights_framework_must_continue_the_count() -> None:
    world = save(running(judge(preset=KOHYA)), "out/net-000004-state")
    world.answer("start_attempt", told_resume=True, resume="state", resume_named=["command line"])
    crash(world).watch(story(6))
    assert world.word == "given_up"


def test_epochs_add_up_over_attempts_that_resume_weights() -> None:
    world = running(judge(preset=KOHYA))
    for n in range(2):
        world.answer("start_attempt", told_resume=True, resume="weights", resume_named=["derived config"])
        world.see(CheckpointEvent(t=world.t, path=f"out/net-{n}.safetensors", event="complete", epoch=4, mtime=world.t))
        crash(world).watch(Story(meta=False, period_s=5.0).load(10).train(30 + n))
    starts = world.of(StartAttempt)
    assert [s.epochs_done for s in starts] == [None, 4, 8]
    assert [s.steps_done for s in starts] == [None, 40, 70]


def _notes(world: World) -> str:
    return "\n".join(n.text for n in world.of(Note))


def test_checkpoint_keeps_its_own_step_if_the_log_counts_batches() -> None:
    # Given two batches a step: checkpoint 10 comes at batch 20, checkpoint 20 at batch 40
    world = save(running(steps=20), "out/step-10", 10)
    on = Story(meta=False, period_s=5.0)
    on.step = 20
    save(world.watch(on.train(20)), "out/step-20", 20)

    # When it is resumed from
    on = Story(meta=False, period_s=5.0)
    on.step = 40
    crash(world).watch(on.load(10).train(10))

    # Then nobody reads that it holds batch 40
    told = "resume verified: step-20 holds step 20 (the log counts 40 there), first step after it 41"
    assert told in _notes(world)


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
    told = "resume verified: checkpoint-20 holds step 20; the log was at epoch 1.667 there, first epoch after it 2.083"
    assert told in _notes(world)
    assert [i.open for i in world.incidents] == [False]
    assert "0 steps lost" in str(world.incidents[0].ending)


def test_log_without_steps_that_begins_anew_shows_an_ignored_resume() -> None:
    world = resumed_by_epochs(0.5, 1.0, 1.5)
    assert world.word == "given_up"
    assert "started_over" in {i.class_ for i in world.incidents}


def test_log_without_steps_between_both_places_proves_nothing() -> None:
    assert "cannot be seen in its output" in _notes(resumed_by_epochs(1.25))


def test_a_log_that_is_read_late_shows_no_other_checkpoint() -> None:
    """A supervisor that came back saw step 89 first: the run had gone on from 40, and 0 lost steps were reported."""
    told = AttemptProgress(number=2, resume_from="/out/step_40.pt", resume_step=40, told_resume=True)
    late = with_beat(told, 89, 1.0, lines=49)
    assert (late.first_step, late.first_lines) == (41, 49)
    found, verdict = check_resume(late, Reading(progress=Progress(step=89)))
    assert (verdict, found.elsewhere, found.resumed_at) == ("taken", False, 40)
    unsure = with_beat(told, 89, 1.0, lines=7)
    found, verdict = check_resume(unsure, Reading(progress=Progress(step=89)))
    assert (verdict, found.elsewhere, found.resumed_at) == ("taken", False, 40)
    assert with_beat(told, 41, 1.0, lines=2).first_step == 41, "no step after 40 is 40"
    other = with_beat(told, 89, 1.0)
    assert check_resume(other, Reading(progress=Progress(step=89)))[0].elsewhere
