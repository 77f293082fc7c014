"""The runs of this machine for the screen, and the services of one that is opened."""

from collections.abc import Sequence

from ...model.ports.screen import LogAccess, OpenRun
from ...model.run_card import RunCard, RunSettings
from ...sense.log.log_browser import FileLogBrowser
from ...store.detail_files import DetailReader
from ..errors import CliError
from ..runs.known_runs import open_run
from .run_cards import current_story, hide, refuse_queued, run_cards
from .run_causes import RunCauses
from .run_checkpoints import RunCheckpoints
from .run_looks import RunLooks
from .run_ranks import RunRanks
from .run_services import AttemptStamps, IncidentFolder, RunLaunch, RunProfiles, RunSamples
from .run_settings import plan_of, settings_of
from .run_trials import RunTrials
from .store_feed import StoreFeed


class MachineRuns:
    """Implements the screen's RunPicker."""

    def runs(self) -> Sequence[RunCard]:
        """Reads every journal: called in a thread."""
        return run_cards()

    def open(self, run_id: str) -> OpenRun:
        """The services of one run. Raises RuntimeError with a sentence."""
        refuse_queued(run_id)
        run, spec = open_run(run_id)
        return OpenRun(
            run_id=run.id,
            name=spec.name,
            feed=StoreFeed(run, spec.created_wall, current_story, spec.settings.health),
            profiles=RunProfiles(spec),
            ladder=spec.settings.profiles.ladder,
            incident_files=IncidentFolder(run),
            causes=RunCauses(run),
            looks=RunLooks(run),
            checkpoints=RunCheckpoints(spec, run.load_spec),
            launch=RunLaunch(spec),
            samples=RunSamples(spec, run.load_spec),
            trials=RunTrials(spec),
            details=DetailReader(run.path),
            ranks=RunRanks(run),
            screen=spec.settings.screen,
            keep_last=spec.settings.checkpoints.keep_last,
            plan=plan_of(spec),
            logs=LogAccess(browser=FileLogBrowser(), stamps=AttemptStamps(run), extra=spec.logs),
        )

    def settings(self, run_id: str) -> RunSettings:
        """Reads the newest launch of the run and its config."""
        refuse_queued(run_id)
        run, spec = open_run(run_id)
        return settings_of(run, spec)

    def hide(self, run_id: str, hidden: bool) -> None:
        """A mark in the run's folder."""
        refuse_queued(run_id)
        run, _ = open_run(run_id)
        try:
            hide(run, hidden)
        except OSError as error:
            raise RuntimeError(f"{run.hidden}: {error.strerror or error}") from error

    def kept_about(self, run_id: str) -> str:
        """As ``trainwatch forget`` asks."""
        from ..runs.forgetting import kept_about

        refuse_queued(run_id)
        run, _ = open_run(run_id)
        try:
            return kept_about(run)
        except (CliError, OSError) as error:
            raise RuntimeError(str(error)) from error

    def forget(self, run_id: str) -> str:
        """As ``trainwatch forget`` does."""
        from ..runs.forgetting import forget, kept_about

        refuse_queued(run_id)
        run, _ = open_run(run_id)
        try:
            kept = kept_about(run)
            forget(run)
        except (CliError, OSError) as error:
            raise RuntimeError(str(error)) from error
        return kept
