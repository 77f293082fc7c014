"""A run read from its folder (journal, history, lock), and commands to it through the control socket."""

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...model.observation import Command, Reply
from ...model.ports import Point
from ...model.redact import EDGE
from ...model.settings import Health
from ...model.story import RunStory, Situation, SupervisorLife, Trouble
from ...store.run_directory import RunDirectory

if TYPE_CHECKING:
    from ...store.history_reader import HistoryReader
    from ...store.journal import JournalFollower


ASK_S = 5.0
"""Period of asking the supervisor for its own troubles; the first picture does not wait for the answer."""


class StoreFeed:
    """A Feed. The folder need not exist yet; ``created_wall`` (epoch seconds) is the zero of run time.

    ``health``: the bounds of the run.
    """

    def __init__(self, directory: RunDirectory, created_wall: float, health: Health | None = None) -> None:
        self._health = health or Health()
        self._directory = directory
        self._zero = created_wall
        self._journal: JournalFollower | None = None
        self._story = RunStory()
        self._asked_at: float | None = None
        self._troubles: tuple[Trouble, ...] = ()

    @cached_property
    def _history(self) -> "HistoryReader":
        from ...store.history_reader import HistoryReader  # SQLite: the first picture does not wait for it

        return HistoryReader(self._directory.history)

    def poll(self) -> Situation:
        """Fold the new records of the journal, and read the newest samples. Raises JournalTooNew with a sentence."""
        from ...model.story_fold import apply  # the empty picture does not wait for what reads a journal
        from ...store.control_client import order_left
        from ...store.journal import JournalFollower, read_stored
        from ..runs.run_usage import job_of
        from ..runs.supervisor_life import as_found, situation_of  # loads the launching part of core

        journal = self._journal
        if journal is None:
            stored = read_stored(self._directory.journal)
            journal = self._journal = JournalFollower(self._directory.journal, stored)
            self._story = EDGE.value(stored.story)
        for record in journal.poll():
            self._story = apply(self._story, EDGE.value(record))
        story = self._story
        latest = self._history.latest()
        life = self._look_at_supervisor(time.time())
        if not life.alive:
            story = as_found(self._directory, story)
        kept = replace(life, progress=None, step_t=None)  # what it answers now and then would come and go
        now = situation_of(story, kept, latest, created_wall=self._zero, health=self._health)
        job = job_of(None if story.attempt is None else story.attempt.log)
        behind = latest.progress.lines_behind if latest.progress and life.alive else 0
        left = order_left(self._directory, now.now_t)
        return replace(now, lines_behind=behind, troubles=self._troubles, job=job, left=left)

    def _look_at_supervisor(self, wall: float) -> SupervisorLife:
        """Look at it; it is asked for its own troubles every ASK_S."""
        from ..runs.supervisor_life import supervisor_life  # the first picture does not wait for it

        first = self._asked_at is None
        asks = self._asked_at is not None and abs(wall - self._asked_at) >= ASK_S
        life = supervisor_life(self._directory, ask=asks)
        if first or asks:
            self._asked_at = wall - (ASK_S if first else 0.0)
        if asks or not life.alive:
            self._troubles = life.troubles
        return life

    def series(self, metric: str, since_t: float, until_t: float, points: int) -> Sequence[Point]:
        """From the metric history; empty for a metric that it does not have."""
        try:
            return self._history.series(metric, since_t, until_t, points)
        except ValueError:
            return ()

    def series_names(self) -> Sequence[str]:
        """Of the metric history."""
        return self._history.series_names()

    def charts(
        self, metrics: Sequence[str], since_t: float, until_t: float, points: int
    ) -> Mapping[str, Sequence[Point]]:
        """From the metric history; none if one of the metrics is not known to it."""
        try:
            return self._history.charts(metrics, since_t, until_t, points)
        except ValueError:
            return {}

    def send(self, command: Command) -> Reply:
        """Through the control socket, or with a new supervisor."""
        from ..operate import order_on_screen

        return order_on_screen(self._directory, command)

    def take_back(self) -> bool:
        """What was left for the supervisor."""
        from ...store.control_client import take_order

        return take_order(self._directory) is not None
