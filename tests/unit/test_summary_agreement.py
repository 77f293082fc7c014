"""What ``status``, ``runs``, the report, Prometheus, the list and the head of the screen say of a recorded run agrees."""

from pathlib import Path
from typing import Any

import pytest

from tests.goldens.journals import Recording, laid_out, recordings
from trainwatch.core.app.export import prometheus_page
from trainwatch.core.app.runs.report import report_of
from trainwatch.core.app.runs.run_status import read_run, run_rows
from trainwatch.core.app.runs.supervisor_life import read_situation
from trainwatch.core.app.screen.run_picker import card_of
from trainwatch.core.views.dashboard import header_view
from trainwatch.core.views.screens.run_list import run_row

RECORDED = recordings()


@pytest.mark.parametrize("recording", RECORDED, ids=[r.name for r in RECORDED])
def test_every_projection_of_a_run_says_the_same(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with laid_out(recording, tmp_path, monkeypatch) as run:
        status, said, _ = read_run(run)
        (row,) = run_rows(lambda _: None)
        card = card_of(run)
        now, _ = read_situation(run)
        head = header_view(now)
        report: Any = report_of(run)
        page = prometheus_page(lambda _: None)
    assert said.state == status["state"] == row["state"] == card.state == report.state
    steps = [status["overall"]["step"], row["step"], card.step, said.position.step]
    assert len(set(steps)) == 1, steps
    assert report.step == (steps[0] or report.step)
    assert said.position.eta_s == row["eta_s"] == card.eta_s == report.eta_s
    assert status["ettr"] == report.ettr
    assert "nothing went wrong" not in report.summary or not any(need.is_due for need in report.needs)
    assert row["still"] == status["still"] == said.still
    assert row["level"] == said.level
    worst = said.troubles[0] if said.troubles else None
    assert row["trouble"] == (None if worst is None else worst.text)
    assert [each["text"] for each in status["concerns"]] == [each.text for each in said.troubles]
    assert worst is None or card.trouble.startswith(worst.text)
    assert [need.text for need in said.needs] == [need.text for need in report.needs]
    assert row["needs_you"] == said.needs_you
    if said.attempts:
        assert head.verdict.level == said.level == card.level
        assert run_row(card, now.now_wall).level != "safe" or said.level in {"safe", "unknown"}
    assert said.level != "safe" or not (said.nan or said.diverged or any(t.level == "danger" for t in said.troubles))
    if page and f'run="{run.id}"' in page:
        assert f'trainwatch_run_state{{run="{run.id}",state="{said.state}"}} 1' in page
        assert ("trainwatch_remaining_seconds" in page) == (said.position.eta_s is not None)
