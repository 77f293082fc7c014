"""What the judge remembers of the ramp (ramp.py), and of the settings that made steps (fallback.py)."""

import msgspec

from ....model.launch.ramp_rule import FailedRung
from ....model.shipped.remedy import AppliedRemedy


class Ramp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The time on one rung of the ladder of profiles.

    ``climbed``: the ramp brought the run here. ``climbing``: the rung it is about to go to. ``quiet_s``,
    ``checkpoints``, ``epochs_from``: since the last failure. ``ran_s``: all the time on the rung. ``mark``: active
    second up to which both times are counted. ``failed``: rungs that are not
    used again automatically. ``withheld``: the rung that it would have switched to, and did not (gate.py).
    """

    rung: str | None = None
    climbed: bool = False
    climbing: str | None = None
    quiet_s: float = 0.0
    ran_s: float = 0.0
    mark: float = 0.0
    checkpoints: int = 0
    epochs_from: int | None = None
    withheld: str | None = None
    failed: tuple[FailedRung, ...] = msgspec.field(name="dead", default=())


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """A rung that can be left for the one ``below`` it. ``climbed``: the ramp brought the run here."""

    below: str
    climbed: bool


class SettingsThatRan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the newest attempt that made a step trained with. ``profile`` None: the user's own settings."""

    attempt: int
    profile: str | None = None
    applied: tuple[AppliedRemedy, ...] = ()
