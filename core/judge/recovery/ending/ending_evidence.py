"""What the judge knows about the end of an attempt, collected for ending.py."""

import re

from ....model.shipped.failure import Diagnosis
from ....model.text.patterns import LazyPattern
from ...failure.diagnosis import hidden_failure, line_of
from ...knowledge import Knowledge
from ...progress.log_progress import ProgressState
from ...resume.known_checkpoint import KnownCheckpoint, base_name
from ...resume.resume_point import newest_own
from ...state import JudgeState
from ...text.position.reading import Reading
from ..end_facts import new_oom_kills
from .ending import Counters, EndingInput, Place, place_of
from .told_end import Counted, told_place
from .told_evidence import counted_of

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
