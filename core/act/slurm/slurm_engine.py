"""Attempts as jobs of Slurm. The process of an attempt on this machine only follows its job."""

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ... import spool
from ...model.decision import EndLeftovers, StartAttempt, StopAttempt
from ...model.ports import AttemptTarget
from ...model.run import CAPABILITIES, LaunchOrder
from ...processes import AGENT_VARIABLE
from ..evidence.capture import BUDGET_S, LOG_LINES, StackReport, collect, joined, log_tail, pause_s, stack_request
from ..launch.launching import LaunchError
from ..local_engine import Engine, Performed
from ..save_request import SaveReport, file_of, request_save
from . import job_start
from .commands import Slurm


@dataclass(kw_only=True, eq=False)
class SlurmEngine(Engine):
    """The process of an attempt on this machine, which it starts and ends as ``Engine``, follows the job."""

    capabilities = CAPABILITIES["slurm"]
    slurm: Slurm = field(default_factory=Slurm)

    def submit(self, order: LaunchOrder, folder: Path, asked: StartAttempt) -> AttemptTarget:
        """Start the process that submits the job and follows it. If a job of the run lives, none is submitted."""
        try:
            argv = job_start.prepare(self.spec, order, folder, asked, save=self.save)
        except OSError as fault:
            raise LaunchError(f"{folder}: the batch script cannot be written: {fault.strerror or fault}") from fault
        return super().submit(msgspec.structs.replace(order, argv=argv), folder, asked)

    def stop(self, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> Performed:
        """End the job, too, but not for leftovers: if the follower died, the job may live, and is followed again."""
        if isinstance(decision, EndLeftovers):
            return super().stop(target, decision)
        tag = job_start.tag_of(self.spec.id, target.number)
        with suppress(OSError):  # without it the follower takes its signals for those of a login node
            spool.write(target.directory, spool.STOP, {"mode": decision.mode})
        if decision.mode == "kill":
            job_start.end_job(target.directory, tag, self.slurm)
        ended, detail, data = super().stop(target, decision)
        wrong = job_start.end_job(target.directory, tag, self.slurm)
        return (False, f"{detail}; {wrong}", {**data, "gone": False}) if wrong else (ended, detail, data)

    def ask_to_save(self, target: AttemptTarget, *, stop: bool) -> SaveReport:
        """The file lies on the shared disk; the page of ``trainbeat`` and processes are on the nodes."""
        record = spool.read_job(target.directory)
        begun = record is not None and Path(record.attempt_directory, job_start.STARTED_FILE).exists()
        if record is None or record.phase == "ended" or not begun:
            words = "was not submitted" if record is None else f"is {record.state or record.phase}"
            return SaveReport(asked=False, sentence=f"it was not asked for a checkpoint: its job {words}")
        agent = Path(record.attempt_directory, job_start.AGENT_FILE)
        more = [self.save[0], "--stop" if stop else None, "--json"]
        asked = ("--save", str(agent.parent), *(word for word in more if word))
        argv = ("env", f"{AGENT_VARIABLE}=1", "sh", "-c", PYTHON, sys.executable, "-I", str(agent), *asked)
        answers, why = self.slurm.on_nodes(record.handle, record.nodes, argv, NodeAnswer)
        said = [f"node {each.node}: {each.said}" for each in answers]
        said += [f"the nodes could not be asked for a checkpoint: {why}"] if why else []
        there = SaveReport(asked=any(each.asked for each in answers), sentence="; ".join(said) or "no node answered")
        file = file_of(self.save, self.spec)
        if file is None:
            return there
        touched = request_save((), name=None, file=file)
        return msgspec.structs.replace(
            touched, asked=touched.asked or there.asked, sentence=f"{touched.sentence}; {there.sentence}"
        )

    def pause(self, target: AttemptTarget, *, paused: bool = True) -> Performed:  # noqa: ARG002
        """Never succeeds: only an operator of the cluster can suspend a job."""
        return False, "a job of Slurm is not paused: only an operator of the cluster can do that", {}

    def probe(self, target: AttemptTarget, folder: Path) -> StackReport:
        """Stacks from the nodes, in a step of their own; the end of the log."""
        record = spool.read_job(target.directory)

        def stacks(notes: list[str]) -> StackReport:
            if record is None or record.phase != "running":
                words = "was never submitted" if record is None else f"is {record.state or record.phase}"
                return StackReport(files=(), notes=(f"no stacks: the job {words}",), by="node")
            request = stack_request(folder, pause_s=pause_s(self.spec), budget_s=BUDGET_S - STARTS_S)
            program = (sys.executable, "-P", "-m", "trainwatch.core.act.evidence.stack_probe")
            argv = (*program, msgspec.json.encode(request).decode())
            found, why = self.slurm.on_nodes(record.handle, record.nodes, argv, StackReport)
            notes += [f"no stacks of job {record.handle.id}: {why or 'no node answered'}"] if why or not found else []
            return joined(found, by="node")

        texts = {"log-tail.txt": lambda notes: log_tail(target.log, LOG_LINES, notes) if target.log else ""}
        return collect(target, folder, self.spec, texts=texts, stacks=stacks)

    def shown(self, argv: tuple[str, ...], folder: Path, attempt: int) -> str | None:
        """The batch script that `sbatch` would get."""
        return job_start.script_of(self.spec, self.save, argv, folder, attempt)


STARTS_S = 10.0
"""For a step to start on all nodes, within the time for evidence."""
PYTHON = 'exec "$(command -v "$0" || command -v python3)" "$@"'
"""The interpreter that runs here, if the node has it at the same path: the agent needs any from 3.8 on."""


class NodeAnswer(msgspec.Struct, frozen=True):
    """What the agent on one node did about a checkpoint."""

    node: str
    asked: bool
    said: str
