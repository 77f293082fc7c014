"""What is remembered of the ramp (ramp.py)."""

import msgspec

from ..model.ramp import DeadRung


class Ramp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stretch on one rung. ``climbed``: the ramp brought the run here; ``climbing``: where it is about to go.

    ``quiet_s``, ``checkpoints``, ``epochs_from``: since the last trouble; ``ran_s``: all the time on the rung.
    ``mark``: active second up to which both times are counted. ``dead``: rungs not to be tried again.
    """

    rung: str | None = None
    climbed: bool = False
    climbing: str | None = None
    quiet_s: float = 0.0
    ran_s: float = 0.0
    mark: float = 0.0
    checkpoints: int = 0
    epochs_from: int | None = None
    dead: tuple[DeadRung, ...] = ()
