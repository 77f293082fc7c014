"""How far a run has come over all its attempts: after weights were resumed, and where nobody watched the end."""

from typing import Any

from msgspec.structs import replace

from trainwatch.core.model.decision import Record
from trainwatch.core.model.fact import (
    AttemptEnded,
    AttemptStarted,
    Fact,
    IncidentOpened,
    ProgressMade,
    RunCreated,
    StateChanged,
)
from trainwatch.core.model.progress import Progress, Why
from trainwatch.core.model.run import Incident, RunSpec
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.model.story_fold import apply
from trainwatch.core.views.report import Report, ReportSources
from trainwatch.core.views.report_building import build_report
from trainwatch.core.views.run_summary import summarise
from trainwatch.core.views.state.run_progress import overall_step


def told(*facts: tuple[float, Fact]) -> RunStory:
    story = RunStory()
    created = RunCreated(run="r", name="r", command=("c",), cwd="/", preset="kohya")
    for seq, (t, fact) in enumerate(((0.0, created), *facts), 1):
        story = apply(story, Record(seq=seq, t=t, wall=1000.0 + t, fact=fact))
    return story


def began(number: int, resume_from: str | None = None, resume_step: int | None = None) -> AttemptStarted:
    return AttemptStarted(
        attempt=number, pid=7, log=f"/logs/{number}", resume_from=resume_from, resume_step=resume_step
    )


def made(number: int, step: int, total: int = 200, **more: Any) -> ProgressMade:
    progress = Progress(
        phase="train", step=step, total_steps=total, sec_per_step=1.0, run_step=step, run_total_steps=total
    )
    return ProgressMade(attempt=number, progress=progress, **{"overall_step": step, **more})


def at(story: RunStory, step: int | None = None, t: float = 100.0) -> Situation:
    progress = (
        None
        if step is None
        else Progress(phase="train", step=step, total_steps=200, sec_per_step=1.0, run_step=step, run_total_steps=200)
    )
    return Situation(story=story, progress=progress, progress_t=t, now_t=t, now_wall=1000.0 + t, supervisor_alive=True)


def report(now: Situation, **log_steps: int) -> Report:
    spec = RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=1000.0)
    return build_report(now, ReportSources(spec=spec, log_steps={int(k[1:]): v for k, v in log_steps.items()}))


def test_the_overall_step_is_that_of_the_newest_progress() -> None:
    story = told((1.0, began(1)), (2.0, made(1, 341, 4000)))
    assert overall_step(at(story)) == 341
    assert overall_step(at(story, step=362)) == 362
    bar_a_epoch = told((1.0, began(1)), (2.0, made(1, 90, 100, overall_step=290)))
    assert overall_step(at(bar_a_epoch, step=95)) == 295
    assert overall_step(at(bar_a_epoch, step=5)) == 290
    ended = told(
        (1.0, began(1)), (2.0, made(1, 341, 4000)), (3.0, AttemptEnded(attempt=1, how="stopped", last_step=380))
    )
    assert overall_step(at(ended, step=362, t=2.5)) == 380
    next_one = told((1.0, began(1)), (2.0, made(1, 345, 4000)), (3.0, began(2, "/out/checkpoint-200", 200)))
    assert overall_step(at(next_one)) == 345
    assert summarise(at(next_one)).position.eta_s is None, "it may repeat steps"
    assert overall_step(at(next_one, step=203)) == 203


def test_a_count_that_began_anew_goes_on_from_the_weights_until_the_next_one_is_read() -> None:
    """An attempt that failed while it loaded: status told step 50 of a run whose report told 330."""
    anew = made(2, 50, overall_step=330, step_offset=280)
    story = told((1.0, began(1)), (2.0, began(2, "w", 280)), (3.0, anew), (4.0, began(3, "w", 280)))
    assert summarise(at(story)).position.step == report(at(story)).step == 330


def test_report_counts_steps_repeated_after_a_manual_restart() -> None:
    story = told(
        (1.0, began(1)),
        (50.0, AttemptEnded(attempt=1, how="stopped", signal=2, last_step=183)),
        (51.0, began(2, "/out/checkpoint-180", 180)),
        (60.0, AttemptEnded(attempt=2, how="stopped", signal=2)),
        (61.0, began(3, "/out/checkpoint-330", 330)),
        (70.0, AttemptEnded(attempt=3, how="killed", signal=9, last_step=345)),
        (71.0, began(4, "/out/checkpoint-200", 200)),
        (80.0, AttemptEnded(attempt=4, how="stopped", signal=2, last_step=262)),
        (80.0, StateChanged(state="stopped", reason="by command line", why=Why("person"))),
    )
    shown = report(at(story), _2=334)
    changed = replace(story, attempts=(*story.attempts[:3], replace(story.attempts[3], profile="safe")))
    assert [a.last_step for a in shown.attempts] == [183, 334, 345, 262]
    assert report(at(changed, t=3 * 86_400.0)).changes[0].split()[0].isalpha(), "of which day"
    assert "nothing went wrong; 152 steps had to be repeated;" in shown.summary


def test_an_attempt_whose_end_was_not_seen_is_not_reported_as_running() -> None:
    story = told((1.0, began(1)), (30.0, made(1, 300)), (60.0, began(2, "/out/c-300", 300)), (90.0, made(2, 310)))
    lost = apply(story, Record(seq=9, t=95.0, wall=1095.0, fact=StateChanged(state="interrupted", reason="reboot")))
    rows = report(at(lost, t=5000.0), _1=334, _2=362).attempts
    assert [(a.ended, a.last_step, a.ran_s) for a in rows] == [("unseen", 334, 59.0), ("unseen", 362, 35.0)]
    assert report(at(lost, t=5000.0), _2=362).step == 362
    assert report(at(story), _1=334).attempts[1].ended == "goes on"


def test_downtime_after_giving_up_lasts_until_the_next_start() -> None:
    crash = Incident(
        id=1, t=50.0, wall=1050.0, kind="crash", class_="config_error", severity="danger", reason="r", attempt=1,
        closed_t=50.0, ending="given up",
    )  # fmt: skip
    ended = (50.0, AttemptEnded(attempt=1, how="crashed", code=2)), (50.0, IncidentOpened(incident=crash))
    story = told((1.0, began(1)), *ended, (50.0, StateChanged(state="given_up", reason="r")))
    assert report(at(story)).incidents[0].down_s is None
    again = apply(story, Record(seq=9, t=98.0, wall=1098.0, fact=began(2)))
    assert report(at(again)).incidents[0].down_s == 48.0


def test_a_total_that_the_step_has_passed_is_of_another_counter() -> None:
    """A bar for each round of 25: *step 249 of 25* stood in the report."""
    a_round = ProgressMade(attempt=1, progress=Progress(step=24, total_steps=25), overall_step=249)
    shown = report(at(told((1.0, began(1)), (2.0, a_round))))
    assert (shown.step, shown.total_steps) == (249, None)
