"""Which rank of a distributed training ended first by itself, from what its launcher and its ranks print.

When one rank ends, the others lose contact, and their errors are often printed first and are the most specific ones.
torchrun's summary names the failure that it noticed first, which may be one of them. A rank that was ended by a signal
which the launcher did not send, that raised an error of its own, or that exited without a word about lost contact,
ended by itself; the lost contact is what follows.

Source: torch.distributed.elastic prints the exit code and pid of each failed rank, and the pid of each rank it ends.
"""

import msgspec

from ...model.text.patterns import LazyPattern
from ...model.text.printable import beginning

GATES = ("exitcode", "closing signal", "(local_rank:")
KEPT = 64
OTHERS = frozenset({1, 2, 6, 15})
"""Signals with which a rank is ended from outside, or by its own watchdog, because of another one."""
_END = LazyPattern(r"exitcode\s*:\s*(?P<code>-?\d+)\)?(?: local_rank: (?P<rank>\d+))? \(pid: (?P<pid>\d+)\)")
_NUMBER = LazyPattern(r"\brank\s*:\s*(?P<rank>\d+) \(local_rank: \d+\)")
"""A line of torchrun's summary, just above the one with the exit code and the pid of that rank."""
_CLOSED = LazyPattern(r"ending process (?P<pid>\d+) closing signal")


class RankEnd(msgspec.Struct, frozen=True):
    """How one rank ended. ``code`` negative = signal; ``rank``: its number, None = not printed.

    ``sure``: the number is that of the whole run; else it is the one on its machine.
    """

    pid: int
    code: int
    rank: int | None
    line: int
    text: str
    sure: bool = False


class RankEnds(msgspec.Struct, frozen=True):
    """``closed``: pids that the launcher ended because of another one."""

    ends: tuple[RankEnd, ...] = ()
    closed: tuple[int, ...] = ()
    named: int | None = None
    """The rank that the line before named."""


NO_ENDS = RankEnds()


def with_line(found: RankEnds, number: int, line: str) -> RankEnds:
    if (closed := _CLOSED.search(line)) is not None:
        return msgspec.structs.replace(found, closed=(*found.closed, int(closed["pid"]))[:KEPT])
    if (named := _NUMBER.search(line)) is not None:
        return msgspec.structs.replace(found, named=int(named["rank"]))
    end = _END.search(line)
    if end is None:
        return found
    pid, told = int(end["pid"]), found.named
    local = None if end["rank"] is None else int(end["rank"])
    known = next((each for each in found.ends if each.pid == pid), None)
    if known is None:
        rank = local if told is None else told
        mine = RankEnd(pid, int(end["code"]), rank, number, beginning(line.strip(), 200), told is not None)
        return msgspec.structs.replace(found, ends=(*found.ends, mine)[:KEPT], named=None)
    if told is None or known.sure:
        return found if told is None else msgspec.structs.replace(found, named=None)
    ends = [msgspec.structs.replace(each, rank=told, sure=True) if each is known else each for each in found.ends]
    return msgspec.structs.replace(found, ends=tuple(ends), named=None)


def killed(found: RankEnds) -> RankEnd | None:
    """The first rank that a signal ended by itself."""
    for each in found.ends:
        if each.code < 0 and -each.code not in OTHERS and each.pid not in found.closed:
            return each
    return None


def exited(found: RankEnds, victims: set[str]) -> RankEnd | None:
    """The only rank that exited with a code of its own. ``victims``: the ranks that say they lost contact.

    None if the lines do not tell it apart from a victim: one of them without a rank, or ends without a rank among
    which a victim's may be.
    """
    if "" in victims or not (victims or found.closed):
        return None
    own = [each for each in found.ends if each.pid not in found.closed and str(each.rank) not in victims]
    if len(own) != 1 or own[0].code <= 0:
        return None
    named = {str(each.rank) for each in found.ends}
    return own[0] if own[0].rank is not None or victims <= named else None
