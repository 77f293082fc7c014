"""The result of an action, which is journalled; ``Base`` is what it has in common with all observations.

Apart from the others, because a reader of a journal needs none of them.
"""

from typing import Any

import msgspec
from msgspec import field


class Base(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    t: float


class Outcome(Base, frozen=True, kw_only=True, tag="outcome"):
    """Result of an action. ``decision``: id of its decision; ``data``: what the action found."""

    decision: int
    action: str
    ok: bool
    detail: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def undecided(self) -> bool:
        """Whether it neither went well nor failed: a verification of a format that is not known."""
        return not self.ok and self.action == "verify_checkpoint" and self.data.get("understood") is False
