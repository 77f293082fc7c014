"""The step of the whole run, and how many it has, from counters that may begin again in each epoch.

``run step = counts of the finished epochs + the counter``. It is in the unit that the counter has (batches or optimizer
steps); checkpoints hold optimizer steps, and ``attempt_progress`` knows how many counts make one.

Whether a counter begins again in each epoch is known from its row in ``log_shapes.toml``, else from what it does when
the epoch changes: it falls or goes on. Before that: one that is printed together with a whole epoch, or below a bar of
epochs, counts within the epoch; one beside a broken epoch ("epoch 0.52") does not; otherwise it is open.

Known limits: "Epoch 3/9" counts from 1 unless an epoch 0 was printed; an epoch without a total of epochs, first seen
above 1, may count from either, and the run step is unknown. Epochs that were not seen count as long as the present one.
"""

from typing import Literal

import msgspec
from msgspec.structs import replace

from ..scales import AGAIN_SHARE, SURE_TIMES, TINY_SHARE
from .fields import Loss, Position

MICRO = "micro-batches"
"""The source of counts of which several make a step: any other counter takes their place at once."""

Apart = Literal["", "before", "after", "bar"]
"""Where epochs are printed that do not stand beside the counter: above it, below it, or as a bar of finished epochs."""


class Rule(msgspec.Struct, frozen=True):
    """What a row of log_shapes.toml, or a label, tells about its counter.

    ``per_epoch``: it begins again in each epoch, False = it runs through, None = not known. ``firm``: that is certain.
    ``base``: the first epoch is printed as 0 or 1. ``names_last``: if epochs count from 0, "0/4" names the last one.
    ``from_zero``: the counter names the present batch from 0, so one more is done.
    """

    per_epoch: bool | None = None
    firm: bool = False
    base: int | None = None
    names_last: bool = False
    from_zero: bool = False


class TrainingFields(msgspec.Struct):
    """Fields of one training line; None = not named.

    ``overall``: the step that the line calls global. ``eta``: seconds to go; of a bar (``bar_eta``)
    those to its own end; ``run_eta``: named as those of the run. ``drawn``: a bar before its first step. ``rule``: what
    is known about the counter beforehand. ``measure``: name and value of a measure of quality.
    """

    count: Position | None = None
    epoch: Position | None = None
    overall: int | None = None
    loss: Loss | None = None
    lr: float | None = None
    seconds: float | None = None
    eta: float | None = None
    bar_eta: bool = False
    run_eta: bool = False
    drawn: bool = False
    rule: Rule = Rule()
    measure: tuple[str, float] | None = None

    @property
    def bare(self) -> bool:
        """The line names neither a step nor an epoch."""
        return self.count is None and self.epoch is None


class RunCount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The counter of one attempt's log over the epochs that it has shown.

    ``source``: the counter that is followed; ``others``: lines of others since. ``step``, ``total``: as printed
    last, ``epoch``: the one printed then; ``gap``: distance of its last two lines; ``moved``: it rose. ``named``,
    ``epochs``: epoch and number of epochs printed last; ``epoch_gap``: from the epoch printed before to that one;
    ``declared``: number of epochs in the settings that the trainer printed, ``declared_steps``: the steps of the
    whole run there, -1 = what was printed so is a count. ``base``: 0 or 1, the first epoch as printed.
    ``per_epoch``: None = open; ``seen``: shown by what the counter did. ``index``: epochs before the present one;
    ``done``: counts in them; None = unknown. ``resumed``: the attempt does not begin at the beginning, ``began``:
    but at this count, None = unknown. ``whole``: total of a whole epoch in the attempts before. ``partial``: the
    present epoch is the first after a resume, and has fewer counts than a whole one. ``anew``: epochs without a
    number were counted from a resume on, so that the step of the run is not known. ``through``: the counter that
    grew while another began again and again. ``eta_from``: the first printed time to go, with the counts to go in the
    epoch and in the run; ``eta_is``: to whose end it counts down.
    """

    source: str = ""
    others: int = 0
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    gap: int = 1
    moved: bool = False
    named: float | None = None
    first_named: float | None = None
    epoch_gap: int = 1
    epochs: int | None = None
    declared: int | None = None
    declared_steps: int | None = None
    apart: Apart = ""
    beside: bool = False
    broken: bool = False
    base: int | None = None
    names_last: bool = False
    per_epoch: bool | None = None
    seen: bool = False
    index: int | None = None
    done: int | None = None
    resumed: bool = False
    began: int | None = None
    whole: int | None = None
    partial: bool = False
    anew: bool = False
    through: str = ""
    eta_from: tuple[float, int, int] | None = None
    eta_is: Literal["", "run", "epoch"] = ""

    @property
    def run_step(self) -> int | None:
        """Counts since the training began; None if they cannot be told."""
        if self.step is None or self.is_within_a_step:
            return None
        if self.per_epoch:
            return None if self.done is None or self.anew else self.done + self.step
        if self.per_epoch is None and self.total is not None and (self.index or 0) > 0:
            return None
        return self.step

    @property
    def run_total(self) -> int | None:
        """Counts of the whole training; None if they cannot be told."""
        step, total, epochs = self.run_step, self.total, self.number_of_epochs
        if total is None and not (self.per_epoch or self.epochs or self.source.startswith(MICRO)):
            total = self.declared_steps
        if step is None or total is None:
            return None
        if self.per_epoch:
            if epochs is None or self.index is None or self.done is None or self.index >= epochs:
                return None
            later = self.whole if self.partial and self.whole is not None else total
            total = self.done + total + (epochs - self.index - 1) * later
        elif self.per_epoch is None and (epochs or 1) > 1:
            return None
        return total if step <= total else None

    @property
    def is_of_a_part(self) -> bool:
        """The counter begins again and again, and nothing numbers the parts of the run in which it counts."""
        numbered = self.named is not None or self.number_of_epochs is not None or self.broken
        return self.per_epoch is True and self.seen and not numbered

    @property
    def is_within_a_step(self) -> bool:
        """It counts the micro-batches of one step, again and again, and nothing counts the steps."""
        return self.source.startswith(MICRO) and self.is_of_a_part

    @property
    def number_of_epochs(self) -> int | None:
        """Epochs of the whole training; None if they are not printed."""
        if self.epochs is None:
            return self.declared
        if self.apart != "bar" and self.base == 0 and (self.names_last or self.named == self.epochs):
            return self.epochs + 1
        return self.epochs


def next_attempt(before: RunCount, *, resumed: bool = False, began: int | None = None) -> RunCount:
    """The count for the log of the next attempt: how the trainer counts stays known.

    ``resumed``: it is not known to begin at the beginning; ``began``: the count at which it is told to begin.
    """
    known = before.per_epoch if before.seen else None
    base = 1 if before.base is None and before.first_named == 1 else before.base  # a resumed log begins at a later one
    whole = before.total if before.per_epoch and before.total is not None and not before.partial else before.whole
    return RunCount(
        base=base,
        names_last=before.names_last,
        per_epoch=known,
        seen=before.seen,
        epoch_gap=before.epoch_gap,
        gap=before.gap if before.through else 1,
        resumed=resumed,
        began=began,
        whole=whole,
        through=before.through,
        broken=before.broken,
    )


def without_counts(run: RunCount) -> RunCount:
    """The count without what was counted so far: it was of another counter. The printed epochs stay known."""
    return replace(
        next_attempt(run, resumed=run.resumed, began=run.began),
        whole=run.whole,
        named=run.named,
        first_named=run.first_named,
        epochs=run.epochs,
        declared=run.declared,
        declared_steps=run.declared_steps,
        apart=run.apart,
    )


def is_beside(run: RunCount, step: int, total: int | None, epoch: Position | None = None) -> bool:
    """True if a bar counts anew although no epoch was begun, in the line above it or by ``epoch``: an evaluation's."""
    same = run.apart == "before" and not _advanced(run) if epoch is None else epoch.value == run.named
    return same and run.step is not None and _at_end(run) and (step < run.step or total != run.total)


def with_epoch(run: RunCount, epoch: Position, *, bar: bool = False) -> RunCount:
    """Take a line with an epoch and no counter. ``bar``: a bar that counts finished epochs."""
    if not epoch.is_whole:
        after = _broken(run, epoch)
    elif run.beside:
        after = replace(run, epochs=run.epochs or epoch.total)
    else:
        apart: Apart = "bar" if bar else run.apart or ("before" if run.step is None else "after")
        after = replace(_named(run, epoch, bar=bar), apart=apart)
    return run if after == run else after


def with_count(run: RunCount, source: str, printed: Position, news: TrainingFields) -> RunCount:
    """Take a line of the counter ``source`` that prints this position."""
    step, total = printed.step + news.rule.from_zero, printed.total
    if run.through and source != run.through:
        if run.step is not None or run.others < SURE_TIMES * run.gap:
            return replace(run, others=run.others + 1)
        run = replace(run, through="", per_epoch=True, seen=True)  # it is not printed any more
    if run.source not in {"", source}:
        known = (run.moved or run.total is not None or total is None) and not run.source.startswith(MICRO)
        if run.others < SURE_TIMES and known:
            return replace(run, others=run.others + 1)
        run = without_counts(run)
    beside = news.epoch is not None and news.epoch.is_whole
    if news.epoch is not None:
        run = replace(_named(run, news.epoch), beside=True) if beside else _broken(run, news.epoch)
    if news.rule.base is not None or news.rule.names_last != run.names_last:
        base = news.rule.base if news.rule.base is not None else run.base
        run = replace(run, base=base, names_last=news.rule.names_last)
    run = _with_scope(run, step, total, news.rule, beside=beside)
    run = _with_index(run, step, total, news.overall, beside=beside)
    rose = run.step is not None and step > run.step
    gap = step - (run.step or 0) if rose else run.gap
    return replace(
        run, source=source, others=0, step=step, total=total, epoch=run.named, gap=gap, moved=run.moved or rose
    )


def _broken(run: RunCount, printed: Position) -> RunCount:
    return replace(run, broken=True, first_named=printed.value if run.first_named is None else run.first_named)


def _named(run: RunCount, printed: Position, *, bar: bool = False) -> RunCount:
    """The count with a printed epoch."""
    epoch, epochs, base = printed.value, printed.total if printed.total is not None else run.epochs, run.base
    if not bar and (epoch == 0 or (epoch == epochs and base is None)):
        base = 0 if epoch == 0 else 1
    first = epoch if run.first_named is None else run.first_named
    gap = int(epoch - run.named) if run.named is not None and epoch > run.named else run.epoch_gap
    return replace(run, named=epoch, first_named=first, epoch_gap=gap, epochs=epochs, base=base)


def _with_scope(run: RunCount, step: int, total: int | None, rule: Rule, *, beside: bool) -> RunCount:
    """Settle whether the counter begins again in each epoch, as far as that is known by now."""
    if rule.firm:
        return replace(run, per_epoch=rule.per_epoch, seen=True)
    seen = _shown(run, step, total)
    if seen is not None:
        if not run.seen and seen and run.done is None:
            index = run.index or 0
            done = 0 if index == 0 else None if run.total is None else index * run.total
            run = replace(run, index=index, done=done)
        return replace(run, per_epoch=seen, seen=True)
    return run if run.seen else replace(run, per_epoch=_likely(run, step, total, rule, beside=beside))


def _shown(run: RunCount, step: int, total: int | None) -> bool | None:
    """What the counter does now shows that it begins again (True) or runs through (False); None: it shows nothing."""
    if run.step is None:
        return None
    fell = step < run.step
    if not run.broken and _advanced(run):
        if fell:
            return True
        return False if step > run.step and not _at_end(run) else None
    if fell and not run.broken and run.named is None:
        if run.total is None:
            return True if total is None and step < AGAIN_SHARE * run.step else None
        return True if _at_end(run) and total == run.total else None
    return None


def _likely(run: RunCount, step: int, total: int | None, rule: Rule, *, beside: bool) -> bool | None:
    """What holds for most counters of this form."""
    if run.broken:
        return False
    if run.apart == "bar":
        return True
    if rule.per_epoch or total is None:
        return rule.per_epoch
    if total == run.declared_steps:
        return False
    epochs, index = run.number_of_epochs, _index_of(run)
    begun = 1 if rule.per_epoch is None else 2  # epochs may count from 0
    if beside and epochs and index is not None and step * epochs > total * (index + begun):
        return True  # further than a counter of the whole run can be
    return rule.per_epoch


def _with_index(run: RunCount, step: int, total: int | None, overall: int | None, *, beside: bool) -> RunCount:
    """The count with the epochs before this line, and what was counted in them."""
    if run.per_epoch is False:
        return run
    fell = run.step is not None and step < run.step
    placed = beside or run.apart in {"before", "bar"}
    if run.step is None:
        turned = False
    elif placed:
        turned = run.epoch is not None and run.named is not None and int(run.named) != int(run.epoch)
    else:
        again = run.total is None and step < AGAIN_SHARE * run.step
        turned = fell and (again or _at_end(run) or _advanced(run))
    due = None if run.index is None else run.index + turned
    index = _index_of(run)
    if not placed:  # the epoch is printed below its counter, or not at all: the turns are counted
        finished = turned and run.apart == "after" and _advanced(run) and index is not None
        index = 0 if run.step is None else (index or 0) + 1 if finished else due
    elif index is None:
        jump = 0 if run.named is None or run.epoch is None else int(run.named) - int(run.epoch)
        index = None if run.index is None else max(0, run.index + jump)
    partial, anew = run.partial and not turned, (run.anew or (run.step is None and run.resumed)) and not placed
    if run.step is None and run.resumed and run.per_epoch and run.whole is not None and total is not None:
        partial = total < run.whole
    if partial and run.step is None:
        # It counts what is left of an epoch after the resume, if that is left where the attempt is told to begin.
        index, done = index if placed else None, None
        if run.began is not None and run.whole and (run.began + (total or 0)) % run.whole == 0:
            epochs = run.began // run.whole
            index, done = (epochs, run.began) if index in {None, epochs} else (index, None)
        anew = anew and done is None
    elif partial:
        done = run.done
    elif run.step is None or index != due or run.done is None:
        done = 0 if index == 0 else None if index is None or total is None else index * total
    else:
        done = run.done + ((run.total if run.total is not None else run.step or 0) if turned else 0)
    if overall is not None and total and overall >= step and run.per_epoch and (overall - step) % total == 0:
        done, anew = overall - step, False
        index = done // total if index is None else index
    return replace(run, index=index, done=done, partial=partial, anew=anew)


def _index_of(run: RunCount) -> int | None:
    """The epochs before the one that was printed last; None if it may count from 0 or from 1."""
    if run.named is None:
        return None
    epoch = int(run.named)
    if run.apart == "bar":
        return epoch
    if run.base is not None:
        return max(0, epoch - run.base)
    return max(0, epoch - 1) if run.epochs is not None or run.first_named == 1 else None


def _advanced(run: RunCount) -> bool:
    """True if a higher epoch was printed since, or with, the newest line of the counter."""
    if run.named is None:
        return False
    if run.epoch is None:
        return run.apart == "after"
    return int(run.named) > int(run.epoch)


def _at_end(run: RunCount) -> bool:
    if run.total is None or run.step is None:
        return False
    left = run.total - run.step  # the last redraws of a bar may be missing
    return left <= max(TINY_SHARE * run.total, run.gap)
