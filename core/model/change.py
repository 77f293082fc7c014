"""A setting that a launch changes."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from .patterns import LazyPattern

ChangeOf = Literal["", "profile", "resume"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that differs from the user's own config, and why. ``where``: config key, flag or environment.

    ``of``: the profile, or the checkpoint to resume from, which is another one in each launch.
    """

    where: Literal["config", "flag", "env"]
    key: str
    before: Any = None
    after: Any = None
    why: str = ""
    of: ChangeOf = ""


# The ramp: when a run climbs to the next rung of its ladder, and which rungs failed.

_GOAL = LazyPattern(r"(\d+(?:\.\d+)?)\s*(checkpoint|epoch|hour)s?")
_OR = LazyPattern(r"\s+or\s+|\s*,\s*")


class RampGoal(msgspec.Struct, frozen=True, kw_only=True):
    """What must be reached on a rung before the next one; one of them is enough. None = does not count."""

    checkpoints: int | None = None
    epochs: float | None = None
    hours: float | None = None


def ramp_goal(text: str) -> RampGoal:
    """Read ``3 checkpoints``, ``10 epochs``, ``6 hours`` or several with ``or``. Raises ValueError with a sentence."""
    found: dict[str, float] = {}
    for part in _OR.split(text.strip()):
        match = _GOAL.fullmatch(part)
        if match is None or float(match[1]) <= 0:
            raise ValueError('must say how long, as in "3 checkpoints", "10 epochs" or "3 checkpoints or 6 hours"')
        found[match[2]] = float(match[1])
    checkpoints = found.get("checkpoint")
    if checkpoints is not None and checkpoints != int(checkpoints):
        raise ValueError("must name a whole number of checkpoints")
    return RampGoal(
        checkpoints=None if checkpoints is None else int(checkpoints),
        epochs=found.get("epoch"),
        hours=found.get("hour"),
    )


def goal_of_rung(ramp: Sequence[str], rung: int) -> RampGoal | None:
    """The goal of a rung (0 = the lowest); the last one holds for all above. None = the ramp is off."""
    return ramp_goal(ramp[min(rung, len(ramp) - 1)]) if ramp else None


class FailedRung(msgspec.Struct, frozen=True, kw_only=True):
    """A rung that failed. ``ran_s``: seconds that it had trained there; ``failure``: what ended it."""

    profile: str
    ran_s: float
    failure: str
    step: int | None = None

    @property
    def words(self) -> str:
        return f"{self.profile} {self.end}"

    @property
    def end(self) -> str:
        """The same without its name."""
        if self.ran_s <= 0.0:
            return f"did not start ({self.failure})"
        return f"died after {hours(self.ran_s)} ({self.failure})"


Direction = Literal["up", "back", "forgiven"]
"""Stored in the journal. ``back``: the rung failed, so the rung below it is next."""
ALLOWED_AGAIN: Final = "forgiven"
"""An operator asked for a rung that had failed: from now on the ramp may choose it, too."""


def hours(seconds: float) -> str:
    """A length of time on a rung: ``6.2 h``, or minutes if it is short."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


# The words of a command line: where the trainer's own begin, and a config file that is its only argument.

CONFIG_SUFFIXES = (".toml", ".yaml", ".yml", ".json")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})


def options_start(argv: Sequence[str]) -> int:
    """Index of the trainer's first own option: after its script or module, so that a launcher's are not changed."""
    for index, part in enumerate(argv):
        if part.endswith((".py", ".sh")) and not part.startswith("-"):
            return index + 1
    for index, part in enumerate(argv[:-1]):
        if part == "-m":
            return index + 2
    return min(1, len(argv))


def lone_config(argv: Sequence[str]) -> str | None:
    """The trainer's config file, if it is its only argument (``train.py cfg.yaml``, ``trainer train cfg.yaml``).

    Then the trainer takes no option beside it: HfArgumentParser reads a file only when nothing else is given.
    """
    own = list(argv[options_start(argv) :])
    if not own or any(word.startswith("-") or "=" in word for word in own):
        return None
    subcommands, last = own[:-1], own[-1]
    if len(subcommands) > 1 or not all(word.isidentifier() for word in subcommands):
        return None
    return last if last.lower().endswith(CONFIG_SUFFIXES) else None


def hides_trainer(argv: Sequence[str]) -> bool:
    """Whether a shell starts the trainer, so that its own options cannot be seen: ``bash train.sh``, ``sh -c "…"``."""
    start = options_start(argv)
    program = argv[0].rpartition("/")[2] if argv else ""
    return program in _SHELLS or (0 < start <= len(argv) and argv[start - 1].endswith(".sh"))


# Where a run's output is, and how that is known.


class OutputPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A folder that the run saves checkpoints to. ``why``: how it is known, for people."""

    folder: str
    why: str = ""


def is_below(path: str, folder: str) -> bool:
    """Whether a path is inside a folder, by their text. Both absolute and without links."""
    return path.startswith(folder.rstrip("/") + "/")


# Free space that a launch needs: room for what the trainer writes next, and never more than its disk can have.

FLOOR_BYTES = 64e6
"""For logs and small files; all that is needed if no checkpoint of the run has been measured."""
FLOOR_SHARE = 0.01
"""Share of a small disk that is enough for them."""
COPIES = 2.0
"""x the largest checkpoint of the run: the old one is deleted only when the new one is complete."""
USABLE_SHARE = 0.9
"""Share of a file system that a user can fill: some blocks are reserved, some hold its own tables."""
LEAST_INODES = 64
"""Free inodes (files that can still be created) that a launch needs: its log, its state, a checkpoint folder."""


def need_bytes(largest_bytes: float, disk_bytes: float | None) -> float:
    """Free bytes that a launch needs.

    ``largest_bytes``: what the largest checkpoint of this run takes on the disk, 0 = none was measured.
    ``disk_bytes``: size of the file system, None = unknown. The result can be free there beside that checkpoint.
    """
    if disk_bytes is None:
        return COPIES * largest_bytes + FLOOR_BYTES
    floor = min(FLOOR_BYTES, FLOOR_SHARE * disk_bytes)
    return min(COPIES * largest_bytes + floor, max(floor, USABLE_SHARE * disk_bytes - largest_bytes))


def has_inodes(free_inodes: float | None) -> bool:
    """Whether enough files can be created; unknown counts as yes."""
    return free_inodes is None or free_inodes >= LEAST_INODES
