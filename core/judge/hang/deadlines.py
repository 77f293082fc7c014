"""How long a run may show no step before it counts as hung.

The deadline depends on what is seen of the run. Deadlines are multiples of ``hang.min_s`` (default 90 s), so that one
setting moves them together; what was learned of this run (step clock, phase times, harmless silences) only lengthens
them. Sources: the longest harmless silences in public reports of each kind, and the latencies that trainwatch promises
(tests/scenarios/cases.py). docs/hang-constants.md names the scenario behind each number.
"""

import msgspec

from ...model.settings import Hang
from .liveness import Vitals
from .log_activity import ANNOUNCED, Voice
from .phase_times import Routine, habit
from .step_clock import StepClock

SPIN = 4.2
"""x ``min_s`` (380 s): some GPU is near 100 % at low power and none works. Ranks that wait in a barrier look the same
while rank 0 computes metrics on its CPU."""
UNCERTAIN = 4.2
"""x ``min_s`` (380 s): no sign of life, but the log still prints, or the run has made fewer steps than its warm-up and
the next one may compile."""
EXPECTED = 6.2
"""x ``min_s`` (560 s): no step is due: a phase such as an evaluation was announced, or the training is done."""
UNSEEN = 9.2
"""x ``min_s`` (830 s): honest work would look the same: a GPU near 100 % whose power is unknown, an announced phase
without GPU readings, a spin in an announced phase whose log still prints."""
LONG_WORK = 17.0
"""x ``min_s`` (25 min): an announced phase with a GPU near 100 % of unknown power, an announced upload."""
ONE_EYED = 2.0
"""x the deadline when GPU readings or process readings are missing: work may be where nothing is read."""
FLOOR_SHARE = 0.75
"""x ``min_s``: no verdict before this, however slow the sampling is."""
REFILL_S = 52.0
"""Added to ``min_s`` before the first silence counts: loops refill buffers or wait for a disk this long."""
SHORT_S = 38.0
"""A ``min_s`` below this is set by hand for short runs, and taken as it is."""
AGAIN = 2.0
"""x the longest harmless silence, or spin, of this run: pauses grow slowly."""
PAUSES_MADE_S = 35.0
"""A run that was silent for this long without harm makes such pauses by design, and gets ``PAUSES_VARY``."""
PAUSES_VARY = 2.6
"""x ``min_s`` (234 s): the lengths of pauses by design (rollouts, buffer refills) vary."""
LINE_AGAIN = 1.5
"""x the slowest usual distance of progress lines: a line must be missing before its steps are."""
STARTUP_SHARE = 0.9
"""x ``hang.startup_s``: leaves time to notice before it has passed."""
STARTUP_AGAIN = 6.0
"""x the longest known start of this command: a first start finds cold caches."""
TALK_FRESH = 2.0
"""x ``min_s`` (180 s): a log whose newest line is older does not print any more."""


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
    """Return the silence from which a verdict is possible: one sampling period before ``min_s``, to notice in time."""
    return max(FLOOR_SHARE * min_s, min_s - period_s)


def first_silence(min_s: float, period_s: float) -> float:
    """Return how long all signs of life must be missing, the first time."""
    usual = min_s + min(REFILL_S, max(0.0, min_s - SHORT_S)) - period_s
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


def talks(voice: Voice, now: float, min_s: float) -> bool:
    """Return whether the log has printed more than one line since the last step, the newest of them lately."""
    return voice.talk_at is not None and voice.talk_n > 1 and now - voice.talk_at <= TALK_FRESH * min_s


def overdue(sight: Sight, hang: Hang) -> float:
    """When a step is late by this run's own pace. Lines that stand for many steps: one line must be missed first."""
    clock = sight.clock
    floor = floor_s(hang.min_s, sight.period_s)
    return max(floor, LINE_AGAIN * (clock.slow_s or 0.0) + hang.deadline_factor * (clock.step_s or 0.0))


def for_spin(sight: Sight, hang: Hang) -> float:
    """Near 100 % at a third of the usual power."""
    if sight.clock.beats == 0:
        several = len(sight.vitals.normals) > 1 and sight.voice.phase not in {"preprocess", "compile"}
        factor = SPIN if several or sight.vitals.spin_known else UNSEEN
    elif not is_announced(sight.voice):
        factor = SPIN
    else:
        factor = UNSEEN if talks(sight.voice, sight.now, hang.min_s) else EXPECTED
    known_s = sight.vitals.longest_spin_s
    if sight.clock.beats == 0:
        known_s = max(known_s, sight.routine.start.longest_s)
    return max(factor * hang.min_s, AGAIN * known_s)


def for_pinned(sight: Sight, hang: Hang) -> float:
    """Near 100 %, power unknown."""
    clock, vitals = sight.clock, sight.vitals
    patience = (LONG_WORK if clock.beats and is_announced(sight.voice) else UNSEEN) * hang.min_s
    if clock.beats == 0:
        patience = max(patience, STARTUP_SHARE * hang.startup_s)
    return max(patience, AGAIN * max(longest_known(sight), vitals.longest_spin_s))


def for_dim(sight: Sight, hang: Hang) -> float:
    """Near 100 % at half to two thirds of the usual power."""
    clock = sight.clock
    if clock.beats == 0 or clock.slow_s is None or clock.pause_s >= PAUSES_MADE_S or is_announced(sight.voice):
        return for_pinned(sight, hang)
    return max(SPIN * hang.min_s, AGAIN * sight.vitals.longest_spin_s)


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
        patience = min(patience, max(EXPECTED * hang.min_s, STARTUP_AGAIN * known.longest_s))
    return max(patience, AGAIN * known.quiet_s, hang.min_s)


def for_dead(sight: Sight, hang: Hang, *, one_eyed: bool) -> float:
    """Nothing moves. ``one_eyed``: either GPUs or processes cannot be seen."""
    clock, vitals, voice = sight.clock, sight.vitals, sight.voice
    if clock.beats == 0:
        return _for_start(sight, hang)
    patience = first_silence(hang.min_s, sight.period_s)
    if one_eyed and vitals.gpu_at is not None:
        patience *= ONE_EYED
    if vitals.longest_lull_s >= PAUSES_MADE_S:
        patience = max(patience, PAUSES_VARY * hang.min_s)
    if talks(sight.voice, sight.now, hang.min_s):
        patience = max(patience, UNCERTAIN * hang.min_s)
    if is_announced(voice):
        factor = UNSEEN if vitals.gpu_at is None else EXPECTED
        patience = max(patience, factor * hang.min_s, AGAIN * habit(sight.routine, voice.phase).quiet_s)
    if voice.exit_work_at is not None:
        patience = max(patience, LONG_WORK * hang.min_s)
    if clock.beats <= sight.warmup_beats and clock.slow_s is None:
        patience = max(patience, UNCERTAIN * hang.min_s)
    return min(max(patience, AGAIN * vitals.longest_lull_s), hang.max_s)
