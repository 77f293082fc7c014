"""What people are told of a training whose log shows no step: in the head, in ``status`` and in the report."""

import msgspec
import pytest

from tests.fakes.feed import healthy
from tests.unit.test_report_texts import report
from tests.unit.test_views_header import incident, with_incidents
from trainwatch.cli.status_text import status_lines
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import NO_STEP
from trainwatch.core.model.story import Situation
from trainwatch.core.views.report_building import short_report
from trainwatch.core.views.report_pages import markdown
from trainwatch.core.views.state.status import status_object
from trainwatch.core.views.state.verdict import verdict

pytestmark = pytest.mark.usefixtures("utc")

REASON = "no step is read from the log: position, pace and time left are not known"
FOLLOWS = "a hang shows only when all is silent"
ADVICE = "if \"sweep 3 of 9\" counts steps, write shapes = ['x'] under [progress] in trainwatch.toml; at its next start"


def without_step() -> Situation:
    """A training that runs and of which no step was ever read."""
    now = healthy()
    story = msgspec.structs.replace(now.story, progress=Progress(), overall_step=None, progress_attempt=None)
    return msgspec.structs.replace(now, story=story, progress=None, step_t=None)


def told(**more: object) -> Situation:
    fields = {"severity": "warning", "explanation": f"{FOLLOWS}; {ADVICE}"} | more
    return with_incidents(without_step(), incident(9, "progress", NO_STEP, REASON, **fields))


def test_the_head_says_it_first_and_not_twice() -> None:
    assert "no step seen yet" in verdict(without_step()).sentence
    said = verdict(told())
    assert (said.level, said.clauses[0]) == (
        "warning",
        "No step is read from the log: position, pace and time left are not known ([e] what to do)",
    )
    assert "no step seen yet" not in said.sentence


def test_status_says_what_follows_and_what_to_write() -> None:
    def status(now: Situation) -> dict[str, object]:
        return status_object(now, run="luca")

    lines = status_lines(status(told()))
    at = lines.index(f"  open incident 9: progress: {REASON}")
    assert lines[at + 1 : at + 3] == [f"    {FOLLOWS}", f"    {ADVICE}"]
    (row,) = [i for i in status(told())["incidents"] if i["id"] == 9]  # type: ignore[attr-defined]
    assert row["explanation"] == f"{FOLLOWS}; {ADVICE}"
    over = status_lines(status(told(open=False, closed_t=1.0, ending="a step is read")))
    assert not any(FOLLOWS in line for line in over)


def test_the_report_needs_a_person_who_tells_the_form_of_the_lines() -> None:
    found = report(told(), with_records=False)
    assert any(ADVICE in need.text for need in found.needs)
    assert ADVICE in short_report(found)
    assert REASON in markdown(found)
    seen = report(told(acknowledged=True), with_records=False)
    assert not any(ADVICE in need.text for need in seen.needs)
