"""How long a run may show no step before it counts as hung.

The deadline depends on what is seen of the run. Deadlines are multiples of ``hang.min_s`` (default 90 s), so that one
setting moves them together; what was learned of this run (step clock, phase times, harmless silences) only lengthens
them. Sources: the longest harmless silences in public reports of each kind, and the latencies that trainwatch promises
(tests/scenarios/cases.py). docs/hang-constants.md names the scenario behind each number.
"""

import msgspec

from ...model.observation import Rank
from ...model.settings import Hang
from .liveness import Liveness
from .log_activity import ANNOUNCED, LogActivity
from .phase_times import PhaseTimes, habit
from .step_clock import StepClock, usual_s

SPIN = 4.2
"""x ``min_s`` (380 s): some GPU is near 100 % at low power and none works. Ranks that wait in a barrier look the same
while rank 0 computes metrics on its CPU."""
UNCERTAIN = 4.2
"""x ``min_s`` (380 s): no sign of life, but the log still prints, or the run has made fewer steps than its warm-up and
the next one may compile."""
EXPECTED = 6.2
"""x ``min_s`` (560 s): no step is due: a phase such as an evaluation was announced, or the training is done."""
AMBIGUOUS = 9.2
"""x ``min_s`` (830 s): normal work would look the same: a GPU near 100 % whose power is unknown, an announced phase
without GPU readings, a spin in an announced phase whose log still prints."""
LONG_WORK = 17.0
"""x ``min_s`` (25 min): an announced phase with a GPU near 100 % of unknown power, an announced upload."""
PARTLY_SEEN = 2.0
"""x the deadline when GPU readings or process readings are missing: work may be going on where nothing can be read."""
BLOCKED_S = 600.0
"""A process is blocked in the kernel (state D): network mounts come back after minutes, however short ``min_s`` is."""
BLOCKED_MOST_S = 880.0
"""A blocked process is a hang then, whatever is at risk. Nothing is ended while it is blocked."""
SAVE = 6.7
"""x ``min_s`` (10 min): no byte of a save moved. A mount that uploads at ``close()`` shows nothing in the trainer."""
FIRST_SAVE = 20.0
"""x ``min_s`` (30 min): the same in the first save of a run, whose storage is not known yet."""
SLOWEST_SAVE = 5.0
"""x the slowest save of this run: storage that was slow is slower at times."""
FLOOR_SHARE = 0.75
"""x ``min_s``: no verdict before this, however slow the sampling is."""
REFILL_S = 52.0
"""Added to ``min_s`` before the first silence counts: loops refill buffers or wait for a disk this long."""
SHORT_S = 38.0
"""A ``min_s`` below this is set by hand for short runs, and used unchanged."""
KNOWN_FACTOR = 2.0
"""x the longest harmless silence, or spin, of this run: pauses grow slowly."""
PAUSE_BY_DESIGN_S = 35.0
"""A run that was silent for this long without harm makes such pauses by design, and gets ``PAUSE_BY_DESIGN``."""
PAUSE_BY_DESIGN = 2.6
"""x ``min_s`` (234 s): the lengths of pauses by design (rollouts, buffer refills) vary."""
LINE_FACTOR = 1.5
"""x the slowest usual distance of progress lines: a line must be missing before its steps are."""
STARTUP_SHARE = 0.9
"""x ``hang.startup_s``: leaves time to notice before it has passed."""
STARTUP_FACTOR = 6.0
"""x the longest known start of this command: a first start finds cold caches."""
PRINTED_LATELY = 2.0
"""x ``min_s`` (180 s): a log whose newest line is older does not print any more."""


class HangInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict is made from. Times in active seconds."""

    now: float
    period_s: float
    clock: StepClock
    liveness: Liveness
    log_activity: LogActivity
    phase_times: PhaseTimes = PhaseTimes()
    ended_well: bool = False
    """The last step is done and, if the run saves at all, the final checkpoint is complete."""
    step: int | None = None
    checkpoint_age_s: float | None = None
    warmup_beats: int = 3
    min_s: float = 90.0
    """``hang.min_s``."""
    idle_io_bytes_per_s: float = 65536.0
    """``hang.idle_io_bytes_per_s``."""
    saving: str = ""
    """What shows that a save is in progress; "" = none is (save_phase.py)."""
    has_saved: bool = False
    """A checkpoint of this run is complete."""
    silent_rank: str = ""
    """A sentence about the rank for which the others wait."""
    begun_again: bool = False
    """The launcher started its workers again in this attempt; ``clock.beats`` counts from then on."""
    waiting: str = ""
    """A sentence about launchers that wait without workers."""
    joining_s: float | None = None
    """How long they may wait for those of other nodes; None = nobody comes any more."""
    stopped_s: float | None = None
    """How long some, but not all, of the computing processes have been stopped (state T); None = none is."""
    stopped_ranks: tuple[Rank, ...] = ()


def floor_s(min_s: float, period_s: float) -> float:
    """Return the silence from which a verdict is possible: one sampling period before ``min_s``, to notice in time."""
    return max(FLOOR_SHARE * min_s, min_s - period_s)


def first_silence_s(min_s: float, period_s: float) -> float:
    """Return how long all signs of life must be missing, the first time."""
    usual_s = min_s + min(REFILL_S, max(0.0, min_s - SHORT_S)) - period_s
    return usual_s if usual_s >= min_s else floor_s(min_s, period_s)


def last_progress(clock: StepClock, log: LogActivity) -> float:
    """Return when the training last advanced: a step, a phase it announced, a bar of such a phase that grew."""
    return max(clock.last, log.phase_at if log.trusted else 0.0, log.bar_moved_at)


def is_announced(log: LogActivity) -> bool:
    """Return whether a living trainer announced a phase in which no step is due."""
    return log.trusted and log.phase in ANNOUNCED


def still_prints(log: LogActivity, now: float, min_s: float) -> bool:
    """Return whether the log has grown by more than one line since the last step, the newest of them lately."""
    return log.printed_at is not None and log.printed_lines > 1 and now - log.printed_at <= PRINTED_LATELY * min_s


def overdue(run: HangInput, hang: Hang) -> float:
    """Return the silence from which a step is late by this run's own pace.

    Some trainers print one line for many steps: one line must be missing first.
    """
    return max(floor_s(hang.min_s, run.period_s), pace_s(run, hang))


def pace_s(run: HangInput, hang: Hang) -> float:
    """Return the silence after which a step is late by this run's own pace; 0 if it is not known."""
    clock = run.clock
    return LINE_FACTOR * (clock.slow_s or 0.0) + hang.deadline_factor * (clock.step_s or 0.0)


def far_overdue(run: HangInput, hang: Hang) -> float:
    """Return the silence from which a step is certainly late, for signs that are ambiguous by themselves."""
    return max(overdue(run, hang), hang.deadline_factor * (usual_s(run.clock) or 0.0))


def for_save(run: HangInput, hang: Hang) -> float:
    """Return how long no byte of a save may move, whatever the processes and GPUs do."""
    known = habit(run.phase_times, "save")
    factor = SAVE if run.has_saved or known.times else FIRST_SAVE
    return max(factor * hang.min_s, SLOWEST_SAVE * known.longest_s)


def for_spin(run: HangInput, hang: Hang) -> float:
    """Return the deadline for a GPU near 100 % at a third of its usual power."""
    seen, log = run.liveness, run.log_activity
    known_s = seen.longest_spin_s
    if run.clock.beats == 0:
        # One GPU alone waits for no other, and a small model on a big GPU draws little.
        several = len(seen.normals) > 1 and log.phase not in {"preprocess", "compile"}
        factor = SPIN if several or seen.spin_known else AMBIGUOUS
        known_s = max(known_s, run.phase_times.start.longest_s)
    elif not is_announced(log):
        factor = SPIN
    else:
        factor = AMBIGUOUS if still_prints(log, run.now, hang.min_s) else EXPECTED
    return max(factor * hang.min_s, KNOWN_FACTOR * known_s)


def for_pinned(run: HangInput, hang: Hang) -> float:
    """Return the deadline for a GPU near 100 % whose power is unknown."""
    started = run.clock.beats > 0
    deadline_s = (LONG_WORK if started and is_announced(run.log_activity) else AMBIGUOUS) * hang.min_s
    if not started:
        deadline_s = max(deadline_s, STARTUP_SHARE * hang.startup_s)
    return max(deadline_s, KNOWN_FACTOR * max(longest_known(run), run.liveness.longest_spin_s))


def for_loop(run: HangInput, hang: Hang, *, polls: bool) -> float:
    """Return the deadline for processes in a loop that changes nothing. ``polls``: what it asks for may still come."""
    deadline_s = for_pinned(run, hang) if polls else for_spin(run, hang)
    return max(deadline_s, KNOWN_FACTOR * longest_known(run))


def for_dim(run: HangInput, hang: Hang) -> float:
    """Return the deadline for a GPU near 100 % at half to two thirds of its usual power.

    If the pace is known, no phase was announced and the run makes no pauses, it is a spin like any other.
    """
    clock = run.clock
    pauses = clock.pause_s >= PAUSE_BY_DESIGN_S
    if clock.beats == 0 or clock.slow_s is None or pauses or is_announced(run.log_activity):
        return for_pinned(run, hang)
    return max(SPIN * hang.min_s, KNOWN_FACTOR * run.liveness.longest_spin_s)


def longest_known(run: HangInput) -> float:
    """Return how long the run once stayed without a step in this situation: its start, this phase, or training."""
    if run.clock.beats == 0:
        return max(run.phase_times.start.longest_s, run.clock.pause_s)
    if is_announced(run.log_activity):
        return max(habit(run.phase_times, run.log_activity.phase).longest_s, run.clock.pause_s)
    return run.clock.pause_s


def _for_start(run: HangInput, hang: Hang) -> float:
    """Return the deadline without signs of life before the first step. A known start shortens or lengthens it."""
    known = run.phase_times.start
    deadline_s = STARTUP_SHARE * hang.startup_s
    if known.times:
        deadline_s = min(deadline_s, max(EXPECTED * hang.min_s, STARTUP_FACTOR * known.longest_s))
    return max(deadline_s, KNOWN_FACTOR * known.quiet_s, hang.min_s)


def for_dead(run: HangInput, hang: Hang, *, partly_seen: bool) -> float:
    """Return the deadline without any sign of life. ``partly_seen``: either GPUs or processes cannot be read."""
    return max(_for_silence(run, hang, partly_seen=partly_seen), run.joining_s or 0.0)


def _for_silence(run: HangInput, hang: Hang, *, partly_seen: bool) -> float:
    clock, seen, log = run.clock, run.liveness, run.log_activity
    # The first lines after a restart of the workers may be the last ones of those that ended.
    if clock.beats == 0 or (run.begun_again and clock.beats <= run.warmup_beats):
        return _for_start(run, hang)
    deadline_s = first_silence_s(hang.min_s, run.period_s)
    if partly_seen and seen.gpu_at is not None:
        deadline_s *= PARTLY_SEEN
    if seen.longest_silence_s >= PAUSE_BY_DESIGN_S:
        deadline_s = max(deadline_s, PAUSE_BY_DESIGN * hang.min_s)
    if still_prints(log, run.now, hang.min_s):
        deadline_s = max(deadline_s, UNCERTAIN * hang.min_s)
    if is_announced(log):
        factor = AMBIGUOUS if seen.gpu_at is None else EXPECTED
        known_s = habit(run.phase_times, log.phase).quiet_s
        deadline_s = max(deadline_s, factor * hang.min_s, KNOWN_FACTOR * known_s)
    if log.exit_work_at is not None:
        deadline_s = max(deadline_s, LONG_WORK * hang.min_s)
    if clock.beats <= run.warmup_beats and clock.slow_s is None:
        deadline_s = max(deadline_s, UNCERTAIN * hang.min_s)
    return min(max(deadline_s, KNOWN_FACTOR * seen.longest_silence_s), hang.max_s)
