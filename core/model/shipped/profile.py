"""Profiles: named bundles of training settings."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

NO_PROFILE = "none"
"""The name for the user's own config without a profile."""
OF_OPTIONS = frozenset({"cuda-safe-mode", "cuda-safe-sizes"})
"""Families of profiles that only give options: they are for any script that declares these."""
ANY_FAMILY = frozenset({"generic", *OF_OPTIONS})
"""Families of profiles that are for any trainer. The first part of another (``kohya-sdxl``) is the preset's name."""

NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
"""A word of a command that is a value although a dash may be in front."""


def is_option(word: str) -> bool:
    """Whether a word of a command is an option (``-b``, ``--batch=2``), and no value as ``-1`` is."""
    return word.startswith("-") and len(word) > 1 and not NUMBER.fullmatch(word)


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
    rung: int | None = None
    """Its place among the profiles of its family, 0 = safest, which is their ladder if the run has none."""

    def is_for(self, preset: str) -> bool:
        """Whether trainers of this preset know its settings. A user's own profile and one of options are for all."""
        return self.family in ANY_FAMILY or self.family.partition("-")[0] == preset


def usual_ladders(profiles: Iterable[Profile]) -> dict[str, tuple[str, ...]]:
    """Family → the names of its profiles with a rung, safest first."""
    placed = sorted((profile.rung, profile.family, profile.name) for profile in profiles if profile.rung is not None)
    found: dict[str, tuple[str, ...]] = {}
    for _, family, name in placed:
        found[family] = (*found.get(family, ()), name)
    return found
