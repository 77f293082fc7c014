"""What is copied already, and what is being copied (``[backup]``)."""

import msgspec

AGAIN_S = 600.0
"""A copy that failed is made again after this: a network or a disk may be back."""
MOST = 3
"""Attempts for one checkpoint; the next checkpoint has its own."""
KEPT = 64


class Backups(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``running``: id of the order; ``path``, ``mtime``: of what. ``done``: path → modification time of the copied.

    ``failed``: path → (modification time, attempts, run seconds from which the next one is made). ``told``: people know
    that copies fail.
    """

    running: int | None = None
    path: str = ""
    mtime: float = 0.0
    done: dict[str, float] = {}
    failed: dict[str, tuple[float, int, float]] = {}
    told: bool = False
