"""``[restart] act``: what is withheld, how it is told, and how a person answers."""

from typing import Any, Literal

import msgspec

from tests.builders import Story, World, judge, story_of
from tests.unit.test_judge_recovery import crash, quick, running, save, story
from tests.unit.test_resume_evidence import began_anew, resumed
from trainwatch.core.judge.recovery.attempts import launch
from trainwatch.core.judge.run_states import RestartPlan
from trainwatch.core.judge.state import StepBuilder, from_snapshot, to_snapshot
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.decision import DeleteCheckpoint, NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.fact import (
    ActChanged,
    ActionWithheld,
    BudgetChanged,
    Fact,
    QuestionClosed,
    RampMoved,
    RunCreated,
)
from trainwatch.core.model.observation import Command, Exit, LogChunk, Outcome, Start, Tick
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.settings import Act, Checkpoints, Profiles, Restart, Settings
from trainwatch.core.model.story import RunStory

VERBS: tuple[Literal["restart", "resume"], ...] = ("restart", "resume")
DISRUPTIVE = {"stop_attempt", "start_attempt", "end_leftovers", "delete_checkpoint"}


def observing(act: Act = "notify", steps: int = 40, **restart: Any) -> World:
    return running(judge(Settings(restart=Restart(act=act, **restart))), steps=steps)


def hung(act: Act = "notify", **restart: Any) -> World:
    return save(observing(act, steps=100, **restart), "out/checkpoint-80", 80).watch(Story(meta=False).dead(200))


def done(world: World) -> list[str]:
    """The decisions after the first launch that end, start or delete something."""
    return [kind for kind in world.decisions[1:] if kind in DISRUPTIVE]


def notices(world: World, event: str) -> list[NotifyPeople]:
    return [n for n in world.of(NotifyPeople) if n.event == event]


def test_a_hang_under_notify_runs_again_when_steps_come_and_costs_no_restart() -> None:
    world = hung()
    world.watch(Story(meta=False, step=100).train(5))
    assert world.word == "running"
    assert done(world) == []
    assert world.of(BudgetChanged) == []
    assert world.of(QuestionClosed)[-1].why == "training advances"
    assert not world.incidents[0].open
    world.watch(Story(meta=False).dead(3000))
    assert len(world.of(ActionWithheld)) == 2


def test_with_notify_a_crash_holds_the_run_and_resume_does_what_would_have_been_done() -> None:
    world = crash(save(observing(), "out/checkpoint-40", 40))
    assert world.word == "stopped"
    assert done(world) == []
    assert world.of(ActionWithheld)[0].sentence == "restarted from checkpoint-40 (step 40)"
    world.command("resume")
    assert done(world) == ["end_leftovers", "start_attempt"]
    assert world.of(StartAttempt)[-1].resume_from == "out/checkpoint-40"
    assert world.of(BudgetChanged)[-1].used == 1


def test_resume_after_a_nan_crash_goes_behind_the_checkpoint_that_the_failure_is_in() -> None:
    """Also with a wish of its own: only a checkpoint that is named overrides it."""
    for extra in ({}, {"without_remedies": True}):
        world = save(observing(), "out/checkpoint-20", 20)
        world.wait(5)
        world.see(LogChunk(t=world.t, text="\rsteps: 1%| | 41/10260 [00:10<10:00, 1.00s/it, avr_loss=nan]"))
        save(world.wait(5), "out/checkpoint-42", 42)
        crash(world, "\nloss is nan, stopping\n")
        world.command("resume", **extra)
        assert world.of(StartAttempt)[-1].resume_from == "out/checkpoint-20"


def test_with_ask_the_question_names_its_price_and_the_commands() -> None:
    world = hung("ask")
    (question,) = notices(world, "question")
    assert question.title == "run: restart from checkpoint-80 (step 80), after ending it?"
    number = world.hangs[0].id
    assert f"yes: `trainwatch restart run --incident {number}`" in question.body
    assert f"no: `trainwatch ack run --incident {number}`" in question.body
    assert "end it for good: `trainwatch stop run`" in question.body
    assert "it repeats 20 steps" in question.body
    assert "nothing is ended or started" in question.body
    assert done(world) == []


def test_a_question_without_an_answer_is_sent_again_and_never_acted_on() -> None:
    world = hung("ask", ask_timeout_s=600.0).watch(Story(meta=False).dead(2000))
    assert len(notices(world, "question")) >= 3
    assert done(world) == []
    assert world.word == "hung"


def test_ack_says_no_and_the_question_is_not_sent_again() -> None:
    world = hung("ask", ask_timeout_s=600.0)
    world.command("ack", incident=world.hangs[0].id).watch(Story(meta=False).dead(2000))
    assert len(notices(world, "question")) == 1
    assert world.of(QuestionClosed)[-1].why == "no, by operator: it stays as it is"
    assert done(world) == []
    world.command("restart")
    assert done(world) == ["stop_attempt", "start_attempt"]


def test_the_answer_restarts_a_hung_trainer() -> None:
    for verb in ("restart", "resume"):
        world = hung("ask")
        world.command(verb, incident=world.hangs[0].id)
        assert done(world) == ["stop_attempt", "start_attempt"]
        assert world.of(StartAttempt)[-1].resume_from == "out/checkpoint-80"


def test_the_answer_to_a_hang_that_ended_by_itself_ends_nothing() -> None:
    world = hung("ask")
    number = world.incidents[0].id
    world.watch(Story(meta=False, step=100).train(5))
    late = Command(t=world.t, verb="restart", incident=number)
    reply = world.judge.answer(world.state, late)
    assert not reply.ok
    assert f"incident {number} waits for no answer any more" in reply.message
    world.see(late)
    assert done(world) == []
    assert world.word == "running"


def test_a_hang_is_judged_again_before_an_answer_ends_it() -> None:
    """No step came, but the trainer works again: a long save, for example."""
    for verb in VERBS:
        world = hung("ask")
        world.watch(Story(meta=False).go(60, cpu=1.5, write_per_s=9e7, read_per_s=9e7))
        late = Command(t=world.t, verb=verb)
        reply = world.judge.answer(world.state, late)
        assert not reply.ok
        assert "signs of life are back: nothing was ended" in reply.message
        world.see(late)
        assert done(world) == []
        assert world.word == "running"
        world.command("restart")  # ordered all the same
        assert done(world) == ["stop_attempt", "start_attempt"]


def test_a_question_is_judged_again_before_it_is_sent_again() -> None:
    world = hung("ask", ask_timeout_s=300.0)
    world.watch(Story(meta=False).go(400, cpu=1.5, write_per_s=9e7, read_per_s=9e7))
    assert len(notices(world, "question")) == 1
    assert world.word == "running"
    assert world.of(QuestionClosed)[-1].why.startswith("signs of life are back")


def test_a_trainer_that_dies_while_its_hang_waits_for_an_answer_asks_a_new_question() -> None:
    world = crash(hung("ask"))
    first, second = world.of(ActionWithheld)
    assert (first.action, second.action) == ("stop", "start")
    assert world.word == "stopped"
    assert "trainwatch resume {run}" in second.answers[0]
    late = Command(t=world.t, verb="restart", incident=first.incident)
    assert "`trainwatch resume` without --incident" in world.judge.answer(world.state, late).message


def test_stop_after_a_crash_ends_the_question_and_a_resume_is_an_ordinary_one() -> None:
    world = crash(observing("ask", ask_timeout_s=60.0)).command("stop").wait(200, every_s=5.0)
    assert len(notices(world, "question")) == 1
    assert world.of(QuestionClosed)[-1].why == "stop by operator: it stays stopped"
    assert world.word == "stopped"
    assert not world.judge.answer(world.state, Command(t=world.t, verb="resume", incident=1)).ok
    world.command("resume")
    assert done(world) == ["end_leftovers", "start_attempt"]


def test_a_finished_training_that_does_not_exit_is_not_ended_by_itself() -> None:
    world = World(judge(Settings(restart=Restart(act="notify")))).begin()
    world.watch(Story(meta=False, total=100).load(10).train(80).finish(words=True).dead(600))
    assert world.word == "hung"
    assert done(world) == []
    assert world.of(ActionWithheld)[0].sentence == "ended its process, because the training is done"
    world.command("stop")
    assert world.word == "finished"


def test_a_hang_that_no_restart_would_help_is_not_ended_by_itself() -> None:
    world = hung("notify", max_restarts=0)
    assert done(world) == []
    held = world.of(ActionWithheld)[0]
    assert held.would == "ended it and given the run up"
    assert held.answers == ("to do it: trainwatch stop {run}",)


def test_a_resume_that_was_not_taken_is_told_once_and_the_trainer_goes_on() -> None:
    world = resumed(restores=False, steps=0).command("act", act="notify")
    before = len(done(world))
    began_anew(world)
    assert world.word == "running"
    assert len(done(world)) == before
    assert [w.would for w in world.of(ActionWithheld)] == ["ended it and given the run up"]


def test_with_notify_nothing_is_deleted() -> None:
    settings = Settings(restart=Restart(act="notify"), checkpoints=Checkpoints(keep_last=1))
    world = running(judge(settings))
    old = Checkpoint(
        path="out/step-10", name="step-10", kind="directory", step=10, epoch=None, size_bytes=1, mtime=1.0,
        verdict="complete", reason=None,
    )  # fmt: skip
    for _ in range(2):
        world.answer("plan_retention", delete=[msgspec.to_builtins(old)])
    for step in (10, 20, 30):
        save(world.wait(1), f"out/step-{step}", step)
    assert world.of(DeleteCheckpoint) == []
    assert [w.sentence for w in world.of(ActionWithheld)] == ["deleted step-10"]  # told once


def test_with_notify_the_ramp_climbs_only_on_order() -> None:
    ladder = Profiles(use="low", ladder=("low", "high"), ramp=("1 checkpoint",))
    world = running(judge(Settings(restart=Restart(act="notify"), profiles=ladder), profiles=("low", "high")))
    for step in (40, 41, 42):
        save(world.wait(1), f"out/step-{step}", step)
    assert done(world) == []
    assert world.of(RampMoved) == []
    assert [w.sentence for w in world.of(ActionWithheld)] == ["switched to the profile high"]
    world.command("profile", profile="high")
    save(world.wait(1), "out/step-43", 43)
    assert done(world) == ["stop_attempt", "start_attempt"]


def test_a_run_whose_trainer_vanished_is_held_by_the_next_supervisor() -> None:
    world = save(observing("ask"))
    known = from_snapshot(to_snapshot(world.state))
    assert known is not None
    world.state, world.live = known, None
    world.begin()
    assert world.word == "stopped"
    assert done(world) == []
    world.command("resume")
    assert done(world) == ["end_leftovers", "start_attempt"]


def test_a_resume_ordered_just_before_the_end_was_seen_is_carried_out() -> None:
    """A new supervisor adopts a trainer that is dead already; its person has typed `run` again."""
    world = save(observing(), "out/checkpoint-40", 40).command("resume").wait(2)
    crash(world)
    assert done(world) == ["end_leftovers", "start_attempt"]
    crash(world)
    assert done(world) == ["end_leftovers", "start_attempt"], "one order, one start"
    later = observing().command("resume").wait(100)
    crash(later)
    assert done(later) == []


def test_act_is_changed_while_a_restart_is_under_way() -> None:
    settings = Settings(restart=Restart(backoff_s=(60.0,)))
    world = crash(save(running(judge(settings))))
    assert world.word == "backing_off"
    world.command("act", act="ask")
    assert world.word == "stopped", "at once, not when the wait for the restart is over"
    assert world.of(ActChanged)[0].act == "ask"
    assert "start_attempt" not in world.wait(100).decisions[1:]
    world.command("act", act="all")
    world.wait(100)
    assert world.decisions[-1] == "start_attempt"


def test_act_is_changed_while_a_hung_trainer_is_being_ended() -> None:
    world = World(judge(), silent=("stop_attempt",)).begin().watch(Story(meta=False).load(10).train(100).dead(200))
    assert world.word == "stopping"
    world.command("act", act="notify")
    (order,) = world.of(StopAttempt)
    world.see(Exit(t=world.t, signal=2), Outcome(t=world.t, decision=order.id, action="stop_attempt", ok=True))
    assert world.word == "stopped"
    assert "start_attempt" not in world.decisions[1:]


def test_act_all_judges_an_open_hang_again_and_then_acts() -> None:
    world = hung("ask").command("act", act="all")
    assert done(world) == []
    world.watch(Story(meta=False).dead(300))
    assert done(world) == ["stop_attempt", "start_attempt"]


def test_act_all_drops_what_waits_for_a_running_trainer() -> None:
    world = began_anew(resumed(restores=False, steps=0).command("act", act="notify"))
    assert world.state.operator.withheld is not None
    world.command("act", act="all")
    assert world.state.operator.withheld is None
    assert world.command("act", act="all").word == "running"  # type: ignore[unreachable]


def test_act_ask_makes_a_question_of_what_was_withheld() -> None:
    world = hung("notify").command("act", act="ask")
    assert [n.event for n in world.of(NotifyPeople)][-2:] == ["withheld", "question"]
    assert world.of(ActionWithheld)[-1].answers[0].startswith("yes: ")
    world.command("act", act="ask")
    assert len(notices(world, "question")) == 1
    world.command("act", act="notify").wait(4000, every_s=60)
    assert len(notices(world, "question")) == 1


def test_a_new_supervisor_does_not_repeat_a_stop_that_was_decided_before_act_was_changed() -> None:
    world = World(judge(), silent=("stop_attempt",)).begin().watch(Story(meta=False).load(10).train(100).dead(200))
    assert world.word == "stopping"
    world.judge = judge(Settings(restart=Restart(act="notify")))
    world.see(Start(t=world.t, attempt=1, pid=5001, adopted=True), Tick(t=world.t + 1))
    assert world.word == "running"
    assert world.decisions.count("stop_attempt") == 1


def told_story(*facts: Fact) -> RunStory:
    return story_of((0.0, fact) for fact in facts)


def created(act: Act) -> RunCreated:
    return RunCreated(run="r", name="r", command=("x",), cwd="/", preset="generic", act=act)


def test_a_choice_holds_for_the_next_supervisor_until_the_settings_change() -> None:
    mind = judge(Settings(restart=Restart(act="all")))
    chosen = (created("all"), ActChanged(act="notify", by="ann", settings="all"))
    assert mind.start(told_story(*chosen)).operator.act == "notify"
    changed = told_story(*chosen, ActChanged(act="ask", by="the settings", settings="ask"))
    assert changed.act == "ask"
    assert judge(Settings(restart=Restart(act="ask"))).start(changed).operator.act is None
    assert mind.start(told_story(created("all"))).operator.act is None


def test_a_climb_that_was_decided_before_act_was_changed_waits_for_an_order() -> None:
    ladder = Profiles(use="low", ladder=("low", "high"), ramp=("1 checkpoint",))
    world = running(judge(Settings(profiles=ladder), profiles=("low", "high"))).command("pause")
    save(world, "out/step-40", 40)
    assert len(world.of(RampMoved)) == 1
    world.command("resume").command("act", act="notify")
    for step in (41, 42):
        save(world.wait(1), f"out/step-{step}", step)
    assert done(world) == []
    assert len(world.of(ActionWithheld)) == 1
    world.command("restart")
    assert done(world) == ["stop_attempt", "start_attempt"]
    assert world.of(StartAttempt)[-1].profile == "high"


def test_a_framework_that_never_resumes_starts_from_the_beginning() -> None:
    settings = Settings(restart=Restart(act="notify"))
    world = crash(save(running(judge(settings, preset=Preset(name="x", resume="none"))), "out/step-40", 40))
    assert world.of(ActionWithheld)[-1].sentence == "restarted from the beginning"


def test_a_trainer_that_a_person_ended_is_held_as_ever_and_nothing_is_asked() -> None:
    world = observing("ask")
    world.see(LogChunk(t=world.t, text="\nKeyboardInterrupt\n"), Exit(t=world.t + 1, signal=2))
    assert world.word == "stopped"
    assert world.of(ActionWithheld) == []


def test_a_rung_that_spills_is_not_left_without_an_order() -> None:
    ladder = Profiles(use="low", ladder=("low", "high"), ramp=("1 checkpoint",))
    world = save(running(judge(Settings(profiles=ladder), profiles=("low", "high"))), "out/step-40", 40)
    world.watch(Story(meta=False, step=40).load(5).train(5)).command("act", act="notify")
    builder = StepBuilder(world.judge.knowledge, world.state)
    builder.open_incident("stall", "spilling", "GPU memory is full", severity="warning")
    world.state = builder.state
    before = len(done(world))
    save(world, "out/step-45", 45)
    assert [w.sentence for w in world.of(ActionWithheld)] == ["switched to the profile low"]
    assert len(done(world)) == before


def test_no_attempt_is_launched_past_the_closed_gate_wherever_its_plan_comes_from() -> None:
    world = World(judge(quick(backoff_s=(60.0,)))).begin().watch(story())
    crash(save(world))
    assert world.word == "backing_off"
    builder = StepBuilder(world.judge.knowledge, world.change("operator", act="ask").state)
    launch(builder, RestartPlan(reason="restart after a crash"))
    assert not [entry for entry in builder.entries if isinstance(entry, StartAttempt)]
    assert builder.state.operator.withheld is not None
