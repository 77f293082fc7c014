"""``--ask``: what a program asks for waits for a person, whatever ``[restart] act`` says."""

from typing import Literal

import pytest

from tests.builders import Story, World, judge
from tests.unit.test_judge_gate import done, hung, notices, observing
from tests.unit.test_judge_recovery import crash, running, save
from trainwatch.core.model.fact import ActionWithheld, QuestionClosed
from trainwatch.core.model.observation import Command, Tick

Asked = Literal["stop", "restart", "resume", "save"]


def ask(world: World, verb: Asked, by: str = "an agent") -> World:
    return world.see(Command(t=world.t, verb="ask", asked=verb, by=by))


def training() -> World:
    return save(running(judge(), steps=100), "out/checkpoint-80", 80)


@pytest.mark.parametrize("verb", ["stop", "restart"])
def test_nothing_is_done_before_the_order_of_a_person(verb: Asked) -> None:
    world = ask(training(), verb)
    (question,) = notices(world, "question")
    assert question.title.endswith("as an agent asks?")
    assert f"yes: `trainwatch {verb} run`" in question.body
    assert "no: `trainwatch ack run`" in question.body
    world.watch(Story(meta=False).train(40))
    assert done(world) == []
    assert world.word == "running"
    world.command(verb)
    assert done(world)[0] == "stop_attempt"
    assert world.of(QuestionClosed)[-1].why


def test_no_leaves_the_training_as_it_is_and_it_can_be_asked_again() -> None:
    world = ask(training(), "stop").command("ack")
    assert world.of(QuestionClosed)[-1].why == "no, by operator"
    assert done(world) == []
    ask(world, "restart")
    assert [each.verb for each in world.of(ActionWithheld)] == ["stop", "restart"]


def test_what_could_not_be_done_now_is_refused_and_nobody_is_asked() -> None:
    for verb in ("resume", "save"):
        world = training()
        reply = world.judge.answer(world.state, Command(t=world.t, verb="ask", asked=verb, by="an agent"))
        assert not reply.ok
        assert ask(world, verb).of(ActionWithheld) == []


def test_a_second_question_waits_for_the_first_answer() -> None:
    world = ask(ask(training(), "stop"), "restart")
    assert len(world.of(ActionWithheld)) == 1


def test_what_trainwatch_does_by_itself_goes_on_while_a_program_waits() -> None:
    """A question of an agent must not keep a hang alive, nor is a hang's answer an answer to it."""
    world = ask(training(), "stop").watch(Story(meta=False).dead(400))
    assert done(world) == ["stop_attempt", "start_attempt"]
    assert world.of(QuestionClosed)
    crashed = crash(ask(save(running(judge(), steps=100), "out/checkpoint-80", 80), "restart"))
    assert done(crashed) == ["end_leftovers", "start_attempt"]


def test_act_all_orders_nothing_that_a_program_asked_for() -> None:
    world = ask(save(observing(steps=100), "out/checkpoint-80", 80), "restart")
    world.see(Command(t=world.t, verb="act", act="all"))
    world.see(Tick(t=world.t + 60.0))
    assert done(world) == []


def test_the_question_of_a_hang_takes_the_place_of_a_programs() -> None:
    world = ask(hung("ask"), "stop")
    assert [each.by for each in world.of(ActionWithheld)] == [""], "one question at a time"
    first = ask(save(observing("ask", steps=100), "out/checkpoint-80", 80), "stop")
    first.watch(Story(meta=False).dead(400))
    assert [each.by for each in first.of(ActionWithheld)] == ["an agent", ""]
    first.command("restart", incident=first.hangs[0].id)
    assert done(first) == ["stop_attempt", "start_attempt"]
