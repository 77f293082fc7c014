"""The input of the policy and its answers: what is known of a failure, and what can follow it.

``counted``: the failure enters the history, and the ramp's stretch without trouble ends. True unless the field says no.
"""

from typing import Literal

import msgspec

from ...model.launch.elsewhere.job import JobCause
from ...model.settings import Restart
from ...model.shipped.failure import SettingsFault, WaitsFor
from ...model.why import WhyKind
from ..failure.wsl_channel import ChannelState
from ..resume.doubt import Unread
from ..run_states import RestartPlan
from .failure_history import Cause, History
from .remedies.ramp_state import Rung, SettingsThatRan
from .remedies.remedies import Option


class FailureInput(msgspec.Struct, frozen=True, kw_only=True):
    """A failure and all that the answer depends on."""

    cause: Cause
    reason: str
    """The failure in a sentence."""
    incident: int
    plan: RestartPlan
    """The next attempt as it would be without any change."""
    restart: Restart
    """The section ``[restart]`` of the settings."""
    run: tuple[str, ...] = ()
    """The id of the run, for the commands of an advice; empty = not known."""
    spent: bool = False
    """No restart is left in the budget."""
    began_anew: bool = False
    """The failed attempt started from the beginning, not from a checkpoint."""
    restarts_made: int = 0
    """Restarts since the newest checkpoint."""
    curable: bool = True
    """The failure class may go away although nothing changes, or an older checkpoint helps (failures.toml)."""
    confidence: float = 1.0
    """How certain the failure class is, 0 to 1."""
    trained: bool = True
    """An attempt of this run made verified progress: its step number rose, or it wrote a checkpoint."""
    saved: bool = False
    """The failed attempt wrote a checkpoint that is further than all before; after NaN: one from before the NaN."""
    found_resume: tuple[str, ...] = ()
    """The failed attempt was given a way to resume that was only found in the trainer's source, and the failure shows
    that this is wrong: what a person can do, a sentence each. Empty = nothing speaks against it."""
    refused_option: str = ""
    """The option of a resume that the trainer says it does not know, by a way that was not only found."""
    other_way: tuple[str, ...] = ()
    """What a person can do about that, a sentence each."""
    unproven_resume: tuple[str, ...] = ()
    """It was given such a way, made no step, and the failure has another cause: what to know of it, a sentence each."""
    changes: tuple[str, ...] = ()
    """What trainwatch changed for an attempt that failed before its first step, a clause each."""
    ordered: str = ""
    """Who or what is known to have ordered the end, as a clause; "" = nobody."""
    waits_for: WaitsFor | None = None
    """What a restart after this class has to wait for (failures.toml)."""
    job: JobCause | None = None
    """Why the job ended that the attempt ran as; None = it ran on this machine, or that is not known."""
    nan_action: Literal["rollback", "stop", "warn"] = "rollback"
    """``[nan] action``."""
    advice: tuple[str, ...] = ()
    """What a person may look at, a sentence each."""
    settings: SettingsFault = "possible"
    """Whether the settings of the training can cause this failure class (failures.toml)."""
    step_matters: bool = True
    """Two failures of this class at the same step are no coincidence (failures.toml)."""
    history: History = ()
    """The failures before this one, oldest first."""
    unread: Unread = ""
    """What follows for the checkpoint that the failed attempt was given (doubt.py)."""
    elsewhere: bool = False
    """The class lies neither in the code nor in a checkpoint (failures.toml)."""
    stride: int = 1
    """Printed counts for each optimizer step: two failures at most this far apart are at the same step."""
    step_known: bool = True
    """The log prints each step, or so many that the last one is no coincidence."""
    gpu_channel: ChannelState = "working"
    """Whether this virtual machine still reaches its GPU (WSL2)."""
    rung: Rung | None = None
    """The rung of the ladder of profiles that the ramp can leave; None if there is no rung below."""
    ran_before: SettingsThatRan | None = None
    """The settings to go back to; None unless new settings failed before their first step."""
    remedy: Option | None = None
    """The first remedy that may be applied without a person."""
    waiting: tuple[Option, ...] = ()
    """The remedies that only a person may choose."""
    disk_free_bytes: float | None = None
    """Free space on the disk of the checkpoints; None = unknown."""
    disk_need_bytes: float = 0.0
    """Free space that a restart needs on that disk."""
    gpus_usable: bool | None = None
    """A GPU of the run answers; None = unknown."""
    inodes_left: bool = True
    """Files can still be created on that disk, as far as it is known."""
    kernel: tuple[str, ...] = ()
    """Lines of the kernel log that belong to the failure."""
    still_open: tuple[str, ...] = ()
    """Findings about the health, the disk or the pace that are not closed."""

    @property
    def name(self) -> str:
        """The failure in words: ``crash (cuda_oom)``, ``a hang (idle)``."""
        return f"{'a hang' if self.cause.kind == 'hang' else self.cause.kind} ({self.cause.class_})"


class Finish(msgspec.Struct, frozen=True):
    """The training is done; only its process did not end."""


class Hold(msgspec.Struct, frozen=True):
    """No restart until an operator asks for one. ``reason``: ``why`` in words, without "held until …".

    ``ending``: of its incident; "" = the reason. ``advice``: what people are told then beside it, a sentence each.
    """

    reason: str
    why: WhyKind
    ending: str = ""
    advice: tuple[str, ...] = ()


class GiveUpRun(msgspec.Struct, frozen=True):
    """No restart. ``advice``: where to look, a sentence each. ``proposed``: remedies that a person may choose."""

    reason: str
    advice: tuple[str, ...] = ()
    proposed: tuple[Option, ...] = ()
    counted: bool = True
    title: str = "given up"


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


class PassOver(msgspec.Struct, frozen=True):
    """Restart at once from the checkpoint before the one that the failed attempt was given."""

    path: str


class RestartLater(msgspec.Struct, frozen=True):
    """Restart as it was after ``delay_s``, without charging the budget."""

    delay_s: float


class WaitForRoom(msgspec.Struct, frozen=True):
    """Restart as it was when ``need_bytes`` are free on the disk, without charging the budget."""

    need_bytes: float


class WaitForGpu(msgspec.Struct, frozen=True):
    """Restart as it was when a GPU of the run is usable again; the restart is charged."""


class RestartAfterBackOff(msgspec.Struct, frozen=True):
    """Restart as it was, after the back-off of the budget, ``least_s`` at the least."""

    note: str = ""
    least_s: float = 0.0
    proposed: tuple[Option, ...] = ()


Answer = (
    Finish
    | Hold
    | GiveUpRun
    | GoBack
    | StepDown
    | ApplyRemedy
    | PassOver
    | RestartLater
    | WaitForRoom
    | WaitForGpu
    | RestartAfterBackOff
)
