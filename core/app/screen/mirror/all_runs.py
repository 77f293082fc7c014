"""The runs of this machine and of the others, for the screen."""

import os
from collections.abc import Sequence

import msgspec

from ....act.remote.ssh import NoSshError, ssh_argv
from ....act.remote.there import command_there
from ....model.observation import Command
from ....model.ports.screen import Attacher, LogAccess, OpenRun, SupervisorStarter
from ....model.remote.host import Host
from ....model.run import LIVE_STATES
from ....model.run_card import RunCard, RunSettings
from ....model.text.far_run import parted
from ....model.text.suggestion import typed
from ....store.mirror.mirrors import HostMirror, mirrors_folder, remove_old
from ....store.run_directory import RunUnreadable
from ....views.quantity import duration
from ...hosts.run_there import sockets
from ...runs.known_runs import know_secrets
from ..opened_run import OpenedRun
from ..run_looks import RunLooks
from ..run_picker import MachineRuns
from ..run_settings import plan_of
from .far_feed import FarFeed
from .far_host import FarHost
from .far_logs import FarLogs, FarStamps
from .far_samples import FarSamples
from .far_services import (
    FarCauses,
    FarCheckpoints,
    FarDetails,
    FarIncidents,
    FarLaunch,
    FarProfiles,
    FarRanks,
)
from .far_trials import FarTrials

FIRST_S = 20.0
"""Longest wait for the first of a run that has no copy here yet."""
HOST_ROW = "host="
"""Begins the id of a row that stands for a machine of which no run is known."""


class FarHosts:
    """The other machines. Lines are begun when something of them is asked for."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        folder = mirrors_folder(os.environ)
        remove_old(folder)
        self.known = {host.name: FarHost(host, HostMirror(folder, host.name)) for host in hosts}

    def of(self, run_id: str) -> tuple[FarHost, str] | None:
        """The machine of a run, and the run's id there; None: of this machine. Raises RuntimeError: not known."""
        names = parted(run_id)
        if names is None:
            return None
        if names[0] not in self.known:
            raise RuntimeError(f'no host "{names[0]}" is named in [hosts] any more')
        return self.known[names[0]], names[1]

    def close(self) -> None:
        for far in self.known.values():
            far.close()


class AllRuns(MachineRuns):
    """Implements the screen's RunPicker: runs of other machines have ids such as ``box1:job-1a2b3c4d``."""

    def __init__(self, hosts: FarHosts) -> None:
        self.hosts = hosts

    def runs(self) -> Sequence[RunCard]:
        """Those of the other machines as they are known; newest first together."""
        own = list(super().runs())
        waiting = [card for card in own if card.queued is not None]
        rest = [card for card in own if card.queued is None]
        for far in self.hosts.known.values():
            rest += _far_cards(far)
        return [*waiting, *sorted(rest, key=lambda card: -card.created_wall)]

    def open(self, run_id: str) -> OpenRun:
        if run_id.startswith(HOST_ROW):
            far = self.hosts.known[run_id.removeprefix(HOST_ROW)]
            raise RuntimeError(far.link.state.why or f"{far.host.name} has no runs")
        of = self.hosts.of(run_id)
        return super().open(run_id) if of is None else open_far(*of)

    def settings(self, run_id: str) -> RunSettings:
        of = self.hosts.of(run_id)
        if of is None:
            return super().settings(run_id)
        found: RunSettings = of[0].run(of[1]).known("settings", RunSettings)
        return found

    def hide(self, run_id: str, hidden: bool) -> None:
        self._refuse(run_id, "hide")
        super().hide(run_id, hidden)

    def kept_about(self, run_id: str) -> str:
        self._refuse(run_id, "forget")
        return super().kept_about(run_id)

    def forget(self, run_id: str) -> str:
        self._refuse(run_id, "forget")
        return super().forget(run_id)

    def _refuse(self, run_id: str, what: str) -> None:
        if run_id.startswith(HOST_ROW):
            raise RuntimeError("this row stands for a machine, not for a run")
        if self.hosts.of(run_id) is not None:
            raise RuntimeError(
                f"a run of another machine: {typed('forget', run_id)}" if what == "forget"
                else "a run of another machine is not hidden here"
            )  # fmt: skip


def _far_cards(far: FarHost) -> list[RunCard]:
    cards, age_s = far.cards()
    state = far.link.state
    if age_s is None:
        return cards
    if cards:
        line = "no line to" if state.why else "connecting to" if state.lost_s is not None else "waiting for"
        link = f"{line} {far.host.name}: as of {duration(age_s)} ago"
        return [msgspec.structs.replace(card, link=link) for card in cards]
    return [
        RunCard(
            id=f"{HOST_ROW}{far.host.name}", name=far.host.name, state="idle", watched=False, created_wall=0.0,
            host=far.host.name, link=state.why or f"connecting to {far.host.name}",
        )
    ]  # fmt: skip


def first_run(far: FarHost, name: str | None, trouble: str) -> str | None:
    """The run to begin with: by its name or id, else the only live one; None: the list.

    ``trouble``: why there is no line. Raises LookupError if no run has the name, RuntimeError if nothing is known.
    """
    if not trouble:
        far.start()
        far.link.wait_for_first_result(FIRST_S)
        trouble = far.link.state.why
    cards = far.cards_now() if not trouble else far.cards()[0]
    if trouble and not cards:
        raise RuntimeError(trouble)
    if name is None:
        live = [card.id for card in cards if card.watched or card.state in LIVE_STATES]
        return live[0] if len(live) == 1 else None
    for card in cards:
        if name in {card.id, card.name, card.id.partition(":")[2]}:
            return card.id
    raise LookupError(
        f'no run "{name}" on {far.host.name}; `trainwatch --on {far.host.name} runs` lists those that exist'
    )


def open_far(far: FarHost, run_id: str) -> OpenRun:
    """Follow a run and show it. Waits for the first of it only if there is no copy. Raises RuntimeError."""
    try:
        copy = far.follow(run_id)
    except (OSError, ValueError) as error:
        raise RuntimeError(str(error)) from error
    if not copy.arrived.is_set():
        far.link.wait_for_first_result(FIRST_S)
        if far.link.state.lost_s is not None and far.link.state.why:
            raise RuntimeError(far.link.state.why)
        copy.arrived.wait(FIRST_S)
    try:
        spec = know_secrets(copy.directory).load_spec()
    except RunUnreadable as error:
        told = copy.now.trouble if copy.now is not None else ""
        raise RuntimeError(told or f"{far.host.name} did not send the run within {FIRST_S:.0f} s ({error})") from error
    asked = far.run(run_id)
    outputs, stamps = OpenedRun(spec, copy.directory.load_spec), FarStamps(asked)
    return OpenRun(
        run_id=f"{far.host.name}:{run_id}",
        name=spec.name,
        feed=FarFeed(far, copy, spec, asked),
        profiles=FarProfiles(asked),
        ladder=spec.settings.profiles.ladder,
        incident_files=FarIncidents(asked),
        causes=FarCauses(asked),
        looks=RunLooks(copy.directory),
        checkpoints=FarCheckpoints(asked, far.host.name, outputs),
        launch=FarLaunch(asked),
        samples=FarSamples(asked, outputs, copy.directory.path),
        trials=FarTrials(asked),
        details=FarDetails(asked),
        ranks=FarRanks(asked),
        screen=spec.settings.screen,
        keep_last=spec.settings.checkpoints.keep_last,
        plan=plan_of(spec),
        logs=LogAccess(browser=FarLogs(asked, stamps), stamps=stamps, extra=spec.logs),
    )


class AllStarters:
    """Implements the screen's Starter: a supervisor is started on the machine of the run, never here for another's."""

    def __init__(self, here: SupervisorStarter, hosts: FarHosts) -> None:
        self._here, self._hosts = here, hosts

    def start(self, run_id: str, then: Command | None = None) -> None:
        """Raises RuntimeError with a sentence."""
        of = self._hosts.of(run_id)
        if of is None:
            self._here.start(run_id, then)
        else:
            of[0].run(of[1]).asked("start", None, then=then)


class AllAttachers:
    """Implements ``model.ports.Attacher``: the trainer's terminal, also of another machine."""

    def __init__(self, here: Attacher, hosts: FarHosts) -> None:
        self._here, self._hosts = here, hosts

    def command(self, run_id: str) -> Sequence[str]:
        """Raises RuntimeError with a sentence."""
        of = self._hosts.of(run_id)
        if of is None:
            return self._here.command(run_id)
        far, there = of
        try:
            words = command_there(far.host, ["attach", there], marked=False)
            return ssh_argv(far.host, sockets(), words, terminal=True)
        except NoSshError as error:
            raise RuntimeError(str(error)) from error


__all__ = ["AllAttachers", "AllRuns", "AllStarters", "FarHosts"]
