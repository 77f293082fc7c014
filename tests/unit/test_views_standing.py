"""What is said of a run that stands still or ended: suspended by a signal, held, given up."""

import re

import msgspec
import pytest

from tests.fakes.feed import crashed, healthy, host, in_state
from tests.unit.test_views_header import incident, said, with_incidents
from trainwatch.core.model.progress import PLAIN, HealthReading, Why
from trainwatch.core.model.story import Situation, SupervisorLife
from trainwatch.core.views.dashboard import header_view
from trainwatch.core.views.incidents import incident_card, incident_view
from trainwatch.core.views.run_summary import needs, summarise
from trainwatch.core.views.state.concerns import troubles
from trainwatch.tui.screens.incidents_screen import paragraphs

replace = msgspec.structs.replace

SIGNAL = "a signal that is not from trainwatch stopped the trainer (state T): `trainwatch resume` lets it go on"


def suspended() -> Situation:
    now = healthy()
    stopped = incident(21, "stall", "suspended", SIGNAL, severity="warning", title="stopped by a signal")
    story = replace(now.story, state="suspended", state_t=now.now_t - 102)
    return with_incidents(replace(now, story=story), stopped)


def test_a_stop_by_a_signal_is_told_once_with_one_age() -> None:
    sentence = said(suspended()).sentence
    assert sentence.startswith("Stopped by a signal 102 s ago, not by trainwatch: [r] continue · step ")
    assert sentence.lower().count("signal") == 1


def test_a_stop_by_a_signal_needs_a_person_once_it_lasts() -> None:
    now, needed = suspended(), "Incident 21 is open since"
    later = replace(now, now_t=now.now_t + 600)
    assert [(summarise(each).needs_you or "")[: len(needed)] for each in (now, later)] == ["", needed]


def test_the_card_of_a_stop_by_a_signal_offers_to_let_it_go_on() -> None:
    card = incident_card(suspended(), 21)
    assert card is not None
    assert [choice.act for choice in card.choices][:1] == ["resume"]
    assert "wait" not in {choice.act for choice in card.choices}
    assert [choice.text for choice in card.choices if choice.act == "resume"] == ["let it go on (SIGCONT)"]


def test_a_finished_run_offers_work_only_where_what_was_trained_may_be_worthless() -> None:
    for class_, offered in (("gpu0.temp", False), ("nan", True)):
        closed = replace(incident(21, "health", class_, "text"), closed_t=1.0, ended_by="attempt")
        card = incident_card(with_incidents(in_state("finished"), closed), 21)
        assert card is not None
        assert ("resume" in {choice.act for choice in card.choices}) is offered


def test_a_title_that_the_border_cuts_stands_in_the_card_in_full() -> None:
    card = incident_card(suspended(), 21)
    assert card is not None
    for width, told in ((36, True), (72, True), (200, False)):  # the border has it
        assert any(SIGNAL in row.text for row in paragraphs(card, width)) is told


def test_restarts_that_are_left_are_told_only_while_one_may_follow() -> None:
    assert any("left" in fact for fact in header_view(healthy()).facts)
    for state in ("given_up", "finished", "stopped", "ended_early"):
        assert not any("left" in fact for fact in header_view(in_state(state)).facts), state


FULL = Why("disk_full", need_bytes=6e6, free_bytes=0.0)


def held(reason: str, why: Why = FULL) -> Situation:
    base = crashed()
    story = replace(base.story, state="backing_off", state_reason=reason, state_why=why)
    return replace(base, story=story, host=replace(host(base.now_t), disk_free_bytes=0.0))


def test_what_holds_a_restart_is_the_first_thing_that_needs_a_person() -> None:
    now = held("the disk is full; it continues when 6 MB are free (0 B were)")
    assert next(needs(now)).text == "The run is held: the disk is full; it continues when 6 MB are free (0 B were)."
    assert "now 0 B are free" not in said(now).sentence
    unknown = held("the disk is full; it continues when 6 MB are free", Why("disk_full"))
    assert "now 0 B are free" in said(unknown).sentence


def test_attempts_that_end_at_one_step_again_and_again_need_a_person() -> None:
    base = crashed()
    (first,) = base.story.attempts
    for ends, needed in (((24,) * 4, True), ((24,) * 3, False), ((24, 24, 31, 24), False), ((None,) * 4, False)):
        attempts = tuple(replace(first, number=n, last_step=end) for n, end in enumerate(ends, 1))
        now = replace(base, story=replace(base.story, attempts=attempts))
        told = summarise(now).needs_you or ""
        assert told.startswith("4 attempts in a row ended at step 24: exit code 1") is needed, ends


def test_the_card_of_a_crash_says_what_its_restart_waits_for() -> None:
    now = held("the disk is full; it continues when 6 MB are free (0 B were)")
    card = incident_card(now, now.story.open_incidents[0].id)
    assert card is not None
    assert f"held: {now.story.state_reason}" in {row.text for row in card.rows if row.heading == "done"}


@pytest.mark.parametrize(
    ("why", "level"),
    [(FULL, "danger"), (Why("gpu_lost"), "danger"), (Why("no_room", until_t=60.0), "warning"), (PLAIN, "warning")],
)
@pytest.mark.parametrize("reason", ["the disk is full", "held: a quota; it is launched again in 60 s", ""])
def test_what_waits_for_a_person_is_red_and_what_goes_on_by_itself_is_not(reason: str, why: Why, level: str) -> None:
    """By what it waits for, whatever its sentence is."""
    now = held(reason, why)
    nothing_open = replace(now, story=replace(now.story, incidents=()))
    for state in ("backing_off", "cleaning"):
        for each in (now, nothing_open):
            told = said(replace(each, story=replace(each.story, state=state)))
            assert (told.level, "aunched again in 0:" in told.sentence) == (level, why.until_t is not None)


def test_the_room_that_a_held_restart_has_is_that_of_now_or_has_its_time() -> None:
    """Before: the free space at the beginning of the incident, hours old."""
    low = incident(31, "disk", "disk_free", "disk nearly full: 8.39 MB (limit 2.00 GB)")
    reading = HealthReading(metric="disk_free", value=8.39e6, unit="B", level="warning")
    now = held("the disk is full; it continues when 6 MB are free (0 B were)")
    story = replace(now.story, incidents=(*now.story.incidents, low), health={"disk_free": reading})
    now = replace(now, story=story, host=replace(host(now.now_t), disk_free_bytes=414e3))
    told = " ".join(need.text for need in needs(now))
    assert "(0 B were); now 414 kB are free." in told
    assert "disk nearly full: 414 kB" in told
    assert any(title.startswith("disk nearly full: 414 kB") for title in titles(now))
    assert any("414 kB" in trouble.text for trouble in troubles(now, SupervisorLife()))
    later = replace(now, now_t=now.now_t + 7200, now_wall=now.now_wall + 7200, supervisor_alive=False)
    told = " ".join([*(need.text for need in needs(later)), *titles(later)])
    assert "now 414 kB" not in told
    assert re.search(r"disk nearly full: 414 kB \(limit [^)]*\), read at \d\d:\d\d", told)


def titles(now: Situation) -> list[str]:
    return [incident_view(i, now).title for i in now.story.incidents]
