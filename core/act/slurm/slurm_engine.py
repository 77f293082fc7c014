"""Attempts as jobs of Slurm. The process of an attempt on this machine only follows its job."""

import contextlib
import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from ...model.attempt import LaunchOrder
from ...model.decision import EndLeftovers, StartAttempt, StopAttempt
from ...model.job import CAPABILITIES, AttemptSeen, JobHandle, JobRecord
from ...model.run import RunSpec
from ...model.supervision_ports import AttemptTarget
from ...private_folder import make_private
from ..engine import Engine, Performed
from ..evidence.capture import BUDGET_S, LOG_LINES, log_tail, pause_s, write_file, write_launch_record
from ..evidence.stack_capture import StackReport
from ..launch.launching import LaunchError
from ..save_request import AskToSave, SaveReport, file_of, request_save
from .commands import Seen, Slurm, SlurmError, read_squeue
from .job_start import (
    AGENT_FILE,
    AGENT_VARIABLE,
    LOG_FILE,
    STARTED_FILE,
    end_job,
    exit_code,
    let_run_again,
    prepare,
    record_of,
    script_of,
    tag_of,
)
from .node_probe import take_stacks

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


# Asks the training of a running job for a checkpoint: on its nodes, in a step of its own beside it.

PYTHON = 'exec "$(command -v "$0" || command -v python3)" "$@"'
"""The interpreter that runs here, if the node has it at the same path: the agent needs any from 3.8 on."""


class NodeAnswer(msgspec.Struct, frozen=True):
    """What the agent on one node did."""

    node: str
    asked: bool
    said: str


def ask_nodes(record: JobRecord, slurm: Slurm, *, name: str | None, stop: bool) -> SaveReport:
    """Ask on all nodes of a job. ``name``: the signal for those that tell no steps. Raises nothing."""
    folder = Path(record.attempt_directory)
    words = ("--save", str(folder), *filter(None, (name,)), *(("--stop",) if stop else ()), "--json")
    argv = ("env", f"{AGENT_VARIABLE}=1", "sh", "-c", PYTHON, sys.executable, "-I", str(folder / AGENT_FILE), *words)
    try:
        answers = list(_answers(slurm.step(record.handle, record.nodes, argv)))
    except SlurmError as error:
        return SaveReport(asked=False, sentence=f"the nodes could not be asked for a checkpoint: {error}")
    said = [f"node {each.node}: {each.said}" for each in answers]
    return SaveReport(asked=any(each.asked for each in answers), sentence="; ".join(said) or "no node answered")


def _answers(printed: str) -> Iterator[NodeAnswer]:
    for line in sorted(printed.splitlines()):
        try:
            yield msgspec.convert(json.loads(line), NodeAnswer)
        except (ValueError, msgspec.MsgspecError):  # what a site's prologue prints
            continue


# Collects the evidence of why a job hung or died: stacks from its nodes, the end of its log, the launch record.

SHARE = 0.6
"""Of the time for evidence: the steps have to start on the nodes first."""


def examine_job(target: AttemptTarget, folder: Path, spec: RunSpec) -> StackReport:
    """Collect the evidence into ``folder``. Raises OSError only if the folder cannot be made."""
    make_private(folder)
    notes: list[str] = []
    files = list(write_launch_record(target, spec, folder, notes))
    tail = log_tail(target.log, LOG_LINES, notes) if target.log else ""
    if tail and write_file(folder / "log-tail.txt", tail):
        files.append(str(folder / "log-tail.txt"))
    record = record_of(target.directory)
    if record is None or record.phase != "running":
        words = "was never submitted" if record is None else f"is {record.state or record.phase}"
        return StackReport(files=tuple(files), notes=(*notes, f"no stacks: the job {words}"), by="node")
    report = take_stacks(record.handle, record.nodes, folder, pause_s=pause_s(spec) * SHARE, budget_s=BUDGET_S * SHARE)
    return msgspec.structs.replace(report, files=(*files, *report.files), notes=(*notes, *report.notes))


# One question to Slurm for all runs of a user on this machine: what squeue printed last, in a file that they share.
#
# The process that finds the answer too old asks again and keeps it; the others wait for that at its lock. A failure is
# kept, too: a controller that does not answer is not asked by every run. Where the file cannot be kept, each asks
# itself.

LOCK_S = 60.0
"""Longest wait for another process that asks: a command of Slurm has half of it."""
POLL_S = 0.05


class SharedQueue:
    """``folder``: on this machine, of this user; None: nothing is shared. Times are seconds since boot."""

    def __init__(self, slurm: Slurm, folder: Path | None) -> None:
        self._slurm = slurm
        self._folder = folder
        which = f"{os.environ.get('SLURM_CONF', '')}\0{os.environ.get('PATH', '')}"
        self._name = sha256(which.encode(errors="surrogateescape")).hexdigest()[:16]

    def jobs(self, since_s: float) -> dict[str, Seen]:
        """All jobs of this user, as Slurm showed them at ``since_s`` or later. Raises SlurmError."""
        if self._folder is None:
            return self._slurm.jobs()
        kept = self._kept(since_s)
        if kept is None:
            with self._locked():
                kept = self._kept(since_s) or self._ask()
        text, error = kept
        if error:
            raise SlurmError(error)
        return read_squeue(text)

    def find(self, handles: Sequence[JobHandle], since_s: float) -> dict[JobHandle, Seen | None]:
        """These jobs, as of ``since_s`` or later: one question, and one more for each that the queue shows no longer.

        None: Slurm answered and does not know it. Raises SlurmError.
        """
        shown = self.jobs(since_s)
        found: dict[JobHandle, Seen | None] = {}
        for handle in handles:
            seen = shown.get(handle.id)
            same = seen is not None and handle.submitted in {"", seen.submitted}
            found[handle] = seen if same else self._slurm.job(handle)
        return found

    def _ask(self) -> tuple[str, str]:
        at = now()
        try:
            answer = self._slurm.queue(), ""
        except SlurmError as error:
            answer = "", str(error)
        with contextlib.suppress(OSError):
            path = self._path("json")
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps({"at": at, "text": answer[0], "error": answer[1]}))
            fresh.replace(path)
        return answer

    def _kept(self, since_s: float) -> tuple[str, str] | None:
        """What was kept, if it is new enough: text and error."""
        try:
            kept = json.loads(self._path("json").read_bytes())
            return (str(kept["text"]), str(kept["error"])) if since_s <= float(kept["at"]) <= now() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock, if it can be had within LOCK_S."""
        try:
            assert self._folder is not None
            make_private(self._folder)
            handle = os.open(self._path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            end = time.monotonic() + LOCK_S
            while time.monotonic() < end:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    time.sleep(POLL_S)
            yield
        finally:
            os.close(handle)

    def _path(self, suffix: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._name}.{suffix}"


def now() -> float:
    """Seconds since boot, as all processes of this machine count them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
