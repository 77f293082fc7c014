"""What starts, watches and ends attempts. ``tests/contract/test_engine.py`` holds for this machine and for Slurm.

What runs in a container or as another user is ended by its own tool.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from .. import spool
from ..bound_process import missing_files
from ..model.decision import EndLeftovers, StartAttempt, StopAttempt
from ..model.observation import GpuReading
from ..model.ports import AttemptTarget
from ..model.preset import Change, Preset, Profile, ScriptState, change_of
from ..model.run import CAPABILITIES, KeepAliveOrder, LaunchOrder, LockOrder, RunSpec, StopOrder, with_place
from ..model.text import plural
from ..processes import is_alive
from ..spool import read_start
from .config.derive import Derived, DeriveError, preview, write_config_copy
from .config.trainer_config import counted, own_name, remaining
from .elsewhere import Place, PlaceEnd, PlaceError, container_of, end_place, marked, may_run_on, other_user_of
from .evidence.capture import KernelTail, StackReport, examine, no_kernel_log
from .launch import launching
from .launch.launching import WAITED_FOR, LaunchError, launch, settle_launch, waited_for
from .launch.spawn import NOT_EXECUTABLE, NOT_FOUND
from .save_request import AskToSave, SaveReport, ask_by_heartbeat, file_of, request_save
from .stop_sequence import SaveWatch, stop_steps
from .stopping import end_by_own_handler, graces, members, set_paused, stop_attempt

Performed = tuple[bool, str, dict[str, Any]]
"""Result of an action: whether it succeeded, a sentence, data for the journal."""


CLIENT_S = 5.0
"""A client ends by itself, with the trainer's status, when what it started has ended."""
POLL_S = 0.1


@dataclass(kw_only=True, eq=False)
class Engine:
    """The attempts of one run, as processes of this machine; ``SlurmEngine`` overrides what differs for jobs.

    Every method may block; none but ``submit`` (LaunchError: nothing was started, and nothing will be) and ``probe``
    (OSError) raises. ``save``: how the training is asked for a checkpoint. ``gpus_now``: newest readings, None if there
    is no telemetry. ``wsl``: longer graces.
    """

    capabilities = CAPABILITIES["local"]

    spec: RunSpec
    base_env: Mapping[str, str]
    save: AskToSave = (None, None)
    gpus_now: Callable[[], Sequence[GpuReading] | None] = lambda: None
    kernel_tail: KernelTail = no_kernel_log
    wsl: bool = False

    def submit(self, order: LaunchOrder, folder: Path, asked: StartAttempt) -> AttemptTarget:  # noqa: ARG002
        """Start a runner, which starts the training. A container gets a label by which it is found again."""
        argv = marked(order.argv, folder, order.env, self.base_env)
        return launch(msgspec.structs.replace(order, argv=argv), folder)

    def stop(self, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> Performed:
        """End the whole tree. If a place does not answer, its client is left alone, and nothing counts as gone."""
        place = place_of(target)
        if place is None:
            gone, detail, data = self._end_tree(target, decision)
            left = may_run_on(target.directory) if gone else ""
            return (False, f"{detail}; {left}", {**data, "gone": False}) if left else (gone, detail, data)
        try:
            ended = self._end_place(place, target, decision)
            if ended.gone and ended.signal is not None:
                deadline = time.monotonic() + CLIENT_S
                while is_alive(target.trainer) and time.monotonic() < deadline:
                    time.sleep(POLL_S)
            detail, data = "", dict[str, Any]()
            if ended.gone:
                gone, detail, data = self._end_tree(target, decision)  # the client, and what it started here
                if not gone:
                    return gone, detail, data
                ended = ended if not place.running() else self._end_place(place, target, decision)
        except PlaceError as error:
            detail = f"{place.name} could not be ended or asked: {error}; its client was left alone"
            return False, detail, {"gone": False}
        if not ended.gone:
            return False, f"{place.name} was not ended by {ended.signal or 'anything'}", {"gone": False}
        if ended.signal is not None:
            detail = f"{place.name} ended by {ended.signal} after {ended.seconds:.1f} s"
            data = {**data, "signal": ended.signal, "seconds": ended.seconds, "gone": True}
        return True, detail, data

    def ask_to_save(self, target: AttemptTarget, *, stop: bool) -> SaveReport:
        """By the page of ``trainbeat`` if the training uses it, else by the signal and the file."""
        told = ask_by_heartbeat(target, stop=stop)
        if told is not None:
            return SaveReport(asked=True, sentence=told)
        return request_save(members(target), name=self.save[0], file=file_of(self.save, self.spec))

    def pause(self, target: AttemptTarget, *, paused: bool = True) -> Performed:
        """SIGSTOP, or SIGCONT, to all processes; or the place's own way."""
        place = place_of(target)
        if place is None:
            report = set_paused(target, paused=paused)
            done = f"{plural(report.processes, 'process', 'processes')} {'stopped' if paused else 'continued'}"
            return report.ok, done, msgspec.to_builtins(report)
        try:
            (place.pause if paused else place.unpause)()
        except PlaceError as error:
            return False, str(error), {}
        return True, f"{place.name} {'was paused' if paused else 'goes on'}", {}

    def probe(self, target: AttemptTarget, folder: Path) -> StackReport:
        """Stacks, GPUs, kernel log, the end of the log."""
        return examine(target, folder, self.spec, gpus=self.gpus_now(), kernel_tail=self.kernel_tail)

    def adopt(self, folder: Path) -> AttemptTarget | None:
        """As its runner reported it; waits for one that is just starting."""
        return settle_launch(folder)

    def shown(self, argv: tuple[str, ...], folder: Path, attempt: int) -> str | None:  # noqa: ARG002
        """What would be handed to a scheduler, for people; None: the command is started as it is."""
        return None

    def _end_tree(self, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> Performed:
        left_s = decision.within_s if isinstance(decision, StopAttempt) else None
        if left_s is not None:
            left_s = end_by_own_handler(target, left_s)
        interrupt_s, terminate_s = graces(self.spec.settings.restart, left_s)
        order = StopOrder(
            mode=decision.mode,
            interrupt_grace_s=interrupt_s,
            terminate_grace_s=terminate_s,
            saves_to=self.spec.output_dir,
            wsl=self.wsl and left_s is None,
            leftovers=isinstance(decision, EndLeftovers),
        )
        report = stop_attempt(target, order)
        spared = f"; left alone: {', '.join(report.spared)}" if report.spared else ""
        return report.gone, f"{report.sentence}{spared}", report.as_json()

    def _end_place(self, place: Place, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> PlaceEnd:
        left_s = decision.within_s if isinstance(decision, StopAttempt) else None
        steps = stop_steps(decision.mode, *graces(self.spec.settings.restart, left_s))
        saves = SaveWatch(self.spec.output_dir)
        return end_place(place, steps, lambda: saves.writing(members(target)))


def place_of(target: AttemptTarget) -> Place | None:
    """Where the trainer of an attempt runs, if it cannot be signalled as a process of ours; None if it can."""
    return container_of(target.directory) or other_user_of(target)


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


@dataclass(kw_only=True, eq=False)
class AttemptLauncher:
    """Launches the attempts of one run with ``engine``.

    ``attempt_folder``: number → folder that may not exist yet. ``gpus_now``: newest readings, None if there is no
    telemetry. ``show``: opens a view of the attempt (tmux) and returns a sentence about it. ``base_env``: the
    environment that the trainer inherits. ``ready``: whether the derived launch can start now. ``planned``: decision,
    attempt folder → the launch if it was derived already. ``misfit``: a sentence if the derived launch contradicts the
    checkpoint that it resumes from.
    ``locks``: the locks that the runner holds while the trainer lives. ``keep_alive``: how it replaces a supervisor.
    """

    spec: RunSpec
    engine: Engine
    preset: Preset
    profiles: Mapping[str, Profile]
    attempt_folder: Callable[[int], Path]
    gpus_now: Callable[[], Sequence[GpuReading] | None]
    show: Callable[[AttemptTarget], str | None]
    base_env: Mapping[str, str]
    ready: Callable[[Derived], Readiness] = lambda _derived: READY
    planned: Callable[[StartAttempt, Path], Derived | None] = lambda _decision, _folder: None
    misfit: Callable[[Path, Derived], str | None] = lambda _resume, _derived: None
    script: Callable[[], ScriptState | None] = lambda: None
    locks: LockOrder | None = None
    keep_alive: KeepAliveOrder | None = None

    def start(
        self, decision: StartAttempt, launched: Callable[[AttemptTarget, Mapping[int, float]], None]
    ) -> Performed:
        """Launch an attempt. ``launched`` is called as soon as the trainer runs, with the GPU memory in use before it.

        The memory is in bytes per GPU index.
        """
        fresh = {"fresh": decision.resume_from is None}
        if gone := missing_files():
            return False, f"trainwatch was uninstalled or moved: {gone} is gone", {"program_gone": True, **fresh}
        folder = _last_used(self.attempt_folder(decision.attempt))
        if (folder / spool.ORDER).exists():  # by a launch that failed
            first, _, number = folder.name.partition("-")
            folder = folder.with_name(f"{first}-{int(number or 1) + 1}")
        profile = None
        if decision.profile is not None:
            profile = self.profiles.get(decision.profile)
            if profile is None:
                known = ", ".join(self.profiles)
                return False, f'no profile "{decision.profile}"; there are: {known}', {"retryable": False}
        baseline = {r.index: r.mem_used_bytes for r in self.gpus_now() or () if r.mem_used_bytes is not None}
        resume = Path(decision.resume_from) if decision.resume_from else None
        try:
            derived, name = self._derive(decision, profile, resume, folder)
            ready = self.ready(derived)
            if ready.refusal is not None:
                passing = WAITED_FOR.get(ready.errno or 0)
                return False, ready.refusal, {passing: True, **fresh} if passing else {"retryable": False}
            if ready.other_trainer:
                return False, ready.other_trainer, {"other_trainer": True, **fresh}
            if ready.need_bytes is not None:
                return False, ready.room, {"need_bytes": ready.need_bytes, **fresh}
            write_config_copy(self.spec, derived)
            order = LaunchOrder(
                attempt=decision.attempt,
                argv=derived.argv,
                cwd=self.spec.cwd,
                env=derived.env,
                log=str(folder / "train.log"),
                terminal=self.spec.terminal,
                interrupt_grace_s=self.spec.settings.restart.interrupt_grace_s,
                terminate_grace_s=self.spec.settings.restart.terminate_grace_s,
                locks=self.locks,
                keep_alive=self.keep_alive,
            )
            script = self.script()
            target = self.engine.submit(order, folder, decision)
        except (DeriveError, LaunchError) as error:
            if (passing := waited_for(error)) is not None:
                return False, str(error), {passing: True, **fresh}
            silent = isinstance(error, LaunchError) and error.silent
            not_run = isinstance(error, LaunchError) and error.code in {NOT_EXECUTABLE, NOT_FOUND}
            detail = with_place(str(error), self.spec, "command", "cwd") if not_run else str(error)
            return False, detail, {"retryable": silent, "settings": isinstance(error, DeriveError)}
        launched(target, baseline)
        with contextlib.suppress(OSError):  # without the file the baseline is unknown to the GPU memory gate
            spool.write(str(folder), BASELINE, {str(k): v for k, v in baseline.items()})
        before = decision.attempt - 1
        changed = change_of(launching.kept(_last_used(self.attempt_folder(before))) if before else None, script, before)
        launching.keep(folder, script)
        start = read_start(folder)
        places = {"derived config": derived.config_text or "", "command line": "\0".join(derived.argv)}
        named = resume if derived.told_resume else None
        notes = (
            *(f"it saves as {change.after}: {change.why}" for change in name),
            changed and f"{Path(changed.path).name} changed after attempt {changed.attempt} had begun",
            self.misfit(resume, derived) if resume is not None else None,
            self.show(target),
        )
        data = {
            "start": msgspec.to_builtins(start),
            "order": msgspec.to_builtins(msgspec.structs.replace(decision, changes=derived.changes)),
            "directory": str(folder),
            "script_changed": msgspec.to_builtins(changed),
            "resume": derived.resume,
            "told_resume": derived.told_resume,
            "resume_named": tuple(place for place, text in places.items() if named is not None and named.name in text),
        }
        return True, "; ".join(note for note in notes if note), data

    def _derive(
        self, decision: StartAttempt, profile: Profile | None, resume: Path | None, folder: Path
    ) -> tuple[Derived, tuple[Change, ...]]:
        """The launch, and the change that renames its checkpoint files (empty if none). Raises DeriveError."""
        planned = self.planned(decision, folder)
        if planned is not None:
            return planned, ()
        launch, attempt = (self.spec, self.preset, profile, resume), decision.attempt
        epochs, steps = (decision.epochs_done, decision.begun_epochs), (decision.steps_done, decision.begun_steps)
        epochs_done, steps_done = counted(self.spec, self.preset, epochs, steps)
        name = own_name(*launch, attempt)
        changes = (*decision.changes, *remaining(*launch, epochs_done=epochs_done, steps_done=steps_done), *name)
        return preview(*launch, changes, folder, attempt=attempt, base_env=self.base_env), name


def read_baseline(directory: str) -> dict[int, float]:
    """The GPU memory in use before the attempt of ``directory``; empty if unknown."""
    found = spool.read(directory, BASELINE) or {}
    return {int(k): float(v) for k, v in found.items()}


def _last_used(folder: Path) -> Path:
    """The folder of the newest launch of an attempt: one that failed leaves its folder, and the next has a number."""
    last, number = folder, 1
    while (further := folder.with_name(f"{folder.name}-{number + 1}")).exists():
        last, number = further, number + 1
    return last


def engine_of(spec: RunSpec, **given: Any) -> Engine:
    """The engine that the run names. ``given``: the other fields of ``Engine``."""
    if spec.engine == "local":
        return Engine(spec=spec, **given)
    from .slurm.slurm_engine import SlurmEngine  # a third of a megabyte that only such runs need

    return SlurmEngine(spec=spec, **given)
