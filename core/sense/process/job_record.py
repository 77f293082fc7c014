"""The sensor of the job that an attempt runs as: ``job.json``, which the process that follows the job writes."""

from pathlib import Path

import msgspec

from ...model.launch.elsewhere.job import JobRecord
from ...model.observation import JobSeen
from ...model.ports.supervision import AttemptTarget, Clock, Inbox
from ...model.text.json_line import decode_exact
from ..sampler import Sampler
from ..sensor_problem import OnProblem, ignore_problem

FILE = "job.json"
MOVED_S = 60.0
"""A time limit that moves by more was changed by somebody: Slurm tells it in whole seconds, and late."""


def read_job(target: AttemptTarget) -> JobRecord | None:
    """The newest record of the attempt's job; None if it runs as none, or the record cannot be read."""
    try:
        return decode_exact(Path(target.directory, FILE).read_bytes(), JobRecord)
    except (OSError, msgspec.MsgspecError):
        return None


class JobRecords(Sampler):
    """Puts a ``JobSeen`` whenever something of the job has changed, or when its time limit has."""

    name = "job"

    def __init__(
        self, *, inbox: Inbox, clock: Clock, interval_s: float, on_problem: OnProblem = ignore_problem
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._inbox = inbox
        self._clock = clock
        self._told: JobSeen | None = None
        self._limit: float | None = None

    def sample(self) -> None:
        """Put what has changed."""
        record = None if self.target is None else read_job(self.target)
        if record is None:
            return
        seen = JobSeen(
            t=0.0,
            job=record.handle.id,
            phase=record.phase,
            state=record.state,
            reason=record.reason,
            nodes=record.nodes,
            asked=record.asked,
            failed_node=record.failed_node,
        )
        limit = None if record.left_s is None else record.wall + record.left_s
        moved = (limit is None) != (self._limit is None) or abs((limit or 0.0) - (self._limit or 0.0)) > MOVED_S
        if seen != self._told or moved:
            self._told, self._limit = seen, limit
            left_s = None if limit is None else max(0.0, limit - self._clock.wall())
            self._inbox.put(msgspec.structs.replace(seen, t=self._clock.now(), left_s=left_s))
