"""The input of the policy and its answers: what is known of a failure, and what can follow it.

``counted``: the failure enters the history, and the ramp's stretch without trouble ends. True unless the field says no.
"""

import msgspec

from ...model.settings import Restart as RestartSettings
from ...model.shipped.failure import SettingsFault
from ..failure.wsl_channel import ChannelState
from ..run_states import RestartPlan
from .failure_history import Cause, History
from .ramp_state import Rung, SettingsThatRan
from .remedies import Option


class FailureInput(msgspec.Struct, frozen=True, kw_only=True):
    """A failure and all that the answer depends on.

    ``plan``: the next attempt as it would be without any change. ``spent``: no further restart is allowed.
    ``began_anew``: the failed attempt started from the beginning. ``curable``: a restart may help by itself.
    ``advice``: what to look at. ``settings``, ``step_matters``: attributes of the failure class (failures.toml).
    ``history``: the failures before this one. ``stride``, ``step_known``: how exactly its step is known. ``rung``: the
    rung that the ramp could leave. ``ran_before``: the settings to go back to, None unless new ones failed before their
    first step. ``remedy``: the first that may be applied; ``waiting``: those that a person has to choose.
    ``disk_need_bytes``: free space that a restart needs. ``kernel``, ``still_open``: kernel lines and open findings.
    """

    cause: Cause
    reason: str
    incident: int
    plan: RestartPlan
    restart: RestartSettings
    spent: bool = False
    began_anew: bool = False
    curable: bool = True
    advice: tuple[str, ...] = ()
    settings: SettingsFault = "possible"
    step_matters: bool = True
    history: History = ()
    stride: int = 1
    step_known: bool = True
    gpu_channel: ChannelState = "working"
    rung: Rung | None = None
    ran_before: SettingsThatRan | None = None
    remedy: Option | None = None
    waiting: tuple[Option, ...] = ()
    disk_free_bytes: float | None = None
    disk_need_bytes: float = 0.0
    kernel: tuple[str, ...] = ()
    still_open: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The failure in words: ``crash (cuda_oom)``, ``a hang (idle)``."""
        return f"{'a hang' if self.cause.kind == 'hang' else self.cause.kind} ({self.cause.class_})"


class Finish(msgspec.Struct, frozen=True):
    """The training is done; only its process did not end."""


class Hold(msgspec.Struct, frozen=True):
    """No restart until an operator asks for one."""


class GiveUp(msgspec.Struct, frozen=True):
    """No restart. ``advice``: where to look, a sentence each. ``proposed``: remedies that a person may choose."""

    reason: str
    advice: tuple[str, ...] = ()
    proposed: tuple[Option, ...] = ()
    counted: bool = True


class GoBack(msgspec.Struct, frozen=True):
    """Restart with the settings that ran before, at once and without charging the budget."""

    to: SettingsThatRan
    counted: bool = True


class StepDown(msgspec.Struct, frozen=True):
    """Restart one rung down the ladder of profiles, at once."""

    rung: Rung


class ApplyRemedy(msgspec.Struct, frozen=True):
    """Restart with changed settings, at once."""

    remedy: Option
    proposed: tuple[Option, ...] = ()


class RestartLater(msgspec.Struct, frozen=True):
    """Restart as it was after ``delay_s``, without charging the budget."""

    delay_s: float


class WaitForRoom(msgspec.Struct, frozen=True):
    """Restart as it was when ``need_bytes`` are free on the disk, without charging the budget."""

    need_bytes: float


class Restart(msgspec.Struct, frozen=True):
    """Restart as it was, after the back-off of the budget."""

    note: str = ""
    proposed: tuple[Option, ...] = ()


Answer = Finish | Hold | GiveUp | GoBack | StepDown | ApplyRemedy | RestartLater | WaitForRoom | Restart
