"""Attempts on this machine: a runner starts and ends them.

What runs in a container or as another user is ended by its own tool.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..model.attempt import LaunchOrder
from ..model.decision import EndLeftovers, StartAttempt, StopAttempt
from ..model.launch.engine import CAPABILITIES, AttemptSeen
from ..model.observation import GpuReading
from ..model.ports.supervision import AttemptTarget
from ..model.run import RunSpec
from ..model.text.plural import plural
from .elsewhere.container import container_of, marked
from .elsewhere.other_user import other_user_of
from .elsewhere.place import Place, PlaceEnd, PlaceError, end_place
from .elsewhere.unreached import may_run_on
from .engine import Performed
from .evidence.capture import KernelTail, examine, no_kernel_log
from .evidence.stack_capture import StackReport
from .launch.attempt_records import read_exit
from .launch.launching import is_alive, launch, settle_launch
from .stop.heartbeat_request import ask_by_heartbeat
from .stop.own_handler import end_by_own_handler, graces
from .stop.pause import pause_attempt, unpause_attempt
from .stop.save_in_progress import SaveWatch
from .stop.save_request import AskToSave, SaveReport, file_of, request_save
from .stop.stop_sequence import stop_steps
from .stop.stopping import members, stop_attempt

CLIENT_S = 5.0
"""A client ends by itself, with the trainer's status, when what it started has ended."""
POLL_S = 0.1


class LocalEngine:
    """Implements ``Engine``. ``save``: how the training is asked for a checkpoint.

    ``gpus_now``: newest readings, None if there is no telemetry. ``wsl``: longer graces.
    """

    capabilities = CAPABILITIES["local"]

    def __init__(
        self,
        spec: RunSpec,
        *,
        base_env: Mapping[str, str],
        save: AskToSave = (None, None),
        gpus_now: Callable[[], Sequence[GpuReading] | None] = lambda: None,
        kernel_tail: KernelTail = no_kernel_log,
        wsl: bool = False,
    ) -> None:
        self._spec = spec
        self._base_env = base_env
        self._save = save
        self._gpus_now = gpus_now
        self._kernel_tail = kernel_tail
        self._wsl = wsl

    def submit(self, order: LaunchOrder, folder: Path, _asked: StartAttempt) -> AttemptTarget:
        """Start a runner, which starts the training. A container gets a label by which it is found again."""
        argv = marked(order.argv, folder, order.env, self._base_env)
        return launch(msgspec.structs.replace(order, argv=argv), folder)

    def resume(self, order: LaunchOrder, folder: Path, asked: StartAttempt) -> AttemptTarget:
        """Start the processes anew."""
        return self.submit(order, folder, asked)

    def observe(self, targets: Sequence[AttemptTarget]) -> Mapping[str, AttemptSeen]:
        """What the processes and the runner's record of the end say."""
        return {target.directory: _seen(target) for target in targets}

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
                _wait_for(target)
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
        """By the page of ``trainwatch.heartbeat`` if the training uses it, else by the signal and the file."""
        told = ask_by_heartbeat(target, stop=stop)
        if told is not None:
            return SaveReport(asked=True, sentence=told)
        return request_save(members(target), name=self._save[0], file=file_of(self._save, self._spec))

    def pause(self, target: AttemptTarget) -> Performed:
        """SIGSTOP to all processes, or the place's own way."""
        place = place_of(target)
        if place is None:
            report = pause_attempt(target)
            return report.ok, f"{_processes(report.processes)} stopped", msgspec.to_builtins(report)
        return _told(place.pause, f"{place.name} was paused")

    def unpause(self, target: AttemptTarget) -> Performed:
        """SIGCONT to all processes, or the place's own way."""
        place = place_of(target)
        if place is None:
            report = unpause_attempt(target)
            return report.ok, f"{_processes(report.processes)} continued", msgspec.to_builtins(report)
        return _told(place.unpause, f"{place.name} goes on")

    def logs(self, target: AttemptTarget) -> tuple[Path, ...]:
        """The file that is the training's own standard output and error."""
        return () if target.log is None else (Path(target.log),)

    def probe(self, target: AttemptTarget, folder: Path) -> StackReport:
        """Stacks, GPUs, kernel log, the end of the log."""
        return examine(target, folder, self._spec, gpus=self._gpus_now(), kernel_tail=self._kernel_tail)

    def adopt(self, folder: Path) -> AttemptTarget | None:
        """As its runner reported it; waits for one that is just starting."""
        return settle_launch(folder)

    def shown(self, _argv: tuple[str, ...], _folder: Path, _attempt: int) -> str | None:
        """Nothing: the command is started as it is."""
        return None

    def _end_tree(self, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> Performed:
        left_s = decision.within_s if isinstance(decision, StopAttempt) else None
        if left_s is not None:
            left_s = end_by_own_handler(target, left_s)
        interrupt_s, terminate_s = graces(self._spec.settings.restart, left_s)
        report = stop_attempt(
            target,
            decision.mode,
            interrupt_grace_s=interrupt_s,
            terminate_grace_s=terminate_s,
            saves_to=self._spec.output_dir,
            wsl=self._wsl and left_s is None,
            leftovers=isinstance(decision, EndLeftovers),
        )
        spared = f"; left alone: {', '.join(report.spared)}" if report.spared else ""
        return report.gone, f"{report.sentence}{spared}", msgspec.to_builtins(report)

    def _end_place(self, place: Place, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> PlaceEnd:
        left_s = decision.within_s if isinstance(decision, StopAttempt) else None
        steps = stop_steps(decision.mode, *graces(self._spec.settings.restart, left_s))
        saves = SaveWatch(self._spec.output_dir)
        return end_place(place, steps, lambda: saves.writing(members(target)))


def place_of(target: AttemptTarget) -> Place | None:
    """Where the trainer of an attempt runs, if it cannot be signalled as a process of ours; None if it can."""
    return container_of(target.directory) or other_user_of(target)


def _seen(target: AttemptTarget) -> AttemptSeen:
    alive = is_alive(target.trainer)
    ended = read_exit(Path(target.directory))
    if alive or (ended is None and is_alive(target.runner)):
        return AttemptSeen(phase="running" if alive else "ending")
    left = may_run_on(target.directory)
    if left:
        return AttemptSeen(phase="unknown", reason=left)
    if ended is None:
        return AttemptSeen(phase="ended", reason="nobody saw its exit status")
    code = ended.code if ended.signal is None else 128 + ended.signal
    return AttemptSeen(phase="ended", cause="ok" if code == 0 else "error", code=code)


def _told(act: Callable[[], None], done: str) -> Performed:
    try:
        act()
    except PlaceError as error:
        return False, str(error), {}
    return True, done, {}


def _wait_for(target: AttemptTarget) -> None:
    """Give the client the time to end with the trainer's status."""
    deadline = time.monotonic() + CLIENT_S
    while is_alive(target.trainer) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _processes(count: int) -> str:
    return plural(count, "process", "processes")
