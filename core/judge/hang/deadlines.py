"""How long a run may show no step before it counts as hung, by what is seen of it and what it is used to.

All patience is in units of ``hang.min_s``, so that one setting moves them together; what was learned (step clock,
routine, harmless silences) lengthens it. Source of the numbers: the latencies asked of trainwatch, minus a margin of a
few sampling periods; the longest harmless silences met in reports of each kind.
"""

import msgspec

from ...model.settings import Hang
from .liveness import Vitals
from .log_activity import ANNOUNCED, Voice
from .phase_times import Routine, habit
from .step_clock import StepClock

SPIN = 4.2
"""380 s: evaluation on rank 0 with the others in a barrier shows work on one GPU, a real spin on none."""
SPIN_ANNOUNCED = 6.2
SPIN_TALKING = 9.0
"""In an announced phase whose bar still moves."""
SPIN_FIRST_STEP = 4.2
"""Before the first step of several GPUs, measured against the power limit; autotuning and warm-up end sooner or use
CPUs. One GPU alone waits for no other, and a small model on a big GPU draws little: it gets ``PINNED``."""
PINNED = 9.2
"""830 s: 100 % without a power reading may be honest work."""
PINNED_ANNOUNCED = 16.0
DIM = 1.5
"""x the patience of a GPU whose power is unknown, while it draws half to two thirds of the usual: 20 min. Where the
pace is known, no phase was announced and the run makes no pauses, it is a spin like any other: 380 s."""
TALKING = 4.2
ANNOUNCED_PHASE = 6.2
"""560 s without any sign in an evaluation or a save."""
ANNOUNCED_BLIND = 9.5
"""The same where no GPU can be read: it may be evaluating at full power."""
EXIT_WORK = 17.0
"""Announced uploads: 25 min."""
FEW_STEPS = 4.5
"""Less than a warm-up of steps, nothing learned yet: the next step may compile."""
ONE_EYED = 2.0
"""Factor where either GPUs or processes cannot be seen."""
NOTICE_PERIODS = 2.0
"""Kept back from hang.min_s: a sign of life may be dated a period late, and a verdict waits for the next reading …"""
FLOOR_SHARE = 0.75
"""… but never more than a quarter, should someone sample rarely and want it fast."""
LULL_AGAIN = 2.0
"""x the longest harmless silence so far: pauses grow slowly."""
PAUSES_MADE_S = 35.0
"""A run that was silent for this long without harm makes such pauses by design …"""
PAUSES_MADE = 2.6
"""… and is given this at least: their lengths vary."""
SPIN_AGAIN = 2.0
"""x the longest harmless spin so far."""
LINE_AGAIN = 1.5
"""x the slowest usual distance of progress lines must have passed in any case."""
STARTUP_SHARE = 0.9
"""Share of hang.startup_s without any sign of life before the first step …"""
STARTUP_KNOWN = 6.2
"""… but 560 s are enough where the run, or an earlier run of its command, is known to start much faster …"""
STARTUP_AGAIN = 6.0
"""… that is, this many times faster: a first start finds caches cold."""
TALK_FRESH = 2.0
"""x min_s: the newest line may be this old for the log to count as talking."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What the verdict is made from, gathered by the caller. Times in active seconds."""

    now: float
    period_s: float
    clock: StepClock
    vitals: Vitals
    voice: Voice
    routine: Routine = Routine()
    ended_well: bool = False
    """The last step is done and, where the run saves at all, the final checkpoint is complete."""
    step: int | None = None
    checkpoint_age_s: float | None = None
    warmup_beats: int = 3


def floor_s(min_s: float, period_s: float) -> float:
    """Return the silence from which a verdict is possible: a hang is to be known *when* ``hang.min_s`` is over."""
    return max(FLOOR_SHARE * min_s, min_s - NOTICE_PERIODS * period_s)


def first_silence(min_s: float, period_s: float) -> float:
    """How long everything must be dead, the first time.

    A short floor is taken at its word; from a minute on it gets up to 52 s on top, because loops refill buffers or
    wait for a disk that long without being hung. One sampling period is kept back for noticing.
    """
    usual = min_s + min(52.0, max(0.0, min_s - 38.0)) - min(period_s, 10.0)
    return usual if usual >= min_s else floor_s(min_s, period_s)


def since(clock: StepClock, voice: Voice) -> float:
    """When the training was last heard of: its step, a phase it announced, a bar of such a phase that grew."""
    return max(clock.last, voice.phase_at if voice.trusted else 0.0, voice.moved_at)


def far_overdue(sight: Sight, hang: Hang) -> float:
    """When a step is late beyond doubt, for signs that are ambiguous by themselves."""
    return max(overdue(sight, hang), hang.deadline_factor * (sight.clock.slow_s or 0.0))


def is_announced(voice: Voice) -> bool:
    """The log says that no step is due, and it was alive when it said so."""
    return voice.trusted and voice.phase in ANNOUNCED


def _talks(sight: Sight, hang: Hang) -> bool:
    voice = sight.voice
    return voice.talk_at is not None and voice.talk_n > 1 and sight.now - voice.talk_at <= TALK_FRESH * hang.min_s


def overdue(sight: Sight, hang: Hang) -> float:
    """When a step is late by this run's own pace. Lines that stand for many steps: one line must be missed first."""
    clock = sight.clock
    floor = floor_s(hang.min_s, sight.period_s)
    return max(floor, LINE_AGAIN * (clock.slow_s or 0.0) + hang.deadline_factor * (clock.step_s or 0.0))


def for_spin(sight: Sight, hang: Hang) -> float:
    """Near 100 % at a third of the usual power."""
    if sight.clock.beats == 0:
        several = len(sight.vitals.normals) > 1 and sight.voice.phase not in {"preprocess", "compile"}
        factor = SPIN_FIRST_STEP if several or sight.vitals.spin_known else PINNED
    elif not is_announced(sight.voice):
        factor = SPIN
    else:
        factor = SPIN_TALKING if _talks(sight, hang) else SPIN_ANNOUNCED
    known_s = sight.vitals.longest_spin_s
    if sight.clock.beats == 0:
        known_s = max(known_s, sight.routine.start.longest_s)
    return max(factor * hang.min_s, SPIN_AGAIN * known_s)


def for_pinned(sight: Sight, hang: Hang) -> float:
    """Near 100 %, power unknown."""
    clock, vitals = sight.clock, sight.vitals
    patience = (PINNED_ANNOUNCED if clock.beats and is_announced(sight.voice) else PINNED) * hang.min_s
    if clock.beats == 0:
        patience = max(patience, STARTUP_SHARE * hang.startup_s)
    return max(patience, LULL_AGAIN * max(longest_known(sight), vitals.longest_spin_s))


def for_dim(sight: Sight, hang: Hang) -> float:
    """Near 100 % at half to two thirds of the usual power."""
    patience = for_pinned(sight, hang)
    clock = sight.clock
    if clock.beats == 0 or clock.slow_s is None or clock.pause_s >= PAUSES_MADE_S or is_announced(sight.voice):
        return DIM * patience
    return max(SPIN * hang.min_s, LULL_AGAIN * sight.vitals.longest_spin_s)


def longest_known(sight: Sight) -> float:
    """How long the run has stayed without a step in such a situation: before the first one, in this phase, or else."""
    if sight.clock.beats == 0:
        return max(sight.routine.start.longest_s, sight.clock.pause_s)
    if is_announced(sight.voice):
        return max(habit(sight.routine, sight.voice.phase).longest_s, sight.clock.pause_s)
    return sight.clock.pause_s


def _for_start(sight: Sight, hang: Hang) -> float:
    """Everything dead before the first step. What the run is known for lengthens it, or shortens it somewhat."""
    known = sight.routine.start
    patience = STARTUP_SHARE * hang.startup_s
    if known.times:
        patience = min(patience, max(STARTUP_KNOWN * hang.min_s, STARTUP_AGAIN * known.longest_s))
    return max(patience, LULL_AGAIN * known.quiet_s, hang.min_s)


def for_dead(sight: Sight, hang: Hang, *, one_eyed: bool) -> float:
    """Nothing moves. ``one_eyed``: either GPUs or processes cannot be seen."""
    clock, vitals, voice = sight.clock, sight.vitals, sight.voice
    if clock.beats == 0:
        return _for_start(sight, hang)
    patience = first_silence(hang.min_s, sight.period_s)
    if one_eyed and vitals.gpu_at is not None:
        patience *= ONE_EYED
    if vitals.longest_lull_s >= PAUSES_MADE_S:
        patience = max(patience, PAUSES_MADE * hang.min_s)
    if _talks(sight, hang):
        patience = max(patience, TALKING * hang.min_s)
    if is_announced(voice):
        blind = vitals.gpu_at is None
        factor = ANNOUNCED_BLIND if blind else ANNOUNCED_PHASE
        patience = max(patience, factor * hang.min_s, LULL_AGAIN * habit(sight.routine, voice.phase).quiet_s)
    if voice.exit_work_at is not None:
        patience = max(patience, EXIT_WORK * hang.min_s)
    if clock.beats <= sight.warmup_beats and clock.slow_s is None:
        patience = max(patience, FEW_STEPS * hang.min_s)
    return min(max(patience, LULL_AGAIN * vitals.longest_lull_s), hang.max_s)
