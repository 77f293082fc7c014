"""What the screen needs from outside: runs to open, a log reader, a way to start a supervisor and to attach."""

import time
from collections.abc import Sequence

from trainwatch.core.app.runs.known_runs import home, stand_in_of
from trainwatch.core.app.screen.late_doors import (
    LateCheckpoints,
    LateIncidents,
    LateLaunch,
    LateLauncher,
    LateProfiles,
    LateSamples,
)
from trainwatch.core.app.screen.screen_trials import RunTrials
from trainwatch.core.model.observation import Command
from trainwatch.core.model.ports import LogAccess, OpenRun
from trainwatch.core.model.run import LIVE_STATES
from trainwatch.core.model.run_card import RunCard, RunPlan
from trainwatch.core.model.story import RunStory
from trainwatch.core.sense.log.log_browser import LogLines
from trainwatch.core.sense.log.log_pages import LogPages
from trainwatch.core.store.journal import JournalTooNew, load_story
from trainwatch.core.store.lock import is_held
from trainwatch.core.store.log_index import FILE_NAME as LOG_INDEX
from trainwatch.core.store.log_index import LogIndex
from trainwatch.core.store.run_directory import AmbiguousRun, RunDirectory, RunNotFound, RunUnreadable, list_runs
from trainwatch.core.store.run_directory import find_run as find_known_run
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.store_feed import StoreFeed


def app_for(run: RunDirectory | None, *, read_only: bool, launch_first: bool = False) -> TrainwatchApp:
    """The application on a run, on the list of runs, or on what this folder could start (``launch_first``)."""
    doors = MachineRuns()
    return TrainwatchApp(
        None if run is None else doors.open(run.id),
        LogPages(),
        starter=DetachedStarter(),
        attacher=RunAttacher(),
        picker=doors,
        launcher=LateLauncher(),
        launch_first=launch_first,
        read_only=read_only,
        home=home(),
    )


class MachineRuns:
    """Implements the screen's RunPicker."""

    def runs(self) -> Sequence[RunCard]:
        """All known runs, newest first; those of the demo that are over come last.

        Reads every journal: called in a thread.
        """
        own: list[RunCard] = []
        last: list[RunCard] = []
        for run in list_runs(home()):
            card = _card(run)
            over = card.state not in LIVE_STATES and not card.watched
            (last if over and stand_in_of(run.load_spec()) else own).append(card)
        return [*own, *last]

    def open(self, run_id: str) -> OpenRun:
        """The doors of one run. Raises RuntimeError with a sentence."""
        try:
            run = find_known_run(home(), run_id)
            spec = run.load_spec()
        except (RunNotFound, AmbiguousRun, RunUnreadable) as error:
            raise RuntimeError(str(error)) from error
        return OpenRun(
            run_id=run.id,
            name=spec.name,
            feed=StoreFeed(run, spec.created_wall, _as_found, spec.settings.health),
            profiles=LateProfiles(spec),
            ladder=spec.settings.profiles.ladder,
            incident_files=LateIncidents(run),
            checkpoints=LateCheckpoints(spec),
            launch=LateLaunch(spec),
            samples=LateSamples(spec),
            trials=RunTrials(spec),
            screen=spec.settings.screen,
            keep_last=spec.settings.checkpoints.keep_last,
            plan=RunPlan(
                name=spec.name,
                command=spec.command,
                cwd=spec.cwd,
                preset=spec.preset,
                profile=spec.settings.profiles.use,
                output_dir=spec.output_dir,
            ),
            logs=LogAccess(browser=LogLines(), stamps=AttemptStamps(run), extra=spec.logs),
        )


class AttemptStamps:
    """Implements ``model.log_lines.LogStamps`` over the indexes in the attempts' folders."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def time_of(self, attempt: int, offset: int) -> float | None:
        """Run seconds of a line; None = nobody watched."""
        return LogIndex(self._run.attempt(attempt) / LOG_INDEX).time_of(offset)

    def offset_at(self, attempt: int, t: float) -> int | None:
        """Size of the log at ``t``."""
        return LogIndex(self._run.attempt(attempt) / LOG_INDEX).offset_at(t)


class DetachedStarter:
    """Implements the screen's Starter."""

    def start(self, run_id: str, then: Command | None = None) -> None:
        """A supervisor in a session of its own. Raises RuntimeError with a sentence."""
        from trainwatch.core.app.start.detached import start_detached
        from trainwatch.core.app.start.resume_from import unfit

        run = find_known_run(home(), run_id)
        if then is not None and (why := unfit(run, then)) is not None:
            raise RuntimeError(why)
        start_detached(run, then)


class RunAttacher:
    """Implements ``model.ports.Attacher``."""

    def command(self, run_id: str) -> Sequence[str]:
        """argv for the foreground. Raises RuntimeError with a sentence."""
        from trainwatch.core.app.wiring import attach_argv  # loads all of core: the first picture does not wait for it

        return attach_argv(find_known_run(home(), run_id))


def _as_found(run: RunDirectory, story: RunStory) -> RunStory:
    from trainwatch.core.app.runs.unwatched import (
        as_found,  # loads the launching part of core: only where nobody watches
    )

    return as_found(run, story)


def _card(run: RunDirectory) -> RunCard:
    spec = run.load_spec()
    try:
        story = _as_found(run, load_story(run.journal))
    except JournalTooNew:
        return RunCard(id=run.id, name=spec.name, state="idle", watched=is_held(run.lock), created_wall=time.time())
    from trainwatch.core.store.history_reader import HistoryReader
    from trainwatch.core.views.run_progress import over_run

    history = HistoryReader(run.history)
    latest = history.latest()
    history.close()
    progress = over_run(story, latest.progress.progress if latest.progress else story.progress)
    return RunCard(
        id=run.id,
        name=spec.name,
        state=story.state,
        watched=is_held(run.lock),
        created_wall=spec.created_wall,
        step=progress.step,
        total_steps=progress.total_steps,
        last_incident=story.incidents[-1].reason if story.incidents else None,
    )
