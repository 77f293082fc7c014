"""The runs for the screen: those of this machine with the services of one that is opened, and those of others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...model.screen_ports import LogAccess, OpenRun
from ...model.situation import HOST_ROW
from ...model.suggestion import parted, typed
from ..errors import CliError
from ..runs.known_runs import open_run
from .run_looks import RunLooks, RunProfiles, later, plan_of
from .store_feed import StoreFeed, current_story

if TYPE_CHECKING:
    from ...model.situation import RunCard
    from ..hosts.far_runs import FarRuns


class MachineRuns:
    """Implements the screen's RunPicker. ``others``: the runs of other machines, if some are named."""

    def __init__(self, others: "FarRuns | None" = None) -> None:
        self._others = others

    def runs(self, *, anew: bool = False) -> "Sequence[RunCard]":
        """Reads every journal of this machine: called in a thread. What waits here comes first, as it is."""
        from .run_cards import run_cards

        own = run_cards()
        if self._others is None:
            return own
        waiting = [card for card in own if card.queued is not None]
        rest = [*own[len(waiting) :], *self._others.cards(anew=anew)]
        return [*waiting, *sorted(rest, key=lambda card: -card.created_wall)]

    def show_there(self, card: "RunCard", *, read_only: bool) -> None:
        """As ``trainwatch --on HOST --run ID``."""
        assert self._others is not None
        try:
            code = self._others.show_there(card, ["--read-only"] if read_only else [])
        except (CliError, OSError) as error:
            raise RuntimeError(str(error)) from error
        if code:
            raise RuntimeError(f"the screen on {card.host} ended with exit code {code}")

    def open(self, run_id: str) -> OpenRun:
        """The services of one run. Raises RuntimeError with a sentence."""
        _refuse(run_id, "--run")
        run, spec = open_run(run_id)
        # What the first picture does not need is loaded when it is used.
        return OpenRun(
            run_id=run.id,
            name=spec.name,
            feed=StoreFeed(run, spec.created_wall, current_story, spec.settings.health),
            profiles=RunProfiles(spec),
            ladder=spec.settings.profiles.ladder,
            incident_files=later(".run_services", "IncidentFolder", run),
            looks=RunLooks(run),
            checkpoints=later(".run_services", "RunCheckpoints", spec, run.load_spec),
            launch=later(".run_services", "RunLaunch", spec),
            samples=later(".run_services", "RunSamples", spec, run.load_spec),
            trials=later(".run_services", "RunTrials", spec),
            details=later("...store.detail_files", "DetailReader", run.path),
            ranks=later(".run_services", "RunRanks", run),
            screen=spec.settings.screen,
            plan=plan_of(spec),
            logs=LogAccess(
                browser=later("...sense.log.log_browser", "FileLogBrowser"),
                stamps=later(".run_services", "AttemptStamps", run),
                extra=spec.logs,
            ),
        )

    def hide(self, run_id: str, hidden: bool) -> None:
        """A mark in the run's folder."""
        _refuse(run_id)
        run, _ = open_run(run_id)
        from .run_cards import hide

        try:
            hide(run, hidden)
        except OSError as error:
            raise RuntimeError(f"{run.hidden}: {error.strerror or error}") from error


def _refuse(run_id: str, verb: str = "") -> None:
    """Raise RuntimeError if the row is no run of this machine. ``verb``: what does it on another one, if one does."""
    refuse_queued(run_id)
    if parted(run_id) is not None:
        raise RuntimeError(f"a run of another machine: {typed(verb, run_id) if verb else 'not from this screen'}")
    if run_id.startswith(HOST_ROW):
        raise RuntimeError("this row stands for a machine, not for a run")


# Rows of the list of runs that are no runs yet: what waits in the queue.

QUEUED = "queue:"
"""Begins the id of such a row."""


def refuse_queued(run_id: str) -> None:
    """Raise RuntimeError with a sentence if the id is that of an entry that waits."""
    if run_id.startswith(QUEUED):
        number = run_id.removeprefix(QUEUED)
        raise RuntimeError(
            f"entry {number} waits in the queue and is no run yet: `trainwatch queue move {number} 1` lets it be the "
            f"next one, `trainwatch queue remove {number}` takes it out"
        )
