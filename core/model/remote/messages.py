"""What a screen and the other machine say to each other: msgpack, each message behind its length in four bytes.

The screen's side asks (``Ask``), the other machine tells (``Told``). Both ignore fields that they do not know.
"""

from typing import Any

import msgspec

from ..run import RunState
from ..run_card import RunCard
from ..supervisor_life import Trouble
from ..why import Why

PROTOCOL = 1
"""Raised when an older side could not understand the rest; an unknown number is refused with a sentence."""
LONGEST = 64 << 20
"""Bytes of the longest message: anything longer is not one."""


class Follow(msgspec.Struct, frozen=True, kw_only=True, tag="follow"):
    """Send what this run gains, beginning behind what is here: ``journal`` bytes with this SHA-256.

    ``history``: table → the newest second of it that is here. ``annex``: bytes and SHA-256 of what is here of the part
    of the journal that an annex there has; None: not to be sent.
    """

    run: str
    journal: int = 0
    digest: bytes = b""
    history: dict[str, float] = {}
    annex: tuple[int, bytes] | None = None


class Unfollow(msgspec.Struct, frozen=True, kw_only=True, tag="unfollow"):
    """Send nothing more of this run."""

    run: str


class Ping(msgspec.Struct, frozen=True, kw_only=True, tag="ping"):
    """Answered at once by a ``Pong`` with the same number."""

    number: int


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """Do something there, for the screen; answered by an ``Answer`` with the same number. ``run`` empty: no run's."""

    number: int
    what: str
    run: str = ""
    values: dict[str, Any] = {}


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """Comes first. ``wall``: the clock there (epoch seconds)."""

    version: str
    protocol: int
    wall: float


class Pong(msgspec.Struct, frozen=True, kw_only=True, tag="pong"):
    number: int
    wall: float


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """``trouble``: why it was not done, a sentence; ``data`` as the call says."""

    number: int
    data: msgspec.Raw = msgspec.Raw(b"\xc0")
    trouble: str = ""


class Piece(msgspec.Struct, frozen=True, kw_only=True, tag="piece"):
    """Bytes of the journal at ``offset``. ``anew``: what is here of it is of another one and goes.

    ``annex``: of the part that an annex has. Sent only to who asked for it.
    """

    run: str
    offset: int
    data: bytes
    anew: bool = False
    annex: bool = False


class SmallFile(msgspec.Struct, frozen=True, kw_only=True, tag="file"):
    """The whole content of a small file. ``name``: its path in the run's folder."""

    run: str
    name: str
    data: bytes


class Rows(msgspec.Struct, frozen=True, kw_only=True, tag="rows"):
    """Rows of a table of the metric history, to be inserted or replaced by their keys."""

    run: str
    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class RunNow(msgspec.Struct, frozen=True, kw_only=True, tag="now"):
    """What is so now and no file says. ``wall``: the clock there. ``whole``: all that there was has been sent.

    ``state``, ``reason``, ``pid``, ``runner_pid``: of the story as it was found without a supervisor.
    """

    run: str
    wall: float
    whole: bool = False
    watched: bool = False
    frozen: str = ""
    troubles: tuple[Trouble, ...] = ()
    state: RunState = "idle"
    reason: str = ""
    why: Why = Why()
    pid: int | None = None
    runner_pid: int | None = None
    trouble: str = ""
    """Why the run cannot be read there."""


class CardsNow(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to the call ``cards``, and the file that keeps it here. ``wall``: the clock there."""

    cards: tuple[RunCard, ...] = ()
    wall: float = 0.0


Ask = Follow | Unfollow | Ping | Call
Told = Hello | Pong | Answer | Piece | SmallFile | Rows | RunNow
