"""The columns of events on the timeline: order of time, importance, the selected one."""

import pytest

from trainwatch.core.views.timeline import Mark
from trainwatch.tui.panes.timeline_pane import mark_columns

CRASH = Mark(t=20.0, kind="crash", text="exit code 1")
RESTART = Mark(t=20.4, kind="restart", text="attempt 2")
CHECKPOINT = Mark(t=19.9, kind="checkpoint", text="step 40")


@pytest.mark.parametrize("now", [20, 21, 30])
def test_a_restart_stands_after_its_crash_also_beside_the_present(now: int) -> None:
    found = mark_columns((RESTART, CRASH), int, now, {now}, None)
    order = [found[column].kind for column in sorted(found)]
    assert order == ["crash", "restart"]
    assert max(found) <= now


def test_the_least_important_event_is_left_out_if_no_column_is_free() -> None:
    found = mark_columns((CHECKPOINT, RESTART, CRASH), lambda t: int(t / 20), 1, (), None)
    assert [mark.kind for mark in found.values()] == ["crash", "restart"]


def test_the_selected_event_has_its_own_column() -> None:
    found = mark_columns((CRASH, RESTART), lambda _: 0, 0, (), RESTART)
    assert found == {0: RESTART}
