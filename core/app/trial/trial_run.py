"""Trials: the run's command under one profile for some minutes, in a separate folder, measured and ended gently.

A trial is a run like any other (launched, supervised, journalled), but in its own state folder, with its own output
folder, without restarts, remedies and notices. No file of the user is written.
"""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...act.config.derive import DeriveError
from ...act.config.flags import option_groups
from ...model.control_messages import Request
from ...model.launch.change import Change
from ...model.launch.trial import TrialResult
from ...model.observation import Command
from ...model.record import Record
from ...model.run import LIVE_STATES, RunSpec
from ...model.settings import Checkpoints, Notify, Remedies, Settings, Tmux
from ...model.shipped.profile import NO_PROFILE
from ...store.control.control_client import ControlError, send
from ...store.journal import load_story
from ...store.lock import is_held
from ...store.metrics.history import HistoryReader
from ...store.run_directory import RunDirectory, new_run_id
from ..errors import CliError, ExitCode
from ..plan.definitions import Definitions
from ..plan.launch_plan import plan_launch
from ..runs.known_runs import all_runs
from .trial_measure import measure

LOOK_S = 0.25
"""Period of checking whether a trial is long enough."""
MINUTES = 5.0
"""Long enough for warm-up and a stable pace of most trainers."""


class TrialLength(msgspec.Struct, frozen=True, kw_only=True):
    """How long, from the first step on; the first that is reached ends it. ``limit_s``: with its start."""

    minutes: float = MINUTES
    steps: int | None = None
    limit_s: float | None = None


def rivals(spec: RunSpec) -> list[str]:
    """Live runs on the same GPU, as sentences. A run without ``gpus`` may be on all of them."""
    return [sentence for _, sentence in rival_runs(spec)]


def rival_runs(spec: RunSpec) -> list[tuple[RunDirectory, str]]:
    """The same, with the runs."""
    return [
        (run, f"run {other.name} trains on {'the same GPU' if other.gpus or spec.gpus else 'this machine'}")
        for run, other in ((run, run.load_spec()) for run in all_runs())
        if is_held(run.lock)
        and load_story(run.journal).state in LIVE_STATES
        and (spec.gpus is None or other.gpus is None or set(spec.gpus) & set(other.gpus))
    ]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried. ``profile``: NO_PROFILE = the user's own settings; ``extra``: words added to the command.

    Options among them win over profile, command and config (``--epochs 5``).
    """

    profile: str
    length: TrialLength = TrialLength()
    extra: tuple[str, ...] = ()


def plan_trial(spec: RunSpec, trial: Trial, state: Path, definitions: Definitions) -> RunSpec:
    """The run of a trial, with its state in ``state``; it writes where the user's run does. Raises CliError."""
    profile = trial.profile
    if profile not in definitions.profiles and profile != NO_PROFILE:
        known = ", ".join(definitions.profiles)
        raise CliError(ExitCode.NOT_FOUND, f'no profile "{profile}"; there are: {known}')
    name = f"{spec.name}-{profile}"
    words, changes = _added(trial.extra)
    return msgspec.structs.replace(
        spec,
        id=new_run_id(state, name, Path(spec.project or spec.cwd)),
        name=name,
        created_wall=time.time(),
        command=(*spec.command, *words),
        changes=(*spec.changes, *changes),
        logs=(),
        begin_from=None,
        settings=_settings(spec.settings, None if profile == NO_PROFILE else profile),
        labels={**spec.labels, "trial_of": spec.id},
    )


def _added(extra: Sequence[str]) -> tuple[tuple[str, ...], tuple[Change, ...]]:
    """(words without a dash in front, such as ``training.epochs=5``; options). Raises CliError."""
    first = next((at for at, word in enumerate(extra) if word.startswith("-")), len(extra))
    try:
        options = option_groups(extra[first:])
    except DeriveError:
        raise CliError(ExitCode.USAGE, f"{extra[first]!r} behind -- is no option, and belongs to none") from None
    why = "given to the trial"
    return tuple(extra[:first]), tuple(
        Change(where="flag", key=group.key, before=None, after=group.value, why=why) for group in options
    )


def measured(
    planned: RunSpec, trial: Trial, definitions: Definitions, state: Path, gpus: Sequence[int] | None
) -> TrialResult:
    """Run a planned trial, and measure it. Raises CliError, KeyboardInterrupt."""
    from ..foreground import supervise
    from ..preflight.checklist import require_startable

    plan = plan_launch(planned, definitions, state)
    require_startable(plan, forced=True)  # what fails, the trial shows
    run = RunDirectory.create(state, planned)
    over = threading.Event()
    clock = threading.Thread(target=_end_in_time, args=(run, trial.length, over), name="trial", daemon=True)
    clock.start()
    try:
        code = supervise(run, listener=lambda _story: _unheard, plan=plan, stop_trainer=True)
    finally:
        over.set()
        clock.join()
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    with HistoryReader(run.history) as history:
        return measure(trial.profile, planned.created_wall, load_story(run.journal), history, gpus)


def _settings(settings: Settings, profile: str | None) -> Settings:
    replace = msgspec.structs.replace
    return replace(
        settings,
        profiles=replace(settings.profiles, use=profile, ramp=(), fall_back=False),
        restart=replace(settings.restart, max_restarts=0, act="all"),
        remedies=Remedies(apply="none"),
        checkpoints=Checkpoints(keep_last=0),
        notify=Notify(),
        tmux=Tmux(enabled=False),
    )


def _unheard(_records: Sequence[Record]) -> None:
    """Print nothing: the events are in the trial's journal."""


def _end_in_time(run: RunDirectory, length: TrialLength, over: threading.Event) -> None:
    """End the trial gently once it is long enough."""
    first: tuple[float, int] | None = None
    began = time.monotonic()
    with HistoryReader(run.history) as history:
        while not over.wait(LOOK_S):
            point = history.latest().progress
            step = None if point is None else point.progress.any_step
            now = time.monotonic()
            if step is not None:
                first = first or (now, step)
            late = length.limit_s is not None and now - began >= length.limit_s
            if not late and (first is None or step is None or not _is_enough(length, now - first[0], step - first[1])):
                continue
            try:
                send(run, Request(command=Command(t=0.0, verb="shutdown", by="the trial", stop_trainer=True)))
            except ControlError:
                continue  # it is ending or busy; asked again
            return


def _is_enough(length: TrialLength, trained_s: float, made: int) -> bool:
    return trained_s >= 60.0 * length.minutes or (length.steps is not None and made >= length.steps)
