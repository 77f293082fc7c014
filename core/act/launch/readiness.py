"""Whether the world is ready for a launch."""

import msgspec


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """``held``: why a launch would be pointless, and what to do. ``need_bytes``: room on the disk to be waited for."""

    held: str | None = None
    need_bytes: float | None = None


READY = Readiness()
