"""Whether all that is busy in a run without steps is in loops that change nothing, or waits for a GPU at rest.

No reading tells a core that computes from one that loops. A look (core/act/evidence/loop_looks.py) does: several stacks
of each busy thread, and the source of the ``while`` that it is in. Two looks in a row, some time apart, that find the
same loops are evidence as strong as a GPU near 100 % at idle power. A look that finds a busy thread in other functions
each time shows work, and a run that works is ended by the slow clock only (step_peak.py). A thread that waits for its
GPU uses a core, too; a look tells that from work, and GPUs at rest tell that nothing will come.

Known false alarms that the rules are made against: a first silent evaluation, an index built in one Python function, a
single long call (``sqrtm``, ``sorted``): they keep results or are inside a call, so no look finds such a loop. An
optimizer on the CPU beside an idle GPU computes in its own library and not in the driver's.
"""

import msgspec

from ...model.observation import Outcome

AGREEING = 2
"""Looks in a row that must find the same loops."""
AGAIN = 0.33
"""x ``min_s`` (30 s): from one look to the next."""
AGAIN_SHARE = 0.5
"""Share of the silence from a look that found no such loop to the next: honest work is not looked at all the time."""


class LoopWatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``since``: the last progress before the silence that was looked at, in active seconds; None = none yet.

    ``order``: decision whose outcome is awaited, 0 = none; ``asked_at``: when, in active seconds; ``silent_s``: the
    silence then. ``agreed``: looks in a row that found the ``places``; ``polls``: one of these asks for something that
    may still come; ``waits``: one of them is a wait for a GPU; ``moving``: a look shows work.
    """

    since: float | None = None
    order: int = 0
    asked_at: float = 0.0
    silent_s: float = 0.0
    agreed: int = 0
    places: tuple[str, ...] = ()
    polls: bool = False
    waits: bool = False
    moving: bool = False


def is_due(watch: LoopWatch, *, since: float, now: float, min_s: float, lost_s: float) -> bool:
    """Return whether to look (again). ``lost_s``: after this long no answer to the last one will come."""
    if watch.since != since:
        return True
    if watch.order:
        return now - watch.asked_at >= lost_s
    wait_s = AGAIN * min_s if watch.agreed else max(AGAIN * min_s, AGAIN_SHARE * watch.silent_s)
    return now - watch.asked_at >= wait_s


def asked(watch: LoopWatch, order: int, *, since: float, now: float, rest_s: float) -> LoopWatch:
    """Note that a look was asked for. ``rest_s``: how long the GPUs have been at rest.

    A wait that an earlier look found is over if they worked after it.
    """
    if watch.since != since:
        watch = LoopWatch(since=since)
    elif watch.waits and now - watch.asked_at > rest_s:
        watch = msgspec.structs.replace(watch, agreed=0, places=(), waits=False)
    return msgspec.structs.replace(watch, order=order, asked_at=now, silent_s=now - since)


def answered(watch: LoopWatch, outcome: Outcome) -> LoopWatch:
    """Take what a look found. One that could read no stack shows neither a loop nor work."""
    if outcome.data.get("unread") is True:
        return msgspec.structs.replace(watch, order=0)
    loops, waits = _places(outcome, "loops", "is in the loop"), _places(outcome, "waits", "waits for its GPU in")
    places = (*loops, *waits)
    if not outcome.ok or not places or outcome.data.get("elsewhere"):
        moving = watch.moving or (outcome.ok and outcome.data.get("moving") is True)
        return msgspec.structs.replace(watch, order=0, agreed=0, places=(), polls=False, waits=False, moving=moving)
    agreed = watch.agreed + 1 if places == watch.places else 1
    polls = outcome.data.get("polls") is True
    return msgspec.structs.replace(
        watch, order=0, agreed=agreed, places=places, polls=polls, waits=bool(waits), moving=False
    )


def _places(outcome: Outcome, name: str, does: str) -> tuple[str, ...]:
    found = outcome.data.get(name)
    items = sorted(found.items()) if isinstance(found, dict) else ()
    return tuple(f"process {pid} {does} {place}" for pid, place in items)


def is_found(watch: LoopWatch, since: float) -> bool:
    """Return whether the looks at this silence agree."""
    return watch.since == since and watch.agreed >= AGREEING


def shows_work(watch: LoopWatch, since: float) -> bool:
    """Return whether a look at this silence shows work, and none later a loop."""
    return watch.since == since and watch.moving
