"""``report --short``: what a person reads first in the morning."""

import msgspec
import pytest

from tests.fakes.feed import asking, crashed, finished, given_up, healthy, hung
from tests.unit.test_report_texts import report
from tests.unit.test_views_header import NAN, NAN_CRASH, with_incidents
from trainwatch.core.model.checkpoint import Evaluation
from trainwatch.core.model.progress import Why
from trainwatch.core.model.story import Situation, SupervisorLife
from trainwatch.core.views.checkpoint_list import step_words
from trainwatch.core.views.report_building import MOST_INCIDENTS, short_report
from trainwatch.core.views.report_pages import html, markdown
from trainwatch.core.views.run_summary import is_due, needs
from trainwatch.core.views.state.concerns import frozen_text, troubles

pytestmark = pytest.mark.usefixtures("utc")


def test_a_finished_night_in_a_few_lines() -> None:
    lines = short_report(report(finished())).splitlines()
    assert lines[0] == "luca: finished 06:44 · step 10,260 of 10,260"
    assert lines[1].startswith("  7 h 23 m in all, trained 7 h 14 m, lost 9 min")
    assert lines[1].endswith("(1 restart)")
    assert any("crash: CUDA out of memory → recovered" in line for line in lines)
    assert "  loss 0.340 → 0.0713" in lines
    assert lines[-1] == "  nothing needs you"


def test_an_end_that_nothing_proves_is_said_so() -> None:
    now = finished()
    story = msgspec.structs.replace(now.story, state_reason="exit 0 (step 75)", state_why=Why("unproven"))
    found = report(msgspec.structs.replace(now, story=story))
    assert "  exit 0 (step 75)" in short_report(found).splitlines()
    said = "; nothing in the log says that this was the end;"
    assert said in found.summary
    assert said not in report(now).summary


def test_scores_of_checkpoints_are_in_every_form_and_the_best_is_marked() -> None:
    now = finished()
    older, newest = now.story.checkpoints[-2:]
    found = {
        c.path: Evaluation(path=c.path, mtime=c.mtime, step=c.step, metric="fid", score=score, better="lower")
        for c, score in ((older, 7.5), (newest, 9.0))
    }
    now = msgspec.structs.replace(now, story=msgspec.structs.replace(now.story, evaluations=found))
    told = report(now)
    line = f"fid 9 at {step_words(newest)}, best 7.5 at {step_words(older)}"
    assert f"  checkpoints: {line}" in short_report(told).splitlines()
    for text in (markdown(told), html(told)):
        assert line in text
        assert "fid 7.5, best" in text
    assert "score" not in markdown(report(finished()))


def test_a_finished_run_whose_loss_was_nan_needs_a_person() -> None:
    closed = msgspec.structs.replace(NAN, open=False, closed_t=7.4 * 3600, ended_by="attempt")
    found = report(with_incidents(finished(), closed))
    assert "nothing went wrong" not in found.summary
    assert "its loss is NaN" in found.summary
    text = short_report(found)
    assert "needs you: The loss is NaN since step 100" in text
    assert "loss 0.340 → NaN" in text
    assert text.count("needs you") == 1


def test_of_many_incidents_the_newest_are_shown_and_the_others_counted() -> None:
    one = report(finished())
    many = msgspec.structs.replace(one, incidents=one.incidents * (MOST_INCIDENTS + 2))
    text = short_report(many)
    assert "2 earlier incidents not shown here" in text
    assert text.count("crash: CUDA out of memory") == MOST_INCIDENTS


def test_a_run_that_is_held_for_an_incident_tells_its_reason_once() -> None:
    why = "weights.npz in /out may be of this run; a start may write over it"
    now = given_up()
    held = tuple(
        msgspec.structs.replace(i, kind="checkpoint", class_="not_understood", reason=why, open=True)
        for i in now.story.incidents[-1:]
    )
    of = Why("unclear_output", held[-1].id)
    story = msgspec.structs.replace(now.story, state="stopped", state_reason=why, state_why=of, incidents=held)
    told = [need.text for need in needs(msgspec.structs.replace(now, story=story))]
    assert sum("weights.npz" in text for text in told) == 1
    other = tuple(msgspec.structs.replace(i, id=99, reason="another thing is wrong") for i in held)
    story = msgspec.structs.replace(story, incidents=other)
    told = [need.text for need in needs(msgspec.structs.replace(now, story=story))]
    assert any("another thing is wrong" in text for text in told)


def silent(**changes: object) -> Situation:
    """A run whose steps stopped 96 s ago: nothing is decided yet."""
    now = hung()
    quiet = msgspec.structs.replace(now.story.incidents[-1], kind="quiet", severity="warning")
    incidents = (*now.story.incidents[:-1], quiet)
    states = now.story.states[:-1]
    running = msgspec.structs.replace(
        now.story, state="running", state_reason="", until_t=None, incidents=incidents, states=states
    )
    return msgspec.structs.replace(now, story=msgspec.structs.replace(running, **changes))


def waits_for_its_job() -> Situation:
    return msgspec.structs.replace(crashed(), story=msgspec.structs.replace(crashed().story, state="queued"))


@pytest.mark.parametrize(
    "now",
    [silent(), hung(), crashed(), with_incidents(crashed(), NAN, NAN_CRASH), waits_for_its_job()],
    ids=["silence", "hang", "restart", "rollback", "preempted"],
)
def test_what_trainwatch_handles_by_itself_needs_nobody(now: Situation) -> None:
    text = short_report(report(now))
    assert text.splitlines()[-1] == "  nothing needs you"
    assert "→ open: trainwatch restarts" in text or "→ open: if no step comes, trainwatch ends" in text
    assert "nothing needs your decision" in report(now).summary
    assert not any(need.urgent for need in needs(now))


@pytest.mark.parametrize(
    "now",
    [
        silent(act="notify"),
        silent(budget_used=3),
        msgspec.structs.replace(silent(), supervisor_alive=False),
        msgspec.structs.replace(silent(), frozen="supervisor 4000 does not respond"),
        asking(),
    ],
    ids=["only notifies", "no restart left", "unwatched", "frozen", "asks"],
)
def test_a_silence_that_nobody_handles_needs_a_person(now: Situation) -> None:
    text = short_report(report(now))
    assert "  needs you: " in text
    assert "if no step comes" not in text


def test_the_report_says_what_status_says_of_a_supervisor_that_is_frozen() -> None:
    """Before: "running … nothing needs you" while `status` said that nobody watches the training."""
    life = SupervisorLife(pid=7, alive=True, age_s=50.0, stopped=True)
    now = msgspec.structs.replace(healthy(), frozen=frozen_text(life))
    said = troubles(now, life, run_id="luca-1")[0].text
    found = report(now)
    text = short_report(found)
    assert text.startswith("luca: last seen running ")
    assert said.startswith("the supervisor (pid 7) is stopped by a signal for 50 s: kill -CONT 7 lets it go on")
    need = next(need for need in needs(now) if need.kind == "frozen")
    assert need.urgent
    words = said.partition("`")[0]
    assert need.text.startswith(words[0].upper() + words[1:])
    assert f"needs you: {need.text}" in text
    assert found.summary.startswith("It was last seen running ")
    assert "nothing went wrong" not in found.summary
    assert found.eta_s is None
    assert is_due(None, now)
