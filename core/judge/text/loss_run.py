"""The printed losses of an attempt in their order: how long the newest have been NaN, and whether they are an average.

A NaN *step* is a step whose own loss is NaN. A printed number may stand for more: a line every hundred steps, a bar
that keeps the last value, or an average over the epoch, which one skipped batch stains until the epoch ends. So the
steps between two printed values are learned (``hold``), and an average is recognised by its name (line_fields.py), by
its row in log_shapes.toml, or by what it does: its changes shrink within an epoch and are large again at the next one,
and a NaN in it ends with the epoch. Known limit: an average without such a name, before the first epoch is over.
"""

import msgspec

VALUES = 10
"""Printed values in a row that must be NaN, whatever steps each stands for: one bad batch stains one printed value."""
EDGE_VALUES = 10
"""Changes at either end of an epoch that are compared."""
SETTLES = 5.0
"""x the changes at the end of an epoch: larger ones at the beginning of the next show an average over the epoch."""


class LossRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """``nan_steps``, ``nan_values``: steps and printed values in a row that were NaN, up to the newest; 0 = it is not.

    ``nan_from``: the step that was printed with the first of them. ``average``: the newest is a running average.
    ``hold``: fewest steps from one printed value to a different one; None = not known. ``value``, ``at``: the newest
    finite value and the step from which it stood; ``last``: the newest step with a loss.

    ``changes``: different values in this epoch; ``early``: sum of the first EDGE_VALUES changes of this epoch;
    ``late``: mean change at the end of it; ``late_before``: of the epoch before, None = too few values.
    """

    nan_steps: int = 0
    nan_values: int = 0
    nan_from: int | None = None
    average: bool = False
    acts_as_average: bool = False
    hold: int | None = None
    value: float | None = None
    at: int | None = None
    last: int | None = None
    changes: int = 0
    early: float = 0.0
    late: float = 0.0
    late_before: float | None = None

    @property
    def is_average(self) -> bool:
        """Whether the newest loss is a running average, by its name, its row or what it does."""
        return self.average or self.acts_as_average

    def is_nan_for(self, steps: int) -> bool:
        """Whether the loss of the last ``steps`` steps was NaN, and not just one printed value or an average."""
        if self.is_average or self.nan_values < min(VALUES, steps):
            return False
        hold = 1 if self.hold is None else self.hold
        return self.nan_steps >= (steps if hold == 1 else max(steps, VALUES * hold))


START_RUN = LossRun()


def with_printed(
    run: LossRun, value: float | None, at: int | None, *, average: bool, moved: bool, new_epoch: bool
) -> LossRun:
    """Add a printed loss. ``value`` None: NaN or infinite. ``at``: its step, None = not printed.

    ``moved``: the line is not another drawing of the step before. ``new_epoch``: first loss since the epoch changed or
    the counter began again.
    """
    if new_epoch:
        run = _next_epoch(run, finite=value is not None)
    if value is None:
        return _with_nan(run, at, average=average, moved=moved)
    if run.nan_values:
        run = msgspec.structs.replace(run, nan_steps=0, nan_values=0, nan_from=None)
    if value == run.value:
        return msgspec.structs.replace(run, average=average, last=at)
    return _with_change(msgspec.structs.replace(run, average=average, last=at), value, at)


def _with_nan(run: LossRun, at: int | None, *, average: bool, moved: bool) -> LossRun:
    if not run.nan_values:
        return msgspec.structs.replace(run, nan_steps=1, nan_values=1, nan_from=at, average=average, last=at)
    if not moved:
        return run
    made = 1 if at is None or run.last is None or at <= run.last else at - run.last
    return msgspec.structs.replace(
        run, nan_steps=run.nan_steps + made, nan_values=run.nan_values + 1, average=average, last=at
    )


def _with_change(run: LossRun, value: float, at: int | None) -> LossRun:
    hold = run.hold
    if run.at is not None and at is not None and at > run.at:
        hold = at - run.at if hold is None else min(hold, at - run.at)
    change = 0.0 if run.value is None else abs(value - run.value)
    changes = run.changes + 1
    early = run.early + change if changes <= EDGE_VALUES else run.early
    late = change if changes == 1 else run.late + (change - run.late) / min(changes, EDGE_VALUES)
    acts = run.acts_as_average
    if changes == EDGE_VALUES and run.late_before is not None:
        acts = acts or early / EDGE_VALUES > SETTLES * run.late_before > 0.0
    return msgspec.structs.replace(
        run, hold=hold, value=value, at=at, changes=changes, early=early, late=late, acts_as_average=acts
    )


def _next_epoch(run: LossRun, *, finite: bool) -> LossRun:
    """The counts of an epoch begin again. A NaN that ends with the epoch was one of an average."""
    return msgspec.structs.replace(
        run,
        acts_as_average=run.acts_as_average or (finite and run.nan_values > 1),
        changes=0,
        early=0.0,
        late=0.0,
        late_before=run.late if run.changes >= 2 * EDGE_VALUES else None,
        at=None,
    )
