"""What is told and stops nothing: pace and length of a run, its loss, the health of GPUs, memory and disk."""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from ..model.fact import HealthChanged
from ..model.observation import GpuSample, HostSample
from ..model.progress import GPU_IS_GONE, SLOWED_BY_FAULT, Level, Metric, Progress, ToldLength, health_clause
from ..model.text import LazyPattern, size
from .failure.catalogue import SeenGpu
from .hang.rules import duration
from .scales import HALF_MINUTE_S, HOUR_S, KNOWN_STEPS, LASTS_S, MINUTE_S, SURE_TIMES, TWICE, WHILE_S
from .text.run_count import RunCount

# When the training will be done, from this run's own pace, including pauses and across restarts.

WEIGHT = 0.1
"""Weight of the newest stretch: about the last ten count."""
FIRST_S = 2.0
"""Seconds of the first stretch of a run after which its pace is taken, as far as it has come."""
OTHER_PACE = 0.5
"""An attempt whose first stretch differs from the pace before by more than this share has a pace of its own."""
TOO_FAST = 10.0
"""A printed pace that many times faster than the measured one counts steps that a resume passed over as made."""


class Pace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``s_per_step``: including pauses, over full stretches; None before the first. ``fresh``: none in this attempt.

    ``to_t``, ``to_step``: the newest step of the stretch that began at ``from_t``.
    """

    from_t: float | None = None
    from_step: int | None = None
    to_t: float | None = None
    to_step: int | None = None
    s_per_step: float | None = None
    fresh: bool = True


def with_step(pace: Pace, step: int, now: float) -> Pace:
    """Take a step that the trainer printed ``now`` (active seconds)."""
    if pace.from_t is None or pace.from_step is None or step < pace.from_step:
        return begin_stretch(pace, step, now)
    if step == pace.from_step:
        return pace
    if now - pace.from_t < HALF_MINUTE_S:
        return msgspec.structs.replace(pace, to_t=now, to_step=step)
    newest = (now - pace.from_t) / (step - pace.from_step)
    before = pace.s_per_step
    if before is None or (pace.fresh and abs(newest - before) > OTHER_PACE * before):
        blended = newest
    else:  # A stretch with a long pause in it counts, but not more than five usual ones.
        blended = before + WEIGHT * (min(newest, 5.0 * before) - before)
    return Pace(from_t=now, from_step=step, s_per_step=blended, fresh=False)


def begin_stretch(pace: Pace, step: int, now: float) -> Pace:
    """Measure from here: the steps before came at once, after a time in which nothing was read."""
    return Pace(from_t=now, from_step=step, s_per_step=pace.s_per_step, fresh=pace.fresh)


def pace_of(pace: Pace) -> float | None:
    """Seconds per step; of the first stretch of a run as far as it has come. None if that is too short."""
    if pace.s_per_step is not None:
        return pace.s_per_step
    if pace.from_t is None or pace.to_t is None or pace.from_step is None or pace.to_step is None:
        return None
    lasted = pace.to_t - pace.from_t
    return lasted / (pace.to_step - pace.from_step) if lasted >= FIRST_S else None


def eta_s(pace: Pace, progress: Progress) -> float | None:
    """Return seconds to the last step of the run at its own pace; at first, what the trainer itself prints."""
    step, total, own = progress.run_step, progress.run_total_steps, pace_of(pace)
    if step is None or total is None or own is None:
        return progress.eta_s
    return max(0, total - step) * own


def with_own_pace(progress: Progress, pace: Pace, step_s: float | None) -> Progress:
    """Return progress with the time left at this run's own pace.

    ``step_s``: measured seconds of one step, taken if the trainer prints none, or one that cannot be: after a resume a
    bar may print thousands of steps a second for minutes.
    """
    printed_s = progress.sec_per_step
    if step_s is None:
        step_s = pace_of(pace)
    too_fast = printed_s is not None and step_s is not None and printed_s * TOO_FAST < step_s
    measured = too_fast or (printed_s is None and progress.step is not None)
    return msgspec.structs.replace(
        progress, eta_s=eta_s(pace, progress), sec_per_step=step_s if measured else printed_s
    )


def with_epoch_pace(progress: Progress, done: float, lasted_s: float, ended: float) -> Progress:
    """Return progress of a log without steps, with the time left, if ``done`` epochs took ``lasted_s``."""
    if progress.total_epochs is None or done <= 0:
        return progress
    left = max(0.0, progress.total_epochs - ended)
    return msgspec.structs.replace(progress, eta_s=left * lasted_s / done)


# The length of the run by its settings, where its log does not show it.
#
# For people who look at the run. Whether an exit with success was the end is judged apart (ending.py of recovery).

replace = msgspec.structs.replace


def with_told(
    progress: Progress, run: RunCount, told: ToldLength | None, *, resumed: bool, epochs_before: int | None = None
) -> Progress:
    """Progress with the total of the whole run, and by what it is known (``total_by``). ``run``: what the log shows.

    ``resumed``: the attempt began from a checkpoint, so the total of a bar may be what was left. ``epochs_before``:
    epochs of the run that this checkpoint holds, None = unknown.
    """
    if told is None:
        return progress
    step, epoch = progress.run_step, progress.epoch
    if run.step is None:  # a log that prints epochs and no step
        is_known = epoch is None or progress.total_epochs is not None or not told.epochs or epoch > told.epochs
        return progress if is_known else replace(progress, total_epochs=told.epochs, total_by=told.epochs_by)
    if run.total is None:  # one that prints the step without a total
        for total, by in ((told.steps, told.steps_by), (told.guess, told.guess_by)):
            if progress.run_total_steps is None and step is not None and total is not None and step <= total:
                return _with_total(progress, step, total, by)
        return progress
    # A bar that counts within an epoch of which the log does not say how many there are. One of the whole run has the
    # same number of steps for each epoch, so that one which the number of epochs does not divide, or that is shorter
    # than the steps of the run, is of one epoch.
    total, by_steps = run.total, told.steps is not None and told.steps > run.total
    if run.number_of_epochs is not None or run.per_epoch is False or (run.per_epoch is None and resumed):
        return progress
    if run.per_epoch is None and not by_steps and total % (told.epochs or 1) == 0:
        return progress
    within = run if run.per_epoch else replace(run, per_epoch=True, index=0, done=0)
    if resumed and run.named is None:  # bars without the number of their epoch count anew
        if epochs_before is None or within.index is None or within.done is None:
            return replace(progress, run_step=None, run_total_steps=None, of_part=True)
        index, done = within.index + epochs_before, within.done + epochs_before * total
        within = replace(within, index=index, done=done, anew=False)
    at, whole = within.run_step, replace(within, declared=told.epochs).run_total
    by = told.epochs_by
    if told.steps is not None and by_steps and (whole is None or told.steps < whole):
        whole, by = told.steps, told.steps_by
    if at is None or whole is None or at > whole:
        return progress
    return _with_total(progress, at, whole, by)


def _with_total(progress: Progress, step: int, total: int, by: str) -> Progress:
    pace = progress.sec_per_step
    left = None if pace is None else (total - step) * pace
    return replace(progress, run_step=step, run_total_steps=total, total_by=by, eta_s=left, of_part=False)


# Findings about the loss: far above its trend, diverged, falling or flat. They stop nothing by themselves.
#
# Sources: loss scaling of mixed precision (PyTorch's GradScaler), runs that ended with a loss 10,000 times its lowest.
# Known false alarms: warm restarts of the learning rate raise the loss for a while, so it must last, and the finding
# ends with the loss's return; losses of games and of reinforcement learning rise as the opponent or the reward does, so
# a loss does not diverge beside a reward or a discriminator, nor if it was ever negative.

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


# Health of GPUs, memory and disk.

# Health levels of temperature, memory and disk, with hysteresis. Bounds come from ``[health]``.
#
# With the profile ``stable`` GPU memory has a lower bound, because that profile is meant to leave room. A value on a
# bound belongs to the milder level. A worse level must hold for a moment and a better one needs a margin, so that a
# value near a bound does not change its level all the time.


class Band(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The level of one metric, and since when its values have been outside it."""

    level: Level = "unknown"
    outside_t: float | None = None


class Change(NamedTuple):
    """A metric changed its level. ``alarm``: the incident that it is (``GPU 3 too hot: 86 °C (limit 85)``), or ""."""

    fact: HealthChanged
    alarm: str


Bands = dict[str, Band]
"""By metric (``gpu0.temp``, ``ram_used`` …). Replaced, never changed in place."""


def gpu_values(sample: GpuSample, *, training: bool) -> Iterator[tuple[str, float]]:
    """Yield metric and value of a GPU sample. VRAM is judged only while training; before, it is always low."""
    for gpu in sample.gpus:
        if gpu.temp_c is not None:
            yield f"gpu{gpu.index}.temp", gpu.temp_c
        if training and gpu.own is not False and gpu.mem_used_bytes is not None and gpu.mem_total_bytes:
            yield f"gpu{gpu.index}.vram", 100.0 * gpu.mem_used_bytes / gpu.mem_total_bytes


def host_values(sample: HostSample) -> Iterator[tuple[str, float]]:
    """Yield metric and value of a host sample."""
    if sample.ram_used_bytes is not None and sample.ram_total_bytes:
        yield "ram_used", 100.0 * sample.ram_used_bytes / sample.ram_total_bytes
    for metric in ("ram_available", "swap_used", "disk_free"):
        if (value := getattr(sample, f"{metric}_bytes")) is not None:
            yield metric, value


def take(
    bands: Bands, values: Iterator[tuple[str, float]], table: dict[str, Metric], t: float
) -> tuple[Bands, tuple[Change, ...]]:
    """Update levels from values. Returns the same dict if nothing changed."""
    new, changes = dict(bands), []
    for name, value in values:
        metric, band = table[name.rpartition(".")[2]], bands.get(name)
        before: Level = "unknown" if band is None else band.level
        level = metric.level_of(value, before)
        new[name] = Band(level=level)
        if level == before:
            continue
        if band is not None and (band.outside_t is None or t - band.outside_t < LASTS_S):
            new[name] = Band(level=before, outside_t=t if band.outside_t is None else band.outside_t)
            continue
        fact = HealthChanged(metric=name, value=value, unit=metric.unit, level=level, before=before)
        alarm = health_clause(name, value, metric.unit, level, metric.limit(level)) if level == metric.alarm else ""
        changes.append(Change(fact, alarm))
    return (bands if new == bands else new), tuple(changes)


# GPUs that are lost, and GPUs that a fault of cooling or power slows down.
#
# Source: NVML (GPU is lost, needs a reset; reasons of reduced clocks). Known false alarms, and what prevents them:
# power caps, clock settings and the driver's own limit at a high temperature are usual and do not count; a moment of
# heat does not, it must last for LASTS_S; a fault that comes and goes is one, until it has been away for MINUTE_S. Lost
# is told of the GPUs that the run uses or may use; slowed down of every GPU of the machine, because they share air and
# power.


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``since_t``, ``seen_t``: first and last time that it was seen, run seconds."""

    since_t: float
    seen_t: float
    text: str
    severe: bool = False

    @property
    def counts(self) -> bool:
        """Whether it has lasted, and is an incident."""
        return self.seen_t - self.since_t >= LASTS_S


Faults = dict[str, Fault]
"""By class of the incident (``gpu0.lost``, ``gpu3.slowed``). Replaced, never changed in place."""


def take_faults(known: Faults, sample: GpuSample, t: float) -> Faults:
    """Return the faults after a sample, without those that are over."""
    seen = dict(_seen(sample))
    new = {n: each for n, each in known.items() if n in seen or not sample.gpus or t - each.seen_t < MINUTE_S}
    for name, (text, severe) in seen.items():
        since_t = new[name].since_t if name in new else t
        new[name] = Fault(since_t=since_t, seen_t=t, text=text, severe=severe)
    return new


def _seen(sample: GpuSample) -> Iterator[tuple[str, tuple[str, bool]]]:
    for gpu in sample.gpus:
        if gpu.trouble and gpu.own is not False and gpu.trouble.startswith(GPU_IS_GONE):
            yield f"gpu{gpu.index}.lost", (f"GPU {gpu.index} {gpu.trouble}", gpu.own is True)
        if slowed := " and ".join(each for each in gpu.throttle or () if each in SLOWED_BY_FAULT):
            yield f"gpu{gpu.index}.slowed", (f"GPU {gpu.index} is slowed down by {slowed}", False)


# When the disk will be full, from how much free space each checkpoint took and how often one comes.
#
# Free space is measured over some minutes: a trainer that deletes its old checkpoints takes none, one that also writes
# optimizer states takes more than the size of the file. Other programs write to the disk, too, so a checkpoint counts
# at most twice its own size. Source: runs that died in a save at night because the disk was full. Known false alarms:
# another program that writes as much; so the forecast names its numbers, and only warns.

CLASS = "filling"
SAVES = 5
"""Newest checkpoints whose free space is remembered."""
HORIZON_S = 6 * HOUR_S
"""If the end of the training is unknown, a disk that is full within this time is reported."""
LEAST_BYTES = 1e6
"""Less per checkpoint comes from other files."""


class DiskUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``seen``: (active seconds, free bytes) after each of the newest checkpoints; ``saves``: how many there were."""

    saves: int = 0
    seen: tuple[tuple[float, float], ...] = ()


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """``full_s``: seconds until no further checkpoint fits, infinite if none takes any. Measured over ``span_s``."""

    full_s: float
    each_bytes: float
    every_s: float
    span_s: float

    @property
    def is_sure(self) -> bool:
        """Saves within a few minutes (a short run, a burst) prove nothing, unless it is full soon."""
        return self.span_s >= WHILE_S / 2 or self.full_s <= WHILE_S

    @property
    def sentence(self) -> str:
        """With what it rests on."""
        hours = self.full_s / 3600.0
        when = f"about {hours:.1f} h" if hours >= 1.0 else duration(self.full_s)
        each = f"each checkpoint takes {size(self.each_bytes)}, one comes every {duration(self.every_s)}"
        return f"the disk will be full in {when}: {each}; free some space or keep fewer"


def with_free(use: DiskUse, now: float, free_bytes: float, saves: int) -> DiskUse:
    """Take the free space after ``saves`` complete checkpoints of this run; fewer than before = some were deleted."""
    if saves == use.saves:
        return use
    if saves < use.saves:
        return DiskUse(saves=saves)
    return DiskUse(saves=saves, seen=(*use.seen, (now, free_bytes))[-SAVES:])


def forecast(use: DiskUse, now: float, free_bytes: float, size_bytes: float | None = None) -> Forecast | None:
    """Return when the disk will be full; None if that is unknown.

    ``size_bytes``: size of the largest checkpoint, None = unknown.
    """
    if len(use.seen) < SURE_TIMES:
        return None
    (first_t, first_free), (last_t, last_free) = use.seen[0], use.seen[-1]
    times, span_s = len(use.seen) - 1, last_t - first_t
    each, every = (first_free - last_free) / times, span_s / times
    if size_bytes is not None:
        each = min(each, TWICE * size_bytes)
    takes = each >= LEAST_BYTES and every > 0.0
    full_s = int(free_bytes / each) * every + max(0.0, every - (now - last_t)) if takes else math.inf
    return Forecast(full_s=full_s, each_bytes=each, every_s=every, span_s=span_s)


class DiskLow(msgspec.Struct, frozen=True):
    """The least room that the disk of the output had lately, and when (run seconds)."""

    free_bytes: float
    t: float


class MachineHealth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of the machine.

    ``host``: the newest sample; the room on the disk is that of the newest that has it. ``gpus_of_run``: indexes of
    the GPUs that the trainer used last; empty = unknown. ``gpus_usable``: whether one of them answers; None = unknown.
    ``tight_since``, ``spare_since``: run seconds from which RAM is tight and GPU memory is left; None = it is not.
    """

    host: HostSample = HostSample(t=0.0)
    bands: Bands = {}
    gpu_faults: Faults = {}
    disk: DiskUse = DiskUse()
    disk_low: DiskLow | None = None
    gpu_trouble: str | None = None
    gpus_of_run: tuple[int, ...] = ()
    gpus_usable: bool | None = None
    gpus_seen: tuple[SeenGpu, ...] = ()
    oom_kills_before: int | None = None
    tight_since: float | None = None
    spare_since: float | None = None


def with_host(known: MachineHealth, sample: HostSample) -> MachineHealth:
    """Take a sample. After a change of their counter the number of kills for memory is unknown."""
    before, free, low, kills = known.host, sample.disk_free_bytes, known.disk_low, known.oom_kills_before
    if before.oom_kills is None:
        kills = sample.oom_kills
    elif sample.oom_counter != before.oom_counter:
        kills = None
    elif kills is None:
        kills = before.oom_kills
    # A save that did not fit takes less, and its file may be gone at the end.
    if free is not None and (low is None or free < low.free_bytes or sample.t - low.t > MINUTE_S):
        low = DiskLow(free, sample.t)
    total = before.disk_total_bytes if sample.disk_total_bytes is None else sample.disk_total_bytes
    free = before.disk_free_bytes if free is None else free
    host = msgspec.structs.replace(sample, disk_free_bytes=free, disk_total_bytes=total)
    return msgspec.structs.replace(known, host=host, disk_low=low, oom_kills_before=kills)
