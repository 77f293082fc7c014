"""Performs the judge's decisions. Each decision is one row of a table and a thin call into this package."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..model.attempt import LaunchOrder
from ..model.checkpoints.checkpoint import Checkpoint
from ..model.decision import (
    CaptureStacks,
    ClearGpu,
    Decision,
    DeleteCheckpoint,
    EndLeftovers,
    GiveUp,
    NotifyPeople,
    PauseAttempt,
    PlanRetention,
    StartAttempt,
    StopAttempt,
    UnpauseAttempt,
    VerifyCheckpoint,
)
from ..model.launch.change import Change
from ..model.observation import GpuReading, Outcome
from ..model.ports import AttemptTarget, Retention
from ..model.preset import Preset
from ..model.profile import Profile
from ..model.run import RunSpec
from .config.derive import Derived, DeriveError, preview, write_config_copy
from .config.output_names import own_name
from .config.remaining_steps import remaining
from .evidence.capture import KernelTail, examine, no_kernel_log
from .gpu.gpu_clearing import GpuHelp, clear_gpus
from .launch import spool
from .launch.launching import LaunchError, is_alive, launch, read_start
from .launch.readiness import READY, Readiness
from .notify.notifier import NotifyReport, notify, notify_urls
from .stop.pause import pause_attempt, unpause_attempt
from .stop.stopping import stop_attempt

BASELINE = "gpu_baseline.json"
"""File in the attempt's directory: GPU memory that other processes held before it began, bytes per GPU index."""

Performed = tuple[bool, str, dict[str, Any]]
"""Result of an action: whether it succeeded, a sentence, data for the journal."""


class RunActor:
    """Implements ``model.ports.Actor`` for one run.

    ``attempt_folder``/``incident_folder``: number → folder that may not exist yet. ``verify``: path, deep → verdict.
    ``gpus_now``: newest readings, None if there is no telemetry. ``show``: opens a view of a new attempt (tmux) and
    returns a sentence about it. ``base_env``: the environment that the trainer inherits. ``kernel_tail``: the last
    lines of the kernel log. ``gpu_help``: what the GPU memory gate uses beside ``gpus_now``. ``wsl``: stop trainers
    with the longer graces of WSL2. ``misfit``: a sentence if the derived launch contradicts the checkpoint it resumes
    from. ``remember``: stores the attempt's folder and derived launch for the next launch.
    ``planned``: decision, attempt folder → the launch if it was derived already. ``ready``: whether it can be launched
    now.
    """

    def __init__(
        self,
        *,
        spec: RunSpec,
        preset: Preset,
        profiles: Mapping[str, Profile],
        attempt_folder: Callable[[int], Path],
        incident_folder: Callable[[int], Path],
        verify: Callable[[Path, bool], Checkpoint],
        gpus_now: Callable[[], Sequence[GpuReading] | None],
        show: Callable[[AttemptTarget], str | None],
        base_env: Mapping[str, str],
        kernel_tail: KernelTail = no_kernel_log,
        gpu_help: GpuHelp | None = None,
        wsl: bool = False,
        retention: Retention | None = None,
        ready: Callable[[Derived], Readiness] = lambda _derived: READY,
        planned: Callable[[StartAttempt, Path], Derived | None] = lambda _decision, _folder: None,
        misfit: Callable[[Path, Derived], str | None] = lambda _resume, _derived: None,
        remember: Callable[[Path, Derived], None] = lambda _folder, _derived: None,
    ) -> None:
        self._spec = spec
        self._preset = preset
        self._profiles = profiles
        self._attempt_folder = attempt_folder
        self._incident_folder = incident_folder
        self._verify = verify
        self._gpus_now = gpus_now
        self._show = show
        self._base_env = base_env
        self._kernel_tail = kernel_tail
        self._wsl = wsl
        self._misfit = misfit
        self._remember = remember
        self._gpu_help = gpu_help if gpu_help is not None else GpuHelp(read=gpus_now)
        self._retention = retention
        self._ready = ready
        self._planned = planned
        self._target: AttemptTarget | None = None
        self._baseline: dict[int, float] = {}
        self._table: dict[type[Decision], tuple[str, Callable[[Any], Performed]]] = {
            NotifyPeople: ("notify", self._notify),
            CaptureStacks: ("capture_stacks", self._capture),
            StopAttempt: ("stop_attempt", self._stop),
            EndLeftovers: ("end_leftovers", self._stop),
            ClearGpu: ("clear_gpu", self._clear),
            VerifyCheckpoint: ("verify_checkpoint", self._verify_checkpoint),
            StartAttempt: ("start_attempt", self._start),
            PauseAttempt: ("pause_attempt", self._pause),
            UnpauseAttempt: ("unpause_attempt", self._unpause),
            PlanRetention: ("plan_retention", self._plan_retention),
            DeleteCheckpoint: ("delete_checkpoint", self._delete_checkpoint),
            GiveUp: ("give_up", lambda _decision: (True, "", {})),
        }

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt that later actions are for. It stays after its trainer is dead: workers may be left."""
        self._target = target
        if target is not None:
            self._baseline = _read_baseline(target.directory)

    def perform(self, decision: Decision) -> Outcome:
        """Perform one decision."""
        action, perform = self._table[type(decision)]
        ok, detail, data = perform(decision)
        return Outcome(t=0.0, decision=decision.id, action=action, ok=ok, detail=detail, data=data)

    def _notify(self, decision: NotifyPeople) -> Performed:
        settings = self._spec.settings.notify
        reports: list[NotifyReport] = []
        if settings.urls:
            reports.append(
                notify_urls(settings.urls, decision.event, decision.title, decision.body, timeout_s=settings.timeout_s)
            )
        if settings.command:
            reports.append(self._notify_command(decision))
        failed = [report.detail for report in reports if not report.ok]
        output = "\n".join(report.output for report in reports if report.output)
        detail = "; ".join(failed or [report.detail for report in reports])
        return not failed, detail, {"output": output} if output else {}

    def _notify_command(self, decision: NotifyPeople) -> NotifyReport:
        settings = self._spec.settings.notify
        event = {
            "event": decision.event,
            "run": self._spec.name,
            "run_id": self._spec.id,
            "title": decision.title,
            "body": decision.body,
            "incident": decision.incident,
            "wall": time.time(),
        }
        return notify(settings.command, event, timeout_s=settings.timeout_s, cwd=self._spec.cwd)

    def _capture(self, decision: CaptureStacks) -> Performed:
        if self._target is None or self._target.number != decision.attempt:
            return False, f"attempt {decision.attempt} has ended; there are no processes to examine", {}
        folder = self._incident_folder(decision.incident or 0)
        try:
            report = examine(self._target, folder, self._spec, gpus=self._gpus_now(), kernel_tail=self._kernel_tail)
        except OSError as error:
            return False, f"{folder}: {error.strerror or error}", {}
        detail = f"{report.sentence}; {len(report.files)} files of evidence in {folder}"
        return True, detail, {"folder": str(folder), **msgspec.to_builtins(report, str_keys=True)}

    def _stop(self, decision: StopAttempt | EndLeftovers) -> Performed:
        if self._target is None:
            return True, "no process is left from an attempt", {"gone": True}
        restart = self._spec.settings.restart
        report = stop_attempt(
            self._target,
            decision.mode,
            interrupt_grace_s=restart.interrupt_grace_s,
            terminate_grace_s=restart.terminate_grace_s,
            saves_to=self._spec.output_dir,
            wsl=self._wsl,
        )
        return report.gone, report.sentence, msgspec.to_builtins(report)

    def _clear(self, _decision: ClearGpu) -> Performed:
        report = clear_gpus(self._spec, self._baseline, self._gpu_help, self._base_env)
        return report.clear, report.detail, msgspec.to_builtins(report)

    def _verify_checkpoint(self, decision: VerifyCheckpoint) -> Performed:
        try:
            found = self._verify(Path(decision.path), decision.deep)
        except OSError as error:
            return False, f"{decision.path}: {error.strerror or error}", {"verdict": "torn"}
        detail = f"{found.name}: {found.verdict}" + (f" ({found.reason})" if found.reason else "")
        return found.verdict == "complete", detail, msgspec.to_builtins(found)

    def _start(self, decision: StartAttempt) -> Performed:
        if self._target is not None and is_alive(self._target.trainer):
            return False, f"attempt {self._target.number} still runs (pid {self._target.trainer.pid})", {}
        folder = _unused(self._attempt_folder(decision.attempt))
        profile = None
        if decision.profile is not None:
            profile = self._profiles.get(decision.profile)
            if profile is None:
                known = ", ".join(self._profiles)
                return False, f'no profile "{decision.profile}"; there are: {known}', {"retryable": False}
        baseline = {r.index: r.mem_used_bytes for r in self._gpus_now() or () if r.mem_used_bytes is not None}
        resume = Path(decision.resume_from) if decision.resume_from else None
        try:
            derived, name = self._derive(decision, profile, resume, folder)
            ready = self._ready(derived)
            if ready.held is not None:
                return False, ready.held, {"retryable": False}
            if ready.need_bytes is not None:
                detail = f"not enough disk space for a checkpoint: {ready.need_bytes / 1e9:.2f} GB must be free"
                return False, detail, {"need_bytes": ready.need_bytes, "fresh": decision.resume_from is None}
            write_config_copy(self._spec, derived)
            order = LaunchOrder(
                attempt=decision.attempt,
                argv=derived.argv,
                cwd=self._spec.cwd,
                env=derived.env,
                log=str(folder / "train.log"),
                terminal=self._spec.terminal,
                interrupt_grace_s=self._spec.settings.restart.interrupt_grace_s,
                terminate_grace_s=self._spec.settings.restart.terminate_grace_s,
            )
            target = launch(order, folder)
        except DeriveError as error:
            return False, str(error), {"retryable": False, "settings": True}
        except LaunchError as error:
            return False, str(error), {"retryable": False}
        with contextlib.suppress(OSError):  # without the file the baseline is unknown to the GPU memory gate
            spool.write(str(folder), BASELINE, {str(k): v for k, v in baseline.items()})
        self._target, self._baseline = target, baseline
        self._remember(folder, derived)
        start = read_start(folder)
        notes = (
            *(f"it saves as {change.after}: {change.why}" for change in name),
            self._misfit(resume, derived) if resume is not None else None,
            self._show(target),
        )
        return (
            True,
            "; ".join(note for note in notes if note),
            {
                "start": msgspec.to_builtins(start),
                "order": msgspec.to_builtins(msgspec.structs.replace(decision, changes=derived.changes)),
                "directory": str(folder),
                "resume": derived.resume,
                "told_resume": derived.told_resume,
                "resume_named": _resume_places(derived, resume),
            },
        )

    def _derive(
        self, decision: StartAttempt, profile: Profile | None, resume: Path | None, folder: Path
    ) -> tuple[Derived, tuple[Change, ...]]:
        """The launch, and the change that renames its checkpoint files (empty if none). Raises DeriveError."""
        planned = self._planned(decision, folder)
        if planned is not None:
            return planned, ()
        left = remaining(
            self._spec,
            self._preset,
            profile,
            resume,
            epochs_done=decision.epochs_done,
            steps_done=decision.steps_done,
        )
        name = own_name(self._spec, self._preset, profile, resume, decision.attempt)
        derived = preview(
            self._spec,
            self._preset,
            profile,
            resume_from=resume,
            changes=(*decision.changes, *left, *name),
            attempt_directory=folder,
            attempt=decision.attempt,
            base_env=self._base_env,
        )
        return derived, name

    def _pause(self, _decision: PauseAttempt) -> Performed:
        if self._target is None:
            return False, "no attempt to pause", {}
        report = pause_attempt(self._target)
        return report.ok, f"{report.processes} processes stopped", msgspec.to_builtins(report)

    def _unpause(self, _decision: UnpauseAttempt) -> Performed:
        if self._target is None:
            return False, "no attempt to continue", {}
        report = unpause_attempt(self._target)
        return report.ok, f"{report.processes} processes continued", msgspec.to_builtins(report)

    def _plan_retention(self, decision: PlanRetention) -> Performed:
        if self._retention is None:
            return False, "no output folder is watched", {}
        try:
            found = self._retention.plan(decision.keep, deep=decision.deep)
        except (OSError, ValueError) as error:
            return False, str(error), {}
        names = ", ".join(c.name for c in found) or "no checkpoint"
        return True, f"{names} may be deleted", {"delete": msgspec.to_builtins(found)}

    def _delete_checkpoint(self, decision: DeleteCheckpoint) -> Performed:
        if self._retention is None:
            return False, "no output folder is watched", {}
        try:
            objection = self._retention.delete(decision.checkpoint)
        except OSError as error:
            return False, f"{decision.checkpoint.name} was not deleted: {error}", {}
        if objection is not None:
            return False, f"{decision.checkpoint.name} was not deleted: it {objection}", {}
        return True, f"{decision.checkpoint.name} was deleted", {"freed_bytes": decision.checkpoint.size_bytes}


def _resume_places(derived: Derived, resume: Path | None) -> tuple[str, ...]:
    """Which parts of the launch name the checkpoint: derived config, command line."""
    if resume is None or not derived.told_resume:
        return ()
    places = {"derived config": derived.config_text or "", "command line": "\0".join(derived.argv)}
    return tuple(place for place, text in places.items() if resume.name in text)


def _unused(folder: Path) -> Path:
    """The folder itself, or one with a number appended if a launch that failed has used it."""
    number = 1
    candidate = folder
    while (candidate / spool.ORDER).exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}-{number}")
    return candidate


def _read_baseline(directory: str) -> dict[int, float]:
    found = spool.read(directory, BASELINE) or {}
    return {int(k): float(v) for k, v in found.items()}
