"""Another machine as this screen has it: the line, the copies of its runs, and its list of runs."""

import re
import sqlite3
import threading
import time

import msgspec

from ....model.remote.host import Host
from ....model.remote.messages import Ask, CardsNow, Follow, Piece, Rows, RunNow, SmallFile, Told, Unfollow
from ....model.run_card import RunCard
from ....model.text.far_run import far_id
from ....store.clock import boot_seconds
from ....store.home import make_private
from ....store.metrics.history_rows import HistoryCopy
from ....store.mirror.journal_copy import CopiedFile, Part, replace_copy
from ....store.mirror.kept_answers import KeptAnswers
from ....store.mirror.mirrors import HostMirror
from ....store.run_directory import RunDirectory
from .far_run import FarRun
from .link import Link, LinkLost

CARDS_S = 4.0
"""A list that is older is asked for anew; the runs page reads its list every five seconds."""
OLD_S = 15.0
"""A list that is older is shown with its age: three questions were not answered."""
FILES = re.compile(r"run\.json|outputs\.json|history\.sqlite\.newest|attempts/\d{4,9}/job\.json")
"""Paths in a run's folder that are taken."""
MARK_S = 15.0
"""Period of writing down until when a copy agrees."""


class RunCopy:
    """The copy of one run. ``generation`` rises when its journal was replaced by another one."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        self.generation = 0
        self.now: RunNow | None = None
        self.arrived = threading.Event()
        """``run.json`` is there."""
        self._journal = CopiedFile(directory.journal)
        self._history = HistoryCopy(directory.history)
        self._marked = 0.0
        if directory.spec.exists():
            self.arrived.set()

    def have(self) -> Follow:
        """What is here, for the other side to go on from."""
        size, digest = self._journal.have()
        try:
            marks = self._history.marks() if size else {}
        except (sqlite3.Error, OSError):
            self._history.clear()
            marks = {}
        return Follow(run=self.directory.id, journal=size, digest=digest, history=marks)

    def take(self, told: Piece | SmallFile | Rows | RunNow, mirror: HostMirror) -> bool:
        """Write what came; False: it does not follow on what is here. Raises OSError, sqlite3.Error."""
        match told:
            case Piece():
                if told.anew:
                    self._history.clear()
                    self.generation += 1
                return self._journal.add(Part(told.offset, told.data, told.anew))
            case SmallFile(name=name) if FILES.fullmatch(name):
                path = self.directory.path / name
                make_private(path.parent)
                replace_copy(path, told.data)
                if name == "run.json":
                    self.arrived.set()
            case Rows():
                self._history.write(told.table, told.columns, told.rows)
            case RunNow():
                self.now = told
                if told.trouble:
                    self.arrived.set()
                if told.whole and abs(told.wall - self._marked) >= MARK_S:
                    self._marked = told.wall
                    mirror.heard(self.directory, told.wall)
            case _:
                pass
        return True

    def close(self) -> None:
        self._history.close()


class FarHost:
    """``start`` begins the line; everything else works without one, with what is known."""

    def __init__(self, host: Host, mirror: HostMirror) -> None:
        self.host, self.mirror = host, mirror
        self.link = Link(host, self._take, self._asks)
        self._copies: dict[str, RunCopy] = {}
        self._lock = threading.Lock()
        self._cards = mirror.cards()
        self._cards_at = 0.0
        self._cards_heard: float | None = None
        self._asking = False
        self.trouble = ""
        """Why the copies cannot be written."""

    def start(self) -> None:
        self.link.start()

    def close(self) -> None:
        self.link.close()

    def follow(self, run_id: str) -> RunCopy:
        """The copy of a run, which is followed from now on; no other one is. Raises OSError, ValueError."""
        with self._lock:
            copy = self._copies.get(run_id)
            left = [each for each in self._copies if each != run_id]
            for each in left:
                self._copies.pop(each).close()
            if copy is None:
                copy = self._copies[run_id] = RunCopy(self.mirror.run(run_id))
        for each in left:
            self.link.ask(Unfollow(run=each))
        self.start()
        self.link.ask(copy.have())
        return copy

    def run(self, run_id: str) -> FarRun:
        """For questions about a run there."""
        return FarRun(self.link, run_id, KeptAnswers(self.mirror.path / "runs" / run_id))

    def cards(self) -> tuple[list[RunCard], float | None]:
        """The runs there as they were known last, with the host in their ids; and their age in seconds, None = now.

        Does not wait: a newer list is asked for in the background.
        """
        self.start()
        if not self._asking and boot_seconds() - self._cards_at > CARDS_S:
            self._asking = True
            threading.Thread(target=self._ask_cards, name=f"runs {self.host.name}", daemon=True).start()
        state = self.link.state
        ahead_s = state.ahead_s or 0.0
        heard = self._cards_heard
        new = state.lost_s is None and heard is not None and boot_seconds() - heard <= OLD_S
        age_s = None if new else max(0.0, time.time() + ahead_s - self._cards.wall)
        return [self._shown(card, ahead_s) for card in self._cards.cards], age_s

    def cards_now(self) -> list[RunCard]:
        """The same, waited for. What was known last if there is no answer."""
        self._ask_cards()
        return self.cards()[0]

    def _shown(self, card: RunCard, ahead_s: float) -> RunCard:
        changed = card.changed_wall
        return msgspec.structs.replace(
            card,
            id=far_id(self.host.name, card.id),
            host=self.host.name,
            created_wall=card.created_wall - ahead_s,
            changed_wall=None if changed is None else changed - ahead_s,
        )

    def _ask_cards(self) -> None:
        try:
            self.link.wait_for_first_result(CARDS_S)
            found = self.link.call("cards", "", CardsNow)
            self._cards = CardsNow(cards=tuple(card for card in found.cards if card.queued is None), wall=found.wall)
            self._cards_heard = boot_seconds()
            self.mirror.keep_cards(self._cards)
        except (LinkLost, RuntimeError, msgspec.MsgspecError):
            pass  # the link says why
        finally:
            self._cards_at = boot_seconds()
            self._asking = False

    def _asks(self) -> list[Ask]:
        with self._lock:
            copies = list(self._copies.values())
        return [copy.have() for copy in copies]

    def _take(self, told: Told) -> None:
        if not isinstance(told, Piece | SmallFile | Rows | RunNow):
            return
        with self._lock:
            copy = self._copies.get(told.run)
        if copy is None:
            return
        try:
            if not copy.take(told, self.mirror):
                self.link.ask(copy.have())
            self.trouble = ""
        except (OSError, sqlite3.Error) as error:
            self.trouble = f"{copy.directory.path}: {getattr(error, 'strerror', None) or error}"
