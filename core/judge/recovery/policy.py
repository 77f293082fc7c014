"""What follows a failure: ``choose(FailureInput) -> Answer``.

Pure: a frozen input, a table of rules, a frozen answer. ``RULES`` is read from top to bottom; the first rule that
returns an answer decides, and the last one always does. apply.py collects the input and carries the answer out.
"""

from collections.abc import Callable

import msgspec

from ...model.launch.elsewhere.job import OF_THE_SITE
from ...model.text.plural import plural
from ...model.text.size_words import size
from ...model.text.suggestion import typed
from ..failure.wsl_channel import BREAKS
from . import failure_history
from .answers import (
    Answer,
    ApplyRemedy,
    FailureInput,
    Finish,
    GiveUpRun,
    GoBack,
    Hold,
    PassOver,
    RestartAfterBackOff,
    RestartLater,
    StepDown,
    WaitForGpu,
    WaitForRoom,
)
from .budget import nth_wait_s
from .failure_history import Cause
from .remedies.remedies import Option

NAN = "nan_loss"
SURE = 0.8
"""Confidence from which a class is known (failures.toml: 0.8 and more names a mechanism)."""
PERSON_SURE = 0.6
"""Confidence from which a person ended it. Below are lines of launchers that end the other ranks with SIGTERM."""


def choose(failure: FailureInput) -> Answer:
    """The answer of the first rule that has one."""
    return next(answer for rule in RULES if (answer := rule(failure)) is not None)


def training_is_done(failure: FailureInput) -> Answer | None:
    """A hang after the last step and the last save: nothing is lost if the process is ended."""
    return Finish() if failure.cause.class_ == "exiting" else None


AGAIN_S = 600.0
"""A second signal within this time is no accident: somebody, or a service that guards memory, wants it ended."""
NIGHT_S = 12 * 3600.0
MOST_SIGNALS = 3
"""In a night, the one that holds the run included."""
MACHINE_GOES_S = 5.0
"""A session or a machine that goes down ends the supervisor, too, this soon: nothing is started in between."""


def person_ended_it(failure: FailureInput) -> Answer | None:
    """Somebody ended the trainer on purpose, so it stays ended. A launcher that ends its other ranks is no person.

    Who sent a SIGTERM or SIGHUP is not known: earlyoom, systemd-oomd and session managers send them, too. Once the run
    has trained it is a crash like any other.
    """
    if failure.ordered:
        return Hold(failure.ordered, "ordered")
    if failure.waits_for != "person" or failure.confidence < PERSON_SURE or failure.job in OF_THE_SITE:
        return None
    signal_t = failure.cause.signal_t
    if signal_t is None:
        return Hold("a person ended the trainer", "ordered")
    if not failure.trained:
        return Hold(f"a signal ended it before it had trained ({failure.reason})", "signal")
    if failure_history.signals_since(failure.history, signal_t - AGAIN_S):
        return Hold(f"a signal ended it again within {AGAIN_S / 60:.0f} min ({failure.reason})", "signal")
    number = failure_history.signals_since(failure.history, signal_t - NIGHT_S) + 1
    return Hold(f"a signal ended it {number} times ({failure.reason})", "signal") if number >= MOST_SIGNALS else None


def site_ended_it(failure: FailureInput) -> Answer | None:
    """Time limit, preemption or a failed node: the next job goes on. A limit that no save fits in is charged."""
    if failure.job not in OF_THE_SITE or (failure.job == "time_limit" and not failure.saved):
        return None
    if failure.job != "node":
        return RestartLater(0.0)
    number = failure_history.in_a_row(failure.history, failure.cause.class_) + 1
    return RestartLater(nth_wait_s(failure.restart.backoff_s, number))


def wsl_channel_is_broken(failure: FailureInput) -> Answer | None:
    """Every attempt inside this virtual machine would fail. One failed message alone has to come twice in a row."""
    class_ = failure.cause.class_
    if class_ not in BREAKS or failure.gpu_channel == "working":
        return None
    if failure.gpu_channel == "failing" and not failure_history.in_a_row(failure.history, class_):
        return None
    reason = "WSL2's channel to the GPU is broken: a restart inside this virtual machine would fail, too"
    return GiveUpRun(reason, windows_side(failure.run), counted=False)


def resume_option_is_refused(failure: FailureInput) -> Answer | None:
    """The trainer does not know the option that names the checkpoint: each restart would give it again."""
    if not failure.refused_option:
        return None
    refused = f"the trainer does not take {failure.refused_option}, the option that names the checkpoint"
    return GiveUpRun(f"{refused}; a restart would give it again: {failure.reason.rstrip('.:')}", failure.other_way)


def new_settings_do_not_start(failure: FailureInput) -> Answer | None:
    """An attempt with new settings of ours died before its first step, and not for want of memory: see fallback.py."""
    if failure.ran_before is None or failure.cause.kind == "hang" or failure.settings == "likely":
        return None
    if not failure.ran_before.attempt and failure.curable:
        return None
    return GoBack(failure.ran_before, counted=False)


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
        return StepDown(rung) if failure.settings in {"likely", "possible"} else None
    nothing_else = failure.remedy is None and not failure.curable
    return StepDown(rung) if nothing_else and failure.settings == "likely" else None


def remedy_applies(failure: FailureInput) -> Answer | None:
    """The first remedy that fits and that the settings allow. The next attempt differs, so it need not wait."""
    if failure.remedy is None or failure.spent:
        return None
    return ApplyRemedy(failure.remedy, failure.waiting)


def new_settings_do_not_fit(failure: FailureInput) -> Answer | None:
    """New settings need more memory than there is, and no remedy helps."""
    if failure.ran_before is None or failure.cause.kind == "hang" or failure.curable:
        return None
    if not failure.ran_before.attempt:
        return None
    return GoBack(failure.ran_before)


def network_failed(failure: FailureInput) -> Answer | None:
    """The network has to come back; the wait grows with each failure in a row."""
    if failure.waits_for != "network":
        return None
    number = failure_history.in_a_row(failure.history, failure.cause.class_) + 1
    return RestartLater(nth_wait_s(failure.restart.network_wait_s, number))


def disk_is_full(failure: FailureInput) -> Answer | None:
    """Room has to be made. If there is room, another disk or a quota is full, and restarts count."""
    free = failure.disk_free_bytes
    if failure.waits_for != "disk" or free is None:
        return None
    if free < failure.disk_need_bytes or not failure.inodes_left:
        return WaitForRoom(failure.disk_need_bytes)
    if failure.spent:
        return None
    return RestartAfterBackOff(
        f"{size(free)} are free on the disk of the checkpoints: "
        "the failed save freed its space, or another disk or a quota is full"
    )


def budget_is_spent(failure: FailureInput) -> Answer | None:
    """A restart or a remedy might help, but no restart is left."""
    if failure.spent and (not _is_hopeless(failure) or failure.remedy is not None):
        why = f": the trainer cannot be started: {failure.reason}" if failure.cause.kind == "launch" else ""
        return _end(failure, f"{spent_reason(failure.restarts_made)}{why}")
    return None


def gpu_is_lost(failure: FailureInput) -> Answer | None:
    """No GPU of the run answers: a restart would run into that again. What cannot be told is restarted."""
    if failure.job is not None:
        return None  # the next job is given other GPUs, and not that node
    return WaitForGpu() if failure.waits_for == "gpu" and failure.gpus_usable is False else None


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
    """The trainer does not start with its checkpoint: the one before it, or neither is to blame. See doubt.py."""
    given = failure.cause.given or ""
    if failure.unread == "passed_over":
        return PassOver(given)
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
    ended = _end(failure, f"{failure.reason}; two starts ended with this line before any step")
    if not isinstance(ended, GiveUpRun):
        return ended
    return msgspec.structs.replace(ended, title=f"given up: {cause.line or failure.reason}")


QUICK_S = 30.0
"""Seconds within which a start ends because of its code or its options, before anything large is loaded."""


def _is_quick(cause: Cause) -> bool:
    ended = cause.kind == "crash" and not cause.stepped and bool(cause.raised and cause.said)
    return ended and cause.lasted_s is not None and cause.lasted_s <= QUICK_S


def fails_at_the_same_step(failure: FailureInput) -> Answer | None:
    """The same cause at the same step twice is no accident, if the log shows that it is the same step.

    It prints each step, or so many that the last one is no coincidence; else the same words show it.
    """
    cause = failure.cause
    before = failure_history.at_the_same_step(failure.history, cause, failure.stride) if failure.step_matters else ()
    same_words = bool(cause.said) and not failure.elsewhere and any(known.said == cause.said for known in before)
    if not before or not (failure.step_known or same_words):
        return None
    again = "the same cause at the same step is no accident; a restart would fail there again"
    return _end(failure, f"{cause.kind} at step {cause.position} again: {again}")


def nan_comes_back(failure: FailureInput) -> Answer | None:
    """NaN again without a new checkpoint since the last one: going back once more would waste the GPU hours."""
    if failure.cause.class_ != NAN or failure.saved or not failure_history.in_a_row(failure.history, NAN):
        return None
    where = "" if failure.cause.position is None else f" at step {failure.cause.position}"
    return _end(failure, f"NaN again{where}, and no new checkpoint since the last NaN: {failure.reason}")


def found_resume_does_not_start(failure: FailureInput) -> Answer | None:
    """A way to resume that was only found in the source does not start the trainer: see found_way.py."""
    if not failure.found_resume or failure.cause.kind == "hang":
        return None
    reason = f"the trainer does not start with the way to resume that was found in its source: {failure.reason}"
    return GiveUpRun(f"{reason}; it is taken back", failure.found_resume)


def restart_as_it_was(failure: FailureInput) -> Answer | None:
    """Nothing speaks against a restart."""
    return RestartAfterBackOff(
        proposed=() if failure.ran_before is not None else failure.waiting,
        least_s=0.0 if failure.cause.signal_t is None else MACHINE_GOES_S,
    )


RULES: tuple[Callable[[FailureInput], Answer | None], ...] = (
    training_is_done,
    site_ended_it,
    person_ended_it,
    wsl_channel_is_broken,
    resume_option_is_refused,
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
    found_resume_does_not_start,
    restart_as_it_was,
)


def _end(failure: FailureInput, reason: str) -> Answer:
    """Give up; if the settings are new, go back to those that ran instead."""
    if failure.ran_before is not None and failure.ran_before.attempt:
        return GoBack(failure.ran_before)
    waiting = failure.waiting if failure.remedy is None else (failure.remedy, *failure.waiting)
    advice = () if failure.cause.kind == "launch" else (*_where_to_look(failure), *_commands(waiting, failure.run))
    return GiveUpRun(reason, advice, waiting)


def windows_side(run: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What a person can do if the GPU channel of WSL2 is lost. ``run``: its id."""
    again = typed("resume", *run)
    return (
        f"in PowerShell on Windows: wsl --shutdown; open the distribution again, and then: {again}",
        "if it comes back soon: update the Windows NVIDIA driver and WSL (wsl --update), train with --profile stable",
    )


def spent_reason(number: int) -> str:
    """Why no further restart is made. ``number``: restarts since the newest checkpoint; 0: the settings allow none."""
    if not number:
        return "no restart is allowed (max_restarts = 0): a person is needed"
    return f"{plural(number, 'restart')} without a new checkpoint in between: a person is needed"


def _where_to_look(failure: FailureInput) -> tuple[str, ...]:
    """What points at hardware, driver or settings, a sentence each."""
    history = failure_history.with_cause(failure.history, failure.cause)
    lines = [f"failures: {failure_history.in_words(history)}"]
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
    return tuple(lines)


def _commands(waiting: tuple[Option, ...], run: tuple[str, ...]) -> tuple[str, ...]:
    """The remedies that a person may choose, each with the command that applies it."""
    return tuple(
        f"proposed: {o.remedy.title} ({o.words}; cost: {o.remedy.cost}): "
        f"`{typed('resume', *run, '--with', o.remedy.name)}`"
        for o in waiting[:4]
    )
