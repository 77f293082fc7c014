"""One run that another machine's screen follows: what its files gained since it was asked last."""

from collections.abc import Iterator
from pathlib import Path

from ....model.remote.messages import Follow, Piece, Rows, RunNow, SmallFile
from ....model.situation import Situation
from ....store.annex import annexes
from ....store.journal import JournalTooNew
from ....store.metrics.history_rows import HistoryRows
from ....store.metrics.newest_samples import newest_path
from ....store.mirror.journal_copy import GrowingFile
from ....store.run_directory import RunDirectory
from ...runs.jobs.job_now import JOB_FILE
from ...runs.known_runs import open_run
from ..current_story import current_story
from ..store_feed import StoreFeed

SMALL_BYTES = 4 << 20
"""A larger file is none of those that are sent as a whole."""


class FollowedRun:
    """``news`` is called about once a second."""

    def __init__(self, asked: Follow) -> None:
        self.id = asked.run
        self.behind = False
        self._asked = asked
        self._seen: dict[str, tuple[int, int, int]] = {}
        self._run: RunDirectory | None = None

    def _open(self) -> None:
        run, spec = open_run(self.id)
        self._journal = GrowingFile(run.journal, self._asked.journal, self._asked.digest)
        self._history = HistoryRows(run.history, self._asked.history)
        self._annex: GrowingFile | None = None
        self._feed = StoreFeed(run, spec.created_wall, current_story, spec.settings.health)
        self._run = run

    def _of_annex(self, run: RunDirectory) -> Iterator[Piece]:
        """What an annex has of the journal: its records follow on those of the run's own file."""
        if self._asked.annex is None or self._journal.behind:
            return
        beside = next((place / run.journal.name for place in annexes(run.path)), None)
        if beside is None:
            return
        if self._annex is None or self._annex.path != beside:
            self._annex = GrowingFile(beside, *self._asked.annex)
        for part in self._annex.new():
            yield Piece(run=self.id, offset=part.offset, data=part.data, anew=part.anew, annex=True)

    def news(self) -> Iterator[Piece | SmallFile | Rows | RunNow]:
        """What is new, and last what is so now."""
        try:
            if self._run is None:
                self._open()
            now = self._feed.poll()
        except (RuntimeError, JournalTooNew) as error:
            yield RunNow(run=self.id, wall=0.0, trouble=str(error))
            return
        assert self._run is not None
        files = {"run.json": self._run.spec, "outputs.json": self._run.outputs}
        files["history.sqlite.newest"] = newest_path(self._run.history)
        if now.job is not None and now.story.attempt is not None and now.story.attempt.log is not None:
            name = f"{self._run.attempts.name}/{now.story.attempt.number:04d}/{JOB_FILE}"
            files[name] = Path(now.story.attempt.log).with_name(JOB_FILE)
        for name, path in files.items():
            try:
                status = path.stat()
                state = (status.st_ino, status.st_mtime_ns, status.st_size)
                if state != self._seen.get(name) and status.st_size <= SMALL_BYTES:
                    self._seen[name] = state
                    yield SmallFile(run=self.id, name=name, data=path.read_bytes())
            except OSError:
                continue
        for part in self._journal.new():
            yield Piece(run=self.id, offset=part.offset, data=part.data, anew=part.anew)
        yield from self._of_annex(self._run)
        for rows in self._history.new():
            yield Rows(run=self.id, table=rows.table, columns=rows.columns, rows=rows.rows)
        self.behind = self._journal.behind or self._history.behind or (self._annex is not None and self._annex.behind)
        yield _now(self.id, now, whole=not self.behind)


def _now(run: str, now: Situation, *, whole: bool) -> RunNow:
    attempt = now.story.attempt
    return RunNow(
        run=run,
        wall=now.now_wall,
        whole=whole,
        watched=bool(now.supervisor_alive),
        frozen=now.frozen,
        troubles=now.troubles,
        state=now.story.state,
        reason=now.story.state_reason,
        why=now.story.state_why,
        pid=attempt.pid if attempt is not None else None,
        runner_pid=attempt.runner_pid if attempt is not None else None,
    )
