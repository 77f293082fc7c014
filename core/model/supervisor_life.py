"""What can be told from outside about a run's supervisor, and about the trouble that trainwatch itself has."""

from typing import Any, Literal

import msgspec

from .progress import Progress

RESPONSIVE_S = 10.0
"""A supervisor whose last turn is older does not respond. A turn takes milliseconds; the slowest is an fsync on a busy
network disk, a few seconds."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong now. ``since``: epoch seconds, None if unknown. ``text``: what, where, what to do."""

    kind: str
    level: Literal["danger", "warning", "info"]
    text: str
    since: float | None = None


class SupervisorLife(msgspec.Struct, frozen=True, kw_only=True):
    """``alive``: its lock is held. ``age_s``: seconds since its last turn, None if unknown.

    ``stopped``: a signal (SIGSTOP, Ctrl-Z) stopped its process. ``troubles``: what it reports about itself;
    ``progress`` and ``step_t`` (run seconds): the newest that it knows, None if it was not asked.
    """

    pid: int | None = None
    alive: bool = False
    responsive: bool = False
    age_s: float | None = None
    stopped: bool = False
    troubles: tuple[Trouble, ...] = ()
    progress: Progress | None = None
    step_t: float | None = None

    @property
    def frozen(self) -> bool:
        return self.alive and not self.responsive

    def shown(self) -> dict[str, Any]:
        """The field ``supervisor`` of ``status --json``."""
        return {"pid": self.pid, "alive": self.alive, "responsive": self.responsive, "age_s": self.age_s}
