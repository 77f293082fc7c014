"""The process on the login node that stands for a job of Slurm: submits it, passes its log on, ends as it ends.

``python -P -m trainwatch.core.act.slurm.job_process ATTEMPT_DIR`` is what the runner starts as the trainer of an
attempt with ``engine = "slurm"``. It submits the batch script that lies there, unless a job of the run lives: then it
follows that one, because two jobs in one folder overwrite each other's checkpoints. It writes ``job.json``, copies the
job's log to its own standard output, and exits with the status of the job. In a stop of the run SIGINT is sent to the
steps of the job, and SIGTERM cancels it. If this process dies, the job goes on, and the next attempt follows it.
"""

import contextlib
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import msgspec

from ... import spool
from ...model.run import JobPhase, JobRecord
from ...processes import status_of
from .commands import HALTED, Seen, Slurm, SlurmError
from .job_start import ASKED_FILE, LOG_FILE, ORDER, STARTED_FILE, JobOrder, begin, exit_code

TURN_S = 0.5
"""Period of reading the job's log and its files, which cost Slurm nothing."""
LOST_AFTER = 6
"""Answers in a row that do not know the job, while nothing of it is written, before its end counts as seen: a
controller that lost its state shows no job, too."""
LOST_S = 90.0
"""Shortest time for that: an agent writes every ten seconds, and a network disk shows it up to a minute late."""
FINAL_S = 60.0
"""Longest wait for Slurm's word about a job whose script has ended."""
CHUNK = 1 << 20
NO_STATUS = 255
"""Exit status of this process if that of the job is not known."""


class JobProcess:
    """One job from submission to end."""

    def __init__(self, directory: Path, order: JobOrder, slurm: Slurm) -> None:
        self._directory = directory
        self._order = order
        self._slurm = slurm
        self._record: JobRecord | None = None
        self._due_s = 0.0
        self._unknown = 0
        self._lost_since = 0.0
        self._written: tuple[tuple[str, int], ...] = ()
        self._signals: list[int] = []
        self._told = ""

    def run(self) -> int:
        """Submit or find the job and follow it. Returns the exit status."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda which, _frame: self._signals.append(which))
        try:
            self.follow(begin(self._directory, self._order, self._slurm, _say))
        except SlurmError as error:
            _say(f"no job: {error}")
            return NO_STATUS
        while True:
            ended = self._turn()
            if ended is not None:
                return ended
            time.sleep(TURN_S)

    @property
    def _job(self) -> JobRecord:
        assert self._record is not None
        return self._record

    def follow(self, record: JobRecord) -> None:
        """Take this as what is known of the job."""
        self._record = record
        with contextlib.suppress(OSError):  # the next turn writes it again
            spool.write(str(self._directory), spool.JOB, msgspec.to_builtins(record))

    def _turn(self) -> int | None:
        """Pass on what is new. Returns the exit status if the job has ended."""
        self._pass_log()
        while self._signals:
            self._pass_signal(self._signals.pop(0))
        if self._job.phase == "queued" and self._has_started(self._job.state):
            self._know("running", None)
        if not self._job.asked and Path(self._job.attempt_directory, ASKED_FILE).exists():
            _say(f"job {self._job.handle.id} is near its time limit: its training was asked for a checkpoint")
            self.follow(msgspec.structs.replace(self._job, asked=True))
        if exit_code(self._job.attempt_directory) is not None:
            self._wait_for_end()
        elif time.monotonic() >= self._due_s:
            self.ask()
        if self._job.phase != "ended" and exit_code(self._job.attempt_directory) is None:
            return None
        quiet = time.monotonic()
        while time.monotonic() - quiet < self._order.settle_s:
            if self._pass_log():
                quiet = time.monotonic()
            time.sleep(min(TURN_S / 5, self._order.settle_s))
        code, cause = exit_code(self._job.attempt_directory), self._job.cause
        if cause in {None, "ok", "error"} and code is not None:
            return code
        return 0 if cause == "ok" else code or NO_STATUS

    def ask(self) -> None:
        """Keep what Slurm says of the job."""
        self._due_s = time.monotonic() + self._order.poll_s
        try:
            seen = self._slurm.followed(self._job.handle)
        except SlurmError as error:
            self._know("unknown", None, reason=str(error))
            return
        if seen is None:
            phase: JobPhase = "ended" if self._is_lost() else "unknown"
            self._know(phase, None, reason="Slurm does not know the job any more")
            return
        self._unknown = 0
        self._know("running" if seen.phase == "queued" and self._has_started(seen.state) else seen.phase, seen)

    def _is_lost(self) -> bool:
        """Whether LOST_AFTER answers, over LOST_S or more, did not know the job, and none of its files grew."""
        written, now = self._sizes(), time.monotonic()
        if self._unknown == 0 or written != self._written:
            self._unknown, self._lost_since, self._written = 0, now, written
        self._unknown += 1
        return self._unknown >= LOST_AFTER and now - self._lost_since >= LOST_S

    def _sizes(self) -> tuple[tuple[str, int], ...]:
        """Sizes of the job's log and of what the agents on its nodes write."""
        folder = Path(self._job.attempt_directory)
        paths = (folder / LOG_FILE, *sorted(folder.glob("nodes/*.jsonl")))
        return tuple((path.name, found.st_size) for path in paths if (found := status_of(path)) is not None)

    def _has_started(self, state: str) -> bool:
        """Whether the script of a queued job runs: its file is there before Slurm's next answer."""
        return state not in HALTED and Path(self._job.attempt_directory, STARTED_FILE).exists()

    def _know(self, phase: JobPhase, seen: Seen | None, reason: str = "") -> None:
        job = self._job
        if seen is not None:
            handle = msgspec.structs.replace(job.handle, submitted=job.handle.submitted or seen.submitted)
            told = {name: getattr(seen, name) for name in ("cause", "state", "reason", "nodes", "left_s")}
            job = msgspec.structs.replace(job, handle=handle, **told)
        else:
            job = msgspec.structs.replace(job, reason=reason)
        self.follow(msgspec.structs.replace(job, phase=phase, wall=time.time()))
        words = _in_words(self._job)
        if words != self._told:
            self._told = words
            _say(words)

    def _wait_for_end(self) -> None:
        """The script has ended: wait for Slurm's word, which tells a time limit from an exit."""
        end, pause_s = time.monotonic() + FINAL_S, TURN_S
        while time.monotonic() < end:
            self.ask()
            if self._job.phase == "ended":
                return
            again_s = time.monotonic() + pause_s
            pause_s = min(2.0 * pause_s, self._order.poll_s)
            while time.monotonic() < again_s:
                self._pass_log()
                time.sleep(TURN_S)

    def _pass_signal(self, number: int) -> None:
        handle = self._job.handle
        if spool.read(str(self._directory), spool.STOP) is None:  # a login node that ends what runs there
            _say(f"{signal.Signals(number).name} received, but nobody stops this run: job {handle.id} goes on")
            return
        try:
            if number == signal.SIGINT:
                self._slurm.signal(handle, "INT")
                _say(f"SIGINT was sent to the steps of job {handle.id}")
            else:
                self._slurm.cancel(handle)
                _say(f"job {handle.id} is cancelled")
        except SlurmError as error:
            _say(f"job {handle.id} could not be told: {error}")
        self._due_s = 0.0

    # --- the log ---

    def _pass_log(self) -> int:
        """Copy what the job has printed since. Returns the number of bytes."""
        path = Path(self._job.attempt_directory, LOG_FILE)
        copied, failed = 0, self._job.failed_node
        try:
            with path.open("rb") as file:
                file.seek(self._job.log_read)
                while data := file.read(CHUNK):
                    _write_all(data)
                    copied += len(data)
                    failed = failed or node_in(data)
        except OSError:
            pass
        if copied:
            read = self._job.log_read + copied
            self.follow(msgspec.structs.replace(self._job, log_read=read, failed_node=failed))
        return copied


def node_in(text: bytes) -> str:
    """The node that srun says a task failed on first; "" if it names none, or several at once."""
    found = _FAILED.search(text)
    return "" if found is None else found[1].decode("ascii", "replace")


_FAILED = re.compile(rb"^srun: error: ([\w.-]+): tasks? [\d,-]+: ", re.MULTILINE)


def _in_words(job: JobRecord) -> str:
    at = f" on {job.nodes}" if job.nodes else ""
    state = "RUNNING" if job.phase == "running" else job.state or job.phase
    why = f": {job.reason}" if job.reason and job.phase in {"queued", "unknown"} else ""
    return f"job {job.handle.id}: {state}{at}{why}"


def _say(text: str) -> None:
    _write_all(f"trainwatch: {text}\n".encode())


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        with contextlib.suppress(BrokenPipeError):
            view = view[os.write(1, view) :]


def main(arguments: list[str]) -> int:
    """Follow the job of one attempt."""
    directory = Path(arguments[0])
    try:
        order = msgspec.convert(json.loads((directory / ORDER).read_bytes()), JobOrder)
    except (OSError, ValueError, msgspec.MsgspecError) as fault:
        sys.stderr.write(f"{directory / ORDER}: {fault}; nothing was submitted\n")
        return 2
    return JobProcess(directory, order, Slurm()).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
