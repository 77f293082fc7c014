"""Attempts as jobs of Slurm. The process of an attempt on this machine only follows its job."""

import sys
from pathlib import Path

import msgspec

from ...model.attempt import LaunchOrder
from ...model.decision import EndLeftovers, StartAttempt, StopAttempt
from ...model.job import CAPABILITIES
from ...model.run import RunSpec
from ...model.supervision_ports import AttemptTarget
from ..evidence.capture import BUDGET_S, LOG_LINES, StackReport, collect, joined, log_tail, pause_s, stack_request
from ..launch.launching import LaunchError
from ..local_engine import Engine, Performed
from ..processes import AGENT_VARIABLE
from ..save_request import AskToSave, SaveReport, file_of, request_save
from .commands import Slurm
from .job_start import (
    AGENT_FILE,
    STARTED_FILE,
    end_job,
    prepare,
    record_of,
    script_of,
    tag_of,
)

NO_PAUSE = "a job of Slurm is not paused: only an operator of the cluster can do that"


class SlurmEngine:
    """Implements ``Engine``. ``followers``: starts and ends the processes here that follow the jobs.

    ``save``: how the training is asked for a checkpoint.
    """

    capabilities = CAPABILITIES["slurm"]

    def __init__(self, spec: RunSpec, followers: Engine, *, save: AskToSave = (None, None)) -> None:
        self._spec = spec
        self._followers = followers
        self._save = save
        self._slurm = Slurm()

    def submit(self, order: LaunchOrder, folder: Path, asked: StartAttempt) -> AttemptTarget:
        """Start the process that submits the job and follows it. If a job of the run lives, none is submitted."""
        try:
            argv = prepare(self._spec, order, folder, asked, save=self._save)
        except OSError as fault:
            raise LaunchError(f"{folder}: the batch script cannot be written: {fault.strerror or fault}") from fault
        return self._followers.submit(msgspec.structs.replace(order, argv=argv), folder, asked)

    def stop(self, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> Performed:
        """End the job, too, but not for leftovers: if the follower died, the job may live, and is followed again."""
        if isinstance(decision, EndLeftovers):
            return self._followers.stop(target, decision)
        tag = tag_of(self._spec.id, target.number)
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
        agent = Path(record.attempt_directory, AGENT_FILE)
        more = [self._save[0], "--stop" if stop else None, "--json"]
        asked = ("--save", str(agent.parent), *(word for word in more if word))
        argv = ("env", f"{AGENT_VARIABLE}=1", "sh", "-c", PYTHON, sys.executable, "-I", str(agent), *asked)
        answers, why = self._slurm.on_nodes(record.handle, record.nodes, argv, NodeAnswer)
        said = [f"node {each.node}: {each.said}" for each in answers]
        said += [f"the nodes could not be asked for a checkpoint: {why}"] if why else []
        there = SaveReport(asked=any(each.asked for each in answers), sentence="; ".join(said) or "no node answered")
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

    def probe(self, target: AttemptTarget, folder: Path) -> StackReport:
        """Stacks from the nodes, in a step of their own; the end of the log."""
        record = record_of(target.directory)

        def stacks(notes: list[str]) -> StackReport:
            if record is None or record.phase != "running":
                words = "was never submitted" if record is None else f"is {record.state or record.phase}"
                return StackReport(files=(), notes=(f"no stacks: the job {words}",), by="node")
            request = stack_request(folder, pause_s=pause_s(self._spec), budget_s=BUDGET_S - STARTS_S)
            program = (sys.executable, "-P", "-m", "trainwatch.core.act.evidence.stack_probe")
            argv = (*program, msgspec.json.encode(request).decode())
            found, why = self._slurm.on_nodes(record.handle, record.nodes, argv, StackReport)
            notes += [f"no stacks of job {record.handle.id}: {why or 'no node answered'}"] if why or not found else []
            return joined(found, by="node")

        texts = {"log-tail.txt": lambda notes: log_tail(target.log, LOG_LINES, notes) if target.log else ""}
        return collect(target, folder, self._spec, texts=texts, stacks=stacks)

    def adopt(self, folder: Path) -> AttemptTarget | None:
        """The attempt's follower, dead or alive. If it is dead, the next attempt follows the living job."""
        return self._followers.adopt(folder)

    def shown(self, argv: tuple[str, ...], folder: Path, attempt: int) -> str | None:
        """The batch script that `sbatch` would get."""
        return script_of(self._spec, self._save, argv, folder, attempt)


STARTS_S = 10.0
"""For a step to start on all nodes, within the time for evidence."""
PYTHON = 'exec "$(command -v "$0" || command -v python3)" "$@"'
"""The interpreter that runs here, if the node has it at the same path: the agent needs any from 3.8 on."""


class NodeAnswer(msgspec.Struct, frozen=True):
    """What the agent on one node did about a checkpoint."""

    node: str
    asked: bool
    said: str
