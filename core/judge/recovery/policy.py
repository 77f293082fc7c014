"""What follows a failure: ``choose(FailureInput) -> Answer``.

Pure: a frozen input, a table of rules, a frozen answer. ``RULES`` is read from top to bottom; the first rule that
returns an answer decides, and the last one always does. apply.py collects the input and carries the answer out.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

import msgspec

from ...model.fact import ProfileChanged
from ...model.preset import NO_PROFILE, FailedRung
from ...model.progress import WhyKind
from ...model.run import OF_THE_SITE
from ...model.settings import Restart
from ...model.shipped import SettingsFault, WaitsFor
from ...model.text import plural, size, typed
from .. import memory
from ..failure.catalogue import BREAKS, ChannelState
from ..memory import Cause, Failed, History, Rung, SettingsThatRan, nth_wait_s
from ..resume.checkpoint_index import Unread
from ..run_states import RestartPlan, Then
from ..scales import BUSY_S, HALF_MINUTE_S, HOUR_S, LIKELY, SURE, TRIES, WHILE_S
from ..state import JudgeState, StepBuilder
from . import remedies
from .remedies import Option

# Of all answers: ``then``: what follows the end of the attempt, and ``how``, as a clause. ``counted``: the failure
# enters the history, and the ramp's stretch without trouble ends.


class FailureInput(Failed, frozen=True, kw_only=True):
    """A failure and all that the answer depends on."""

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
    trained: bool = True
    """An attempt of this run made verified progress: its step number rose, or it wrote a checkpoint."""
    saved: bool = False
    """The failed attempt wrote a checkpoint that is further than all before; after NaN: one from before the NaN."""
    wrong_way: str = ""
    """What the failure shows to be wrong with the way to resume that the attempt was given; "" = nothing."""
    other_way: tuple[str, ...] = ()
    """What a person can do about that, a sentence each."""
    unproven_resume: tuple[str, ...] = ()
    """It was given a way that was only found in the trainer's source, made no step, and the failure has another cause:
    what to know of it, a sentence each."""
    changes: tuple[str, ...] = ()
    """What trainwatch changed for an attempt that failed before its first step, a clause each."""
    ordered: str = ""
    """Who or what is known to have ordered the end, as a clause; "" = nobody."""
    waits_for: WaitsFor | None = None
    """What a restart after this class has to wait for (failures.toml)."""
    nan_action: Literal["rollback", "stop", "warn"] = "rollback"
    """``[nan] action``."""
    settings: SettingsFault = "possible"
    """Whether the settings of the training can cause this failure class (failures.toml)."""
    step_matters: bool = True
    """Two failures of this class at the same step are no coincidence (failures.toml)."""
    history: History = ()
    """The failures before this one, oldest first."""
    unread: Unread = ""
    """What follows for the checkpoint that the failed attempt was given (checkpoint_index.py)."""
    elsewhere: bool = False
    """The class lies neither in the code nor in a checkpoint (failures.toml)."""
    misses: bool = False
    """A file is not there that lies neither in the output folder nor in the checkpoint."""
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

    then: ClassVar[Then] = "finish"
    how: ClassVar[str] = "because the training is done"


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
    then: ClassVar[Then] = "give_up"

    @property
    def how(self) -> str:
        return f"because {self.reason}"


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """Another attempt, after ``delay_s`` at the least. ``charged``: to the budget; ``back_off``: with its wait, too.

    What differs: the settings that ran before (``to``), one rung down (``rung``), changed settings (``remedy``), the
    checkpoint before the one that the failed attempt was given (``passed_over``), or nothing. ``need_bytes``: free on
    the disk first; ``needs_gpu``: a GPU of the run is usable first. ``proposed``: remedies that a person may choose.
    """

    charged: bool = True
    back_off: bool = False
    delay_s: float = 0.0
    to: SettingsThatRan | None = None
    rung: Rung | None = None
    remedy: Option | None = None
    passed_over: str = ""
    need_bytes: float | None = None
    needs_gpu: bool = False
    note: str = ""
    proposed: tuple[Option, ...] = ()
    counted: bool = True
    then: ClassVar[Then] = "restart"

    @property
    def change(self) -> str:
        """What differs, as a clause; "" = nothing that ``plan`` does not say."""
        if self.rung is not None:
            return f"with the profile {self.rung.below}"
        if self.remedy is not None:
            return f"with {self.remedy.words}"
        return "from the checkpoint before" if self.passed_over else ""

    @property
    def how(self) -> str:
        """What differs, and what is waited for, as a clause."""
        if self.to is not None:
            return f"with the {'profile ' + self.to.profile if self.to.profile else 'settings'} of before"
        if self.needs_gpu:
            return "once a GPU of the run answers"
        return self.change if self.need_bytes is None else f"once {size(self.need_bytes)} are free"


Answer = Finish | Hold | GiveUpRun | Again


NAN, IO_ERROR, NO_GPU = "nan_loss", "io_error", "driver_mismatch"


def choose(failure: FailureInput) -> Answer:
    """The answer of the first rule that has one."""
    return next(answer for rule in RULES if (answer := rule(failure)) is not None)


def training_is_done(failure: FailureInput) -> Answer | None:
    """A hang after the last step and the last save: nothing is lost if the process is ended."""
    return Finish() if failure.cause.class_ == "exiting" else None


NIGHT_S = 12 * HOUR_S


def person_ended_it(failure: FailureInput) -> Answer | None:
    """Somebody ended the trainer on purpose, so it stays ended. A launcher that ends its other ranks is no person.

    Who sent a SIGTERM or SIGHUP is not known: earlyoom, systemd-oomd and session managers send them, too. Once the run
    has trained it is a crash like any other.
    """
    if failure.ordered:
        return Hold(failure.ordered, "ordered")
    if failure.waits_for != "person" or failure.confidence < LIKELY or failure.job in OF_THE_SITE:
        return None
    signal_t = failure.cause.signal_t
    if signal_t is None:
        return Hold("a person ended the trainer", "ordered")
    if not failure.trained:
        return Hold(f"a signal ended it before it had trained ({failure.reason})", "signal")
    # Somebody, or a service that guards memory, wants it ended.
    if memory.signals_since(failure.history, signal_t - WHILE_S):
        return Hold(f"a signal ended it again within {WHILE_S / 60:.0f} min ({failure.reason})", "signal")
    number = memory.signals_since(failure.history, signal_t - NIGHT_S) + 1
    return Hold(f"a signal ended it {number} times ({failure.reason})", "signal") if number >= TRIES else None


def site_ended_it(failure: FailureInput) -> Answer | None:
    """Time limit, preemption or a failed node: the next job goes on. A limit that no save fits in is charged."""
    if failure.job not in OF_THE_SITE or (failure.job == "time_limit" and not failure.saved):
        return None
    if failure.job != "node":
        return Again(charged=False)
    number = memory.in_a_row(failure.history, failure.cause.class_) + 1
    return Again(charged=False, delay_s=nth_wait_s(failure.restart.backoff_s, number))


def wsl_channel_is_broken(failure: FailureInput) -> Answer | None:
    """Every attempt inside this virtual machine would fail. One failed message alone has to come twice in a row."""
    class_ = failure.cause.class_
    if class_ not in BREAKS or failure.gpu_channel == "working":
        return None
    if failure.gpu_channel == "failing" and not memory.in_a_row(failure.history, class_):
        return None
    reason = "WSL2's channel to the GPU is broken: a restart inside this virtual machine would fail, too"
    return GiveUpRun(reason, windows_side(failure.run), counted=False)


def windows_side(run: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What a person can do if the GPU channel of WSL2 is lost. ``run``: its id."""
    return (
        f"in PowerShell on Windows: wsl --shutdown; open the distribution again, and then: {typed('resume', *run)}",
        "if it comes back soon: update the Windows NVIDIA driver and WSL (wsl --update), train with --profile stable",
    )


def way_to_resume_is_wrong(failure: FailureInput) -> Answer | None:
    """The trainer does not start as it was told to resume: each restart would tell it so again."""
    return GiveUpRun(failure.wrong_way, failure.other_way) if failure.wrong_way else None


def new_settings_do_not_start(failure: FailureInput) -> Answer | None:
    """An attempt with new settings of ours died before its first step, and not for want of memory: see policy.py."""
    if failure.ran_before is None or failure.cause.kind == "hang" or failure.settings == "likely":
        return None
    if not failure.ran_before.attempt and failure.curable:
        return None
    return Again(to=failure.ran_before, charged=False, counted=False)


def nan_is_left_to_a_person(failure: FailureInput) -> Answer | None:
    """``[nan] action = "stop"``, ``[loss] diverged = "stop"``."""
    if failure.cause.class_ != NAN or failure.nan_action != "stop":
        return None
    setting = "[loss] diverged" if failure.cause.diverged else "[nan] action"
    return _end(failure, f'{failure.reason}; {setting} = "stop" leaves what follows to a person')


def rung_is_too_high(failure: FailureInput) -> Answer | None:
    """A rung that the ramp climbed to does not hold; one that was chosen is left only if nothing else helps."""
    rung = failure.rung
    if rung is None or failure.spent:
        return None
    if rung.climbed:
        return Again(rung=rung) if failure.settings in {"likely", "possible"} else None
    nothing_else = failure.remedy is None and not failure.curable
    return Again(rung=rung) if nothing_else and failure.settings == "likely" else None


def remedy_applies(failure: FailureInput) -> Answer | None:
    """The first remedy that fits and that the settings allow. The next attempt differs, so it need not wait."""
    if failure.remedy is None or failure.spent:
        return None
    return Again(remedy=failure.remedy, proposed=failure.waiting)


def new_settings_do_not_fit(failure: FailureInput) -> Answer | None:
    """New settings need more memory than there is, and no remedy helps."""
    if failure.ran_before is None or failure.cause.kind == "hang" or failure.curable:
        return None
    if not failure.ran_before.attempt:
        return None
    return Again(to=failure.ran_before, charged=False)


def network_failed(failure: FailureInput) -> Answer | None:
    """The network has to come back, or a mount or GPU that an attempt had; the wait grows with each failure in a row.

    Source: a NAS that was away for five minutes. Each start failed within seconds, and four were made in two minutes.
    """
    class_, at_start = failure.cause.class_, failure.trained and not failure.cause.stepped
    sure = failure.confidence >= SURE and ((class_ == IO_ERROR and failure.retryable) or class_ == NO_GPU)
    if failure.waits_for != "network" and not (at_start and (sure or failure.misses)):
        return None
    number = memory.in_a_row(failure.history, class_) + 1
    return Again(charged=False, delay_s=nth_wait_s(failure.restart.network_wait_s, number))


def disk_is_full(failure: FailureInput) -> Answer | None:
    """Room has to be made. If there is room, another disk or a quota is full, and restarts count."""
    free = failure.disk_free_bytes
    if failure.waits_for != "disk" or free is None:
        return None
    if free < failure.disk_need_bytes or not failure.inodes_left:
        return Again(charged=False, need_bytes=failure.disk_need_bytes)
    if failure.spent:
        return None
    return Again(
        back_off=True,
        note=f"{size(free)} are free on the disk of the checkpoints: "
        "the failed save freed its space, or another disk or a quota is full",
    )


def budget_is_spent(failure: FailureInput) -> Answer | None:
    """A restart or a remedy might help, but no restart is left."""
    if failure.spent and (not _is_hopeless(failure) or failure.remedy is not None):
        why = f": the trainer cannot be started: {failure.reason}" if failure.cause.kind == "launch" else ""
        number, needed = failure.restarts_made, "a person is needed"
        if not number:
            return _end(failure, f"no restart is allowed (max_restarts = 0): {needed}{why}")
        return _end(failure, f"{plural(number, 'restart')} without a new checkpoint in between: {needed}{why}")
    return None


def gpu_is_lost(failure: FailureInput) -> Answer | None:
    """No GPU of the run answers: a restart would run into that again. What cannot be told is restarted."""
    if failure.job is not None:
        return None  # the next job is given other GPUs, and not that node
    return Again(needs_gpu=True) if failure.waits_for == "gpu" and failure.gpus_usable is False else None


def never_trained(failure: FailureInput) -> Answer | None:
    """No attempt ever made progress, and the class is certain and comes from the code, the settings or the data.

    Once an attempt trained, the same command and data worked, so each class gets a restart. A class that is not
    certain is not known, and an unknown failure gets the budget of restarts.
    """
    if not _is_hopeless(failure):
        return None
    if failure.cause.kind == "launch":
        return _end(failure, f"the trainer cannot be started: {failure.reason}")
    why = "no attempt has trained yet, and a restart does not cure it"
    return _end(failure, f"{why}: {failure.reason}")


def _is_hopeless(failure: FailureInput) -> bool:
    known = failure.confidence >= SURE and failure.waits_for is None
    return known and not failure.curable and not failure.trained


def checkpoint_is_not_read(failure: FailureInput) -> Answer | None:
    """The trainer does not start with its checkpoint: the one before it, or neither is to blame."""
    if failure.unread == "passed_over":
        return Again(passed_over=failure.cause.given or "")
    if failure.unread != "cleared":
        return None
    said = f"an older checkpoint than the newest ends with the same line before its first step: {failure.reason}"
    return Hold(
        f"the checkpoints are not to blame: {said}",
        "checkpoints_fine",
        "held: the checkpoints are not to blame",
        (f"`{typed('resume', *failure.run)}` goes on from the newest, once its cause is mended", *failure.advice[:4]),
    )


def start_ends_alike(failure: FailureInput) -> Answer | None:
    """Two starts ended within seconds with the same line of the person's own code, or of the parser of its options.

    Source: a typo in the first line of a script was started four times in 80 s. Nothing that waiting can cure ends so.
    """
    cause, last = failure.cause, failure.history[-1] if failure.history else None
    if last is None or failure.elsewhere or failure.waits_for is not None or not (_is_quick(cause) and _is_quick(last)):
        return None
    if (cause.said, cause.given) != (last.said, last.given):
        return None
    reason = f"{failure.reason}; two starts ended with this line before any step"
    return _end(failure, reason, title=f"given up: {cause.line or failure.reason}")


def _is_quick(cause: Cause) -> bool:
    ended = cause.kind == "crash" and not cause.stepped and bool(cause.raised and cause.said)
    # Its code or its options ended it, before anything large was loaded.
    return ended and cause.lasted_s is not None and cause.lasted_s <= HALF_MINUTE_S


def fails_at_the_same_step(failure: FailureInput) -> Answer | None:
    """The same cause at the same step twice is no accident, if the log, or its words, show that it is the same step."""
    cause = failure.cause
    before = memory.at_the_same_step(failure.history, cause, failure.stride) if failure.step_matters else ()
    same_words = bool(cause.said) and not failure.elsewhere and any(known.said == cause.said for known in before)
    if not before or not (failure.step_known or same_words):
        return None
    again = "the same cause at the same step is no accident; a restart would fail there again"
    return _end(failure, f"{cause.kind} at step {cause.position} again: {again}")


def nan_comes_back(failure: FailureInput) -> Answer | None:
    """NaN again without a new checkpoint since the last one: going back once more would waste the GPU hours."""
    if failure.cause.class_ != NAN or failure.saved or not memory.in_a_row(failure.history, NAN):
        return None
    where = "" if failure.cause.position is None else f" at step {failure.cause.position}"
    return _end(failure, f"NaN again{where}, and no new checkpoint since the last NaN: {failure.reason}")


def restart_as_it_was(failure: FailureInput) -> Answer | None:
    """Nothing speaks against a restart."""
    return Again(
        back_off=True,
        proposed=() if failure.ran_before is not None else failure.waiting,
        # A session or a machine that goes down ends the supervisor, too, this soon: nothing is started in between.
        delay_s=0.0 if failure.cause.signal_t is None else BUSY_S,
    )


RULES: tuple[Callable[[FailureInput], Answer | None], ...] = (
    training_is_done,
    site_ended_it,
    person_ended_it,
    wsl_channel_is_broken,
    way_to_resume_is_wrong,
    new_settings_do_not_start,
    nan_is_left_to_a_person,
    rung_is_too_high,
    remedy_applies,
    new_settings_do_not_fit,
    checkpoint_is_not_read,
    network_failed,
    disk_is_full,
    budget_is_spent,
    gpu_is_lost,
    never_trained,
    start_ends_alike,
    nan_comes_back,
    fails_at_the_same_step,
    restart_as_it_was,
)


def _end(failure: FailureInput, reason: str, title: str = "given up") -> Answer:
    """Give up; if the settings are new, go back to those that ran instead."""
    if failure.ran_before is not None and failure.ran_before.attempt:
        return Again(to=failure.ran_before, charged=False)
    waiting = failure.waiting if failure.remedy is None else (failure.remedy, *failure.waiting)
    proposed = [
        f"proposed: {o.remedy.title} ({o.words}; cost: {o.remedy.cost}): "
        f"`{typed('resume', *failure.run, '--with', o.remedy.name)}`"
        for o in waiting[:4]
    ]
    if failure.cause.kind == "launch":
        return GiveUpRun(reason, (), waiting, title=title)
    # What points at hardware, driver or settings.
    lines = [f"failures: {memory.in_words(memory.with_cause(failure.history, failure.cause))}"]
    if failure.changes:
        ours = "; ".join(failure.changes[:4])
        lines.append(f"this start had changes that trainwatch made, which may be what does not start: {ours}")
    lines += failure.unproven_resume
    if failure.kernel:
        lines.append(f"hardware or driver: kernel log: {'; '.join(failure.kernel[:2])}")
    if failure.still_open:
        lines.append(f"still open: {'; '.join(failure.still_open[:3])}")
    lines += [f"try: {sentence}" for sentence in failure.advice[:4]]
    events, report = typed("events", *failure.run), typed("report", *failure.run)
    lines.append(f"evidence: `{events}`; `{report}` collects all of it in one file")
    return GiveUpRun(reason, (*lines, *proposed), waiting, title=title)


# Back to the settings that ran: a change of ours that fails before its first step must not end a run.
#
# A profile or a remedy is an experiment. If the new settings do not even start (a flag that the script does not know,
# a library that is missing), the run goes on as before, at once and uncharged, and does not take them again by itself.
# A first start with a profile goes back to the user's own settings in the same way, if its failure is one of code or
# settings. Known false alarm: a failure that has nothing to do with the settings and comes just then. The profile is
# then left although it would have worked; an operator who asks for it again gets it.


def remember(builder: StepBuilder) -> None:
    """Note the settings of this attempt if it made a step. Call it before anything of the next attempt is chosen."""
    attempt, known = builder.attempt, builder.state.policy
    if not known.trained and has_trained(builder.state):
        builder.change("policy", trained=True)
    if attempt.beat_t is not None and (known.ran is None or known.ran.attempt != attempt.number):
        ran = SettingsThatRan(attempt=attempt.number, profile=attempt.profile, applied=known.applied)
        builder.change("policy", ran=ran)


def has_trained(state: JudgeState) -> bool:
    """Whether an attempt of this run made verified progress: its step number rose, or it wrote a checkpoint."""
    logs = (state.log.reading, *state.log.other_logs.values())
    return state.policy.trained or state.attempt.saved or any(read.advanced for read in logs)


def settings_that_ran(state: JudgeState, *, started: bool = True) -> SettingsThatRan | None:
    """What to go back to; None unless the newest launch had new settings of ours and failed before its first step.

    ``started``: the attempt began; else its launch failed.
    """
    known, attempt, ran = state.policy, state.attempt, state.policy.ran
    if started and (attempt.beat_t is not None or attempt.profile != known.profile):
        return None
    if ran is None:  # nothing has trained: without our change the first start is the user's own
        return SettingsThatRan(attempt=0) if known.profile is not None else None
    if (known.profile, known.applied) == (ran.profile, ran.applied):
        return None
    did_not_hold = known.profile != ran.profile and any(rung.profile == ran.profile for rung in known.ramp.failed)
    return None if did_not_hold else ran


def go_back(builder: StepBuilder, ran: SettingsThatRan, failure: str, reason: str, incident: int) -> str:
    """The next launch has the settings that ran. Returns why, as a sentence for people."""
    state = builder.state
    if state.policy.profile == ran.profile:
        before = {known.name for known in ran.applied}
        names = tuple(known.name for known in state.policy.applied if known.name not in before)
        words = f"trainwatch's own change ({', '.join(names)}) does not start here: it is taken back"
        builder.note(f"{words} ({failure}: {reason})")
        builder.change("policy", withdrawn=(*state.policy.withdrawn, *names))
        remedies.restore(builder, ran.applied, words, incident)
        return words
    left = state.policy.profile if state.policy.profile is not None else NO_PROFILE
    to = ran.profile if ran.profile is not None else NO_PROFILE
    words = f"{_named(left)} does not start here: back to {_named(to)}"
    failed = FailedRung(profile=left, ran_s=0.0, failure=failure)
    builder.note(f"{words} ({failure}: {reason})")
    at = state.policy.ramp
    ours = left in {at.rung, at.climbing} and (at.climbed or at.climbing == left)
    remedies.leave(builder, failed, to, f"{left} does not start here: {reason}", incident, ours=ours)
    if state.policy.profile_pending in {None, left}:  # else an operator or a remedy chose another profile meanwhile
        builder.change("policy", profile_pending=to)
        builder.fact(ProfileChanged(profile=ran.profile, pending=True, why=f"{words} ({failure})", failed=failed))
        remedies.restore(builder, ran.applied, words, incident)
    return words


def _named(profile: str) -> str:
    return "your own config as it stands" if profile == NO_PROFILE else f"profile {profile}"
