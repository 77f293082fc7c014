"""Findings about the loss: far above its trend, diverged, falling or flat. They stop nothing by themselves.

Sources: loss scaling of mixed precision (PyTorch's GradScaler), runs that ended with a loss 10,000 times its lowest.
Known false alarms: warm restarts of the learning rate raise the loss for a while, so it must last, and the
finding ends with the loss's return; losses of games and of reinforcement learning rise as the opponent or the reward
does, so a loss does not diverge beside a reward or a discriminator, nor if it was ever negative.
"""

from typing import Literal

import msgspec

from ...model.text import LazyPattern
from ..scales import KNOWN_STEPS, SURE_TIMES, TWICE

# The trend of the loss over thousands of steps: whether it keeps rising (diverging) or stopped falling (plateau).
#
# Means over windows of many steps are compared, because single steps are noise. Known false alarms: diffusion models'
# losses are flat and noisy from the beginning (so a plateau is only reported if the loss had been falling); warm
# restarts of the learning rate raise the loss for a while (so it must rise through several windows, far above its
# best).

Finding = Literal["diverging", "plateau"]

WINDOW = 100
"""Losses per window."""
RISE_SHARE = 0.5
"""Share of the best window by which the last one must be above it."""
SETTLE_WINDOWS = 30
"""Windows without a better one that make a plateau."""
BETTER_SHARE = 0.005
"""A window counts as better when it is lower by this share of the best one."""


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


def with_value(trend: LossTrend, value: float) -> LossTrend:
    """Add the loss of one step."""
    total, count = trend.total + value, trend.count + 1
    if count < WINDOW:
        return msgspec.structs.replace(trend, total=total, count=count)
    mean = total / count
    if trend.best is None or trend.first is None or trend.last is None:
        return LossTrend(first=mean, last=mean, best=mean)
    better = mean < trend.best - BETTER_SHARE * abs(trend.best)
    best = mean if better else trend.best
    rises = trend.rises + 1 if mean > trend.last else 0
    idle = 0 if better else trend.idle + 1
    found: Finding | None = None
    if rises >= SURE_TIMES and mean > best + RISE_SHARE * abs(best):
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
    )


def describe_trend(trend: LossTrend) -> str:
    """Describe a fresh finding in a sentence."""
    best, last = trend.best or 0.0, trend.last or 0.0
    if trend.finding == "diverging":
        return f"the loss keeps rising: {last:.3g} over the last {WINDOW} lines, {best:.3g} at its best"
    return f"the loss has not fallen below {best:.3g} for {trend.idle * WINDOW} lines"


SPIKE_SIGMAS = 8.0
"""x the mean deviation above the trend. Batches of one make noisy losses."""
SPIKE_BEATS = 10
"""Steps in a row that make a spike, and steps in a row below the bound that end one."""
FAR = 100.0
"""x the floor: no spread of batches reaches it, so it needs no trend to be known."""
RISEN = 10.0
"""x the floor: no spread of batches stays above it for twice ``SPIKE_BEATS``; a log of few lines tells it no sooner."""
BLOCK = 5
"""Losses whose mean may be the floor: one lucky batch is none."""
FELL_SHARE = 0.1
"""Share of the first loss by which the floor must be below it: only what fell can diverge."""

LossStateName = Literal["falling", "flat", "diverging", "nan", "unknown"]
OTHER_AIM = LazyPattern(
    r"(?i)(?<![a-z])(?:(?:ep(?:isode)?|mean|avg)_)?(?:rew(?:ard)?s?(?:_mean)?|returns?|advantages?|entropy(?:_loss)?"
    r"|(?:loss[_ ])?(?:d|g|disc(?:riminator)?|gen(?:erator)?)[_ ]?loss|loss[_ ](?:d|g)(?:_\w+)?|[dg]_(?:real|fake|gan))"
    r"['\"]?\s{0,8}[:=|]\s{0,8}-?\d"
)
"""A reward or a game of two networks beside the loss: an aim other than a lower loss, which may then rise."""


class Loss(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``trend`` and mean absolute ``deviation``; ``high``: steps in a row above both bounds; ``long``: over windows.

    ``first``: of the run; ``floor``: the lowest mean of a block, ``floor_age`` losses ago. ``block``: under way.
    ``far``, ``risen``: steps in a row above ``FAR`` and ``RISEN`` times it. ``former``: first and floor are of an
    attempt before. ``may_rise``: it was negative. ``since_t``, ``since_step``: the first loss after
    the last block near the best window, where a rise began; ``lasting``: the high ones are so many that the loss
    diverged; ``low``: steps in a row below the bound since.
    """

    trend: float | None = None
    deviation: float = 0.0
    beats: int = 0
    high: int = 0
    long: LossTrend = LossTrend()
    first: float | None = None
    floor: float | None = None
    floor_age: int = 0
    block: tuple[float, ...] = ()
    former: bool = False
    may_rise: bool = False
    far: int = 0
    risen: int = 0
    since_t: float | None = None
    since_step: int | None = None
    lasting: bool = False
    low: int = 0

    @property
    def fell(self) -> bool:
        """Whether the loss had fallen, and is one that can diverge."""
        return (
            self.first is not None
            and self.floor is not None
            and not self.may_rise
            and 0.0 < self.floor < (1.0 - FELL_SHARE) * self.first
        )

    @property
    def diverges(self) -> bool:
        return self.fell and (self.lasting or self.long.finding == "diverging")

    @property
    def is_spike(self) -> bool:
        """Whether it has just been far above its trend for ``SPIKE_BEATS`` steps; true once per spike."""
        return self.high == SPIKE_BEATS

    @property
    def is_far(self) -> bool:
        """Whether each of the newest steps was ``FAR`` above the floor."""
        return self.far >= SPIKE_BEATS


def begin_attempt(before: Loss) -> Loss:
    """The loss of a resumed attempt: what the run had reached stays known."""
    return Loss(first=before.first, floor=before.floor, may_rise=before.may_rise, former=before.floor is not None)


def with_loss(loss: Loss, value: float, t: float = 0.0, step: int | None = None) -> Loss:
    """Add the loss of one step, printed at run time ``t``."""
    replace = msgspec.structs.replace
    loss = replace(loss, long=with_value(loss.long, value), may_rise=loss.may_rise or value < 0.0)
    far = loss.fell and value > _bound(loss, FAR)
    risen = loss.fell and value > _bound(loss, RISEN)
    loss = replace(loss, far=loss.far + 1 if far else 0, risen=loss.risen + 1 if risen else 0)
    if loss.since_t is None:
        loss = replace(loss, since_t=t, since_step=step)
    trend = loss.trend
    spike = trend is not None and loss.beats >= KNOWN_STEPS and value > TWICE * abs(trend)
    if far or (spike and value - (trend or 0.0) > SPIKE_SIGMAS * loss.deviation):
        high = loss.high + 1
        return replace(loss, high=high, low=0, lasting=loss.lasting or (loss.fell and high >= SPIKE_BEATS))
    if loss.risen >= TWICE * SPIKE_BEATS:
        return replace(loss, high=0, low=0, lasting=True)
    low = loss.low + 1
    loss = replace(loss, high=0, low=low, lasting=loss.lasting and low < SPIKE_BEATS)
    if loss.lasting:
        return loss
    loss = _with_floor(loss, value)
    if trend is None:
        return replace(loss, trend=value, beats=1)
    away, weight = value - trend, max(1.0 / KNOWN_STEPS, 1.0 / (loss.beats + 1))
    return replace(
        loss,
        trend=trend + weight * away,
        deviation=loss.deviation + weight * (abs(away) - loss.deviation),
        beats=loss.beats + 1,
    )


def _bound(loss: Loss, times: float) -> float:
    """A resumed attempt may begin at the beginning again: its loss is then no higher than the first one was."""
    bound = times * (loss.floor or 0.0)
    return max(bound, loss.first or 0.0) if loss.former else bound


def _with_floor(loss: Loss, value: float) -> Loss:
    replace = msgspec.structs.replace
    block = (*loss.block, value)
    loss = replace(loss, first=value if loss.first is None else loss.first, floor_age=loss.floor_age + 1, block=block)
    if len(block) < BLOCK:
        return loss
    mean = sum(block) / BLOCK
    loss = replace(loss, block=())
    best = loss.floor if loss.long.best is None else loss.long.best
    if best is None or mean <= (1.0 + RISE_SHARE) * best:
        loss = replace(loss, since_t=None, since_step=None)
    if loss.floor is not None and mean >= loss.floor:
        return loss
    better = loss.floor is None or loss.floor - mean > BETTER_SHARE * abs(loss.floor)
    return replace(loss, floor=mean, floor_age=0 if better else loss.floor_age)


def state_of(loss: Loss, *, is_nan: bool, diverges: bool) -> LossStateName:
    """``diverges``: it was told so."""
    if is_nan:
        return "nan"
    if diverges:
        return "diverging"
    if loss.floor is None or loss.beats < SPIKE_BEATS:
        return "unknown"
    return "falling" if loss.floor_age < WINDOW and loss.floor < (loss.first or 0.0) else "flat"
