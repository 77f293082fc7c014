"""One line of the journal: an envelope around a fact, a decision or an outcome."""

import msgspec

from .decision import Decision
from .fact import Fact
from .outcome import Outcome

JOURNAL_VERSION = 1


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``seq`` counts from 1 without gaps; ``t`` run seconds; ``wall`` epoch seconds. Exactly one body is set."""

    v: int = JOURNAL_VERSION
    seq: int
    t: float
    wall: float
    fact: Fact | None = None
    decision: Decision | None = None
    outcome: Outcome | None = None


Entry = Fact | Decision
"""What one step of the judge returns: facts to write, and decisions to write and then perform, in this order."""
