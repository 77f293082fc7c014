"""Profiles: named bundles of training settings."""

from typing import Any

import msgspec

NO_PROFILE = "none"
"""What a person says for the user's own config as it stands."""
ANY_FAMILY = frozenset({"generic", "cuda-safe-mode"})
"""Families of profiles that are for any trainer. The first part of another (``kohya-sdxl``) is the preset's name."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named overlay on the trainer's own config. ``settings`` keys may be dotted (``training.batch_size``).

    ``family``: for which trainers it is; see ``is_for``.
    """

    name: str
    title: str = ""
    description: str = ""
    family: str = "generic"
    settings: dict[str, Any] = {}
    yields: tuple[str, ...] = ()
    """Settings that count only where the trainer's config and command say nothing: how long to train, say."""
    env: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    expect: dict[str, str] = {}
    """What people measured with it (RAM, VRAM, speed), for display."""
    source: str = ""

    def is_for(self, preset: str) -> bool:
        """Whether trainers of this preset know its settings. One for any (an own one, a safe mode) is for all."""
        return self.family in ANY_FAMILY or self.family.partition("-")[0] == preset
