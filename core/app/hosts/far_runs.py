"""The runs of other machines, as ``trainwatch runs --json`` tells them there."""

import threading
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec

from ...model.progress import Level
from ...model.redact import EDGE
from ...model.run import LIVE_STATES, Host, RunState
from ...model.story import HOST_ROW, RunCard
from ...model.text import printable
from ...store.supervision import boot_seconds
from ...views.quantity import duration
from ..errors import CliError
from .run_there import UnansweredError, ask_there, show_there

AGAIN_S = 30.0
"""How often the screen asks: each question starts a Python there, half a second of a core."""
PERSON_S = 300.0
"""The same while a person has to do something first: failed logins every few seconds get an address banned."""


class FarSupervisor(msgspec.Struct, frozen=True, kw_only=True):
    alive: bool
    responsive: bool


class FarRow(msgspec.Struct, frozen=True, kw_only=True):
    """What lists show of a row of ``runs --json``."""

    id: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]*$")]
    run: str
    state: RunState
    attempt: int
    step: int | None
    total_steps: int | None
    supervisor: FarSupervisor
    created: float
    cwd: str
    stand_in: str | None = None
    eta_s: float | None = None
    trouble: str | None = None
    needs_you: str | None = None
    still: str = ""
    level: Level | None = None
    """None: that trainwatch is older, and has none."""


class HostRuns(msgspec.Struct, frozen=True, kw_only=True):
    """What one machine answered. ``trouble``: why it did not, a sentence; ``needs_a_person``: nor will it soon."""

    host: str
    rows: tuple[dict[str, Any], ...] = ()
    trouble: str = ""
    needs_a_person: bool = False


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    runs: tuple[dict[str, Any], ...]


def runs_there(host: Host) -> HostRuns:
    """Ask one machine. Nobody is asked for a password."""
    try:
        told = msgspec.json.decode(ask_there(host, ["runs", "--json"]), type=_Told)
        msgspec.convert(told.runs, tuple[FarRow, ...])
    except msgspec.MsgspecError as error:
        text = f"it answered what this version does not understand ({error})"
        return HostRuns(host=host.name, trouble=text, needs_a_person=True)
    except (CliError, OSError) as error:
        person = isinstance(error, UnansweredError) and error.needs_a_person
        return HostRuns(host=host.name, trouble=str(error).removeprefix(f"{host.name}: "), needs_a_person=person)
    return HostRuns(host=host.name, rows=EDGE.value(told.runs))


def runs_of_all(hosts: Iterable[Host]) -> list[HostRuns]:
    """Ask all machines at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    known = list(hosts)
    with ThreadPoolExecutor(max_workers=max(1, len(known))) as threads:
        return list(threads.map(runs_there, known))


class FarRuns:
    """For the screen: what the machines told last. They are asked in the background while somebody looks."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._asked = [_Asked(host) for host in hosts]

    def cards(self, *, anew: bool = False) -> list[RunCard]:
        """Does not wait for any machine. ``anew``: ask all of them now."""
        return [card for each in self._asked for card in each.cards(anew=anew)]

    def show_there(self, card: RunCard, options: Sequence[str]) -> int:
        """The screen there, on this terminal; the exit code. Raises CliError."""
        asked = next(each for each in self._asked if each.host.name == card.host)
        named = [] if card.id.startswith(HOST_ROW) else ["--run", card.id.partition(":")[2]]
        try:
            return show_there(asked.host, [*named, *options])
        finally:
            asked.ask()


class _Asked:
    """One machine: its newest answer, and when it is asked again."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._known: tuple[float, tuple[FarRow, ...]] | None = None
        self._trouble, self._next_at, self._asking = "", 0.0, False

    def cards(self, *, anew: bool) -> list[RunCard]:
        if anew or boot_seconds() >= self._next_at:
            self.ask()
        if self._known is None:
            return [_card(self.host.name, None, self._trouble)]
        at, rows = self._known
        why = f"{self._trouble}; as of {duration(boot_seconds() - at)} ago" if self._trouble else ""
        # Ended runs of demo and drill are left out, as in ``runs`` there.
        live = (row for row in rows if row.stand_in is None or row.state in LIVE_STATES or row.supervisor.alive)
        return [_card(self.host.name, row, why) for row in live]

    def ask(self) -> None:
        """In the background, unless it is being asked."""
        if not self._asking:
            self._asking = True
            threading.Thread(target=self._ask, name=f"runs {self.host.name}", daemon=True).start()

    def _ask(self) -> None:
        found = runs_there(self.host)
        self._trouble = found.trouble
        if not found.trouble:
            self._known = boot_seconds(), msgspec.convert(found.rows, tuple[FarRow, ...])
        self._next_at = boot_seconds() + (PERSON_S if found.needs_a_person else AGAIN_S)
        self._asking = False


def _card(host: str, row: FarRow | None, no_answer: str) -> RunCard:
    """The run in the list; without a row the machine itself."""
    if row is None:
        return RunCard(
            id=f"{HOST_ROW}{host}", name=host, state="idle", watched=False, created_wall=0.0, host=host,
            trouble="it is being asked", no_answer=no_answer,
        )  # fmt: skip
    wrong = row.needs_you or row.trouble or ""
    return RunCard(
        id=f"{host}:{row.id}",
        name=printable(row.run),
        state=row.state,
        watched=row.supervisor.alive,
        created_wall=row.created,
        step=row.step,
        total_steps=row.total_steps,
        level=row.level or ("warning" if wrong else None),
        trouble=wrong,
        eta_s=row.eta_s,
        attempts=row.attempt,
        cwd=row.cwd,
        host=host,
        no_answer=no_answer,
    )
