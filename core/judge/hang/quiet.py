"""A silence that people are told of before anything is decided, and a fault that ends the wait for its end."""

import msgspec

from ...model.incident import HangKind


class Quiet(msgspec.Struct, frozen=True, kw_only=True):
    """An open incident *quiet*. ``capture``: id of the decision that collects its evidence.

    ``kind``: of the hang that it may become, and ``signs``: why, as the stacks show them; None = they show nothing.
    ``due_t``: when it becomes a hang if nothing moves, in run seconds.
    """

    incident: int
    capture: int
    kind: HangKind | None = None
    signs: tuple[str, ...] = ()
    due_t: float | None = None


class GpuFault(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel line that says that a GPU of this run is lost until a reset. ``at``: in active seconds."""

    text: str
    at: float
