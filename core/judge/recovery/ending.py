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
from typing import Literal

import msgspec

from ...model.length import ToldLength
from ...model.patterns import LazyPattern
from ...model.progress import Progress
from ...model.shipped import Diagnosis, EndWords
from ..attempt_progress import whole_epochs
from ..failure.diagnosis import hidden_failure, line_of
from ..failure.evidence_state import DiagnosisState
from ..knowledge import Knowledge
from ..progress import ProgressState
from ..resume.checkpoint_index import KnownCheckpoint, base_name
from ..resume.resume_point import newest_own
from ..state import JudgeState
from ..text.reading import Reading
from .attempts import new_oom_kills

NEARLY = 0.98
"""Share of the steps: rounded totals and left-out batches end a little before it."""
STEPS_LEFT = 10
"""Steps that a printed time to go must hold to be more than the last one."""
TIME_LEFT_S = 60.0
"""Shortest printed time to go that counts."""


class Place(msgspec.Struct, frozen=True):
    """Where the trainer's counters stand. ``words``: "step 399 of 1000".

    ``is_last_line``: a further line of the log would be past the end. A loop that counts from 0 and prints each tenth
    step, or epoch, of 100 ends with "90/100".
    """

    at: Literal["end", "short", "unknown"]
    words: str = ""
    is_last_line: bool = False


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What the log showed of steps and epochs.

    ``per_epoch``: the step starts again in each epoch. ``zero_based``: epoch 0 was printed; ``names_last``: the number
    of epochs beside it is then that of the last one. ``training``: the counter is known to be that of the training:
    a bar without a label or a loss may count anything. ``first_epoch_seen``: the
    attempt began with the first epoch, so it is known whether they count from 0. ``counts_done``: the epoch is a number
    of completed ones (the bar counts epochs). ``lossy``: a loss was printed with or after the last counter.
    ``first_epoch``: the first one printed. ``interval``, ``epoch_gap``: steps, and epochs, between the last two printed
    ones. ``bar``: they are those of a bar, which shows its total when it is done. ``round_ends``: where the rounds
    before ended, if its counter began again: one that is left before its total in each round is not short there.
    """

    progress: Progress = Progress()
    per_epoch: bool = False
    zero_based: bool = False
    names_last: bool = False
    training: bool = True
    first_epoch_seen: bool = True
    counts_done: bool = False
    lossy: bool = False
    first_epoch: float | None = None
    interval: int = 1
    epoch_gap: int = 1
    bar: bool = False
    round_ends: tuple[int, ...] = ()


class EndingInput(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when a trainer has exited.

    ``nan``: a sentence if the weights are NaN. ``resumed_at_end``: it made no step because its resume point was at the
    end. ``words``, ``words_line``: the strongest words of an end. ``last_save``: name of the complete checkpoint of the
    last step. ``final_name``: name of a last checkpoint that is called final. ``saves``: it wrote checkpoints.
    ``save_open``: its newest checkpoint is not complete. ``begins``: something is loaded or prepared after the last
    step. ``cause``: the failure that its last lines show; ``told_to_end``: the line that says that it was ended.
    ``told``: where its counters stand against the length that its settings say.
    ``steps_seen``: it made a step; ``steps_due``: why steps are expected, "" = they are not.
    """

    place: Place = Place("unknown")
    told: Place = Place("unknown")
    nan: str = ""
    resumed_at_end: bool = False
    words: EndWords | None = None
    words_line: str = ""
    last_save: str | None = None
    final_name: str | None = None
    saves: bool = False
    save_open: bool = False
    begins: bool = False
    cause: str = ""
    told_to_end: str = ""
    steps_seen: bool = True
    steps_due: str = ""


class Proven(msgspec.Struct, frozen=True):
    """The training is done. ``by``: its counter alone; words or a checkpoint's name; its counter and the last save.

    The last one counts whatever error the log shows after it.
    """

    why: str
    by: Literal["counter", "words", "save"]


class Contradicted(msgspec.Struct, frozen=True):
    """It ended before the end of the training.

    ``by``: a failure that the log shows, NaN weights, the length that the settings say, or nothing known.
    """

    why: str
    by: Literal["failure", "nan", "settings", "unknown"] = "unknown"


class Unproven(msgspec.Struct, frozen=True):
    """Nothing proves the end and nothing speaks against it. ``place``: where it was, "" = unknown.

    ``is_last_line``: as in ``Place``: the log has all the lines that a training to the end prints.
    """

    place: str = ""
    is_last_line: bool = False


Ending = Proven | Contradicted | Unproven


def judge_ending(run: EndingInput) -> Ending:
    """The ending, the strongest evidence first."""
    place = run.place
    done = place.at == "end" or run.resumed_at_end
    saved = run.last_save is not None or run.resumed_at_end or (run.words is not None and not run.saves)
    another = run.begins and run.words not in {"framework", "early_stop"}
    if run.nan:
        return Contradicted(run.nan, by="nan")
    if done and saved and not run.save_open and not another:
        return Proven(_proof(run), "save")
    if run.cause:
        return Contradicted(f"{run.cause}{_at(place)}", by="failure")
    if done:
        return Proven(_proof(run), "words" if run.words else "counter")
    if run.told_to_end:
        return Contradicted(f"it was told to end: {run.told_to_end}{_at(place)}")
    if not run.steps_seen and run.steps_due:
        return Contradicted(f"it made no step, and {run.steps_due}")
    if run.words in {"framework", "early_stop"}:
        return Proven(_proof(run), "words")
    stated = (run.words == "words", run.final_name is not None)
    if all(stated) or (any(stated) and place.at != "short"):
        return Proven(_proof(run), "words")
    if place.at == "short":
        said = f', although it says "{run.words_line}"' if run.words == "words" else ""
        return Contradicted(f"the last progress is {place.words}{said}")
    if run.told.at == "end" and not another:
        return Proven(run.told.words, "counter")
    if run.told.at == "short" and not place.is_last_line:
        return Contradicted(f"the last progress is {run.told.words}", by="settings")
    return Unproven(place.words if place.is_last_line else run.told.words or place.words, place.is_last_line)


def _at(place: Place) -> str:
    return f" ({place.words})" if place.words else ""


def _proof(run: EndingInput) -> str:
    """What proves the end: "step 1000 of 1000, checkpoint-1000 is saved"."""
    found = [run.place.words] if run.place.at == "end" else []
    if run.resumed_at_end:
        found.append("it had resumed from the end")
    if run.words in {"words", "framework", "early_stop"}:
        found.append(f'"{run.words_line}"')
    saved = run.last_save or run.final_name
    if saved:
        found.append(f"{saved} is saved")
    return ", ".join(found)


def place_of(seen: Counters) -> Place:
    """Where the counters stand, over all epochs of the run."""
    found = _place(seen)
    return found if seen.training or found.at != "end" else Place("unknown", found.words)


def _place(seen: Counters) -> Place:
    progress = seen.progress
    step, total = progress.step, progress.total_steps
    epochs = _epochs(seen)
    counted = progress.epoch is not None and progress.total_epochs
    in_epochs = f"epoch {progress.epoch:g} of {progress.total_epochs}" if counted else ""
    if step is None or not total:
        if epochs == "left":
            return Place("short", in_epochs)
        if epochs == "last" and (seen.lossy or seen.counts_done):
            return Place("end", in_epochs)
        words = in_epochs or ("" if step is None else f"step {step}")
        return _by_time(seen, words, is_last_line=epochs == "near")
    made, whole = progress.run_step, progress.run_total_steps
    words = f"step {step} of {total}{' of an epoch' if progress.of_part else ''}"
    if seen.per_epoch and made is not None and whole is not None:
        words = f"step {made} of {whole}"
    elif made is not None and made > total:  # further than the total of a part of the run
        words = f"step {made}"
    words += f", {in_epochs}" if in_epochs and seen.per_epoch else ""
    last_line = not seen.bar and total - step <= max(1, seen.interval)
    short = total - step > max(1, seen.interval) and step < NEARLY * total
    short = short and not _ends_a_round(seen, step)
    if short and made is not None and made > total:
        words += f", {step} of {total} in its round"
    if seen.per_epoch:
        if short or epochs == "left":
            return Place("short", words)
        if not counted and made is not None and whole is not None:  # the log names its epochs apart from the counter
            left = whole - made
            near = not seen.bar and left <= max(1, seen.interval)
            return Place("end" if left <= 0 else "short" if left >= total else "unknown", words, near)
        if step >= total and epochs == "last":
            return Place("end", words)
        return _by_time(seen, words, is_last_line=last_line and epochs in {"last", "near"})
    if short:
        return Place("short", words)
    # Whether a bar counts within the epoch shows only when the epoch changes.
    if epochs == "left" and progress.epoch == seen.first_epoch:
        return Place("short", f"{in_epochs}, {words}")
    return Place("end", words) if step >= total else Place("unknown", words, last_line)


def _ends_a_round(seen: Counters, step: int) -> bool:
    """Whether rounds before ended here, too; or a round without a number was drawn and not begun."""
    if not seen.round_ends:
        return False
    unnumbered = seen.progress.epoch is None and seen.progress.run_total_steps is None
    return step >= min(seen.round_ends) or (step == 0 and seen.bar and unnumbered)


def _by_time(seen: Counters, words: str, *, is_last_line: bool = False) -> Place:
    """Short if the trainer printed that much time is to go; else unknown."""
    left_s, step_s = seen.progress.eta_s, seen.progress.sec_per_step or 0.0
    if left_s is not None and left_s > max(TIME_LEFT_S, STEPS_LEFT * step_s):
        return Place("short", f"{words or 'the last line'}, {left_s:.0f} s to go")
    return Place("unknown", words, is_last_line)


def _epochs(seen: Counters) -> Literal["last", "near", "left", "unknown"]:
    """Whether the epoch is the last one, or ``near``: the next one that is printed would be past the end.

    Unknown if that depends on whether they count from 0, and that is open. A bar of epochs shows the last one, too.
    """
    epoch, total = seen.progress.epoch, seen.progress.total_epochs
    if epoch is None or not total:
        return "unknown"
    if epoch != int(epoch):
        return "last" if epoch >= NEARLY * total else "left"
    last = total if seen.counts_done or not seen.zero_based or seen.names_last else total - 1
    if epoch >= last:
        return "last"
    gap = 1 if seen.counts_done or seen.bar else seen.epoch_gap
    if gap > 1 and epoch + gap > last:
        return "near"
    counted_from = seen.zero_based or (gap > 1 and seen.first_epoch == 1)
    open_ = not seen.first_epoch_seen or (gap > 1 and not counted_from)
    return "unknown" if open_ and epoch + gap >= total else "left"


# What the judge knows about the end of an attempt, collected for ending.py.

FINAL = LazyPattern(r"(?<![a-z])final(?![a-z])", re.IGNORECASE)
"""What trainers that print no end call their last checkpoint: ``model_final.pth``, ``checkpoint-final``."""
SAVE_SLACK_S = 30.0
"""A checkpoint that became complete this long before the last printed step still belongs to it (lines lag)."""
TWO_LINES = 2
"""Printed positions from which their distance is known."""
NAN_VALUES = 2
"""Printed NaN losses in a row, up to the end, from which the weights count as NaN: one bad batch may be skipped."""


def ending_input(state: JudgeState, knowledge: Knowledge) -> EndingInput:
    """All that the judgement of an end depends on."""
    reading = main_reading(state)
    last = _last_own(state)
    named = last is not None and last.complete and FINAL.search(base_name(last.path)) is not None
    seen = state.attempt.beat_t is not None
    hidden = hidden_failure(state.diagnosis, knowledge.catalogue, short=not seen)
    return EndingInput(
        place=place(state),
        told=told_place(
            counted_of(state, knowledge, reading) if _is_training(reading.now) else Counted(),
            knowledge.told.get(state.attempt.profile or ""),
        ),
        nan=_nonfinite(state) or _nan_losses(reading),
        resumed_at_end=_resumed_at_end(state),
        words=reading.now.end_words,
        words_line=reading.now.end_text,
        last_save=base_name(last.path)
        if last is not None and last.complete and _is_of_last_step(state, last)
        else None,
        final_name=base_name(last.path) if last is not None and named else None,
        saves=any(k.own for k in state.checkpoints.known),
        save_open=last is not None and not last.complete and last.bad is None,
        begins=reading.phase in {"load", "preprocess", "compile"},
        cause="" if hidden is None else line_of(hidden),
        told_to_end=_told_to_end(state),
        steps_seen=seen,
        steps_due=_steps_due(state, knowledge),
    )


def main_reading(state: JudgeState) -> ProgressState:
    """The log that shows steps: the trainer's output, or the one of its other logs that has most of them."""
    if state.reading.heartbeats:
        return state.reading
    return max((state.reading, *state.other_logs.values()), key=lambda each: each.heartbeats)


def place(state: JudgeState) -> Place:
    """Where the counters of the attempt stand."""
    now, attempt = main_reading(state).now, state.attempt
    found = place_of(
        Counters(
            progress=now.progress,
            per_epoch=now.per_epoch,
            zero_based=now.zero_based,
            names_last=now.run.names_last,
            training=_is_training(now),
            first_epoch_seen=now.zero_based or attempt.resume_from is None,
            counts_done=any(counter.name == "epochs" for counter in now.counters),
            lossy=now.lossy,
            first_epoch=now.first_epoch,
            interval=_interval(state, now),
            epoch_gap=now.run.epoch_gap,
            bar=now.main is not None,
            round_ends=now.round_ends,
        )
    )
    if found.at == "short" and (saved := _place_of_save(state, now)) is not None:
        return saved
    if found.at == "short" and _counts_anew(state) and attempt.position is not None:
        whole = attempt.run_total_before or 0
        if abs(whole - attempt.position) <= max(1, attempt.stride, now.interval):
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
    mine = [k for k in state.checkpoints.known if k.own and k.complete and k.bad is None and k.t >= attempt.start_t]
    saved = {k.step * attempt.stride: k for k in mine if k.step is not None}
    furthest = max(saved, default=0)
    alike = any(at <= step and k.position == at + (attempt.offset or 0) for at, k in saved.items())
    if furthest <= step + max(1, now.interval) or not (alike or furthest == total):
        return None
    words = f"step {furthest} of {total}, as {base_name(saved[furthest].path)} holds"
    return Place("end" if furthest >= total else "short", words)


def _interval(state: JudgeState, now: Reading) -> int:
    """Steps between two printed ones; where an attempt has printed one only, as the attempt before printed them."""
    return max(now.interval, state.attempt.widest_gap_before if main_reading(state).heartbeats < TWO_LINES else 1)


def _is_training(now: Reading) -> bool:
    """Whether the counter is known to be that of the training: a bar without a label or a loss may count anything."""
    return now.main is None or now.proven or now.progress.loss is not None or now.progress.epoch is not None


def _counts_anew(state: JudgeState) -> bool:
    """Whether a resumed attempt prints the total of the run but counts its own steps (sd-scripts with a state).

    It ends when what is left is done, in the middle of its bar.
    """
    attempt, total = state.attempt, main_reading(state).now.progress.run_total_steps
    return bool(attempt.offset) and not attempt.weights_only and total is not None and total == attempt.total_before


def run_total(state: JudgeState) -> int | None:
    """Steps of the whole run as this attempt printed them; None if they are not known."""
    total, attempt = main_reading(state).now.progress.run_total_steps, state.attempt
    if total is None:
        return None
    if _counts_anew(state):
        return attempt.run_total_before or total
    return total + (attempt.offset or 0) - attempt.step_offset


def _resumed_at_end(state: JudgeState) -> bool:
    attempt = state.attempt
    total, resumed = attempt.run_total_before, attempt.resumed_at
    return attempt.beat_t is None and total is not None and resumed is not None and resumed >= total


def _nan_losses(reading: ProgressState) -> str:
    losses = reading.now.losses
    if losses.nan_values < NAN_VALUES or losses.is_average:
        return ""
    return f"the last {losses.nan_values} printed losses are NaN"


def _nonfinite(state: JudgeState) -> str:
    newest = newest_own(state.checkpoints)
    if newest is None or newest.damage is None or newest.damage[0] != "nonfinite":
        return ""
    return f"{base_name(newest.path)} holds values that are not finite"


def _last_own(state: JudgeState) -> KnownCheckpoint | None:
    """The newest checkpoint of this run, if it was written at the last printed step or later."""
    newest, beat_t = newest_own(state.checkpoints), state.attempt.beat_t
    return newest if newest is not None and beat_t is not None and newest.t >= beat_t - SAVE_SLACK_S else None


def _is_of_last_step(state: JudgeState, known: KnownCheckpoint) -> bool:
    at, attempt = known.position, state.attempt
    if at is None or attempt.position is None:
        return True
    return attempt.position - at <= max(1, attempt.stride, main_reading(state).now.interval)


def _told_to_end(state: JudgeState) -> str:
    found = next((f for f in state.diagnosis.findings if f.failure == "killed_by_user" and f.role == "root"), None)
    return "" if found is None or found.line == 0 else found.text


def _steps_due(state: JudgeState, knowledge: Knowledge) -> str:
    """Why the trainer was expected to print steps; "" if it was not."""
    if knowledge.handed_over:
        return knowledge.handed_over
    if state.failed_position is not None:
        return "earlier attempts made some"
    preset = knowledge.preset
    return "" if preset.name == "generic" else f"{preset.title or preset.name} prints its steps"


def ended_well(state: JudgeState) -> bool:
    """The last step is done, or words or a checkpoint's name say so, and no final save is missing or under way.

    The trainer's process may still be there.
    """
    reading, at = main_reading(state), place(state).at
    last = _last_own(state)
    named = last is not None and last.complete and FINAL.search(base_name(last.path)) is not None
    if at != "end" and not ((named or reading.finished_words) and at != "short"):
        return False
    if last is not None and not last.complete and last.bad is None:
        return False
    saves = any(k.own for k in state.checkpoints.known) and state.attempt.beat_t is not None
    return not saves or reading.finished_words or (last is not None and last.complete)


def failure_of(state: JudgeState, knowledge: Knowledge) -> Diagnosis | None:
    """The failure behind an exit status of success, if it is known that the training was not over; None = unknown."""
    return hidden_failure(state.diagnosis, knowledge.catalogue, short=True, oom_kills=new_oom_kills(state))


# Whether a trainer that exited with success ended before the length that its settings say, where its log shows none.
#
# A setting is weaker evidence than a printed total: it may count batches of an accumulated step or samples, be what is
# to be made after a resume, or be ended sooner by an early stop. So only what is short in every reading is short; what
# cannot be compared is a doubt, in words.
#
# Known false alarms: early stopping, or a limit of time, that prints nothing and is not named by a usual setting.

OVER = 1.02
"""x a told number: one that much larger is of another thing."""
SAME_UNIT = 0.02
"""Share of the told steps below which they are likely of another unit: samples of a batch, steps of an environment."""
SLOWER = 0.8
"""x the usual pace: steps after the last printed one may be a little faster than those before."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """How far the run has come by the counters of its log. None = it cannot be told.

    ``step``, ``epoch``: counts made, and epochs begun, the largest that they can be. ``step_gap``, ``epoch_gap``: to
    the next printed one. ``step_s``, ``epoch_s``: seconds of one. ``silent_s``: from the last printed one to the exit.
    ``steps_before``, ``epochs_before``: made before a resume after which the counter may have begun anew, the most that
    there can be; None = it may have, and how many there were is not known. ``saved``: the largest step that a
    checkpoint holds; ``named``: numbers in the last lines.
    """

    step: int | None = None
    epoch: float | None = None
    step_gap: int = 1
    epoch_gap: int = 1
    step_s: float | None = None
    epoch_s: float | None = None
    silent_s: float = 0.0
    steps_before: int | None = 0
    epochs_before: float | None = 0
    saved: int = 0
    named: tuple[int, ...] = ()


def told_place(seen: Counted, told: ToldLength | None) -> Place:
    """Short if each length that the settings say is clearly not reached; end if the number of steps is reached exactly.

    Else unknown, with the doubt in words.
    """
    found = [] if told is None else [place for place in (_by_steps(seen, told), _by_epochs(seen, told)) if place]
    return next((place for place in found if place.at != "short"), found[0] if found else Place("unknown"))


def _by_steps(seen: Counted, told: ToldLength) -> Place | None:
    if told.steps is None:
        return None
    step, total = seen.step, told.steps
    if step is None or step > total:
        return Place("unknown")
    words = f"step {step} of {total} (by {told.steps_by})"
    if step == total and told.steps_sure:  # that a count of another thing ends at just this number is no chance
        return Place("end", words)
    made = step + (seen.steps_before or 0)
    if total - made <= max(1, seen.step_gap) or made >= NEARLY * total:
        return Place("unknown", words)
    doubt = _doubt(told, sure=told.steps_sure, before=seen.steps_before, pace_s=seen.step_s)
    unseen = 0.0 if seen.step_s is None else seen.silent_s / (SLOWER * seen.step_s)
    if not doubt and (made < SAME_UNIT * total or _is_whole_elsewhere(made, total, seen, told)):
        doubt = "it may count in another unit"
    if not doubt and made + unseen >= NEARLY * total:
        doubt = UNPRINTED
    return Place("unknown", f"{words}: {doubt}") if doubt else Place("short", words)


def _by_epochs(seen: Counted, told: ToldLength) -> Place | None:
    if told.epochs is None:
        return None
    epoch, total = seen.epoch, told.epochs
    if epoch is None or epoch > total + 1:
        return Place("unknown")
    begun = epoch + (seen.epochs_before or 0)
    words = f"in epoch {math.ceil(begun)} of {total} (by {told.epochs_by})" if begun <= total else ""
    if begun + max(1, seen.epoch_gap) > total:
        return Place("unknown", words)
    doubt = _doubt(told, sure=told.epochs_sure, before=seen.epochs_before, pace_s=seen.epoch_s)
    unseen = 0.0 if seen.epoch_s is None else seen.silent_s / (SLOWER * seen.epoch_s)
    if not doubt and begun + unseen >= total:
        doubt = UNPRINTED
    return Place("unknown", f"{words}: {doubt}") if doubt else Place("short", words)


UNPRINTED = "the rest may have been made without a line"


def _doubt(told: ToldLength, *, sure: bool, before: float | None, pace_s: float | None) -> str:
    """Why a told length and a counter cannot be compared; "" if they can."""
    if not sure:
        return "that may be of another thing"
    if told.sooner_by:
        return f"{told.sooner_by} may end it sooner"
    if before is None:
        return "it may count anew after a resume"
    return UNPRINTED if pace_s is None else ""


def _is_whole_elsewhere(made: int, total: int, seen: Counted, told: ToldLength) -> bool:
    """Whether the told number is reached in another unit: that of a checkpoint, of another counter, of batches."""
    chosen = itertools.chain.from_iterable(itertools.combinations(told.units, n) for n in range(1, len(told.units) + 1))
    numbers = (*(made * math.prod(units) for units in chosen), *seen.named)
    return seen.saved >= NEARLY * total or any(NEARLY * total <= number <= OVER * total for number in numbers)


# What the judge knows of an attempt for a comparison with the length in its settings, collected for ending.py.

LINES = 4
"""Last lines in which a number that rises may be the same position in another unit."""
SURE_BEATS = 2
"""Printed positions from which on the distance of two is known."""
NUMBER = LazyPattern(r"(?<![\w.])\d[\d,]*(?![\w.]|,\d)")


def counted_of(state: JudgeState, knowledge: Knowledge, log: ProgressState) -> Counted:
    """How far the attempt has come. ``log``: the one that shows its steps."""
    attempt = state.attempt
    now, beat_t = log.now, attempt.beat_t
    if beat_t is None:
        return Counted()
    resumed = _is_resumed(state, knowledge)
    run, sure = now.run, log.heartbeats >= SURE_BEATS
    gap = max(now.interval, run.gap)
    rests = (run.index or 0) + 1 if run.per_epoch and run.total is None else 1
    trained_s = beat_t - attempt.start_t
    epoch, made_epochs = _epochs_begun(now, resumed=resumed)
    return Counted(
        step=run.run_step,
        epoch=epoch,
        step_gap=gap * rests,
        epoch_gap=run.epoch_gap,
        step_s=_step_s(state, run.run_step, trained_s) if sure else None,
        epoch_s=trained_s / made_epochs if sure and trained_s > 0 else None,
        silent_s=max(0.0, state.time.t - beat_t),
        steps_before=_steps_before(state, gap) if resumed else 0,
        epochs_before=_epochs_before(state, now) if resumed else 0,
        saved=max((k.step for k in state.checkpoints.known if k.own and k.step is not None), default=0),
        named=_numbers_that_rise(state.diagnosis),
    )


def _is_resumed(state: JudgeState, knowledge: Knowledge) -> bool:
    """Whether the attempt may have begun from a checkpoint."""
    attempt, told = state.attempt, knowledge.told.get(state.attempt.profile or "")
    if attempt.resume_from is not None or (told is not None and told.resumes_by):
        return True
    found = attempt.number > 1 or any(not known.own for known in state.checkpoints.known)
    return knowledge.resume_support.by_itself and found


def _step_s(state: JudgeState, step: int | None, trained_s: float) -> float | None:
    """Seconds of a step: between the first and the last line; since the start if the log was read at once."""
    attempt = state.attempt
    first, first_t, last_t = attempt.first_beat_step, attempt.first_beat_t, attempt.beat_t
    if step is None or last_t is None:
        return None
    if first is not None and first_t is not None and step > first and last_t > first_t:
        return (last_t - first_t) / (step - first)
    return trained_s / step if step > 0 and trained_s > 0 else None


def _steps_before(state: JudgeState, gap: int) -> int | None:
    """Steps before the resume that the counter leaves out; None = it may, and they are not known."""
    attempt = state.attempt
    first, at = attempt.first_step, attempt.resumed_at
    if at is None:
        return 0 if first is not None and first > gap + 1 else None
    return 0 if first is not None and first >= at else at * attempt.stride


def _epochs_begun(now: Reading, *, resumed: bool) -> tuple[float | None, int]:
    """Epochs of the run that have begun, the most that there can be; and those that the attempt has shown."""
    run, printed = now.run, now.progress.epoch
    if run.broken and printed is not None:
        return printed + 1, max(1, int(printed - (now.first_epoch or 0)) + 1)
    if run.named is not None:
        base = run.base if run.base is not None else int(run.first_named == 1 and not resumed)
        base = 0 if run.apart == "bar" else base
        return run.named - base + 1, max(1, int(run.named - (run.first_named or 0)) + 1)
    if run.per_epoch and run.index is not None:
        return run.index + 1, run.index + 1
    return None, 1


def _epochs_before(state: JudgeState, now: Reading) -> float | None:
    """Epochs before the resume that the count leaves out, the most that there can be; None = they are not known.

    Epochs that the log does not number are counted from the resume on. A checkpoint that holds epoch 3 may have been
    saved after four of them.
    """
    attempt, run = state.attempt, now.run
    first = now.first_epoch if run.broken else run.first_named
    if first is not None:
        return 0 if first > 1 else attempt.resume_epochs
    done = whole_epochs(attempt, run.whole or run.total)
    return done if done is not None or attempt.resume_epochs is None else attempt.resume_epochs + 1


def _numbers_that_rise(seen: DiagnosisState) -> tuple[int, ...]:
    """Whole numbers that stand in one of the last lines only."""
    lines = [line for line in (seen.tail + seen.fold.rest).splitlines() if line.strip()][-LINES:]
    found = [{int(match[0].replace(",", "")) for match in NUMBER.finditer(line)} for line in lines]
    return tuple(sorted({n for numbers in found for n in numbers if sum(n in each for each in found) == 1}))
