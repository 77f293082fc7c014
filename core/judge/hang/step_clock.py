"""The usual time from one step to the next, and when a step is overdue.

Source of the idea: training monitors with learned time-outs (NVIDIA's resiliency extension: 5 x the longest
interval, after a warm-up). Known false alarms of such clocks: long pauses that the run makes by
design (evaluation, saving, refilling a buffer), which are learned apart; lines that are printed only now and then, so
the distance of lines is learned, not that of steps.
"""

import msgspec

BLOCK_S = 10.0
"""Steps of this long make one block; only the block's slowest step and mean are kept. The pace is known after one."""
BLOCKS = 16
"""Blocks remembered: the slow lines of the last minutes are usual, those of a slow beginning are not."""
PAUSE_FACTOR = 4.0
"""x the typical interval: a longer one is a pause, such as a refill, and does not become the pace."""
PAUSE_FLOOR_S = 15.0
"""A shorter interval is a slow step, even if a phase was announced in it: some trainers name one in each step."""
NEW_PACE = 3
"""Pauses in a row after which further ones are the pace: images became larger, sequences longer."""
PAUSE_FADE = 0.9
"""x the longest pause, at each shorter one: one odd pause does not count forever."""


class StepClock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All times in active seconds. ``slow_s``, ``typical_s`` and ``step_s`` are None until the first block is full.

    ``beats`` counts heartbeats of this attempt; ``step_s`` is the typical time of one step (lines may stand for many).
    ``pause_s``: the longest pause so far that nothing announced and that ended by itself.
    """

    start: float = 0.0
    last: float = 0.0
    beats: int = 0
    block_n: int = 0
    block_sum_s: float = 0.0
    block_max_s: float = 0.0
    block_steps: int = 0
    slowest: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    slow_s: float | None = None
    typical_s: float | None = None
    step_s: float | None = None
    pause_s: float = 0.0
    far_n: int = 0
    """Pauses in a row; several are a new pace."""
    longest_s: float = 0.0
    """Longest interval of this attempt, the one before its first step included: its pace until that is known."""
    behind_from: float | None = None
    """When a time ended in which nothing was read: lines that were printed in it may come at once. None = none do."""


def begin_attempt(clock: StepClock, now: float) -> StepClock:
    """Start the clock of a new attempt; what is usual for this run stays known."""
    return msgspec.structs.replace(
        clock,
        start=now,
        last=now,
        beats=0,
        block_n=0,
        block_sum_s=0.0,
        block_max_s=0.0,
        block_steps=0,
        far_n=0,
        longest_s=0.0,
        behind_from=None,
    )


def beat(clock: StepClock, now: float, steps: int, warmup_beats: int, *, announced: bool = False) -> StepClock:
    """Take a heartbeat: the training advanced by ``steps`` (1 if unknown). ``announced``: after another phase."""
    interval = now - clock.last
    if interval > clock.longest_s:
        clock = msgspec.structs.replace(clock, longest_s=interval)
    beats = clock.beats + 1
    if beats <= warmup_beats or interval < 0.0:
        return msgspec.structs.replace(clock, last=now, beats=beats)
    typical = clock.typical_s
    if clock.behind_from is not None:  # neither these lines nor the one that ends them show a pace
        at_once = typical is not None and interval * PAUSE_FACTOR < typical and now - clock.behind_from < BLOCK_S
        return msgspec.structs.replace(clock, last=now, beats=beats, behind_from=clock.behind_from if at_once else None)
    far = typical is not None and interval > PAUSE_FLOOR_S and interval > PAUSE_FACTOR * typical
    if (far and clock.far_n < NEW_PACE) or (announced and interval > PAUSE_FLOOR_S):
        # Announced phases are learned apart (phase_times.py).
        pause = clock.pause_s if announced else max(interval, clock.pause_s * PAUSE_FADE)
        return msgspec.structs.replace(clock, last=now, beats=beats, pause_s=pause, far_n=clock.far_n + 1)
    n = clock.block_n + 1
    total = clock.block_sum_s + interval
    most = max(clock.block_max_s, interval)
    count = clock.block_steps + steps
    if total < BLOCK_S:
        return msgspec.structs.replace(
            clock,
            last=now,
            beats=beats,
            block_n=n,
            block_sum_s=total,
            block_max_s=most,
            block_steps=count,
            far_n=clock.far_n if far else 0,
        )
    slowest = (*clock.slowest, most)[-BLOCKS:]
    means = (*clock.means, total / n)[-BLOCKS:]
    return msgspec.structs.replace(
        clock,
        last=now,
        beats=beats,
        block_n=0,
        block_sum_s=0.0,
        block_max_s=0.0,
        block_steps=0,
        far_n=clock.far_n if far else 0,
        slowest=slowest,
        means=means,
        slow_s=robust_slowest(slowest),
        typical_s=sorted(means)[len(means) // 2],
        step_s=total / max(count, 1),
    )


def robust_slowest(slowest: tuple[float, ...]) -> float:
    """Return the second slowest of the blocks, the slowest of fewer than four: one odd step does not count."""
    ordered = sorted(slowest)
    return ordered[-1] if len(ordered) < 4 else ordered[-2]


def usual_s(clock: StepClock) -> float | None:
    """Return the usual distance of progress lines; None before the first."""
    return clock.slow_s if clock.slow_s is not None else clock.longest_s if clock.beats else None


def told_usual_s(clock: StepClock) -> float | None:
    """Return the usual distance of progress lines as people are told it; ``usual_s`` is that of deadlines.

    Before the pace is known a deadline allows for the wait for the first line (imports, data). Told to a
    person as the usual distance of lines, that wait would be wrong, so the longest distance so far is told.
    """
    return clock.block_max_s if clock.slow_s is None and clock.block_n else usual_s(clock)


def restart_wait(clock: StepClock, now: float) -> StepClock:
    """Restart the wait for the next step after a time in which nothing could be seen (wake-up)."""
    return msgspec.structs.replace(clock, last=now)


def after_gap(clock: StepClock, now: float) -> StepClock:
    """Restart the wait after a gap in which the trainer may have gone on, as while its supervisor was stopped.

    What it printed then is read at once; the block in which that happens would show a pace that never was.
    """
    return msgspec.structs.replace(
        clock, last=now, block_n=0, block_sum_s=0.0, block_max_s=0.0, block_steps=0, behind_from=now
    )
