"""Profiles: named bundles of training settings."""

from typing import Any

import msgspec

NO_PROFILE = "none"
"""The name for the user's own config without a profile."""
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
    """Settings that are used only if config and command do not set them, such as the length of the training."""
    env: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    expect: dict[str, str] = {}
    """Measured needs (RAM, VRAM, speed), for display."""
    source: str = ""

    def is_for(self, preset: str) -> bool:
        """Whether trainers of this preset know its settings. A user's own profile and a safe mode are for all."""
        return self.family in ANY_FAMILY or self.family.partition("-")[0] == preset
