"""Sample images that a trainer writes to show its progress."""

import msgspec


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One picture on disk. ``step``/``epoch`` from its name, None = not in the name; ``mtime`` epoch seconds."""

    path: str
    name: str
    size_bytes: int
    mtime: float
    step: int | None = None
    epoch: int | None = None
