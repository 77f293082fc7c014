"""Remedies: what may be changed for a failure class, with its cost (one entry of ``configs/remedies.toml`` each)."""

from typing import Any, Literal

import msgspec
from msgspec import field

from ..launch.change import Change

UNKNOWN = "unknown"
"""The value of a setting of which it cannot be told. No number and no truth value, so no remedy fits it."""
HINTED = ("slow", "plateau")
"""Findings that end no attempt but can have a remedy, which is only proposed."""


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value that a setting must have. ``default``: the framework's own.

    A key is a setting of the trainer by its bare or dotted name, or ``$NAME`` for the environment.
    """

    key: str
    default: Any = None
    above: float | None = None
    multiple_of: int | None = None
    is_: Any = field(default=None, name="is")
    is_not: Any = None


class RemedyChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One setting and its new value: ``to``, or the present one ``times`` a factor (whole numbers stay whole).

    ``where`` "flag": an option that is changed only if the trainer's own source declares it.
    """

    key: str
    where: Literal["config", "flag", "env"] = "config"
    to: Any = None
    times: float | None = None
    default: Any = None
    """The framework's own value, which is multiplied if the setting is missing."""
    if_known: bool = False
    """Only if the setting has a value."""


class Remedy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``failures``: failure classes of crashes, ``hang:KIND`` for hangs, ``HINTED``. ``presets`` empty = any framework.

    ``equivalent``: the result of the training stays the same. ``guide``: a guide names it as the answer to a failure
    that comes back. ``says``: words that the line of the failure must have. ``own_file``: applied automatically only if
    the log shows that what failed was the load of a checkpoint that this run wrote. ``after``: how often the class must
    have ended an attempt before. ``profile`` "down" = one rung down the run's ladder, to a profile of ``families``.
    """

    name: str
    title: str
    failures: tuple[str, ...]
    equivalent: bool
    cost: str
    source: str
    guide: bool = False
    says: str = ""
    own_file: bool = False
    presets: tuple[str, ...] = ()
    after: int = 0
    not_on: tuple[Literal["wsl2"], ...] = ()
    when: tuple[Condition, ...] = ()
    changes: tuple[RemedyChange, ...] = ()
    profile: Literal["down"] | None = None
    families: tuple[str, ...] = ()


class RemedyCatalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file, in the order of application."""

    remedies: tuple[Remedy, ...] = ()


class AppliedRemedy(msgspec.Struct, frozen=True, kw_only=True):
    """A remedy as it was applied: every launch since then has its changes."""

    name: str
    changes: tuple[Change, ...] = ()
