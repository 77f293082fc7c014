"""Whether the trainer was stopped by a signal that is not ours (state T), and how much of it.

A pause is a stop of every computing process: time does not count until it is continued. One stopped rank of several
leaves the others waiting for it: a hang. A stopped helper is neither. Sources: a trainer stopped with ``kill -STOP`` or
Ctrl-Z that was shown as running for 18 minutes; a stopped ``sleep`` in the tree that switched hang detection off.

Which processes compute is known from the sensor. Without that (a recorded trace), processes that were stopped while
steps were made count for nothing; of the others one is taken for the whole trainer unless something else still works.
"""

from typing import Literal

import msgspec

from ...model.observation import ProcessSample, Rank

Stopped = Literal["none", "part", "all"]

SETTLED_S = 10.0
"""A step this long after the stop was not made before it: lines of the log may be read a little late."""


class Pause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``stopped``: how much of the trainer is; ``since_t``: from when, in run seconds.

    ``count``: processes in state T now; ``harmless``: as many were stopped while steps were made. ``stepped``: a step
    was made after the stop; if the next sample still shows it, what is stopped is not needed for training. ``ranks``:
    those in state T, if the run has several.
    """

    stopped: Stopped = "none"
    since_t: float | None = None
    count: int = 0
    harmless: int = 0
    ranks: tuple[Rank, ...] = ()
    stepped: bool = False


def with_process(pause: Pause, sample: ProcessSample, t: float, *, others_work: bool) -> Pause:
    """Take a sample of the process tree at ``t`` (run seconds). ``others_work``: a GPU or a core of the run is busy."""
    count = sample.states.get("T", 0)
    if count == 0 and pause.count == 0:
        return pause
    harmless = count if pause.stepped and count >= pause.count else min(pause.harmless, count)
    stopped: Stopped = "none" if count <= harmless else _stopped(sample, count - harmless, others_work=others_work)
    since_t = None if stopped == "none" else t if pause.since_t is None else pause.since_t
    held = () if stopped == "none" else [rank for rank in sample.ranks if rank.state == "T"]
    ranks = tuple(Rank(rank=each.rank, pid=each.pid, state="T", node=each.node) for each in held)
    return Pause(stopped=stopped, since_t=since_t, count=count, harmless=harmless, ranks=ranks)


def _stopped(sample: ProcessSample, count: int, *, others_work: bool) -> Stopped:
    if sample.computing is not None and sample.held is not None and sample.computing > 0:
        if sample.held == 0:
            return "none"
        return "all" if sample.held >= sample.computing else "part"
    living = sum(sample.states.values()) - sample.states.get("Z", 0)
    return "part" if others_work and count < living else "all"


def with_step(pause: Pause, t: float) -> Pause:
    """Take a step at ``t`` (run seconds)."""
    if pause.since_t is None or pause.stepped or t - pause.since_t < SETTLED_S:
        return pause
    return msgspec.structs.replace(pause, stepped=True)
