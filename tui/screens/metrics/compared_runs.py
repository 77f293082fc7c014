"""The runs that the open one is compared with: opened in a thread, read like it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App

from ....core.model.ports.screen import OpenRun, RunPicker
from ....core.model.run import TERMINAL_STATES
from ....core.model.run_card import RunCard
from ....core.model.situation import Situation
from ....core.views import quantity
from ....core.views.charts.attempts import attempt_spans
from ....core.views.charts.chart_view import RunSeries
from ....core.views.columns import Column, text_rows
from ....core.views.panes.timeline import timeline_view
from ...background import Show, TaskQueue
from ...ui.plot import LOOKS
from .chart_data import ChartData, Wanted

POLL_S = 10.0
"""A run that goes on is read again after so many seconds."""
MOST = LOOKS - 1
"""Runs beside the open one: each has a colour and dashes of its own."""

OTHER_RUNS: tuple[Column[tuple[RunCard, bool]], ...] = (
    Column(title="shown", text=lambda r: "shown" if r[1] else "", if_any=True),
    Column(title="run", text=lambda r: r[0].name),
    Column(title="state", text=lambda r: r[0].state.replace("_", " ")),
    Column(title="step", text=lambda r: "" if r[0].step is None else f"step {quantity.count(r[0].step)}", right=True),
)
"""The list to choose from; a run that is shown already is taken away."""


class ComparedRun:
    def __init__(self, run: OpenRun, situation: Situation, tasks: TaskQueue, changed: Callable[[], None]) -> None:
        self.run, self.situation = run, situation
        self.data = ChartData(run.feed, tasks, changed)
        self._tasks, self._changed = tasks, changed
        self._polled_at = time.monotonic()
        self._polling = False

    @property
    def name(self) -> str:
        """Its name, and its profile if it has one."""
        profile = self.situation.story.profile
        return f"{self.run.name} ({profile})" if profile else self.run.name

    @property
    def end_t(self) -> float:
        """The end of the run so far, run seconds."""
        return max(timeline_view(self.situation).now_t, 1.0)

    def series(self, shown_t: tuple[float, float] | None) -> RunSeries:
        """What is known of it; ``shown_t``: run seconds that are visible, None = all."""
        attempts = attempt_spans(self.situation.story, self.end_t)
        return RunSeries(name=self.name, points=self.data.points(shown_t), attempts=attempts)

    def want(self, visible: tuple[str, ...], shown_t: tuple[float, float] | None, dots: int) -> None:
        """Read what its curves lack, and what is new of it."""
        self.data.again(Wanted(visible, self.end_t, shown_t, dots))
        over = self.situation.story.state in TERMINAL_STATES
        if over or self._polling or time.monotonic() - self._polled_at < POLL_S:
            return
        self._polling, self._polled_at = True, time.monotonic()

        def task() -> Show:
            try:
                situation = self.run.feed.poll()
            except Exception:  # a journal that cannot be read keeps its last state
                situation = self.situation

            def show() -> None:
                self._polling, self.situation = False, situation
                self._changed()

            return show

        self._tasks.submit(task)


class ComparedRuns:
    """In the order in which they were added. ``say``: shows a sentence."""

    def __init__(
        self, picker: RunPicker | None, tasks: TaskQueue, changed: Callable[[], None], say: Callable[[str], None]
    ) -> None:
        self._picker, self._tasks, self._changed, self._say = picker, tasks, changed, say
        self.runs: tuple[ComparedRun, ...] = ()

    def restore(self, run_ids: Sequence[str]) -> None:
        """Add those that were compared before."""
        for run_id in run_ids:
            self._add(run_id)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(other.run.run_id for other in self.runs)

    def ask(self, app: App[Any], current: str) -> None:
        """Choose a run to add, or one to take away."""
        picker = self._picker
        if picker is None:
            self._say("This screen shows one run only.")
            return

        from ...dialogs.choose import Choice

        def task() -> Show:
            try:
                cards, trouble = tuple(picker.runs()), ""
            except Exception as error:
                cards, trouble = (), f"The runs cannot be listed: {getattr(error, 'strerror', None) or error}"

            def show() -> None:
                others = [card for card in cards if card.id != current and not card.host]
                listed = text_rows(OTHER_RUNS, [(card, card.id in self.ids) for card in others])
                rows = list(zip([card.id for card in others], listed, strict=True))
                if rows:
                    text = "With which run? One that is shown is taken away."
                    app.push_screen(Choice("Compare", text, rows, "[Enter] choose   [Esc] cancel"), self._turn)
                else:
                    self._say(trouble or "There is no other run on this machine.")

            return show

        self._tasks.submit(task)

    def _turn(self, run_id: str | None) -> None:
        if run_id is None:
            return
        if run_id in self.ids:
            self.runs = tuple(other for other in self.runs if other.run.run_id != run_id)
            self._changed()
        elif len(self.runs) >= MOST:
            self._say(f"{MOST} runs are compared already: choose one of them to take it away.")
        else:
            self._add(run_id)

    def _add(self, run_id: str) -> None:
        picker = self._picker
        if picker is None:
            return

        def task() -> Show:
            try:
                run = picker.open(run_id)
                situation = run.feed.poll()
            except Exception as error:
                sentence = f"{run_id} cannot be read: {error}"
                return lambda: self._say(sentence)

            def show() -> None:
                if run_id not in self.ids:
                    self.runs = (*self.runs, ComparedRun(run, situation, self._tasks, self._changed))
                    self._changed()

            return show

        self._tasks.submit(task)
