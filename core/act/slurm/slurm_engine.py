"""Attempts as jobs of Slurm. The process of an attempt on this machine only follows its job."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...model.attempt import LaunchOrder
from ...model.decision import EndLeftovers, StartAttempt, StopAttempt
from ...model.launch.elsewhere.job import JobRecord
from ...model.launch.engine import CAPABILITIES, AttemptSeen
from ...model.ports.supervision import AttemptTarget
from ...model.run import RunSpec
from ..engine import Engine, Performed
from ..evidence.stack_capture import StackReport
from ..launch.launching import LaunchError
from ..stop.save_request import AskToSave, SaveReport, file_of, request_save
from .attempt_job import end_job, let_run_again, prepare, record_of, script_of
from .batch_script import LOG_FILE, STARTED_FILE, tag_of
from .commands import Slurm, SlurmError
from .job_evidence import examine_job
from .job_start import exit_code
from .node_save import ask_nodes
from .shared_queue import SharedQueue, now

NO_PAUSE = "a job of Slurm is not paused: only an operator of the cluster can do that"


class SlurmEngine:
    """Implements ``Engine``. ``followers``: starts and ends the processes here that follow the jobs.

    ``save``: how the training is asked for a checkpoint. ``shared``: where the runs of this machine keep what they ask
    Slurm together.
    """

    capabilities = CAPABILITIES["slurm"]

    def __init__(
        self,
        spec: RunSpec,
        followers: Engine,
        *,
        save: AskToSave = (None, None),
        shared: Path | None = None,
        slurm: Slurm | None = None,
    ) -> None:
        self._spec = spec
        self._followers = followers
        self._save = save
        self._shared = shared
        self._slurm = slurm or Slurm()
        self._queue = SharedQueue(self._slurm, shared)

    def submit(self, order: LaunchOrder, folder: Path, asked: StartAttempt) -> AttemptTarget:
        """Start the process that submits the job and follows it. If a job of the run lives, none is submitted."""
        return self._start(order, folder, asked, again=False)

    def resume(self, order: LaunchOrder, folder: Path, asked: StartAttempt) -> AttemptTarget:
        """As ``submit``; the job of the attempt before runs once more if it had the same settings."""
        return self._start(order, folder, asked, again=True)

    def _start(self, order: LaunchOrder, folder: Path, asked: StartAttempt, *, again: bool) -> AttemptTarget:
        try:
            argv = prepare(self._spec, order, folder, asked, save=self._save, shared=self._shared, again=again)
        except OSError as fault:
            raise LaunchError(f"{folder}: the batch script cannot be written: {fault.strerror or fault}") from fault
        return self._followers.submit(msgspec.structs.replace(order, argv=argv), folder, asked)

    def observe(self, targets: Sequence[AttemptTarget]) -> Mapping[str, AttemptSeen]:
        """What Slurm says of the jobs; the exit status is the one that the script wrote."""
        records = {target.directory: record_of(target.directory) for target in targets}
        asked = [record.handle for record in records.values() if record is not None and record.phase != "ended"]
        why = ""
        try:
            found = self._queue.find(asked, now()) if asked else {}
        except SlurmError as error:
            found, why = {}, str(error)
        here = self._followers.observe([target for target in targets if records[target.directory] is None])
        seen: dict[str, AttemptSeen] = {}
        for directory, record in records.items():
            if record is None:  # not submitted yet, or never
                known = here[directory]
                seen[directory] = known if known.phase == "ended" else AttemptSeen(phase="queued")
            elif record.phase == "ended":
                seen[directory] = _as_recorded(record, directory)
            else:
                answer = found.get(record.handle)
                reason = why or "Slurm does not know the job any more"
                seen[directory] = (
                    AttemptSeen(phase="unknown", reason=reason)
                    if answer is None
                    else AttemptSeen(
                        phase=answer.phase,
                        cause=answer.cause,
                        code=exit_code(directory) if answer.phase == "ended" else None,
                        state=answer.state,
                        reason=answer.reason,
                        nodes=answer.nodes,
                        left_s=answer.left_s,
                    )
                )
        return seen

    def stop(self, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> Performed:
        """End the job, too, but not for leftovers: if the follower died, the job may live, and is followed again."""
        if isinstance(decision, EndLeftovers):
            return self._followers.stop(target, decision)
        tag = tag_of(self._spec.id, target.number)
        let_run_again(target.directory, self._slurm)
        if decision.mode == "kill":
            end_job(target.directory, tag, self._slurm)
        ended, detail, data = self._followers.stop(target, decision)
        wrong = end_job(target.directory, tag, self._slurm)
        return (False, f"{detail}; {wrong}", {**data, "gone": False}) if wrong else (ended, detail, data)

    def ask_to_save(self, target: AttemptTarget, *, stop: bool) -> SaveReport:
        """The file lies on the shared disk; the page of ``trainwatch.heartbeat`` and processes are on the nodes."""
        record = record_of(target.directory)
        if record is None or record.phase == "ended" or not Path(record.attempt_directory, STARTED_FILE).exists():
            words = "was not submitted" if record is None else f"is {record.state or record.phase}"
            return SaveReport(asked=False, sentence=f"it was not asked for a checkpoint: its job {words}")
        there = ask_nodes(record, self._slurm, name=self._save[0], stop=stop)
        file = file_of(self._save, self._spec)
        if file is None:
            return there
        touched = request_save((), name=None, file=file)
        return msgspec.structs.replace(
            touched, asked=touched.asked or there.asked, sentence=f"{touched.sentence}; {there.sentence}"
        )

    def pause(self, _target: AttemptTarget) -> Performed:
        """Never succeeds: only an operator of the cluster can suspend a job."""
        return False, NO_PAUSE, {}

    def unpause(self, _target: AttemptTarget) -> Performed:
        return False, NO_PAUSE, {}

    def logs(self, target: AttemptTarget) -> tuple[Path, ...]:
        """What the follower passed on, and the file into which the job prints."""
        record = record_of(target.directory)
        folder = record.attempt_directory if record is not None else ""
        return (*self._followers.logs(target), Path(folder or target.directory, LOG_FILE))

    def probe(self, target: AttemptTarget, folder: Path) -> StackReport:
        """Stacks from the nodes, in a step of their own; the end of the log."""
        return examine_job(target, folder, self._spec)

    def adopt(self, folder: Path) -> AttemptTarget | None:
        """The attempt's follower, dead or alive. If it is dead, the next attempt follows the living job."""
        return self._followers.adopt(folder)

    def shown(self, argv: tuple[str, ...], folder: Path, attempt: int) -> str | None:
        """The batch script that `sbatch` would get."""
        return script_of(self._spec, self._save, argv, folder, attempt)


def _as_recorded(record: JobRecord, directory: str) -> AttemptSeen:
    return AttemptSeen(
        phase=record.phase,
        cause=record.cause,
        code=exit_code(directory),
        state=record.state,
        reason=record.reason,
        nodes=record.nodes,
    )
