"""The locks of one run: that of its output folder, and two of this machine.

The lock in the output folder (NAME) is seen by every host and user that writes there. It is made once the folder has
anything else in it: some trainers refuse a folder that is not new or not empty. Until then, and for a run whose folder
is not known, there are two lock files in a folder of this user on this machine: one for the path of the output folder,
one for the command and its working folder. A run whose output folder is not known may write anywhere, so the same
command cannot be started beside it; two runs of the same command with different known folders can.

A folder that becomes known while the run trains is locked then. If another run holds it, both go on and people are
told: nothing that either of them does by itself would make it better.

A folder that cannot be written has no lock, and the run starts without it: a trainer cannot write there either, and a
night that is not trained is lost for certain. Standard library only: the runner imports this.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from ... import spool
from ...private_folder import check_private
from .locks import BEAT_S, RUNNER, CannotLock, IsNetwork, LockFile, Owner, Role, Taken, look

# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH112, PTH118, PTH119, PTH120, PTH208


NAME = ".trainwatch.lock"
"""In the output folder. No state of a trainer, so no list of checkpoints contains it."""
MACHINE_FOLDER = f"/tmp/trainwatch-{os.geteuid()}/locks"  # noqa: S108  its owner and mode are checked


class OutputLocks:
    """All locks of a run as one of its processes holds them. Not thread-safe."""

    def __init__(
        self, owner: Owner, role: Role, command: str | None, is_network: IsNetwork, *, inside: bool = True
    ) -> None:
        """``command``: identifies command and working folder (None: no lock for it).

        ``inside``: False = no lock is put into an output folder: its trainer lists that, and would load the file.
        """
        self._may_be_inside = inside
        self._owner, self._role, self._is_network = owner, role, is_network
        self._trainer: tuple[tuple[int, int] | None, str | None] = (None, None)
        self._machine = [LockFile(path, owner, role) for path in machine_paths(owner, command)]
        path = inside_path(owner) if inside else None
        self._inside = None if path is None else LockFile(path, owner, role, is_network)
        self._further: list[LockFile] = []
        self._said: set[str] = set()
        self.shared: tuple[str, ...] = ()
        """Who else writes into a folder of this run, as sentences: as the last ``keep`` saw it."""

    def add_folder(self, folder: str) -> None:
        """Lock one more output folder from the next ``keep`` on."""
        path = os.path.join(os.path.realpath(folder), NAME)
        if self._may_be_inside and path not in {lock.path for lock in self._all()}:
            owner = self._owner._replace(output_dir=folder)
            self._further.append(LockFile(path, owner, self._role, self._is_network))

    @property
    def complete(self) -> bool:
        """Whether the locks in the output folders are held, or there is none to hold."""
        return (self._inside is None or self._inside.held) and all(lock.held for lock in self._further)

    def take(self, *, force: bool = False) -> list[str]:
        """Take all that can be taken now. Returns sentences about those that cannot. Raises Taken; then none is held.

        ``force``: as for ``LockFile.take``.
        """
        try:
            return self._news([*self._take_machine(), *self._take_inside(begins=True, force=force)])
        except Taken:
            self.release()
            raise

    def name_trainer(self, trainer: tuple[int, int] | None, directory: str | None) -> None:
        """Name the trainer in all slots: it keeps the folder if supervisor and runner are killed."""
        self._trainer = trainer, directory
        for lock in self._all():
            lock.name_trainer(*self._trainer)

    def keep(self, *, beat: bool) -> list[str]:
        """Take what can be taken by now; with ``beat`` count up as well. Returns news, as sentences, each once."""
        lost = [lock.path for lock in self._all() if beat and not lock.beat()]
        news = [f"{path} is gone or was taken by another run" for path in lost]
        try:
            news += [*self._take_machine(), *self._take_inside(begins=False)]
        except Taken as taken:
            news.append(_shared_with(taken, self._owner.output_dir))
        news += self._take_further()
        return self._news(news)

    def _news(self, texts: list[str]) -> list[str]:
        fresh = [text for text in dict.fromkeys(texts) if text not in self._said]
        self._said.update(fresh)
        return fresh

    def hand_over(self) -> None:
        """Unlock all and change no file: the run's next supervisor has taken them, or is taking them."""
        for lock in self._all():
            lock.hand_over()

    def release(self) -> None:
        """Release all; a file that the run's other process does not hold is removed."""
        for lock in self._all():
            lock.release()

    def _all(self) -> list[LockFile]:
        return [*self._machine, *([] if self._inside is None else [self._inside]), *self._further]

    def _take_further(self) -> list[str]:
        """Take the locks of further folders. Returns a sentence for each that another run holds or that cannot be."""
        shared, cannot = [], []
        for lock in self._further:
            if lock.held or not os.path.isdir(os.path.dirname(lock.path)):
                continue
            try:
                lock.take()
                lock.name_trainer(*self._trainer)
            except Taken as taken:
                shared.append(_shared_with(taken, os.path.dirname(taken.path)))
            except CannotLock as error:
                cannot.append(f"the output folder is not locked: {error}; start no second trainer into it")
        self.shared = tuple(shared)
        return [*shared, *cannot]

    def _take_machine(self) -> list[str]:
        told = []
        for lock in self._machine:
            if lock.held:
                continue
            try:
                check_private(*os.path.split(MACHINE_FOLDER))
                lock.take()
                lock.name_trainer(*self._trainer)
            except Taken as taken:
                if not _may_share(taken, self._owner):
                    raise
            except (CannotLock, OSError) as error:
                told.append(f"{error}: another run on this machine is seen only by the lock in its output folder")
        return told

    def _take_inside(self, *, begins: bool, force: bool = False) -> list[str]:
        if self._inside is None or self._inside.held:
            return []
        folder = os.path.dirname(self._inside.path)
        try:
            entries = os.listdir(folder)
        except OSError:
            return []  # not made yet, or not readable
        if entries in ([], [NAME]) and (not entries or not begins):
            return []
        try:
            self._inside.take(force=force)
            self._inside.name_trainer(*self._trainer)
        except CannotLock as error:
            return [f"the output folder is not locked: {error}; start no second trainer into it"]
        if entries == [NAME]:
            self._inside.release()  # left by a dead run; the trainer finds its folder empty
        return []


def look_for_rival(owner: Owner, command: str | None, is_network: IsNetwork) -> None:
    """Raise Taken if another run holds a lock that this one needs, or if that cannot be told. Changes nothing."""
    inside, machine = inside_path(owner), machine_paths(owner, command)
    try:
        check_private(*os.path.split(MACHINE_FOLDER), make=False)
    except OSError:
        machine = []  # nothing there, or nothing of ours
    for path in (*machine, *(() if inside is None else (inside,))):
        try:
            look(path, owner, is_network if path == inside else None)
        except Taken as taken:
            if path == inside or not _may_share(taken, owner):
                raise


def inside_path(owner: Owner) -> str | None:
    """The lock file in the output folder; None: the folder is not known."""
    return None if owner.output_dir is None else os.path.join(os.path.realpath(owner.output_dir), NAME)


def machine_paths(owner: Owner, command: str | None) -> list[str]:
    """The lock files of this machine: for the output folder, if it is known, and for the command."""
    names = [] if owner.output_dir is None else [f"folder-{_digest(os.path.realpath(owner.output_dir))}"]
    if command is not None:
        names.append(f"command-{_digest(command)}")
    return [os.path.join(MACHINE_FOLDER, f"{name}.lock") for name in names]


def command_key(command: Sequence[str], cwd: str) -> str:
    """What tells one command in one working folder from others."""
    return "\0".join((os.path.realpath(cwd), *command))


def _shared_with(taken: Taken, folder: str | None) -> str:
    whose = "another run" if taken.holder is None else f"run {taken.holder.owner.run} ({taken.holder.host})"
    return f"{taken.path} belongs to {whose}: two trainers may write into {folder}; stop one of them"


def _may_share(taken: Taken, owner: Owner) -> bool:
    """Whether the lock of the same command does not matter, because both runs write into known, different folders."""
    if not os.path.basename(taken.path).startswith("command-") or taken.holder is None:
        return False
    other = taken.holder.owner.output_dir
    return (
        other is not None
        and owner.output_dir is not None
        and os.path.realpath(other) != os.path.realpath(owner.output_dir)
    )


def _digest(text: str) -> str:
    return sha256(os.fsencode(text)).hexdigest()[:16]


# The locks of a run held and counted up in a thread, by its supervisor and by its runner.

LOOK_S = 1.0
"""Period in which an output folder that has no lock yet is looked at: the trainer makes it and writes into it."""
JOIN_S = 2.0


class KeptLocks:
    """A write to a network file system that does not answer stops the thread alone. ``note``: takes news, sentences."""

    def __init__(self, locks: OutputLocks, note: Callable[[str], None]) -> None:
        self._locks, self._note = locks, note
        self._mutex, self._wake = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep, name="output-lock", daemon=True)
        self._trainer: tuple[tuple[int, int], str] | None = None
        self._found: list[str] = []
        self._over = self._given_away = False
        self.tell_shared: Callable[[str | None], None] = lambda _text: None
        """Called with a sentence while another run writes into a further folder of this one, with None after it."""

    def take(self, *, force: bool = False) -> None:
        """As ``OutputLocks.take``. Raises Taken."""
        for text in self._locks.take(force=force):
            self._note(text)
        self._given_away = False

    def start(self) -> None:
        """Count up until ``stop``."""
        self._thread.start()

    def name_trainer(self, trainer: tuple[int, int], directory: str) -> None:
        """Name the trainer in the locks: it keeps the folder if both supervisor and runner are killed."""
        self._trainer = trainer, directory
        self._wake.set()

    def add_folder(self, folder: str) -> None:
        """Lock a folder, too, that became known while the run trains."""
        self._found.append(folder)
        self._wake.set()

    def give_away(self) -> None:
        """Release the locks until the next launch takes them again: nothing of the run is running."""
        self._given_away = True
        self._wake.set()

    def stop(self) -> None:
        """End the counting; the locks stay held until ``release``."""
        self._over = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def release(self) -> None:
        """Release the locks, unless the thread is stuck in a write: then the kernel does it."""
        if not self._thread.is_alive():
            self._locks.release()

    def close(self) -> None:
        """``stop``, and ``release``."""
        self.stop()
        self.release()

    def _keep(self) -> None:
        counted = time.monotonic()
        while True:
            self._wake.wait(BEAT_S if self._locks.complete else LOOK_S)
            self._wake.clear()
            if self._over:
                return
            beat = time.monotonic() - counted >= BEAT_S
            counted = time.monotonic() if beat else counted
            with self._mutex:
                if self._given_away:
                    self._locks.release()
                    continue
                if self._trainer is not None:
                    self._locks.name_trainer(*self._trainer)
                while self._found:
                    self._locks.add_folder(self._found.pop(0))
                news, shared = self._locks.keep(beat=beat), self._locks.shared
            self.tell_shared("; ".join(shared) or None)
            for text in news:
                self._note(text)


def locks_of_order(order: dict[str, Any]) -> KeptLocks:
    """The locks that an order names, as its runner holds them; none if it names none."""
    wanted = order.get("locks") or {"run": "", "created": 0.0, "home": "", "output_dir": None, "command": None}
    owner = Owner(wanted["run"], wanted["created"], wanted["home"], wanted["output_dir"])
    # The supervisor has judged the holders of other hosts before it gave the order.
    locks = OutputLocks(owner, RUNNER, wanted["command"], lambda _folder: True, inside=wanted.get("inside", True))
    return KeptLocks(locks, spool.say)
