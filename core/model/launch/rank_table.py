"""The ranks of a training over all its nodes, as a table shows them."""

from typing import Literal

import msgspec

from .nodes import Nodes

Standing = Literal["stopped", "ended", "silent", "behind", "slowest"]
"""What sets a rank apart from the others, the worst first. ``stopped``: state T. ``silent``: its newest line is older
than those of the others."""


class RankNow(msgspec.Struct, frozen=True, kw_only=True):
    """One rank. ``node`` None: this machine. Ages are of the sample's time. None = not known.

    ``seen_age_s``: since it was looked at, on its node: what it did after that is not known.
    """

    rank: int
    pid: int | None = None
    node: str | None = None
    state: str | None = None
    step: int | None = None
    sec_per_step: float | None = None
    last_line: str | None = None
    last_line_age_s: float | None = None
    seen_age_s: float = 0.0
    standing: Standing | None = None


class RankTable(msgspec.Struct, frozen=True, kw_only=True):
    """``t``: run seconds of the ranks, None = no sample. ``nodes``: of its job, None = it runs as none."""

    t: float | None = None
    ranks: tuple[RankNow, ...] = ()
    nodes: Nodes | None = None
