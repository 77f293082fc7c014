"""What a person thinks of a checkpoint."""

import msgspec

MOST_STARS = 5
KEPT_FROM = 4
"""Stars from which no retention deletes a checkpoint."""


class Rating(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``path``: the real path. ``mtime``: of the checkpoint that was rated; one written later is not rated yet.

    ``stars``: 1 to MOST_STARS; 0 = only a note.
    """

    path: str
    mtime: float
    stars: int = 0
    note: str = ""
    by: str = ""
    wall: float = 0.0

    @property
    def key(self) -> tuple[str, float]:
        return self.path, self.mtime

    @property
    def words(self) -> str:
        """``4 of 5 stars: sharp eyes``."""
        stars = f"{self.stars} of {MOST_STARS} stars" if self.stars else ""
        return ": ".join(part for part in (stars, self.note) if part)
