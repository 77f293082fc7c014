"""Whether an attempt can be launched now."""

import msgspec


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """``held``: why a launch would fail, and what to do. ``need_bytes``: disk space that has to become free first."""

    held: str | None = None
    need_bytes: float | None = None


READY = Readiness()
