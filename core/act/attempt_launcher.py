"""Launches an attempt as the judge decided: derive the launch, check that it can start, start it, show it in tmux."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ..bound_process import missing_files
from ..model.attempt import KeepAliveOrder, LaunchOrder, LockOrder
from ..model.decision import StartAttempt
from ..model.launch.change import Change
from ..model.launch.script_state import ScriptState, change_of
from ..model.observation import GpuReading
from ..model.ports.supervision import AttemptTarget
from ..model.run import RunSpec
from ..model.shipped.preset import Preset
from ..model.shipped.profile import Profile
from ..model.text.setting_place import with_place
from .config.derive import Derived, DeriveError, preview, write_config_copy
from .config.output_names import own_name
from .config.remaining_steps import counted, remaining
from .engine import Engine, Performed
from .launch import script_record, spool
from .launch.attempt_records import read_start
from .launch.launching import WAITED_FOR, LaunchError, waited_for
from .launch.spawn import NOT_EXECUTABLE, NOT_FOUND

BASELINE = "gpu_baseline.json"
"""File in the attempt's directory: GPU memory that other processes held before it began, bytes per GPU index."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """``refusal``: why a launch would fail, and what to do; ``errno``: if the system says so.

    ``need_bytes``: disk space that must be free first.

    ``room``: what is missing, in words. ``other_trainer``: a sentence about one that writes there already.
    """

    refusal: str | None = None
    errno: int | None = None
    need_bytes: float | None = None
    room: str = ""
    other_trainer: str = ""


READY = Readiness()


class AttemptLauncher:
    """Launches the attempts of one run with ``engine``.

    ``attempt_folder``: number → folder that may not exist yet. ``gpus_now``: newest readings, None if there is no
    telemetry. ``show``: opens a view of the attempt (tmux) and returns a sentence about it. ``base_env``: the
    environment that the trainer inherits. ``ready``: whether the derived launch can start now. ``planned``: decision,
    attempt folder → the launch if it was derived already. ``misfit``: a sentence if the derived launch contradicts the
    checkpoint that it resumes from. ``remember``: stores the attempt's folder and derived launch for the next launch.
    ``locks``: the locks that the runner holds while the trainer lives. ``keep_alive``: how it replaces a supervisor.
    """

    def __init__(
        self,
        *,
        spec: RunSpec,
        engine: Engine,
        preset: Preset,
        profiles: Mapping[str, Profile],
        attempt_folder: Callable[[int], Path],
        gpus_now: Callable[[], Sequence[GpuReading] | None],
        show: Callable[[AttemptTarget], str | None],
        base_env: Mapping[str, str],
        ready: Callable[[Derived], Readiness] = lambda _derived: READY,
        planned: Callable[[StartAttempt, Path], Derived | None] = lambda _decision, _folder: None,
        misfit: Callable[[Path, Derived], str | None] = lambda _resume, _derived: None,
        remember: Callable[[Path, Derived], None] = lambda _folder, _derived: None,
        script: Callable[[], ScriptState | None] = lambda: None,
        locks: LockOrder | None = None,
        keep_alive: KeepAliveOrder | None = None,
    ) -> None:
        self._spec = spec
        self._engine = engine
        self._preset = preset
        self._profiles = profiles
        self._attempt_folder = attempt_folder
        self._gpus_now = gpus_now
        self._show = show
        self._base_env = base_env
        self._ready = ready
        self._planned = planned
        self._misfit = misfit
        self._remember = remember
        self._script = script
        self._locks = locks
        self._keep_alive = keep_alive

    def start(
        self, decision: StartAttempt, launched: Callable[[AttemptTarget, Mapping[int, float]], None]
    ) -> Performed:
        """Launch an attempt. ``launched`` is called as soon as the trainer runs, with the GPU memory in use before it.

        The memory is in bytes per GPU index.
        """
        if gone := missing_files():
            why = f"trainwatch was uninstalled or moved: {gone} is gone"
            return False, why, {"program_gone": True, "fresh": decision.resume_from is None}
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
            if ready.refusal is not None:
                passing = WAITED_FOR.get(ready.errno or 0)
                again = {passing: True, "fresh": decision.resume_from is None} if passing else {"retryable": False}
                return False, ready.refusal, again
            if ready.other_trainer:
                return False, ready.other_trainer, {"other_trainer": True, "fresh": decision.resume_from is None}
            if ready.need_bytes is not None:
                return False, ready.room, {"need_bytes": ready.need_bytes, "fresh": decision.resume_from is None}
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
                locks=self._locks,
                keep_alive=self._keep_alive,
            )
            script = self._script()
            begin = self._engine.submit if decision.attempt == 1 else self._engine.resume
            target = begin(order, folder, decision)
        except (DeriveError, LaunchError) as error:
            if (passing := waited_for(error)) is not None:
                return False, str(error), {passing: True, "fresh": decision.resume_from is None}
            silent = isinstance(error, LaunchError) and error.silent
            not_run = isinstance(error, LaunchError) and error.code in {NOT_EXECUTABLE, NOT_FOUND}
            detail = with_place(str(error), self._spec, "command", "cwd") if not_run else str(error)
            return False, detail, {"retryable": silent, "settings": isinstance(error, DeriveError)}
        launched(target, baseline)
        with contextlib.suppress(OSError):  # without the file the baseline is unknown to the GPU memory gate
            spool.write(str(folder), BASELINE, {str(k): v for k, v in baseline.items()})
        self._remember(folder, derived)
        changed = change_of(self._script_of(decision.attempt - 1), script, decision.attempt - 1)
        script_record.keep(folder, script)
        start = read_start(folder)
        notes = (
            *(f"it saves as {change.after}: {change.why}" for change in name),
            changed and f"{Path(changed.path).name} changed after attempt {changed.attempt} had begun",
            self._misfit(resume, derived) if resume is not None else None,
            self._show(target),
        )
        data = {
            "start": msgspec.to_builtins(start),
            "order": msgspec.to_builtins(msgspec.structs.replace(decision, changes=derived.changes)),
            "directory": str(folder),
            "script_changed": msgspec.to_builtins(changed),
            "resume": derived.resume,
            "told_resume": derived.told_resume,
            "resume_named": _resume_places(derived, resume),
        }
        return True, "; ".join(note for note in notes if note), data

    def _script_of(self, attempt: int) -> ScriptState | None:
        """The script as it stood when this attempt was launched; None if that is not known."""
        return script_record.kept(_last_used(self._attempt_folder(attempt))) if attempt > 0 else None

    def _derive(
        self, decision: StartAttempt, profile: Profile | None, resume: Path | None, folder: Path
    ) -> tuple[Derived, tuple[Change, ...]]:
        """The launch, and the change that renames its checkpoint files (empty if none). Raises DeriveError."""
        planned = self._planned(decision, folder)
        if planned is not None:
            return planned, ()
        epochs, steps = counted(
            self._spec,
            self._preset,
            (decision.epochs_done, decision.begun_epochs),
            (decision.steps_done, decision.begun_steps),
        )
        left = remaining(self._spec, self._preset, profile, resume, epochs_done=epochs, steps_done=steps)
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


def read_baseline(directory: str) -> dict[int, float]:
    """The GPU memory in use before the attempt of ``directory``; empty if unknown."""
    found = spool.read(directory, BASELINE) or {}
    return {int(k): float(v) for k, v in found.items()}


def _resume_places(derived: Derived, resume: Path | None) -> tuple[str, ...]:
    """Which parts of the launch name the checkpoint: derived config, command line."""
    if resume is None or not derived.told_resume:
        return ()
    places = {"derived config": derived.config_text or "", "command line": "\0".join(derived.argv)}
    return tuple(place for place, text in places.items() if resume.name in text)


def _last_used(folder: Path) -> Path:
    """The folder of the launch of an attempt that came last: see ``_unused``."""
    last, number = folder, 1
    while (further := folder.with_name(f"{folder.name}-{number + 1}")).exists():
        last, number = further, number + 1
    return last


def _unused(folder: Path) -> Path:
    """The folder itself, or one with a number appended if a launch that failed has used it."""
    number = 1
    candidate = folder
    while (candidate / spool.ORDER).exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}-{number}")
    return candidate
