"""Trials: the run's command under one profile for some minutes, in a separate folder, measured and ended gently.

A trial is a run like any other (launched, supervised, journalled), but in its own state folder, with its own output
folder, without restarts, remedies and notices. No file of the user is written.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...act.config.derive import DeriveError
from ...act.config.redirect import redirected
from ...model.control_messages import Request
from ...model.launch.trial import TrialResult
from ...model.observation import Command
from ...model.record import Record
from ...model.run import LIVE_STATES, RunSpec
from ...model.settings import Checkpoints, Notify, Remedies, Settings, Tmux
from ...store.control_client import ControlError, send
from ...store.home import make_private
from ...store.journal import load_story
from ...store.lock import is_held
from ...store.metrics.history import HistoryReader
from ...store.run_directory import RunDirectory, new_run_id
from ...store.trials import keep_trial, trials_folder
from ..errors import CliError, ExitCode
from ..plan.definitions import Definitions, definitions_of
from ..plan.launch_plan import plan_launch
from ..runs.known_runs import all_runs, home
from .trial_measure import measure

LOOK_S = 0.25
"""Period of checking whether a trial is long enough."""
MINUTES = 5.0
"""Long enough for warm-up and a stable pace of most trainers."""


class TrialLength(msgspec.Struct, frozen=True, kw_only=True):
    """How long, from the first step on; the first that is reached ends it."""

    minutes: float = MINUTES
    steps: int | None = None


def rivals(spec: RunSpec) -> list[str]:
    """Live runs on the same GPU, as sentences. A run without ``gpus`` may be on all of them."""
    return [
        f"run {other.name} trains on {'the same GPU' if other.gpus or spec.gpus else 'this machine'}"
        for run, other in ((run, run.load_spec()) for run in all_runs())
        if is_held(run.lock)
        and load_story(run.journal).state in LIVE_STATES
        and (spec.gpus is None or other.gpus is None or set(spec.gpus) & set(other.gpus))
    ]


def plan_trial(spec: RunSpec, profile: str, scratch: Path, definitions: Definitions) -> RunSpec:
    """The run of a trial, writing below ``scratch``. Raises CliError if its output cannot be redirected."""
    preset, known = definitions.preset_of(spec), definitions.profiles
    if profile not in known:
        raise CliError(ExitCode.NOT_FOUND, f'no profile "{profile}"; there are: {", ".join(known)}')
    name = f"{spec.name}-{profile}"
    quiet = msgspec.structs.replace(
        spec,
        id=new_run_id(trials_folder(home()), name, Path(spec.project or spec.cwd)),
        name=name,
        created_wall=time.time(),
        logs=(),
        settings=_settings(spec.settings, profile),
        labels={**spec.labels, "trial_of": spec.id},
    )
    try:
        return redirected(quiet, preset, known[profile], scratch / "out")
    except DeriveError as error:
        raise CliError(ExitCode.FAILED, f"no trial of {profile}: {error}") from None


def try_here(spec: RunSpec, profile: str, length: TrialLength, scratch: Path | None, *, keep: bool) -> TrialResult:
    """Run one trial to its end, in the main thread, and keep its result. An interrupt ends its trainer, too.

    ``scratch``: parent of the trial's own folder (default: below TRAINWATCH_HOME); removed afterwards unless ``keep``.
    Raises CliError, KeyboardInterrupt.
    """
    from ..foreground import supervise
    from ..preflight.checklist import require_startable

    parent = make_private(trials_folder(home()) / "scratch") if scratch is None else scratch.absolute()
    folder = Path(tempfile.mkdtemp(prefix=f"trial-{profile}-", dir=parent))
    try:
        definitions = definitions_of(spec)
        planned = plan_trial(spec, profile, folder, definitions)
        plan = plan_launch(planned, definitions, trials_folder(home()))
        require_startable(plan, forced=True)  # what fails, the trial shows
        (folder / "out").mkdir()
        run = RunDirectory.create(trials_folder(home()), planned)
        over = threading.Event()
        clock = threading.Thread(target=_end_in_time, args=(run, length, over), name="trial", daemon=True)
        clock.start()
        try:
            code = supervise(run, listener=lambda _story: _unheard, plan=plan, stop_trainer=True)
        finally:
            over.set()
            clock.join()
        if code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        with HistoryReader(run.history) as history:
            result = measure(profile, planned.created_wall, load_story(run.journal), history, spec.gpus)
        keep_trial(home(), spec.id, result)
        return result
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)  # it was made above


def _settings(settings: Settings, profile: str) -> Settings:
    replace = msgspec.structs.replace
    return replace(
        settings,
        profiles=replace(settings.profiles, use=profile, ramp=()),
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
    with HistoryReader(run.history) as history:
        while not over.wait(LOOK_S):
            point = history.latest().progress
            step = None if point is None else point.progress.any_step
            if point is None or step is None:
                continue
            first = first or (time.monotonic(), step)
            made = step - first[1]
            if time.monotonic() - first[0] < 60.0 * length.minutes and (length.steps is None or made < length.steps):
                continue
            try:
                send(run, Request(command=Command(t=0.0, verb="shutdown", by="the trial", stop_trainer=True)))
            except ControlError:
                continue  # it is ending or busy; asked again
            return
