"""Readings of the machine in the text of ``status`` and in the health line."""

from typing import Any

import msgspec
import pytest

from tests.fakes.feed import given_up, healthy, hung
from trainwatch.cli.status_text import attempt_line, machine_lines, reason_words
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.views.dashboard import header_view
from trainwatch.core.views.state.status import status_object


def test_status_has_a_line_per_gpu_and_one_for_memory() -> None:
    gpu = {"index": 0, "util": 97.0, "mem_used": 15.2e9, "mem_total": 16.3e9, "temp": 86, "power": 290.4}
    host = {"ram_used": 12e9, "ram_total": 32e9, "ram_available": 19e9, "swap_used": 0.0, "disk_free": 200e9}
    assert machine_lines({"gpus": [gpu], "host": host}) == [
        "GPU 0  97 % · 14.2 of 15.2 GiB · 86 °C · 290 W",
        "RAM  11.2 of 29.8 GiB · 17.7 GiB available · swap 0 GiB · disk 200 GB free",
    ]


def test_status_leaves_out_unknown_values() -> None:
    gpus = [{"index": 0}, {"index": 1, "temp": 50.0}, {"index": 2, "trouble": "no answer for 9 s"}]
    assert machine_lines({"gpus": gpus, "host": {}}) == ["GPU 1  50 °C", "GPU 2  no answer for 9 s"]


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
        "hold": {"kind": "unclear_output", "incident": 3},
        "concerns": [{"level": "danger", "text": "Params_800.npz may be of this run", "incident": 3}],
    }
    assert reason_words(status, "") == held
    assert reason_words({**status, "hold": None}, "") == f"{held} · Params_800.npz may be of this run"


def said(story: RunStory, wall: float) -> dict[str, Any]:
    return status_object(Situation(story=story, now_t=wall - story.wall0, now_wall=wall), run="luca")


@pytest.mark.parametrize("now", [healthy(), hung(), given_up()])
def test_status_and_the_screen_count_the_restarts_that_are_left_in_the_same_words(now: Situation) -> None:
    status = said(now.story, now.now_wall)
    told = [fact for fact in header_view(now).facts if "restart" in fact]
    assert [part for part in attempt_line(status).split(" · ") if "restart" in part] == told
    unlimited = msgspec.structs.replace(now.story, budget_max=0)
    assert "restart" not in attempt_line(said(unlimited, now.now_wall))
