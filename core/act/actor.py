"""Performs the judge's decisions. Each decision is one row of a table and a thin call into this package."""

import errno
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..model import decision as decisions
from ..model.checkpoint import Checkpoint, CopiedAside
from ..model.observation import Outcome
from ..model.ports import AttemptTarget, Retention
from ..model.run import RunSpec
from ..model.text import plural
from ..processes import is_alive
from .evaluator import CheckpointCommands
from .evidence.capture import look_for_loops, pause_s
from .gpu_clearing import GpuHelp, clear_gpus
from .local_engine import AttemptLauncher, Engine, Performed, read_baseline
from .notify import AT_END_S, Outbox, run_at_end
from .save_request import SaveReport, take_back

OF_AN_ATTEMPT = (decisions.CaptureStacks, decisions.LookForLoop, decisions.RequestSave)
"""Decisions about the processes of one attempt, which may have ended since."""
OF_THE_END = frozenset({"finish", "give_up", "end_by"})
"""Events after which nothing follows by itself."""


@dataclass(kw_only=True, eq=False)
class RunActor:
    """Implements ``model.ports.Actor`` for one run, whose attempts ``engine`` starts and ends.

    ``incident_folder``: number → folder that may not exist yet. ``verify``: path, deep → verdict. ``gpu_help``: what
    the GPU memory gate uses. ``list_checkpoints``: lists the output folder within a number of seconds (and whether
    checkpoints are expected there); returns None, or why the list is not complete. ``commands``: the user's for each
    checkpoint. ``outbox``: sends the notices. ``end_in_words``: what a notice that the run is over says beside its
    reason.
    """

    spec: RunSpec
    engine: Engine
    launcher: AttemptLauncher
    incident_folder: Callable[[int], Path]
    verify: Callable[[Path, bool], Checkpoint]
    list_checkpoints: Callable[[float, bool], str | None]
    gpu_help: GpuHelp
    retention: Retention
    copy_aside: Callable[[Sequence[Path], bool], CopiedAside]
    end_in_words: Callable[[], str]
    commands: CheckpointCommands
    outbox: Outbox

    def __post_init__(self) -> None:
        self._saved: SaveReport | None = None
        self._stacks = threading.Lock()
        """The runner takes stacks for one request at a time."""
        self._target: AttemptTarget | None = None
        self._baseline: dict[int, float] = {}
        self._table: dict[type[decisions.Decision], tuple[str, Callable[[Any], Performed]]] = {
            decisions.NotifyPeople: ("notify", self._notify),
            decisions.CaptureStacks: ("capture_stacks", self._capture),
            decisions.LookForLoop: ("look_for_loop", self._look_for_loop),
            decisions.RequestSave: ("request_save", self._request_save),
            decisions.StopAttempt: ("stop_attempt", self._stop),
            decisions.EndLeftovers: ("end_leftovers", self._stop),
            decisions.ClearGpu: ("clear_gpu", lambda _: (*clear_gpus(self.spec, self._baseline, self.gpu_help), {})),
            decisions.CopyAside: ("copy_aside", self._copy_aside),
            decisions.ListCheckpoints: ("list_checkpoints", self._list_checkpoints),
            decisions.VerifyCheckpoint: ("verify_checkpoint", self._verify_checkpoint),
            decisions.StartAttempt: ("start_attempt", self._start),
            decisions.PauseAttempt: ("pause_attempt", self._pause),
            decisions.UnpauseAttempt: ("unpause_attempt", self._pause),
            decisions.PlanRetention: ("plan_retention", self._plan_retention),
            decisions.DeleteCheckpoint: ("delete_checkpoint", self._delete_checkpoint),
            decisions.RunAtEnd: ("at_end", self._run_at_end),
            decisions.BackUpCheckpoint: ("back_up", self.commands.back_up),
            decisions.EvaluateCheckpoint: ("evaluate_checkpoint", self.commands.evaluate),
            decisions.EndEvaluation: ("end_evaluation", self.commands.end),
            decisions.GiveUp: ("give_up", lambda _decision: (True, "", {})),
        }

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt that later actions are for. It stays after its trainer is dead: workers may be left."""
        self._target = target
        if target is not None:
            self._baseline = read_baseline(target.directory)

    def perform(self, decision: decisions.Decision) -> Outcome:
        action, perform = self._table[type(decision)]
        number = decision.attempt if isinstance(decision, OF_AN_ATTEMPT) else None
        if number is not None and (self._target is None or self._target.number != number):
            ok, detail, data = False, f"attempt {number} has ended", dict[str, Any]()
        else:
            ok, detail, data = perform(decision)
        return Outcome(t=0.0, decision=decision.id, action=action, ok=ok, detail=detail, data=data)

    def _notify(self, decision: decisions.NotifyPeople) -> Performed:
        body = decision.body
        if decision.event in OF_THE_END:
            body = "\n\n".join(filter(None, (body, self.end_in_words().strip())))
        ok, detail, output = self.outbox.send(decision.event, decision.title, body, decision.incident)
        return ok, detail, {"output": output} if output else {}

    def _run_at_end(self, decision: decisions.RunAtEnd) -> Performed:
        self.outbox.flush(AT_END_S)
        if not self.outbox.begins(decision.end_t):
            return False, "it was begun by the supervisor before this one", {}
        report = run_at_end(self.spec, decision)
        return report.ok, report.detail, {"code": report.code, "output": report.output}

    def _capture(self, decision: decisions.CaptureStacks) -> Performed:
        assert self._target is not None
        folder = self.incident_folder(decision.incident or 0)
        try:
            with self._stacks:
                report = self.engine.probe(self._target, folder)
        except OSError as error:
            return False, f"{folder}: {error.strerror or error}", {}
        detail = f"{report.sentence}; {plural(len(report.files), 'file')} of evidence in {folder}"
        return True, detail, {"folder": str(folder), **msgspec.to_builtins(report, str_keys=True)}

    def _look_for_loop(self, decision: decisions.LookForLoop) -> Performed:
        assert self._target is not None
        if not self.engine.capabilities.here:
            return False, "its processes are on other machines", {}
        with self._stacks:
            found = look_for_loops(self._target, pause_s=pause_s(self.spec), gpu=decision.gpu)
        places = [f"process {pid} is in the loop {place}" for pid, place in found["loops"].items()]
        places += [f"process {pid} waits for its GPU in {place}" for pid, place in found["waits"].items()]
        return True, found["elsewhere"] or "; ".join(places), found

    def _stop(self, decision: decisions.StopAttempt | decisions.EndLeftovers) -> Performed:
        if self._target is None:
            return True, "no process is left from an attempt", {"gone": True}
        if self._saved is not None:
            take_back(self._saved)
            self._saved = None
        return self.engine.stop(self._target, decision)

    def _request_save(self, decision: decisions.RequestSave) -> Performed:
        assert self._target is not None
        self._saved = self.engine.ask_to_save(self._target, stop=decision.stop)
        return self._saved.asked, self._saved.sentence, msgspec.to_builtins(self._saved)

    def _list_checkpoints(self, decision: decisions.ListCheckpoints) -> Performed:
        why_not = self.list_checkpoints(decision.limit_s, decision.expected)
        return why_not is None, why_not or "", {}

    def _verify_checkpoint(self, decision: decisions.VerifyCheckpoint) -> Performed:
        try:
            found = self.verify(Path(decision.path), decision.deep)
        except FileNotFoundError:
            return False, f"{decision.path}: no such file or directory", {"verdict": "gone"}
        except OSError as error:
            return False, f"{decision.path}: {error.strerror or error}", {}
        detail = f"{found.name}: {found.verdict}" + (f" ({found.reason})" if found.reason else "")
        return found.verdict == "complete", detail, msgspec.to_builtins(found)

    def _copy_aside(self, decision: decisions.CopyAside) -> Performed:
        try:
            made = self.copy_aside([Path(path) for path in decision.paths], decision.link)
        except FileNotFoundError as error:
            return False, f"{error.filename}: no such file or directory", {"gone": str(error.filename)}
        except OSError as error:
            full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            return False, f"{error.filename or 'the copy'}: {error.strerror or error}", {"no_room": full}
        if made.refused:
            return False, made.refused, {"no_room": made.no_room}
        return True, f"copied to {made.folder}", msgspec.to_builtins(made)

    def _start(self, decision: decisions.StartAttempt) -> Performed:
        if self._target is not None and is_alive(self._target.trainer):
            return False, f"attempt {self._target.number} still runs (pid {self._target.trainer.pid})", {}
        return self.launcher.start(decision, self._launched)

    def _launched(self, target: AttemptTarget, baseline: Mapping[int, float]) -> None:
        self._target, self._baseline = target, dict(baseline)

    def _pause(self, decision: decisions.PauseAttempt | decisions.UnpauseAttempt) -> Performed:
        if self._target is None:
            return False, "there is no attempt", {}
        return self.engine.pause(self._target, paused=isinstance(decision, decisions.PauseAttempt))

    def _plan_retention(self, decision: decisions.PlanRetention) -> Performed:
        try:
            found = self.retention.plan(decision.keep, deep=decision.deep)
        except (OSError, ValueError) as error:
            return False, str(error), {}
        names = ", ".join(c.name for c in found) or "no checkpoint"
        return True, f"{names} may be deleted", {"delete": msgspec.to_builtins(found)}

    def _delete_checkpoint(self, decision: decisions.DeleteCheckpoint) -> Performed:
        try:
            objection = self.retention.delete(decision.checkpoint)
        except OSError as error:
            return False, f"{decision.checkpoint.name} was not deleted: {error}", {}
        if objection is not None:
            return False, f"{decision.checkpoint.name} was not deleted: it {objection}", {}
        names = ", ".join((decision.checkpoint.name, *decision.checkpoint.parts))
        return True, f"{names} was deleted", {"freed_bytes": decision.checkpoint.size_bytes}
