"""The runs for the screen: those of this machine with the services of one that is opened, and those of others."""

import contextlib
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...model.ports import OpenRun
from ...model.redact import EDGE
from ...model.run import LIVE_STATES
from ...model.story import HOST_ROW, RunCard
from ...model.text import parted, typed
from ...store.lock import is_held
from ...store.run_lookup import list_runs
from ..errors import CliError
from ..runs.known_runs import RunDirectory, example_verb, home, open_run, queued_entries
from .run_services import Later, RunProfiles, RunServices, sentences
from .store_feed import StoreFeed

if TYPE_CHECKING:
    from ...model.machine_details import GpuDetails
    from ...model.observation import Command
    from ..hosts.far_runs import FarRuns
    from ..wiring.machine import MachineWatch


class MachineRuns:
    """Implements the screen's RunPicker."""

    @cached_property
    def _others(self) -> "FarRuns | None":
        """The runs of other machines, if some are named. A file with problems names none."""
        from ..hosts.run_there import all_hosts  # a run that is opened does not wait for it

        hosts = {}
        with contextlib.suppress(CliError):
            hosts = all_hosts()
        if not hosts:
            return None
        from ..hosts.far_runs import FarRuns

        return FarRuns(hosts.values())

    def runs(self, *, anew: bool = False) -> Sequence[RunCard]:
        """Reads every journal of this machine: called in a thread. What waits here comes first, as it is."""
        own = run_cards()
        if self._others is None:
            return own
        waiting = [card for card in own if card.queued is not None]
        rest = [*own[len(waiting) :], *self._others.cards(anew=anew)]
        return [*waiting, *sorted(rest, key=lambda card: -card.created_wall)]

    def show_there(self, card: RunCard, *, read_only: bool) -> None:
        """As ``trainwatch --on HOST --run ID``."""
        assert self._others is not None
        with sentences():
            code = self._others.show_there(card, ["--read-only"] if read_only else [])
        if code:
            raise RuntimeError(f"the screen on {card.host} ended with exit code {code}")

    def open(self, run_id: str) -> OpenRun:
        """The services of one run. Raises RuntimeError with a sentence."""
        _refuse(run_id, "--run")
        run, spec = open_run(run_id)
        services = RunServices(run, spec)
        log_browser: Any = Later("...sense.log.log_browser", "FileLogBrowser")
        return OpenRun(
            run_id=run.id,
            name=spec.name,
            feed=StoreFeed(run, spec.created_wall, spec.settings.health),
            profiles=RunProfiles(spec),
            services=services,
            plan=spec,
            logs=log_browser,
        )

    def start(self, run_id: str, then: "Command | None") -> None:
        from ..operate import start_on_screen

        start_on_screen(open_run(run_id)[0], then)

    def command(self, run_id: str) -> Sequence[str]:
        from ..wiring.supervisor import attach_argv  # loads all of core: the first picture does not wait for it

        return attach_argv(open_run(run_id)[0])

    def machine(self) -> "MachineWatch":
        from ..wiring.machine import MachineWatch  # loads all of core

        return MachineWatch(time.time())

    def training(self, seen: "GpuDetails | None") -> str:
        from ...act.adopt import AdoptionError
        from ...model.settings import Tmux
        from ..adopt import find_training
        from ..gpu_survey import GpuSeen, GpuSurvey, GpuUser

        users = (seen.processes or ()) if seen is not None else ()
        gpus = tuple(GpuSeen(index=each.gpu, users=(GpuUser(each.pid, each.mem_bytes),)) for each in users)
        try:
            found = find_training(Tmux(), GpuSurvey(gpus=gpus))
        except (AdoptionError, OSError):
            return ""
        return f"{found.command} (pid {found.pid})" if found.signs else ""

    def verb(self, *words: str) -> Sequence[str]:
        return (sys.executable, "-P", "-m", "trainwatch", *words)

    def hide(self, run_id: str, hidden: bool) -> None:
        """A mark in the run's folder: it is left out of the list, or shown again."""
        _refuse(run_id)
        run, _ = open_run(run_id)
        with sentences(str(run.hidden)):
            if hidden:
                run.hidden.touch(mode=0o600)
            else:
                run.hidden.unlink(missing_ok=True)


def _refuse(run_id: str, verb: str = "") -> None:
    """Raise RuntimeError if the row is no run of this machine. ``verb``: what does it on another one, if one does."""
    if run_id.startswith(QUEUED):
        number = run_id.removeprefix(QUEUED)
        raise RuntimeError(
            f"entry {number} waits in the queue and is no run yet: `trainwatch queue move {number} 1` lets it be the "
            f"next one, `trainwatch queue remove {number}` takes it out"
        )
    if parted(run_id) is not None:
        raise RuntimeError(f"a run of another machine: {typed(verb, run_id) if verb else 'not from this screen'}")
    if run_id.startswith(HOST_ROW):
        raise RuntimeError("this row stands for a machine, not for a run")


# Rows of the list of runs that are no runs yet: what waits in the queue.

QUEUED = "queue:"
"""Begins the id of such a row."""


# The cards of the runs of this machine. What reads a run is loaded when a list is shown.


def run_cards() -> Sequence[RunCard]:
    """What waits in the queue, then all known runs, newest first; ended ones of demo and drill come last.

    Reads every journal.
    """
    waiting = [
        RunCard(
            id=f"{QUEUED}{entry.id}",
            name=entry.name,
            state="idle",
            watched=False,
            created_wall=entry.added_wall,
            last_incident=EDGE.text(entry.why) or None,
            cwd=entry.cwd,
            command=tuple(EDGE.words(entry.command)),
            queued=place,
        )
        for place, entry in enumerate(queued_entries(), 1)
    ]
    cards = [(card_of(run), run.load_spec()) for run in list_runs(home())]
    last = [c for c, spec in cards if c.state not in LIVE_STATES and not c.watched and example_verb(spec) is not None]
    return [*waiting, *(c for c, _ in cards if c not in last), *last]


def card_of(run: RunDirectory) -> RunCard:
    """One run. Reads its journal and its newest samples."""
    import msgspec

    from ...store.journal import JournalTooNew
    from ...views.run_summary import summarise
    from ...views.screens.run_list import with_summary
    from ..runs.supervisor_life import read_situation

    spec = run.load_spec()
    known = RunCard(
        id=run.id,
        name=spec.name,
        state="idle",
        watched=is_held(run.lock),
        created_wall=spec.created_wall,
        cwd=spec.cwd,
        command=tuple(EDGE.words(spec.command)),
        hidden=run.hidden.exists(),
    )
    try:
        now, _ = read_situation(run)
    except (JournalTooNew, OSError):
        return known
    now = msgspec.structs.replace(now, story=EDGE.value(now.story))
    return with_summary(known, summarise(now, spec.name), now)
