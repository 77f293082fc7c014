"""A setting that a launch changes."""

from typing import Any, Literal

import msgspec

ChangeOf = Literal["", "profile", "resume"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that differs from the user's own config, and why. ``where``: config key, flag or environment.

    ``of``: the profile, or the checkpoint to resume from, which is another one in each launch.
    """

    where: Literal["config", "flag", "env"]
    key: str
    before: Any = None
    after: Any = None
    why: str = ""
    of: ChangeOf = ""
