"""Sample images: what a training draws now and then, so that a person can see how it gets on."""

import msgspec


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One picture on disk. ``step``/``epoch`` from its name, None = the name does not say; ``mtime`` epoch seconds."""

    path: str
    name: str
    size_bytes: int
    mtime: float
    step: int | None = None
    epoch: int | None = None
