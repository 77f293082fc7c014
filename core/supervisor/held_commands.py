"""A resume that comes before the end of an attempt that was found dead is judged: until then the run seems to go on."""

from collections import deque
from collections.abc import Iterator

from ..model.decision import EndWatch
from ..model.observation import Command

HELD_S = 60.0
"""Longest wait for the end of the attempt. It is seen within seconds."""


class HeldCommands:
    """The commands that wait, and the end of the supervisor, if the judge ordered it while they did.

    ``sees_end``: the observation that is judged now is the end of the attempt.
    """

    def __init__(self) -> None:
        self._waits = False
        self._commands: deque[Command] = deque()
        self._end: EndWatch | None = None
        self.sees_end = False

    def begin(self) -> None:
        """The attempt to adopt is dead already; the sensors see its end soon."""
        self._waits = True

    def takes(self, command: Command) -> bool:
        """Whether the command waits. Called in any thread: one that comes just too late is due in the next turn."""
        waits = self._waits and command.verb == "resume"
        if waits:
            self._commands.append(command)
        return waits

    def keeps(self, decision: EndWatch) -> bool:
        """Whether the supervisor stays for a command that waits."""
        kept = self.sees_end and bool(self._commands)
        if kept:
            self._end = decision
        return kept

    def due(self, t: float, *, lives: bool) -> Iterator[Command]:
        """The commands to be judged at ``t`` (run seconds). ``lives``: the end of the attempt is not judged yet."""
        if self._waits and lives and not (self._commands and t - self._commands[0].t >= HELD_S):
            return
        self._waits = self.sees_end = False
        while self._commands:
            yield self._commands.popleft()

    def take_end(self) -> EndWatch | None:
        """The end that was kept, once."""
        end, self._end = self._end, None
        return end
