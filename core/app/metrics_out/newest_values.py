"""The newest values of one run, read from what it leaves on disk."""

import time
from typing import TYPE_CHECKING, Any

from ...model.observation import Base
from ...model.run import TERMINAL_STATES

if TYPE_CHECKING:
    from ...store.run_directory import RunDirectory
    from ...views.metrics_out.run_metrics import RunNow

ENDED_S = 86_400.0
"""A run that is over stays on the page for a day: long enough for alerts and for a look in the morning."""
FRESH_S = 60.0
"""An older sample is not of now. Sensors read every few seconds."""


def run_now(run: "RunDirectory") -> "RunNow | None":
    """The newest values of a run. None: it is over for longer than ENDED_S, or is an ended example of demo or drill."""
    from ...store.lock import is_held
    from ...store.metrics.history import HistoryReader
    from ...views.charts.chart_view import STEPS
    from ...views.metrics_out.run_metrics import RunNow
    from ..runs.known_runs import example_verb
    from ..runs.run_status import read_status

    watched, wall = is_held(run.lock), time.time()
    if not watched and example_verb(run.load_spec()) is not None:
        return None
    status = read_status(run)
    if not watched and status["state"] in TERMINAL_STATES and wall - run.journal.stat().st_mtime > ENDED_S:
        return None
    with HistoryReader(run.history) as history:
        latest, highest = history.latest(), history.highest(STEPS)

    def fresh(sample: Any) -> Any:
        """A sample of now; None if it is older, or if nobody watches."""
        young = isinstance(sample, Base) and abs(wall - status["wall0"] - sample.t) <= FRESH_S
        return sample if watched and young else None

    preset = status["preset"]
    return RunNow(
        status=status,
        wall=wall,
        preset=preset["name"] if preset is not None else "",
        highest_step=highest,
        gpu=fresh(latest.gpu),
        host=fresh(latest.host),
        process=fresh(latest.process),
        metrics=latest.metrics,
    )
