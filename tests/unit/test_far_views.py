"""What the screen says of a run of another machine, and of a line that is lost."""

import msgspec
import pytest

from tests.fakes.feed import finished, healthy
from trainwatch.cli.other_host import screen_asked
from trainwatch.core.model.run_card import RunCard
from trainwatch.core.model.situation import Situation
from trainwatch.core.model.text.suggestion import typed
from trainwatch.core.views.panes.dashboard import dashboard_view
from trainwatch.core.views.panes.header import header_view
from trainwatch.core.views.screens.run_list import RUN_COLUMNS, listed, run_row
from trainwatch.core.views.state.verdict import verdict

replace = msgspec.structs.replace
LOST = "no line to box1 for 2 m"
CARD = RunCard(
    id="box1:job-1a2b3c4d", name="job", state="running", watched=True, created_wall=1.0, host="box1", cwd="/w",
    attempts=1, step=5, total_steps=10,
)  # fmt: skip


def test_the_machine_stands_before_the_name() -> None:
    now = replace(healthy(), machine="box1")
    assert header_view(now).name.startswith("box1: ")
    assert not header_view(healthy()).name.startswith("box1")


@pytest.mark.parametrize("now", [healthy(), finished()])
def test_without_a_line_nothing_is_said_to_be_so_now(now: Situation) -> None:
    lost = verdict(replace(now, machine="box1", link=LOST))
    assert lost.level == "warning"
    assert lost.clauses[0] == "No line to box1 for 2 m"
    assert lost.clauses[1].startswith("then ")
    assert lost.vital >= 2, "neither the line nor 'then' may be cut off"


def test_without_a_line_no_value_is_called_safe() -> None:
    shown = dashboard_view(replace(healthy(), machine="box1", link=LOST, silent_s=120.0))
    assert shown.gpu.note == "2 min old"
    now = dashboard_view(healthy())
    for old, new in ((shown.gpu, now.gpu), (shown.memory, now.memory), (shown.header, now.header)):
        assert '"level":"safe"' not in text_of(old)
        assert '"level":"safe"' in text_of(new)


def text_of(view: object) -> str:
    return msgspec.json.encode(msgspec.to_builtins(view, enc_hook=str)).decode()


def test_clocks_that_differ_are_told() -> None:
    assert "its clock 3 min ahead" in header_view(replace(healthy(), machine="box1", clock_ahead_s=180.0)).facts
    assert "its clock 40 s behind" in header_view(replace(healthy(), machine="box1", clock_ahead_s=-40.0)).facts
    assert not any("clock" in fact for fact in header_view(replace(healthy(), machine="box1", clock_ahead_s=2.0)).facts)


def test_a_run_in_the_list_names_its_machine_and_is_not_running_without_a_line() -> None:
    row = run_row(CARD, 100.0)
    assert (row.level, row.state_word) == ("safe", "running")
    assert {column.text(row) for column in RUN_COLUMNS if column.title == "run"} == {"box1: job"}
    lost = run_row(replace(CARD, link="no line to box1: as of 2 m ago"), 100.0)
    assert (lost.level, lost.state_word) == ("unknown", "was running")
    assert listed([CARD], words="box1") == (CARD,)


def test_commands_for_a_run_of_another_machine_can_be_pasted() -> None:
    assert typed("resume", "box1:job-1a2b3c4d") == "trainwatch --on box1 resume job-1a2b3c4d"
    assert typed("--run", "box1:job-1a2b3c4d") == "trainwatch --on box1 --run job-1a2b3c4d"
    assert typed("resume", "job-1a2b3c4d", "--from", "x:y") == "trainwatch resume job-1a2b3c4d --from x:y"


def test_only_options_of_the_screen_open_the_screen() -> None:
    assert screen_asked([]) is not None
    asked = screen_asked(["--run", "job", "--read-only"])
    assert asked is not None
    assert (asked.run_name, asked.read_only) == ("job", True)
    assert screen_asked(["status"]) is None
    assert screen_asked(["--headless"]) is None
    assert screen_asked(["--run"]) is None
