"""Whether a trainer that exited with success reached the end of its training: proven, contradicted, or neither.

An exit status proves nothing by itself: a pipe, a ``;`` after the command and a handler that catches everything turn
any failure into 0. Proof is a position at its total (printed, or told by the settings), words of an end or of an early
stop, or a last checkpoint; a position short of its total, a cause of a failure in the last lines, a NaN and a log
without any step speak against it.
Position and last save together are stronger than a late error; only NaN weights are stronger than they.

Known false alarm: early stopping that prints nothing looks like an end before the last step.
"""

from typing import Literal

import msgspec

from ....model.progress import Progress
from ....model.shipped.log_shapes import EndWords

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
