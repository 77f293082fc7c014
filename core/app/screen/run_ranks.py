"""The table of ranks and nodes of one run, for the screen."""

from ...model.launch.elsewhere.nodes import RankTable
from ...model.ports.screen import RankSource
from ...store.metrics.latest import latest_without_metrics
from ...store.run_directory import RunDirectory
from ..runs.jobs.job_now import nodes_of
from ..runs.run_ranks import rank_table


class RunRanks(RankSource):
    """Reads the newest sample of the processes, and the file of its job's nodes."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._last: tuple[tuple[str, float | None, float | None], RankTable] | None = None

    def look(self) -> RankTable:
        """The newest table, computed once for each sample."""
        process = latest_without_metrics(self._run.history).process
        log = next((str(folder / "train.log") for folder in self._run.attempt_folders()), None)
        nodes = nodes_of(log)
        key = (log or "", None if process is None else process.t, None if nodes is None else nodes.t)
        if self._last is None or self._last[0] != key:
            self._last = (key, rank_table(process, log, nodes))
        return self._last[1]
