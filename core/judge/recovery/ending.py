"""Whether a trainer that exited with success reached the end of its training: proven, contradicted, or neither.

An exit status proves nothing by itself: a pipe, a ``;`` after the command and a handler that catches everything turn
any failure into 0. Proof is a position at its total (printed, or told by the settings), words of an end or of an early
stop, or a last checkpoint; a position short of its total, a cause of a failure in the last lines, a NaN and a log
without any step speak against it.
Position and last save together are stronger than a late error; only NaN weights are stronger than they.

Known false alarm: early stopping that prints nothing looks like an end before the last step.
"""

import itertools
import math
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from ...model.progress import ToldLength
from ...model.run import JobCause
from ...model.shipped import Diagnosis, EvidenceLine
from ...model.text import LazyPattern
from ..failure.catalogue import SUREST, Circumstances, CompiledCatalogue
from ..failure.diagnosis import (
    START_EVIDENCE,
    at_end,
    diagnose,
    diagnosis_as,
    ends_after,
    finished,
    hidden_failure,
    is_past,
    kernel_evidence,
    line_of,
    read_log,
    with_lines,
)
from ..failure.evidence_state import DiagnosisState, kept_text
from ..knowledge import Knowledge
from ..memory import AttemptLog
from ..progress import START, AttemptProgress, ProgressState, whole_epochs
from ..resume.checkpoint_index import base_name
from ..resume.resume_point import newest_own
from ..scales import HALF_MINUTE_S, HEADED_LINES, LISTED, MINUTE_S, NEARLY, SHOWN, TINY_SHARE, TWICE
from ..state import JudgeState
from ..text.reading import Reading

STEPS_LEFT = 10
"""Steps that a printed time to go must hold to be more than the last one."""


class Place(msgspec.Struct, frozen=True):
    """Where the trainer's counters stand. ``words``: "step 399 of 1000".

    ``is_last_line``: a further line of the log would be past the end. A loop that counts from 0 and prints each tenth
    step, or epoch, of 100 ends with "90/100".
    """

    at: Literal["end", "short", "unknown"]
    words: str = ""
    is_last_line: bool = False


EndingBy = Literal[
    "", "counter", "part", "line", "words", "save", "failure", "nan", "signal", "order", "job", "settings", "doubt"
]


class Ending(msgspec.Struct, frozen=True):
    """What an end was. ``kind``: the training was over; nothing shows that; it was not, and nothing shows why; failed.

    ``why``: what shows it, as a clause; if nothing does, where it was. "" = unknown, or the diagnosis says all.
    ``by`` of one that is over: its counter alone; one that may be of a part of the run, so that it takes an exit status
    of success, too; words or a checkpoint's name; its counter and the last save, which count whatever error the log
    shows after it. Of one that is not: a failure that the log shows, NaN
    weights, a signal of which the log tells, an order, the scheduler's word, the settings' length, one NaN at the
    very end of a log without steps, or nothing known. *line*: ``Place.is_last_line``: the log has all the lines
    that a training to the end prints. ``after``: what came after a training that was over.
    """

    kind: Literal["finished", "unproven", "ended_early", "failed"]
    why: str = ""
    by: EndingBy = ""
    after: EvidenceLine | None = None


def judge_ending(state: JudgeState, knowledge: Knowledge) -> Ending:
    """Whether the training was over, by all that is known but the exit status: the first rule that holds."""
    reading, attempt, log = main_reading(state), state.attempt, state.log.diagnosis
    now, seen, save = reading.now, attempt.beat_t is not None, _last_save(state, reading.now)
    at, by_settings = place(state), told_place(state, knowledge, reading)
    hidden, doubt = hidden_failure(log, knowledge.catalogue, short=not seen), ""
    if hidden is not None and hidden.failure == "nan_loss":  # one NaN may be one bad batch, also in a log without steps
        once, hidden = hidden.cause, hidden_failure(log, knowledge.catalogue)
        newest = next(log.last_lines(), None)
        if hidden is None and once is not None and newest is not None and once.line == newest[0]:
            doubt = f"its last line is {once.text}"
    total, resumed = attempt.former.run_total, attempt.resumed_at
    at_end = not seen and total is not None and resumed is not None and resumed >= total
    said = now.end_words if now.end_words != "hint" else None
    by_framework = said in {"framework", "early_stop"}
    done = at.at == "end" or at_end
    saved = save.of_last_step or at_end or (said is not None and not any(k.own for k in state.saved.checkpoints.known))
    another = reading.phase in {"load", "preprocess", "compile"} and not by_framework
    whole = done and not save.writing and not another
    # Else an error in the first validation would come after the end.
    told = knowledge.told.get(attempt.profile or "")
    sure = said is not None or save.final or not may_be_of_an_epoch(state, told)
    sure = sure and not knowledge.stages
    by_status = not knowledge.status_hidden and (told is None or told.epochs is None)  # an exit status of 0 decides
    stated = (said == "words", save.final)
    ordered = _order(log)
    where = f" ({at.words})" if at.words else ""
    although = f', although it says "{now.end_text}"' if said == "words" else ""
    signs = (
        (at.at == "end", at.words),
        (at_end, "it had resumed from the end"),
        (said is not None, f'"{now.end_text}"'),
        (save.of_last_step or save.final, f"{save.name} is saved"),
    )
    proof = ", ".join(words for holds, words in signs if holds)
    nan, due, last = _nan(state, now, hidden), _why_due(state, knowledge), "the last progress is"
    shown = f"{line_of(hidden)}{where}" if hidden is not None else ""
    counted: EndingBy = "part" if not sure else "words" if said else "counter"
    bare: EndingBy = "signal" if ordered_by(ordered) == "signal" else "order"
    rules: tuple[tuple[bool | str, Literal["finished", "failed"], str, EndingBy], ...] = (
        (nan, "failed", nan, "nan"),
        (sure and whole and saved, "finished", proof, "save"),
        (sure and whole and is_past(log) and not knowledge.status_hidden, "finished", proof, counted),
        (by_status and whole and saved, "finished", proof, counted),
        (shown, "failed", shown, "failure"),
        (done, "finished", proof, counted),
        (ordered, "failed", f"it was told to end: {ordered}{where}", bare),
        (not seen and due, "failed", f"it made no step, and {due}", ""),
        (by_framework or all(stated) or (any(stated) and at.at != "short"), "finished", proof, "words"),
        (at.at == "short", "failed", f"{last} {at.words}{although}", ""),
        (by_settings.at == "end" and not another, "finished", by_settings.words, "counter"),
        (by_settings.at == "short" and not at.is_last_line, "failed", f"{last} {by_settings.words}", "settings"),
        (doubt, "failed", doubt, "doubt"),
    )
    unproven = at.words if at.is_last_line else by_settings.words or at.words
    after = None if hidden is None else hidden.cause
    found = (Ending(kind, why, by, after=after) for holds, kind, why, by in rules if holds)
    return next(found, Ending("unproven", unproven, "line" if at.is_last_line else ""))


def _nan(state: JudgeState, now: Reading, hidden: Diagnosis | None) -> str:
    """What shows that the weights are NaN, as a clause; "" = nothing. A value of an average shows it of no weight."""
    newest, losses = newest_own(state.saved.checkpoints), now.losses
    if newest is not None and newest.damage is not None and newest.damage[0] == "nonfinite":
        return f"{base_name(newest.path)} holds values that are not finite"
    if losses.is_average:
        return ""
    # One bad batch may be skipped.
    if losses.nan_values >= TWICE:
        return f"the last {losses.nan_values} printed losses are NaN"
    return line_of(hidden) if hidden is not None and hidden.failure == "nan_loss" else ""


def _order(log: DiagnosisState) -> str:
    """The line of the log that tells of an order or a signal to end, after which no words of a good end came."""
    found = next((f for f in log.findings if (f.failure, f.role, f.of_a_helper) == (KILLED, "root", False)), None)
    return "" if found is None or found.line == 0 or ends_after(log, found) else found.text


def _why_due(state: JudgeState, knowledge: Knowledge) -> str:
    """Why the trainer was expected to print steps, as a clause; "" = it was not."""
    preset = knowledge.preset
    if knowledge.handed_over or state.policy.failed_position is not None:
        return knowledge.handed_over or "earlier attempts made some"
    return "" if preset.name == "generic" else f"{preset.title or preset.name} prints its steps"


class _LastSave(NamedTuple):
    """The newest checkpoint of this run, if it was written at the last printed step or later; else nothing holds."""

    name: str = ""
    complete: bool = False
    final: bool = False
    writing: bool = False
    of_last_step: bool = False


def _last_save(state: JudgeState, now: Reading) -> _LastSave:
    newest, attempt = newest_own(state.saved.checkpoints), state.attempt
    # A checkpoint that became complete a little before the last printed step still belongs to it (lines lag).
    if newest is None or attempt.beat_t is None or newest.t < attempt.beat_t - HALF_MINUTE_S:
        return _LastSave()
    gap, run_at, whole = max(1, attempt.stride, now.run.gap), attempt.position, newest.complete
    near = newest.latest is None or run_at is None or run_at - newest.latest <= gap
    name, writing = base_name(newest.path), not whole and newest.bad is None
    return _LastSave(name, whole, whole and FINAL.search(name) is not None, writing, whole and near)


def _place(now: Reading, epochs: Literal["last", "near", "left", "unknown"], interval: int) -> Place:
    """Where the counters stand, over all epochs of the run. ``interval``: steps between two printed ones."""
    progress, bar = now.progress, now.main is not None
    step, total = progress.step, progress.total_steps
    counted = progress.epoch is not None and progress.total_epochs
    in_epochs = f"epoch {progress.epoch:g} of {progress.total_epochs}" if counted else ""
    if step is None or not total:
        if epochs == "left":
            return Place("short", in_epochs)
        if epochs == "last" and (now.lossy or _counts_done(now)):
            return Place("end", in_epochs)
        words = in_epochs or ("" if step is None else f"step {step}")
        return _by_time(now, words, is_last_line=epochs == "near")
    made, whole = progress.run_step, progress.run_total_steps
    words = f"step {step} of {total}{' of an epoch' if progress.of_part else ''}"
    if now.run.per_epoch and made is not None and whole is not None:
        words = f"step {made} of {whole}"
    elif made is not None and made > total:  # further than the total of a part of the run
        words = f"step {made}"
    words += f", {in_epochs}" if in_epochs and now.run.per_epoch else ""
    last_line = not bar and total - step <= max(1, interval)
    # Rounds before ended here, too; or a round without a number was drawn and not begun.
    not_begun = step == 0 and now.main is not None and progress.epoch is None and whole is None
    ends_a_round = bool(now.round_ends) and (step >= min(now.round_ends) or not_begun)
    sure = now.run.total is not None or total != now.run.declared_steps  # else it may count something else
    short = sure and total - step > max(1, interval) and step < NEARLY * total and not ends_a_round
    if short and made is not None and made > total:
        words += f", {step} of {total} in its round"
    if now.run.per_epoch:
        if short or epochs == "left":
            return Place("short", words)
        if not counted and made is not None and whole is not None:  # the log names its epochs apart from the counter
            left = whole - made
            near = not bar and left <= max(1, interval)
            return Place("end" if left <= 0 else "short" if left >= total else "unknown", words, near)
        if step >= total and epochs == "last":
            return Place("end", words)
        return _by_time(now, words, is_last_line=last_line and epochs in {"last", "near"})
    if short:
        return Place("short", words)
    # Whether a bar counts within the epoch shows only when the epoch changes.
    if epochs == "left" and progress.epoch == now.run.first_named:
        return Place("short", f"{in_epochs}, {words}")
    return Place("end", words) if step >= total else Place("unknown", words, last_line)


def _counts_done(now: Reading) -> bool:
    """Whether the epoch is a number of completed ones: the bar counts epochs."""
    return any(counter.name == "epochs" for counter in now.counters)


def _by_time(now: Reading, words: str, *, is_last_line: bool = False) -> Place:
    """Short if the trainer printed that much time is to go; else unknown."""
    left_s, step_s = now.progress.eta_s, now.progress.sec_per_step or 0.0
    if left_s is not None and left_s > max(MINUTE_S, STEPS_LEFT * step_s):
        return Place("short", f"{words or 'the last line'}, {left_s:.0f} s to go")
    return Place("unknown", words, is_last_line)


def _epochs(now: Reading, first_epoch_seen: bool) -> Literal["last", "near", "left", "unknown"]:
    """Whether the epoch is the last one, or ``near``: the next one that is printed would be past the end.

    Unknown if that depends on whether they count from 0, and that is open. ``first_epoch_seen``: the log begins with
    the first epoch. A bar of epochs shows the last one, too.
    """
    epoch, total = now.progress.epoch, now.progress.total_epochs
    if epoch is None or not total:
        return "unknown"
    if epoch != int(epoch):
        return "last" if epoch >= NEARLY * total else "left"
    last = total if _counts_done(now) or not now.zero_based or now.run.names_last else total - 1
    if epoch >= last:
        return "last"
    gap = 1 if _counts_done(now) or now.main is not None else now.run.epoch_gap
    if gap > 1 and epoch + gap > last:
        return "near"
    counted_from = now.zero_based or (gap > 1 and now.run.first_named == 1)
    open_ = not first_epoch_seen or (gap > 1 and not counted_from)
    return "unknown" if open_ and epoch + gap >= total else "left"


FINAL = LazyPattern(r"(?<![a-z])final(?![a-z])", re.IGNORECASE)
"""What trainers that print no end call their last checkpoint: ``model_final.pth``, ``checkpoint-final``."""


def main_reading(state: JudgeState) -> ProgressState:
    """The log that shows steps: the trainer's output, or the one of its other logs that has most of them."""
    if state.log.reading.now.heartbeats:
        return state.log.reading
    return max((state.log.reading, *state.log.other_logs.values()), key=lambda each: each.now.heartbeats)


def place(state: JudgeState) -> Place:
    """Where the counters of the attempt stand."""
    log, attempt = main_reading(state), state.attempt
    now = log.now
    # Where an attempt has printed one line only, the distance of two is that of the attempt before.
    interval = max(now.run.gap, attempt.former.widest_gap if log.now.heartbeats < 2 else 1)
    found = _place(now, _epochs(now, now.zero_based or attempt.resume_from is None), interval)
    found = found if _is_training(now) or found.at != "end" else Place("unknown", found.words)
    if found.at == "short" and (saved := _place_of_save(state, now)) is not None:
        return saved
    if found.at == "short" and _counts_anew(state) and attempt.position is not None:
        whole = attempt.former.run_total or 0
        if abs(whole - attempt.position) <= max(1, attempt.stride, now.run.gap):
            return Place("end", f"step {attempt.position} of {whole}, counted over the resume")
    return found


def _place_of_save(state: JudgeState, now: Reading) -> Place | None:
    """Where the newest save of the attempt shows that it is, if that is further than its log: its output may be closed.

    Only if its saves and its log are known to count the same: an earlier save came when the log was at its step, or a
    save holds just the last step.
    """
    attempt, total, step = state.attempt, now.progress.run_total_steps, now.progress.run_step
    if total is None or step is None:
        return None
    known = state.saved.checkpoints.known
    mine = [k for k in known if k.own and k.complete and k.bad is None and k.t >= attempt.start_t]
    saved = {k.step * attempt.stride: k for k in mine if k.step is not None}
    furthest = max(saved, default=0)
    alike = any(at <= step and k.position == at + (attempt.offset or 0) for at, k in saved.items())
    if furthest <= step + max(1, now.run.gap) or not (alike or furthest == total):
        return None
    words = f"step {furthest} of {total}, as {base_name(saved[furthest].path)} holds"
    return Place("end" if furthest >= total else "short", words)


def _is_training(now: Reading) -> bool:
    """Whether the counter is known to be that of the training: a bar without a label or a loss may count anything."""
    return now.main is None or now.proven or now.progress.loss is not None or now.progress.epoch is not None


def _counts_anew(state: JudgeState) -> bool:
    """Whether a resumed attempt prints the total of the run but counts its own steps (sd-scripts with a state)."""
    attempt, total = state.attempt, main_reading(state).now.progress.run_total_steps
    return bool(attempt.offset) and not attempt.weights_only and total is not None and total == attempt.former.total


def run_total(state: JudgeState) -> int | None:
    """Steps of the whole run as this attempt printed them; None if they are not known."""
    total, attempt = main_reading(state).now.progress.run_total_steps, state.attempt
    if total is None:
        return None
    if _counts_anew(state):
        return attempt.former.run_total or total
    return total + (attempt.offset or 0) - attempt.step_offset


def ended_well(state: JudgeState, told: ToldLength | None = None) -> bool:
    """The last step is done, or words or a checkpoint's name say so, and no final save is missing or under way.

    A counter at its end that may be of the first epoch (``told``: the settings' length) shows nothing where a restart
    can go on from a save.
    """
    now, at = main_reading(state).now, place(state).at
    save, said = _last_save(state, now), now.end_words is not None
    if save.writing or (at != "end" and not ((save.final or said) and at != "short")):
        return False
    saves = any(k.own for k in state.saved.checkpoints.known) and state.attempt.beat_t is not None
    return not saves or said or (save.complete and (save.final or not may_be_of_an_epoch(state, told)))


def may_be_of_an_epoch(state: JudgeState, told: ToldLength | None) -> bool:
    """Whether nothing shows that the counter goes through all epochs, and there are several or it is but a bar's."""
    now, length = main_reading(state).now, told or ToldLength()
    if state.attempt.beat_t is None:
        return state.attempt.former.may_be_of_an_epoch
    several = now.main is not None if length.epochs is None else length.epochs > 1
    return several and {now.run.per_epoch, now.progress.epoch} == {None} and now.progress.total_steps != length.steps


# The end: the exit status weighed with the above. ``trainwatch diagnose``, the supervisor and a replay ask this.

KILLED = "killed_by_user"
PROVEN, UNPROVEN = 0.9, 0.5
"""Confidence in an exit status of success, with proof of the end and without."""
FROM_OUTSIDE: dict[JobCause | None, str] = {
    "time_limit": "its job reached the time limit",
    "preempted": "its job was preempted",
    "node": "a node of its job failed",
    "cancelled": "its job was cancelled",
}
"""Ends of a job that are not its command's doing."""
Orderer = Literal["", "site", "person", "signal"]
_ORDERS: dict[Orderer, LazyPattern] = {
    "site": LazyPattern(
        r"(?i)preempt|\bspot |\bCANCELLED\b|\btime ?limit|\bTERM_[A-Z]+\b|\bjob killed|wall ?time|timeout: sending"
    ),
    "person": LazyPattern(r"KeyboardInterrupt|\bSIG(?:INT|QUIT)\b|\^C|(?i:\b(?:keyboard|user)\b)"),
    "signal": LazyPattern(r"(?i)\bSIG(?:TERM|HUP)\b|\bsignal:? *\(?(?:15|1)\b|\bterminat(?:ed|ion)\b|\bhang ?up\b"),
}


def ordered_by(line: str) -> Orderer:
    """Who ordered the end of which a line tells. "site": a scheduler, a cloud, ``timeout --verbose``.

    "signal": a handler or a launcher says which one came, and not who sent it.
    """
    return next((who for who, words in _ORDERS.items() if words.search(line) is not None), "")


def judge_end(
    state: JudgeState,
    knowledge: Knowledge,
    *,
    code: int | None,
    signal: int | str | None = None,
    about: Circumstances | None = None,
) -> tuple[Ending, Diagnosis]:
    """How an attempt ended, and why. The log of ``state`` is read to its end (``at_end``).

    ``code`` negative or above 128: a signal; None = lost. ``about``: what else was so at the end.
    """
    catalogue, log = knowledge.catalogue, state.log.diagnosis
    ending = judge_ending(state, knowledge)
    about = msgspec.structs.replace(about or Circumstances(), trained=state.attempt.beat_t is not None)
    why, by, over = ending.why, ending.by, ending.kind == "finished"
    if (ordered := FROM_OUTSIDE.get(about.job)) is not None and by != "save":
        # The scheduler or a person ended the job; what its processes printed meanwhile is no failure of theirs.
        found = diagnosis_as(log, catalogue, "unknown" if about.job == "node" else KILLED)
        said = f"The scheduler says that {ordered}."
        found = msgspec.structs.replace(found, confidence=SUREST, explanation=said)
        return Ending("failed", ordered, "job"), found
    if signal is not None or code not in knowledge.preset.success_exit_codes:
        over = over and by != "part" and not knowledge.stages
        found = diagnose(log, catalogue, exit_code=code, signal=signal, finished_hint=over, about=about)
        success = found.failure == "success"
        if over and (success or by == "save" or (found.cause is None and by == "words")):
            done, status = finished(log, catalogue, why, sure=PROVEN), f"signal {signal}" if signal is not None else ""
            status = status or ("" if code is None else f"exit code {code}")
            said = f"{done.explanation} After that it ended with {status}." if status else done.explanation
            after = None if success else found.cause
            return msgspec.structs.replace(ending, after=after), msgspec.structs.replace(done, explanation=said)
        if success and not knowledge.stages and (ending.kind != "failed" or by == "settings"):
            return Ending("finished"), found
        shown = hidden_failure(log, catalogue, short=True, about=about) if success else found
        return Ending("failed"), shown or diagnosis_as(log, catalogue, "unknown")
    if over:
        return ending, finished(log, catalogue, why, sure=PROVEN)
    if by == "line":
        what = "epoch" if why.startswith("epoch") else "step"
        why = f"{why} is the last printed {what}, within one print interval of the end"
        return Ending("finished", why, by), finished(log, catalogue, why, sure=PROVEN)
    if ending.kind == "unproven":
        why = f"nothing in the log says that this was the end{f' ({why})' if why else ''}"
        found, said = finished(log, catalogue, "", sure=UNPROVEN), f"The exit status says success, and {why}."
        return Ending("unproven", why), msgspec.structs.replace(found, explanation=said)
    if by in {"nan", "signal"}:
        return ending, diagnosis_as(log, catalogue, "nan_loss" if by == "nan" else KILLED)
    shown = None if by == "doubt" else hidden_failure(log, catalogue, short=True, about=about)
    if shown is not None:
        return Ending("failed", why if by == "settings" else place(state).words), shown
    unknown = diagnosis_as(log, catalogue, KILLED if by == "order" else "unknown")
    if knowledge.status_hidden and by != "settings":
        return Ending("failed", f"{why}; {knowledge.status_hidden}, so the trainer's own status is unknown"), unknown
    said = f"The exit status says success, but {why}."
    return Ending("ended_early", why), msgspec.structs.replace(unknown, title="ended early", explanation=said)


def diagnosis_of(
    chunks: Iterable[str],
    catalogue: CompiledCatalogue,
    exit_code: int | None = None,
    about: Circumstances | None = None,
    kernel: str = "",
) -> Diagnosis:
    """What ended the run with this log, given in chunks. ``kernel``: lines of the kernel log."""
    log, reading = kernel_evidence(START_EVIDENCE, kernel, catalogue), START
    for chunk in chunks:
        log, reading = read_log(log, reading, chunk, catalogue, skim=True)
    attempt = AttemptProgress(
        number=1, beat_t=0.0 if reading.now.heartbeats or reading.progress.step is not None else None
    )
    log = at_end(log, reading, catalogue)
    state = JudgeState(log=AttemptLog(diagnosis=log, reading=reading), attempt=attempt)
    knowledge = Knowledge(catalogue=catalogue)
    _, found = judge_end(state, knowledge, code=exit_code, about=about)
    if found.failure != "unknown":
        return found
    last = (EvidenceLine(at, kept_text(line.strip())) for at, line in itertools.islice(log.last_lines(), SHOWN))
    return with_lines(found, (*last, *found.cascade), LISTED + SHOWN)


# Whether a trainer that exited with success ended before the length that its settings say, where its log shows none.
#
# A setting is weaker evidence than a printed total: it may count batches of an accumulated step or samples, be what is
# to be made after a resume, or be ended sooner by an early stop. So only what is short in every reading is short; what
# cannot be compared is a doubt, in words. Known false alarms: early stopping, or a limit of time, that prints nothing.

SLOWER = 0.8
"""x the usual pace: steps after the last printed one may be a little faster than those before."""
NUMBER = LazyPattern(r"(?<![\w.])\d[\d,]*(?![\w.]|,\d)")


def told_place(state: JudgeState, knowledge: Knowledge, log: ProgressState) -> Place:
    """Short if each length that the settings say is clearly not reached; end if the number of steps is reached exactly.

    Else unknown, with the doubt in words. ``log``: the one that shows the steps of the attempt.
    """
    attempt, told = state.attempt, knowledge.told.get(state.attempt.profile or "")
    if told is None or attempt.beat_t is None or not _is_training(log.now):
        return Place("unknown")
    # It may have begun from a checkpoint.
    found = attempt.number > 1 or any(not known.own for known in state.saved.checkpoints.known)
    by_itself = knowledge.resume_support.by_itself and found
    resumed = attempt.resume_from is not None or bool(told.resumes_by) or by_itself
    claims = (_by_steps(state, log, told, resumed=resumed), _by_epochs(state, log, told, resumed=resumed))
    places = [c if isinstance(c, Place) else _doubted(state, told, c) for c in claims if c is not None]
    return next((place for place in places if place.at != "short"), places[0] if places else Place("unknown"))


class _Left(NamedTuple):
    """What is left of a told length. ``sure``: it is of this count. ``before``: made before a resume, None = unknown.

    ``left_s``: the least time for the rest; None = no pace is known.
    """

    words: str
    sure: bool
    before: int | None
    left_s: float | None
    other_unit: bool = False


def _by_steps(state: JudgeState, log: ProgressState, told: ToldLength, *, resumed: bool) -> Place | _Left | None:
    attempt, run, step, total = state.attempt, log.now.run, log.now.run.run_step, told.steps
    if total is None or step is None or step > total:
        return None if total is None else Place("unknown")
    words = f"step {step} of {total} (by {told.steps_by})"
    if step == total and told.steps_sure:  # that a count of another thing ends at just this number is no chance
        return Place("end", words)
    gap, first_step, at = run.gap, attempt.first_step, attempt.resumed_at
    before: int | None = 0
    if resumed and (first_step is None or first_step <= (gap + 1 if at is None else at - 1)):
        before = None if at is None else at * attempt.stride  # the counter may leave them out
    made = step + (before or 0)
    rests = (run.index or 0) + 1 if run.per_epoch and run.total is None else 1
    if total - made <= max(1, gap * rests) or made >= NEARLY * total:
        return Place("unknown", words)
    first, since, beat_t, left_s = attempt.first_beat_step, attempt.first_beat_t, attempt.beat_t or 0.0, None
    if first is not None and since is not None and step > first and beat_t > since:
        left_s = SLOWER * (beat_t - since) / (step - first) * (NEARLY * total - made)
    other = made < TINY_SHARE * total or _is_whole_elsewhere(state, made, total, told)
    return _Left(words, told.steps_sure, before, left_s, other)


def _by_epochs(state: JudgeState, log: ProgressState, told: ToldLength, *, resumed: bool) -> Place | _Left | None:
    (epoch, made), total, beat_t = _epochs_begun(log.now, resumed=resumed), told.epochs, state.attempt.beat_t or 0.0
    if total is None or epoch is None or epoch > total + 1:
        return None if total is None else Place("unknown")
    before = _epochs_before(state.attempt, log.now) if resumed else 0
    epoch += before or 0
    words = f"in epoch {math.ceil(epoch)} of {total} (by {told.epochs_by})" if epoch <= total else ""
    if epoch + max(1, log.now.run.epoch_gap) > total:
        return Place("unknown", words)
    pace_s = (beat_t - state.attempt.start_t) / made if log.now.heartbeats >= 2 else 0.0
    left_s = SLOWER * pace_s * (total - epoch) if pace_s else None
    return _Left(words, told.epochs_sure, before, left_s)


def _doubted(state: JudgeState, told: ToldLength, rest: _Left) -> Place:
    """Short of a told length, if it and the counter can be compared."""
    quiet_s = state.time.t - (state.attempt.beat_t or 0.0)
    doubts = (
        (not rest.sure, "that may be of another thing"),
        (told.sooner_by, f"{told.sooner_by} may end it sooner"),
        (rest.before is None, "it may count anew after a resume"),
        (rest.left_s is not None and rest.other_unit, "it may count in another unit"),
        (rest.left_s is None or quiet_s >= rest.left_s, "the rest may have been made without a line"),
    )
    doubt = next((doubt for holds, doubt in doubts if holds), "")
    return Place("unknown", f"{rest.words}: {doubt}") if doubt else Place("short", rest.words)


def _is_whole_elsewhere(state: JudgeState, made: int, total: int, told: ToldLength) -> bool:
    """Whether the told number is reached in another unit: that of a checkpoint, of another counter, of batches."""
    chosen = itertools.chain.from_iterable(itertools.combinations(told.units, n) for n in range(1, len(told.units) + 1))
    last = (line for _, line in itertools.islice(state.log.diagnosis.last_lines(), HEADED_LINES))
    lines = [{int(match[0].replace(",", "")) for match in NUMBER.finditer(line)} for line in last]
    rise = (n for numbers in lines for n in numbers if sum(n in each for each in lines) == 1)
    saved = max((k.step for k in state.saved.checkpoints.known if k.own and k.step is not None), default=0)
    numbers = (*(made * math.prod(units) for units in chosen), *rise)
    near, far = NEARLY * total, (2 - NEARLY) * total  # one that is larger is of another thing
    return saved >= near or any(near <= number <= far for number in numbers)


def _epochs_before(attempt: AttemptProgress, now: Reading) -> int | None:
    """The same for epochs, the most that there can be. A checkpoint that holds epoch 3 may be one of four epochs."""
    first = now.run.first_named
    if first is not None:
        return 0 if first > 1 else attempt.resume_epochs
    done = whole_epochs(attempt, now.run.whole or now.run.total)
    return done if done is not None or attempt.resume_epochs is None else attempt.resume_epochs + 1


def _epochs_begun(now: Reading, *, resumed: bool) -> tuple[float | None, int]:
    """Epochs of the run that have begun, the most that there can be; and those that the attempt has shown."""
    run, printed = now.run, now.progress.epoch
    if run.broken and printed is not None:
        return printed + 1, max(1, int(printed - (now.run.first_named or 0)) + 1)
    if run.named is not None:
        base = (
            0 if run.apart == "bar" else run.base if run.base is not None else int(run.first_named == 1 and not resumed)
        )
        return run.named - base + 1, max(1, int(run.named - (run.first_named or 0)) + 1)
    if run.per_epoch and run.index is not None:
        return run.index + 1, run.index + 1
    return None, 1
