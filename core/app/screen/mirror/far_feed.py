"""A run of another machine, read from its copy here."""

import time

import msgspec

from ....model.control_messages import Reply
from ....model.observation import Command
from ....model.run import RunSpec
from ....model.situation import Situation
from ....model.story import RunStory
from ....model.supervisor_life import SupervisorLife
from ....store.clock import boot_seconds
from ....store.journal.stored_story import read_shortest, read_stored
from ....store.run_directory import RunDirectory
from ....views.quantity import duration
from ..store_feed import StoreFeed
from .far_host import FarHost, RunCopy
from .far_run import FarRun
from .link import LinkLost

OLDER_S = 60.0
"""What was asked for less than so long before the line was lost has no age of its own."""
QUIET_S = 6.0
"""The other side tells what is so every second: without that for so long, what is shown is called old."""


class FarFeed(StoreFeed):
    """A Feed. Ages are those of the clock there; without a line the time stands still at the last word."""

    def __init__(self, far: FarHost, copy: RunCopy, spec: RunSpec, asked: FarRun) -> None:
        super().__init__(copy.directory, spec.created_wall, self._found, spec.settings.health)
        self._far, self._copy, self._asked = far, copy, asked
        self._generation = copy.generation
        self._heard: tuple[object, float] = (None, 0.0)
        self._begin(read_shortest(copy.directory.journal))

    def poll(self) -> Situation:
        """As the copy has it, with what is wrong with the line."""
        if self._copy.generation != self._generation:
            self._generation = self._copy.generation
            self._begin(read_stored(self._copy.directory.journal))
        told = self._copy.now
        if told is not None and told is not self._heard[0]:
            self._heard = (told, boot_seconds())
        link = self._link()
        if not link and (told is None or (not told.whole and not self._story.attempts)):
            return Situation(machine=self._far.host.name)  # the first of it is on its way
        now = super().poll()
        return msgspec.structs.replace(
            now,
            machine=self._far.host.name,
            link=link,
            silent_s=(self._age() or 0.0) if link else 0.0,
            frozen=told.frozen if told is not None else "",
            troubles=told.troubles if told is not None else (),
            clock_ahead_s=self._far.link.state.ahead_s or 0.0,
        )

    def _link(self) -> str:
        """A sentence about a line that is lost or says nothing; empty while it is there."""
        state, name = self._far.link.state, self._far.host.name
        told = self._copy.now
        if self._far.trouble:
            return f"the copy of {name} cannot be written: {self._far.trouble}"
        if told is not None and told.trouble:
            return f"{name}: {told.trouble}"
        if state.lost_s is None:
            quiet = boot_seconds() - self._heard[1] if told is not None else 0.0
            return f"nothing was heard from {name} for {duration(quiet)}" if quiet > QUIET_S else ""
        if not state.why and state.lost_s < QUIET_S:
            return f"connecting to {name}" if told is None else ""
        since = self._age()
        age = f" for {duration(since)}" if since is not None else ""
        return f"no line to {name}{age}{self._older(since)}"

    def _older(self, since_s: float | None) -> str:
        """In brackets, the oldest of what is shown from before the line was lost."""
        if not self._asked.old:
            return ""
        what, wall = min(self._asked.old.items(), key=lambda item: item[1])
        age_s = max(0.0, time.time() - wall)
        return f" ({what} as of {duration(age_s)} ago)" if since_s is None or age_s > since_s + OLDER_S else ""

    def _age(self) -> float | None:
        """Seconds since it was last known how it is there; None: never."""
        if self._heard[0] is not None:
            return boot_seconds() - self._heard[1]
        heard = self._far.mirror.mark(self._copy.directory).heard_wall
        ahead_s = self._far.link.state.ahead_s or 0.0
        return max(0.0, time.time() + ahead_s - heard) if heard else None

    def wall(self) -> float:
        """The clock there; without a line, when it was last heard."""
        told = self._copy.now
        if told is None:
            return self._far.mirror.mark(self._copy.directory).heard_wall or time.time()
        since = boot_seconds() - self._heard[1]
        alive = self._far.link.state.lost_s is None and since <= QUIET_S
        return told.wall + (since if alive else 0.0)

    def look_at_supervisor(self, _wall: float) -> SupervisorLife:
        """As the other side saw it."""
        told = self._copy.now
        if told is None:
            return SupervisorLife()
        return SupervisorLife(alive=told.watched, responsive=told.watched and not told.frozen)

    def log_here(self, story: RunStory) -> str | None:
        """Where its copy would be: a file of the same path on this machine is another one's."""
        return None if story.attempt is None else str(self._copy.directory.attempt(story.attempt.number) / "train.log")

    def _found(self, _directory: RunDirectory, story: RunStory) -> RunStory:
        """The story as it was found there without a supervisor."""
        told, attempt = self._copy.now, story.attempt
        if told is None or told.trouble or not told.whole or attempt is None:
            return story
        ends = msgspec.structs.replace(attempt, pid=told.pid, runner_pid=told.runner_pid)
        return msgspec.structs.replace(
            story, state=told.state, state_reason=told.reason, state_why=told.why, attempts=(*story.attempts[:-1], ends)
        )

    def send(self, command: Command) -> Reply:
        """Through the control socket there."""
        try:
            reply: Reply = self._far.link.call("send", self._copy.directory.id, Reply, command=command)
        except (LinkLost, RuntimeError, msgspec.MsgspecError) as error:
            return Reply(ok=False, message=str(error))
        return reply
