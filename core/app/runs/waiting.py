"""Waiting for a run from outside: until it is over, needs a person, is in a certain state, or has new events."""

import time
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from ...model.decision import Record
from ...processes import status_of
from ...store.journal import JournalFollower
from ...store.lock import is_held, read_life_sign
from ...store.run_directory import RunDirectory
from ..errors import ExitCode
from .supervisor_life import story_now


def turns(limit_s: float, period_s: float) -> Iterator[None]:
    """Turns of a loop that waits for something, at most so long."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        yield
        time.sleep(period_s)


POLL_S = 0.5
UNWATCHED_S = 10.0
"""A supervisor that an upgrade or the runner replaces is back within seconds."""
SURE_S = 2.0
"""How long it is looked for where its last sign of life is older: a frozen one may just be replaced."""

EndKind = Literal["finished", "failed", "needs-you", "unwatched", "goes-on"]
CODES: dict[EndKind, ExitCode] = {
    "finished": ExitCode.DONE,
    "failed": ExitCode.FAILED,
    "needs-you": ExitCode.NEEDS_YOU,
    "unwatched": ExitCode.NO_SUPERVISOR,
    "goes-on": ExitCode.GOES_ON,
}


class Standing(NamedTuple):
    """How a run stands for who waits for it."""

    kind: EndKind
    state: str
    reason: str

    def reached(self, wanted: str) -> bool:
        """``wanted``: over, needs-you, or a state of a run."""
        return wanted in {self.state, self.kind} or (wanted == "over" and self.kind in {"finished", "failed"})


def kind_of(state: str, *, held: bool, asks: bool, watched: bool) -> EndKind:
    """``held``: the next attempt waits. ``asks``: a question is open. ``watched``: a supervisor is there."""
    if state == "finished":
        return "finished"
    if state in {"given_up", "ended_early"}:
        return "failed"
    if asks or state in {"stopped", "paused"} or held:
        return "needs-you"
    return "goes-on" if watched else "unwatched"


def wait_for(run: RunDirectory, wanted: str | None, timeout_s: float | None) -> tuple[ExitCode, Standing]:
    """Block until the run is as ``wanted``, or cannot come to it by itself any more.

    ``wanted`` None: over or needs-you. Returns the exit code of ``trainwatch wait``, and how the run stands.
    """
    begun, sign = time.monotonic(), read_life_sign(run.life_sign)
    gone_s = 0.0 if sign is None else UNWATCHED_S if sign.age_s is None else sign.age_s
    watched_s = begun - min(gone_s, UNWATCHED_S - SURE_S)
    standing = Standings(run)
    while True:
        now = standing.now()
        if wanted is not None and now.reached(wanted):
            return ExitCode.DONE, now
        if now.kind != "unwatched":
            watched_s = time.monotonic()
        if now.kind != "goes-on" and (now.kind != "unwatched" or time.monotonic() - watched_s >= UNWATCHED_S):
            # What was wanted is not reached, and by itself nothing changes any more.
            failed = wanted is not None and now.kind == "finished"
            return ExitCode.FAILED if failed else CODES[now.kind], now
        left_s = POLL_S if timeout_s is None else timeout_s - (time.monotonic() - begun)
        if left_s <= 0.0:
            return ExitCode.TIMEOUT, now
        time.sleep(min(POLL_S, left_s))


class Standings:
    """How a run stands, read again only if that may have changed: its journal grew, a supervisor came or went."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._seen: tuple[int, int, bool] | None = None
        self._now = Standing("unwatched", "idle", "")

    def now(self) -> Standing:
        """Without a supervisor it is read each time: its trainer may have ended."""
        found, held = status_of(self._run.journal), is_held(self._run.lock)
        seen = (0, 0, held) if found is None else (found.st_mtime_ns, found.st_size, held)
        if seen != self._seen or self._now.kind == "unwatched":
            self._seen, story = seen, story_now(self._run)
            asks, holds = story.question is not None, story.state_why.holds
            kind = kind_of(story.state, held=holds, asks=asks, watched=is_held(self._run.lock))
            self._now = Standing(kind, story.state, story.state_reason)
        return self._now

    def over(self) -> bool:
        """Whether it is over, and nothing writes into its folder any more."""
        return self.now().reached("over") and self._seen is not None and not self._seen[-1]


EVENTS_POLL_S = 0.25
"""Period of polling a journal that is followed."""


def records_of(run: RunDirectory, over: Callable[[], bool]) -> Iterator[Record]:
    """The records of the journal, oldest first, and those that come until ``over``."""
    follower = JournalFollower(run.journal)
    while True:
        ended = over()  # before the journal is read
        yield from follower.poll()
        if ended:
            return
        time.sleep(EVENTS_POLL_S)
