"""What is known of evaluations of checkpoints: the one that runs, those that are done, and where there is room."""

from collections.abc import Iterable

import msgspec

from ...model.checkpoints.evaluation import Evaluation, best_of
from ..resume.known_checkpoint import KnownCheckpoint
from .room import Room, Spot

MOST_BEGINNINGS = 3
"""Beginnings of one evaluation without an end (its supervisor ended, the training needed the room) before it is given
up."""


class Begun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The evaluation that runs. ``order``: its decision; ``since`` in active seconds; ``ending``: it is being ended."""

    order: int
    path: str
    mtime: float
    step: int | None = None
    spot: Spot = Spot()
    since: float = 0.0
    ending: bool = False


class EndOfWatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is due when the last evaluation is done, or at ``until_t`` (run seconds), the time at which the run ends."""

    reason: str
    until_t: float | None = None


class Evaluations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``done``: one for each path, oldest first. ``beginnings``: (modification time, how often) without an end.

    ``told``: people were told that a score is unknown; not again before one is known. ``end``: what is due after the
    last evaluation of a training that is finished.
    """

    room: Room = Room()
    running: Begun | None = None
    done: tuple[Evaluation, ...] = ()
    beginnings: dict[str, tuple[float, int]] = {}
    told: bool = False
    end: EndOfWatch | None = None


def with_result(known: Evaluations, found: Evaluation) -> Evaluations:
    """Add a result; the one before of this path is forgotten."""
    return msgspec.structs.replace(
        known,
        running=None,
        done=(*[each for each in known.done if each.path != found.path], found),
        beginnings={path: begun for path, begun in known.beginnings.items() if path != found.path},
        told=found.score is None,
    )


def beginnings(known: Evaluations, checkpoint: KnownCheckpoint) -> int:
    """How often the evaluation of this checkpoint began without an end."""
    mtime, times = known.beginnings.get(checkpoint.path, (None, 0))
    return times if mtime == checkpoint.mtime else 0


def waiting(known: Evaluations, checkpoints: Iterable[KnownCheckpoint]) -> list[KnownCheckpoint]:
    """The verified checkpoints of this run without a result, newest first: the newest says most about the training."""
    done = {(each.path, each.mtime) for each in known.done}
    found = [
        each
        for each in checkpoints
        if each.own and each.complete and not each.rewriting and each.bad is None and each.unclear is None
        and each.left is None and each.mtime is not None and (each.path, each.mtime) not in done
    ]  # fmt: skip
    return sorted(found, key=lambda each: each.mtime or 0.0, reverse=True)


def is_best(known: Evaluations, checkpoints: Iterable[KnownCheckpoint], path: str) -> bool:
    """Whether no other checkpoint that is there has a better score."""
    there = {each.path: each.mtime for each in checkpoints}
    best = best_of([each for each in known.done if there.get(each.path) == each.mtime])
    return best is not None and best.path == path
