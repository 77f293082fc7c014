"""Locks of an output folder: one file, and its slots."""

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ... import processes
from ...atomic_files import is_file_at

# No pathlib here: the runner stays small.
# ruff: noqa: PTH108, PTH116, PTH120


# What a lock file says: two slots of SLOT_BYTES, the supervisor's and the runner's, each a line of JSON.
#
# A slot is padded with blanks and written in place, so that a write needs no new space and never exchanges the file
# that is locked. Standard library only: the runner imports this.

SLOT_BYTES = 2048
FILE_BYTES = 2 * SLOT_BYTES
SUPERVISOR: Literal[0] = 0
RUNNER: Literal[1] = 1
ROLES = ("supervisor", "runner")
VERSION = 1

Role = Literal[0, 1]


class Owner(NamedTuple):
    """The run that holds a lock. ``created`` tells a run from one of the same id whose state folder was deleted."""

    run: str
    created: float
    home: str
    output_dir: str | None = None

    def is_same(self, other: "Owner") -> bool:
        """Whether it is the same run; its folder may have become known later."""
        return self[:3] == other[:3]


class Holder(NamedTuple):
    """What a slot says. ``trainer``: pid and start ticks; ``directory``: of the attempt, in its trainer's environment.

    ``pid_space``: name space of the pids.
    """

    owner: Owner
    role: str
    host: str
    boot: str
    pid_space: str
    pid: int
    start_ticks: int
    trainer: tuple[int, int] | None = None
    directory: str | None = None

    @property
    def lives(self) -> bool:
        """Whether this holder, its trainer or a process of its attempt lives. Only of this boot and pid name space."""
        keys = ((self.pid, self.start_ticks), self.trainer)
        if any(processes.is_alive(key) for key in keys if key is not None):
            return True
        if self.directory is None:
            return False
        marked = processes.marked_with(self.directory, processes.all_processes().values())
        return any(process.state not in processes.DEAD_STATES for process in marked)


Slots = tuple[Holder | None, Holder | None]


def here(owner: Owner, role: Role) -> Holder:
    """The calling process as the holder of a lock."""
    own = processes.own_process()
    return Holder(
        owner=owner,
        role=ROLES[role],
        host=os.uname().nodename,
        boot=processes.boot_id(),
        pid_space=pid_space(),
        pid=own.pid,
        start_ticks=own.start_ticks,
    )


def read_slots(descriptor: int) -> Slots | None:
    """What the two slots say (None: empty); None if one of them cannot be read. Raises OSError."""
    found: list[Holder | None] = []
    for slot in (SUPERVISOR, RUNNER):
        text = os.pread(descriptor, SLOT_BYTES, slot * SLOT_BYTES).strip(b"\0 \n")
        try:
            found.append(_holder(json.loads(text)) if text else None)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
            return None
    return found[0], found[1]


def write_slot(descriptor: int, role: Role, holder: Holder | None) -> None:
    """Write a slot (None: empty it). Raises OSError."""
    if os.fstat(descriptor).st_size < FILE_BYTES:
        os.pwrite(descriptor, 2 * _line(b""), 0)
    os.pwrite(descriptor, _line(b"" if holder is None else _text(holder)), role * SLOT_BYTES)
    os.fsync(descriptor)


def pid_space() -> str:
    """The name space of this process's pids: processes of another container cannot be seen."""
    return processes.link_of("/proc/self/ns/pid")


def _line(text: bytes) -> bytes:
    return text.ljust(SLOT_BYTES - 1) + b"\n"


def _text(holder: Holder) -> bytes:
    content = {"trainwatch": VERSION, **holder.owner._asdict(), **holder._asdict()}
    del content["owner"]
    text = json.dumps(content).encode("ascii")
    if len(text) < SLOT_BYTES:
        return text
    # Paths of thousands of characters: what is only for people is left out.
    return json.dumps(content | {"directory": None, "output_dir": None}).encode("ascii")


def _holder(content: dict[str, Any]) -> Holder:
    if content["trainwatch"] > VERSION:
        raise ValueError("written by a newer version")
    trainer = content["trainer"]
    run, home, output_dir, directory = (_path(content[key]) for key in ("run", "home", "output_dir", "directory"))
    if run is None or home is None:
        raise ValueError("no run")
    return Holder(
        owner=Owner(run, float(content["created"]), home, output_dir),
        role=str(content["role"]),
        host=str(content["host"]),
        boot=str(content["boot"]),
        pid_space=str(content["pid_space"]),
        pid=int(content["pid"]),
        start_ticks=int(content["start_ticks"]),
        trainer=None if trainer is None else (int(trainer[0]), int(trainer[1])),
        directory=directory,
    )


def _path(text: str | None) -> str | None:
    """The text, if it can be a path. Raises ValueError, TypeError: anybody may have written the file."""
    if text is not None and b"\0" in os.fsencode(text):
        raise ValueError("no path")
    return text


# One lock file: which run writes into a folder. Held by the run's supervisor and by its runner, each in its own slot.
#
# Both hold a shared flock on the file. Who wants to begin takes an exclusive one, reads the slots, writes its own and
# shares the lock from then on. The kernel releases a flock when its holder ends, however it ends, so a lock that can
# be taken has no living holder, if flock works there. It does not on every network file system: the slots are judged,
# too.
#
# * of this boot: the holder, its trainer or a process of its attempt lives, or none does;
# * of an earlier boot of this host, on a local file system: dead;
# * of any other: unknown. The lock is left to it, unless a person takes it over (``force``). Its holder, if it lives,
#   finds that in its next beat, and starts no further attempt.
#
# What cannot be read is unknown and counts as held. Standard library only: the runner imports this.

BEAT_S = 60.0
"""Period in which a holder writes its slot again."""
PATIENCE_S = 2.0
"""How long a lock that another process is just taking or looking at is waited for."""
RETRY_S = 0.02
SETTLE_S = 0.3
"""Without flock: time after which a slot that was written is read again; the last of two writers has it."""

How = Literal["exclusive", "shared", "none"]
"""How a file is flocked: by us alone; by others, too; not at all, because its file system has no locks."""


class Opened(NamedTuple):
    """An open lock file. ``slots``: as read while it was flocked; None: they cannot be read."""

    descriptor: int
    how: How
    slots: Slots | None


IsNetwork = Callable[[str], bool]


class Taken(Exception):  # noqa: N818  named after the condition
    """Another run holds the lock, or it cannot be told. ``holder`` None: the file cannot be read. ``why``: a clause.

    ``lives``: the holder lives for certain.
    """

    def __init__(self, path: str, holder: Holder | None, why: str, *, lives: bool = True) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.holder, self.why, self.lives = path, holder, why, lives


class CannotLock(Exception):  # noqa: N818  named after the condition
    """There can be no lock file here. The message is a sentence."""


class LockFile:
    """A lock file as one process of a run holds it.

    ``is_network``: whether other hosts may use a folder; None: the file is for this machine only.
    """

    def __init__(self, path: str, owner: Owner, role: Role, is_network: IsNetwork | None = None) -> None:
        self.path = path
        self._role: Role = role
        self._me = here(owner, role)
        self._is_network = is_network
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def take(self, *, force: bool = False) -> None:
        """Take the lock, or share it with the other process of the same run. Raises Taken, CannotLock.

        ``force``: also from a holder of which it cannot be told whether it lives.
        """
        if self._descriptor is not None:
            return
        opened = _open(self.path, self._me.owner)
        descriptor = opened.descriptor
        try:
            self._judge(opened, force=force)
            write_slot(descriptor, self._role, self._me)
            if opened.how == "none":
                self._settle(descriptor)
            else:
                self._share(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise CannotLock(f"{self.path} cannot be written ({error.strerror})") from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def name_trainer(self, trainer: tuple[int, int] | None, directory: str | None) -> None:
        """Name the trainer and its attempt in the slot."""
        if (trainer, directory) != (self._me.trainer, self._me.directory):
            self._me = self._me._replace(trainer=trainer, directory=directory)
            self.beat()

    def beat(self) -> bool:
        """Give a sign of life. False: the lock is lost: the file is gone or another run has written itself into it."""
        if self._descriptor is None:
            return True
        with contextlib.suppress(OSError):  # a full disk, one that does not answer: the flock is held all the same
            holders = read_slots(self._descriptor) if is_file_at(self._descriptor, self.path) else None
            if holders is None or any(h is not None and not h.owner.is_same(self._me.owner) for h in holders):
                os.close(self._descriptor)  # not written over: it is theirs
                self._descriptor = None
                return False
            write_slot(self._descriptor, self._role, self._me)
        return True

    def hand_over(self) -> None:
        """Unlock and leave the slot as it is: another process of the same run and role has taken it, or is taking it.

        ``release`` would read the slot and empty it, and between the two that process may write itself into it.
        """
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def release(self) -> None:
        """Empty the own slot, remove the file if the run's other process does not hold it, and unlock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with contextlib.suppress(OSError):
            holders = read_slots(descriptor)
            own = None if holders is None else holders[self._role]
            if holders is not None and own is not None and (own.pid, own.owner) == (self._me.pid, self._me.owner):
                write_slot(descriptor, self._role, None)
                other = holders[RUNNER if self._role == SUPERVISOR else SUPERVISOR]
                alone = other is None or (other.owner.is_same(self._me.owner) and not other.lives)
                if alone and _flock(descriptor, fcntl.LOCK_EX) is not False and is_file_at(descriptor, self.path):
                    os.unlink(self.path)
        os.close(descriptor)

    def _judge(self, opened: Opened, *, force: bool) -> None:
        """Raise Taken if another run holds the lock or may hold it; else empty the slots of other runs."""
        holders = opened.slots
        unclear = _first_rival(self.path, opened, self._me, self._is_network)
        if unclear is not None and not force:
            raise _may_live(self.path, unclear)
        roles: tuple[Role, Role] = (SUPERVISOR, RUNNER)
        for role in roles:
            holder = None if holders is None else holders[role]
            if holder is not None and not holder.owner.is_same(self._me.owner):
                write_slot(opened.descriptor, role, None)

    def _share(self, descriptor: int) -> None:
        """Exchange the exclusive lock for a shared one; another process may look at it in between."""
        end = time.monotonic() + PATIENCE_S
        while not _flock(descriptor, fcntl.LOCK_SH):
            if time.monotonic() >= end:
                raise Taken(self.path, None, "another process takes it at this moment")
            time.sleep(RETRY_S)

    def _settle(self, descriptor: int) -> None:
        """Without flock: of two that write at the same time the later one has the slot."""
        time.sleep(SETTLE_S)
        holders = read_slots(descriptor)
        own = None if holders is None else holders[self._role]
        if own is None or not own.owner.is_same(self._me.owner):
            raise Taken(self.path, own, "another run took it at the same time")


def look(path: str, owner: Owner, is_network: IsNetwork | None = None) -> None:
    """Raise Taken if another run holds the lock, or if that cannot be told. Makes and changes nothing."""
    try:
        opened = _open(path, owner, create=False)
    except CannotLock:
        return
    try:
        unclear = _first_rival(path, opened, here(owner, SUPERVISOR), is_network)
    finally:
        os.close(opened.descriptor)
    if unclear is not None:
        raise _may_live(path, unclear)


def _may_live(path: str, holder: Holder) -> Taken:
    return Taken(path, holder, "whether it lives cannot be told from here", lives=False)


def _first_rival(path: str, opened: Opened, me: Holder, is_network: IsNetwork | None) -> Holder | None:
    """Raise Taken if another run holds the lock. A holder of which that cannot be told is returned."""
    holders = opened.slots
    if holders is None:
        raise Taken(path, None, "it is not a lock file that this version of trainwatch can read")
    others = [h for h in holders if h is not None and not h.owner.is_same(me.owner)]
    if opened.how == "shared" and (others or not any(holders)):
        raise Taken(path, next(iter(others), None), "it is locked")
    unclear = None
    for holder in others:
        match _judged(holder, me, path, is_network):
            case "lives":
                raise Taken(path, holder, "it lives")
            case "unknown":
                unclear = unclear or holder
            case _:
                pass
    return unclear


def _judged(holder: Holder, me: Holder, path: str, is_network: IsNetwork | None) -> Literal["lives", "dead", "unknown"]:
    """Whether the holder of a lock that nobody has flocked lives."""
    if holder.boot == me.boot and holder.pid_space == me.pid_space:
        return "lives" if holder.lives else "dead"
    # Its processes cannot be seen, but all containers of a machine share its local flocks.
    here = is_network is None or (me.host == holder.host and not is_network(os.path.dirname(path)))
    return "dead" if here else "unknown"


def _open(path: str, owner: Owner, *, create: bool = True) -> Opened:
    """The open file and how it is flocked now. Raises CannotLock, and Taken if it is another user's."""
    end = time.monotonic() + PATIENCE_S
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if create else 0)
    while True:
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            if error.errno == errno.EACCES and (user := _other_user(path)) is not None:
                raise Taken(path, None, f"it belongs to another user ({user})", lives=False) from None
            raise CannotLock(f"{path} cannot be made ({error.strerror})") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise CannotLock(f"{path} is no regular file")
        try:
            opened = _flocked(descriptor, path, owner, is_last=time.monotonic() >= end)
        except OSError as error:
            os.close(descriptor)
            raise CannotLock(f"{path} cannot be read ({error.strerror})") from error
        if opened is not None:
            return opened
        os.close(descriptor)
        time.sleep(RETRY_S)


def _flocked(descriptor: int, path: str, owner: Owner, *, is_last: bool) -> Opened | None:
    """Flock an open file. None: try again, unless this ``is_last``.

    Then it was removed by its last holder, or another process takes it, releases it or looks at it at this moment.
    """
    alone = _flock(descriptor, fcntl.LOCK_EX)
    if alone is not False:
        if not is_file_at(descriptor, path):
            return None
        return Opened(descriptor, "none" if alone is None else "exclusive", read_slots(descriptor))
    slots = read_slots(descriptor)
    known = [holder for holder in slots or () if holder is not None]
    if known and all(holder.owner.is_same(owner) for holder in known):
        if _flock(descriptor, fcntl.LOCK_SH):
            # Shared only now: before, that holder may have emptied its slot and removed the file.
            slots = read_slots(descriptor)
            if any(slots or ()) and is_file_at(descriptor, path):
                return Opened(descriptor, "shared", slots)
    elif slots is None or any(h.boot != processes.boot_id() or h.pid_space != pid_space() or h.lives for h in known):
        return Opened(descriptor, "shared", slots)
    # Whoever holds it is no run: nobody takes, releases or looks at a lock for so long. It is as good as no flock.
    return Opened(descriptor, "none", slots) if is_last else None


def _other_user(path: str) -> str | None:
    """Whose file it is that cannot be opened; None: ours, or that cannot be told."""
    try:
        user = os.stat(path, follow_symlinks=False).st_uid
    except OSError:
        return None
    if user == os.geteuid():
        return None
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _flock(descriptor: int, kind: int) -> bool | None:
    """Whether the lock was got; None: this file system has no locks."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in {errno.EWOULDBLOCK, errno.EACCES} else None
    return True
