"""Readings of the machine in the text of ``status`` and in the health line."""

import re

import pytest

from tests.fakes.feed import SCENES
from trainwatch.cli.status_text import machine_lines, reason_words, status_lines
from trainwatch.core.views.incidents import incident_views
from trainwatch.core.views.state.status import status_object
from trainwatch.core.views.words import STATE_WORDS


def test_readings_of_a_run_that_nobody_reads_have_their_age() -> None:
    host = {"disk_free": 414e3}
    assert machine_lines({"gpus": [], "host": host, "readings_age_s": 2.0}) == ["disk 414 kB free"]
    old = machine_lines({"gpus": [], "host": host, "readings_age_s": 7200.0})
    assert old == ["readings of 2 h 00 m ago:", "disk 414 kB free"]


def test_what_is_wrong_and_the_reason_stand_there_once_if_they_are_the_same() -> None:
    held = "params_800.npz may be of this run"
    status = {
        "state": "stopped",
        "reason": held,
        "still": "",
        "hold": {"kind": "unclear_output", "incident": 3},
        "concerns": [{"level": "danger", "text": "Params_800.npz may be of this run", "incident": 3}],
    }
    assert reason_words(status) == held
    assert reason_words({**status, "hold": None}) == f"{held} · Params_800.npz may be of this run"


@pytest.mark.parametrize("scene", ["hung", "given_up", "crashed", "finished"])
def test_status_has_the_words_of_the_screen_for_a_state_and_an_incident(scene: str) -> None:
    now = SCENES[scene]()
    lines = status_lines(status_object(now, run="luca"))
    assert re.match(rf"luca: {STATE_WORDS[now.story.state]}( |,|$)", lines[0])
    told = [f"incident {view.id}: {view.kind}: {view.title}" for view in incident_views(now)]
    assert all(any(words in line for line in lines) for words in told), lines
