"""[end]: commands at the end of a run, and the time at which it ends."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from tests.builders import World, judge
from tests.unit.test_judge_recovery import crash, running, save
from tests.unit.test_judge_takeover import from_journal
from trainwatch.core.config.bounds import end_after, end_time
from trainwatch.core.judge.state import from_snapshot, to_snapshot
from trainwatch.core.model.decision import EndWatch, NotifyPeople, RunAtEnd, StopAttempt
from trainwatch.core.model.observation import Exit, LogChunk, Outcome
from trainwatch.core.model.settings import End, Hang, Restart, Settings

END = End(at_finish=("done",), at_give_up=("gone",), end_by="08:00")
AT = 1000.0
LEAD_S = 35.0


def world(end: End = END, *, restart: Restart | None = None, **more: Any) -> World:
    settings = Settings(end=end, restart=restart or Restart(), hang=Hang(min_s=1e5, max_s=1e6))
    return running(judge(settings, end_after=lambda wall: AT if wall < AT else AT + 86400.0, **more), steps=60)


def ordered(world: World) -> list[tuple[str, tuple[str, ...]]]:
    return [(order.event, order.command) for order in world.of(RunAtEnd)]


def until(world: World, t: float) -> World:
    return world.wait(t - world.t, every_s=5.0)


def test_the_command_of_the_end_follows_the_last_notice_and_is_decided_once() -> None:
    run, text = save(world(), "out/step-100", 100), "steps: 100%|##| 100/100 [01:00<00:00, 1.00s/it, avr_loss=0.1]"
    run.silent = {"at_end"}
    run.see(LogChunk(t=run.t, text=f"{text}\nTraining finished\n"), Exit(t=run.t, code=0))
    assert run.word == "finished"
    assert ordered(run) == [("finish", ("done",))]
    assert run.decisions[-2:] == ["at_end", "end_watch"]
    last = [type(entry) for _, entry in run.entries[-3:]]
    assert last == [NotifyPeople, RunAtEnd, EndWatch]
    until(run, AT + 100)
    assert len(ordered(run)) == 1
    later = from_journal(run, to_snapshot(run.state)).begin().wait(1.0)  # its supervisor was killed before it was run
    assert [order.end_t for order in later.of(RunAtEnd)] == [order.end_t for order in run.of(RunAtEnd)]


def test_it_is_stopped_as_long_before_its_time_as_a_stop_may_take() -> None:
    run = until(world(), AT - LEAD_S - 6)
    assert run.word == "running"
    run.wait(10)
    assert run.word == "stopped"
    assert run.why.kind == "ordered"
    assert ordered(run) == [("end_by", ("gone",))], "not the command of a training that is done"
    told = run.of(NotifyPeople)[-1]
    assert (told.event, run.of(EndWatch)[-1].exit_code) == ("end_by", 1)
    assert "trainwatch resume" in told.body


def test_a_trainer_that_can_be_asked_saves_before_the_time() -> None:
    run = until(world(can_ask_to_save=True), AT - LEAD_S - 120 + 1)
    assert run.decisions[-1] == "request_save"
    save(run, "out/step-61", 61)
    assert run.word == "stopped"
    assert ordered(run) == [("end_by", ("gone",))]
    assert run.t < AT - LEAD_S


def test_a_restart_under_way_at_that_time_becomes_the_end() -> None:
    run = until(world(), AT - LEAD_S - 10)
    run.silent = {"stop_attempt"}
    run.command("restart").wait(15)
    order = run.of(StopAttempt)[-1].id
    run.see(Exit(t=run.t, code=None, signal=2), Outcome(t=run.t, decision=order, action="stop_attempt", ok=True))
    assert run.word == "stopped"
    assert ordered(run) == [("end_by", ("gone",))]


@pytest.mark.parametrize("act", ["ask", "notify"])
def test_nothing_is_ended_at_that_time_if_nothing_may_be_ended(act: str) -> None:
    run = until(world(restart=Restart(act=act)), AT + 10)  # type: ignore[arg-type]
    assert run.word == "running"
    assert (ordered(run), run.decisions.count("stop_attempt")) == ([], 0)
    assert run.of(NotifyPeople)[-1].event == "withheld"


def test_a_resume_after_it_goes_on_until_the_next_such_time() -> None:
    run = until(world(), AT - 5)
    assert run.word == "stopped"
    run.command("resume").wait(5)
    until(run, AT + 100)
    assert run.word != "stopped"
    assert run.state.operator.ends is not None
    assert run.state.operator.ends.t == AT + 86400.0


def test_a_person_who_resumes_while_it_is_stopped_for_its_time_is_obeyed() -> None:
    run = until(world(can_ask_to_save=True), AT - LEAD_S - 118)
    assert run.word == "stopping"
    run.command("resume")
    save(run, "out/step-61", 61).wait(20)
    assert run.word != "stopped"
    assert ordered(run) == []


def test_a_new_supervisor_keeps_the_time_and_ends_what_was_being_ended() -> None:
    run = until(world(), AT - LEAD_S - 1)
    again = from_snapshot(to_snapshot(run.state))
    assert again is not None
    assert again.operator.ends == run.state.operator.ends
    run.silent = {"stop_attempt"}
    run.wait(5)
    assert run.word == "stopping"
    run.state = msgspec.structs.replace(run.state, taken_over=False)
    run.live = None
    run.begin()
    assert run.word == "stopped"
    assert ordered(run) == [("end_by", ("gone",))]
    run.begin()
    assert len(ordered(run)) == 1


def test_a_held_run_ends_at_its_time() -> None:
    run = world(restart=Restart(if_gpu_not_clear="wait"))
    run.answer("clear_gpu", ok=False, detail="pid 7 holds 3 GB")
    crash(run, "CUDA error: an illegal memory access was encountered")
    assert (run.word, ordered(run)) == ("stopped", [])
    until(run, AT)
    assert (run.word, ordered(run)) == ("stopped", [("end_by", ("gone",))])


def test_a_time_of_day_is_the_next_one_after_the_start_and_a_date_is_that_date() -> None:
    noon = dt.datetime(2026, 11, 22, 12, 0).timestamp()  # noqa: DTZ001  local, as the setting is
    eight = dt.datetime(2026, 11, 23, 8, 0).timestamp()  # noqa: DTZ001
    assert end_after("08:00")(noon) == eight
    assert end_after("8:00")(eight) == eight + 86400
    assert end_after("12:01")(noon) == noon + 60
    assert end_after("2026-11-23 08:00")(eight + 5) == eight
    assert end_after("")(noon) is None
    for wrong in ("8", "24:00", "08:60", "tomorrow", "2026-13-01 08:00"):
        with pytest.raises(ValueError, match="local time"):
            end_time(wrong)
