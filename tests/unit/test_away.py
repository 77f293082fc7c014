"""The card that greets somebody who comes back: when it is shown, and what it says."""

from pathlib import Path

import msgspec
import pytest

from tests.fakes.feed import asking, empty, finished, given_up, healthy, told_records, unwatched
from tests.unit.test_report_texts import SPEC, records
from tests.unit.test_views_header import HOT, with_incidents
from trainwatch.core.model.progress import Why
from trainwatch.core.model.story import Look, Situation
from trainwatch.core.store.learned import read_look, write_look
from trainwatch.core.views.report import LossCourse, ReportSources
from trainwatch.core.views.report_building import build_report, short_report
from trainwatch.core.views.run_summary import AWAY_S, is_due, needs, since_wall, urgent_keys

replace = msgspec.structs.replace


pytestmark = pytest.mark.usefixtures("utc")


def looked(now: Situation, ago_s: float, *needs: str) -> Look:
    return Look(wall=now.now_wall - ago_s, needs=needs)


def test_the_card_is_due_after_more_than_an_hour_in_which_the_run_went_on() -> None:
    now = healthy()
    assert not is_due(looked(now, AWAY_S - 60), now)
    assert is_due(looked(now, AWAY_S + 60), now)
    assert is_due(None, now)  # five hours old, and nobody has looked yet
    assert since_wall(looked(now, 7200), now) == now.now_wall - 7200
    assert since_wall(looked(now, 60), now) is None


def test_a_run_in_which_nothing_happened_since_the_last_look_greets_nobody() -> None:
    now = finished()
    days = replace(now, now_t=now.now_t + 3 * 86_400, now_wall=now.now_wall + 3 * 86_400)
    assert not is_due(looked(now, -10), days)
    assert not is_due(None, empty())


@pytest.mark.parametrize("now", [given_up(), asking(), unwatched(), with_incidents(healthy(), HOT)])
def test_what_needs_a_person_is_shown_at_once_and_once(now: Situation) -> None:
    assert is_due(looked(now, 60), now)
    assert not is_due(looked(now, 60, *urgent_keys(now)), now)


def test_what_can_wait_opens_no_card() -> None:
    warned = with_incidents(healthy(), replace(HOT, severity="warning"))
    assert [need.urgent for need in needs(warned)] == [False]
    assert not is_due(looked(warned, 60), warned)
    stopped = replace(healthy(), story=replace(healthy().story, state="stopped", state_reason="stopped by ann"))
    assert not is_due(looked(stopped, 60), stopped)
    held = replace(stopped, story=replace(stopped.story, state_reason="the disk is full", state_why=Why("disk_full")))
    assert is_due(looked(held, 60), held)


def test_the_summary_is_of_the_time_since_the_last_look() -> None:
    now = finished()
    since = now.story.wall0 + 5 * 3600
    sources = ReportSources(spec=SPEC, particulars=told_records(records()), loss=LossCourse(first=0.2, last=0.07))
    whole = short_report(build_report(now, sources))
    away = short_report(build_report(now, sources, since))
    assert "crash: CUDA out of memory" in whole
    assert "crash: CUDA out of memory" not in away
    assert "changed" not in away
    line = away.splitlines()[1]
    assert line.startswith("  away ")
    assert "restart" not in line
    assert "nothing went wrong" in away


def test_the_last_look_is_kept_and_a_broken_file_is_no_look(tmp_path: Path) -> None:
    path = tmp_path / "last_look.json"
    assert read_look(path) is None
    write_look(path, Look(wall=5.0, needs=("nan:7",)))
    assert read_look(path) == Look(wall=5.0, needs=("nan:7",))
    path.write_bytes(b"\xff{")
    assert read_look(path) is None
    write_look(tmp_path / "gone" / "last_look.json", Look(wall=1.0))  # the run was forgotten: no error
