"""The trend of the loss over thousands of steps: whether it keeps rising (diverging) or stopped falling (plateau).

Means over windows of many steps are compared, because single steps are noise. Known false alarms: diffusion models'
losses are flat and noisy from the beginning (so a plateau is only reported if the loss had been falling); warm restarts
of the learning rate raise the loss for a while (so it must rise through several windows, far above its best).
"""

from typing import Literal

import msgspec

Finding = Literal["diverging", "plateau"]

WINDOW = 100
"""Losses per window."""
RISES = 3
"""Windows in a row, each above the one before."""
RISE_SHARE = 0.5
"""Share of the best window by which the last one must be above it."""
SETTLE_WINDOWS = 30
"""Windows without a better one that make a plateau."""
BETTER_SHARE = 0.005
"""A window counts as better when it is lower by this share of the best one."""
FELL_SHARE = 0.1
"""Share of the first window by which the loss must have fallen before a plateau is reported."""


class LossTrend(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``total``/``count``: the window under way. ``rises``: windows in a row that rose; ``idle``: since the best."""

    total: float = 0.0
    count: int = 0
    first: float | None = None
    last: float | None = None
    best: float | None = None
    rises: int = 0
    idle: int = 0
    finding: Finding | None = None
    fresh: bool = False
    """``finding`` follows from the newest loss."""


def with_value(trend: LossTrend, value: float) -> LossTrend:
    """Add the loss of one step."""
    total, count = trend.total + value, trend.count + 1
    if count < WINDOW:
        return msgspec.structs.replace(trend, total=total, count=count, fresh=False)
    mean = total / count
    if trend.best is None or trend.first is None or trend.last is None:
        return LossTrend(first=mean, last=mean, best=mean)
    better = mean < trend.best - BETTER_SHARE * abs(trend.best)
    best = mean if better else trend.best
    rises = trend.rises + 1 if mean > trend.last else 0
    idle = 0 if better else trend.idle + 1
    found: Finding | None = None
    if rises >= RISES and mean > best + RISE_SHARE * abs(best):
        found = "diverging"
    elif idle >= SETTLE_WINDOWS and best < trend.first - FELL_SHARE * abs(trend.first):
        found = "plateau"
    known = None if better else trend.finding
    return LossTrend(
        first=trend.first,
        last=mean,
        best=best,
        rises=rises,
        idle=idle,
        finding=found or known,
        fresh=found is not None and found != known,
    )


def describe_trend(trend: LossTrend) -> str:
    """Describe a fresh finding in a sentence."""
    best, last = trend.best or 0.0, trend.last or 0.0
    if trend.finding == "diverging":
        return f"the loss keeps rising: {last:.3g} over the last {WINDOW} lines, {best:.3g} at its best"
    return f"the loss has not fallen below {best:.3g} for {trend.idle * WINDOW} lines"
