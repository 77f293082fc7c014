"""Findings about the loss: not a number, or far above its trend. They warn and stop nothing.

Sources: loss scaling of mixed precision (PyTorch's GradScaler), runs that continued for days after a NaN. Known false
alarms: one overflowing step under mixed precision prints NaN and is skipped by the gradient scaler; so a NaN is a
warning, and only a crash that follows makes the resume point older than it. Warm restarts of the learning rate raise
the loss for a while; so a spike must last.
"""

import msgspec

from . import loss_trend
from .loss_trend import LossTrend

SPIKE_SIGMAS = 8.0
"""x the mean deviation above the trend. Batches of one make noisy losses."""
SPIKE_RATIO = 2.0
"""x the trend, which the loss must exceed as well."""
SPIKE_BEATS = 10
"""Steps in a row that make a spike."""
LEARN_BEATS = 50
"""Steps that make a first trend."""
TREND_WEIGHT = 0.02


class Loss(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``trend`` and mean absolute ``deviation``; ``high``: steps in a row above both bounds; ``long``: over windows."""

    trend: float | None = None
    deviation: float = 0.0
    beats: int = 0
    high: int = 0
    long: LossTrend = LossTrend()


def with_loss(loss: Loss, value: float) -> Loss:
    """Add the loss of one step."""
    trend = loss.trend
    long = loss_trend.with_value(loss.long, value)
    if trend is None:
        return Loss(trend=value, beats=1, long=long)
    away = value - trend
    if loss.beats >= LEARN_BEATS and away > SPIKE_SIGMAS * loss.deviation and value > SPIKE_RATIO * abs(trend):
        return Loss(trend=trend, deviation=loss.deviation, beats=loss.beats, high=loss.high + 1, long=long)
    weight = max(TREND_WEIGHT, 1.0 / (loss.beats + 1))
    return Loss(
        trend=trend + weight * away,
        deviation=loss.deviation + weight * (abs(away) - loss.deviation),
        beats=loss.beats + 1,
        long=long,
    )


def is_spike(loss: Loss) -> bool:
    """Return whether the loss has just been far above its trend for ``SPIKE_BEATS`` steps; true once per spike."""
    return loss.high == SPIKE_BEATS
