"""How long a run may show no step before it counts as hung.

The deadline depends on what is seen of the run. Deadlines are multiples of ``hang.min_s`` (default 90 s), so that one
setting moves them together; what was learned of this run (step clock, phase times, harmless silences) only lengthens
them. Sources: the longest harmless silences in public reports of each kind, and the latencies that trainwatch promises
(tests/scenarios/cases.py). docs/hang-constants.md names the scenario behind each number.
"""

from functools import cached_property
from typing import Literal

import msgspec

from ...model.progress import Progress
from ...model.run import HangKind
from ...model.settings import Hang
from ..scales import AGAIN_SHARE, HALF_AGAIN, LASTS_S, NEARLY, SURE_TIMES, TOLERANCE, TWICE
from . import liveness
from .liveness import ANNOUNCED, GpuFault, Liveness, LogActivity
from .pauses import UNSEEN, Launcher, LoopWatch, Pause, PhaseTimes, Ranks, habit, joining_s, longest_gap

# The usual time from one step to the next, and when a step is overdue.
#
# Source of the idea: training monitors with learned time-outs (NVIDIA's resiliency extension: 5 x the longest
# interval, after a warm-up). Known false alarms of such clocks: long pauses that the run makes by design (evaluation,
# saving, refilling a buffer), which are learned apart; lines that are printed only now and then, so the distance of
# lines is learned, not that of steps.

BLOCKS = 16
"""Blocks remembered: the slow lines of the last minutes are usual, those of a slow beginning are not."""
PAUSE_FACTOR = 4.0
"""x the typical interval: a longer one is a pause, such as a refill, and does not become the pace."""
PAUSE_FLOOR_S = 15.0
"""A shorter interval is a slow step, even if a phase was announced in it: some trainers name one in each step."""
PAUSE_FADE = 0.9
"""x the longest pause, at each shorter one: one odd pause does not count forever."""


class Block(msgspec.Struct, frozen=True, omit_defaults=True):
    """Lines that took ``LASTS_S`` together, or the ones so far: the pace is known after one block.

    Lines, their time, the longest distance, and steps; of a whole block its slowest line and its mean are kept.
    """

    n: int = 0
    sum_s: float = 0.0
    max_s: float = 0.0
    steps: int = 0


class StepClock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All times in active seconds. ``slow_s``, ``typical_s`` and ``step_s`` are None until the first block is full.

    ``beats`` counts heartbeats of this attempt; ``step_s`` is the typical time of one step (lines may stand for many).
    ``pause_s``: the longest pause so far that nothing announced and that ended by itself.
    """

    start: float = 0.0
    last: float = 0.0
    beats: int = 0
    block: Block = Block()
    slowest: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    slow_s: float | None = None
    typical_s: float | None = None
    step_s: float | None = None
    pause_s: float = 0.0
    far_n: int = 0
    """Pauses in a row; after ``SURE_TIMES`` further ones are the pace: images became larger, sequences longer."""
    longest_s: float = 0.0
    """Longest interval of this attempt, the one before its first step included: its pace until that is known."""
    behind_from: float | None = None
    """When a time ended in which nothing was read: lines that were printed in it may come at once. None = none do."""


def begin_attempt(clock: StepClock, now: float) -> StepClock:
    """Start the clock of a new attempt; what is usual for this run stays known."""
    return msgspec.structs.replace(
        clock, start=now, last=now, beats=0, far_n=0, longest_s=0.0, behind_from=None, block=Block()
    )


def beat(clock: StepClock, now: float, steps: int, *, announced: bool = False, late: bool = False) -> StepClock:
    """Take a heartbeat: the training advanced by ``steps`` (1 if unknown). ``announced``: after another phase.

    ``late``: it was printed while nobody read the log.
    """
    interval, typical = now - clock.last, clock.typical_s
    changes: dict[str, object] = {"last": now, "beats": clock.beats + 1, "longest_s": max(clock.longest_s, interval)}
    far = typical is not None and interval > PAUSE_FLOOR_S and interval > PAUSE_FACTOR * typical
    if late:
        changes["behind_from"] = now
    elif clock.beats < SURE_TIMES or interval < 0.0:
        pass
    elif clock.behind_from is not None:  # neither these lines nor the one that ends them show a pace
        at_once = typical is not None and interval * PAUSE_FACTOR < typical and now - clock.behind_from < LASTS_S
        changes["behind_from"] = clock.behind_from if at_once else None
    elif (far and clock.far_n < SURE_TIMES) or (announced and interval > PAUSE_FLOOR_S):
        # Announced phases are learned apart (PhaseTimes).
        pause_s = clock.pause_s if announced else max(interval, clock.pause_s * PAUSE_FADE)
        changes |= {"pause_s": pause_s, "far_n": clock.far_n + 1}
    else:
        changes |= {"far_n": clock.far_n if far else 0, **_in_block(clock, interval, steps)}
    return msgspec.structs.replace(clock, **changes)


def _in_block(clock: StepClock, interval: float, steps: int) -> dict[str, object]:
    old = clock.block
    new = Block(old.n + 1, old.sum_s + interval, max(old.max_s, interval), old.steps + steps)
    if new.sum_s < LASTS_S:
        return {"block": new}
    slowest = (*clock.slowest, new.max_s)[-BLOCKS:]
    means = (*clock.means, new.sum_s / new.n)[-BLOCKS:]
    return {
        "block": Block(),
        "slowest": slowest,
        "means": means,
        # The second slowest of the blocks, the slowest of fewer than four: one odd step does not count.
        "slow_s": sorted(slowest)[-1 if len(slowest) < 4 else -2],
        "typical_s": sorted(means)[len(means) // 2],
        "step_s": new.sum_s / max(new.steps, 1),
    }


def usual_s(clock: StepClock) -> float | None:
    """Return the usual distance of progress lines; None before the first."""
    return clock.slow_s if clock.slow_s is not None else clock.longest_s if clock.beats else None


# The second, slow clock: when the step last was higher than ever in this attempt.
#
# A heartbeat is any step; a loop makes steps for ever and no progress. Seen: torchelastic that restarts its workers at
# step 850 and loses them at 900, twenty times; an out-of-memory error that is caught and retried on one step for 2.5
# h.
# A new total, a higher epoch or a counter that began again after its end is another counter, and an attempt has its
# own. The first time that a counter falls back, what is made again is progress: a script that starts its trainer again
# goes back hours where saves are rare.
#
# Known false alarms that the rules are made against: evaluations and saves (their bar or their file grows), lines that
# come once an hour (40 x the usual distance), rounds that nothing numbers and that may end early (folds, trials, epochs
# left by a break): a counter that fell is another one, unless the workers or a failure show a restart.

STALL_FACTOR = 40.0
"""x the usual distance of progress lines: people are notified of no new highest step. At least ``hang.max_s``. What
lasts half as long again is a hang that is acted on."""


class StepPeak(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``at``: when ``step`` was reached, in active seconds. ``total``, ``epoch``: its counter; None = not printed.

    ``fell_to``: where the counter went back to from there, None = it did not. What is made again since then, up to
    ``again``, counts as progress, and ``at`` is later by ``credit_s``, until it falls there once more: then it is a
    loop, and ``again`` is None.
    """

    at: float = 0.0
    step: int | None = None
    total: int | None = None
    epoch: int | None = None
    fell_to: int | None = None
    again: int | None = None
    credit_s: float = 0.0


def with_step(peak: StepPeak, step: int | None, progress: Progress, now: float, *, anew: bool) -> StepPeak:
    """Take a heartbeat. ``step``: over all epochs, as far as that is known; None = the line has no number.

    ``anew``: it fell and no failure was seen: another counter if it begins; a script that resumes falls to its save.
    """
    epoch = None if progress.epoch is None else int(progress.epoch)
    higher = step is None or peak.step is None or step > peak.step
    if step is None or higher or _is_another(peak, step, progress.total_steps, epoch, anew=anew):
        return StepPeak(at=now, step=step, total=progress.total_steps, epoch=epoch)
    if peak.fell_to is None:
        return peak if step == peak.step else msgspec.structs.replace(peak, fell_to=step, again=step)
    if peak.again is None or peak.fell_to < step <= peak.again:
        return peak
    if step > peak.again:
        return msgspec.structs.replace(peak, at=now, again=step, credit_s=peak.credit_s + now - peak.at)
    return peak if step == peak.again else msgspec.structs.replace(peak, at=peak.at - peak.credit_s, again=None)


def _is_another(peak: StepPeak, step: int, total: int | None, epoch: int | None, *, anew: bool) -> bool:
    if total != peak.total or (epoch is not None and peak.epoch is not None and epoch > peak.epoch):
        return True
    if peak.step is None or step >= AGAIN_SHARE * peak.step:
        return False
    return (anew and step <= TOLERANCE * peak.step) or total is None or peak.step >= NEARLY * total


# The save in progress: a phase in which no step is due, from its first sign to the completed file.
#
# Its signs are a checkpoint that is not complete and younger than the last step, a line that announces a save, and a
# save on the stack of a process. A mount uploads at ``close()``, and nothing of that shows in the trainer: silence in
# a save counts from the last byte that moved, and has a deadline of its own (``deadlines.for_save``). Sources: uploads
# of gcsfuse, rclone and s3fs, which take minutes; trainers that hang after "Saving checkpoint" with the file complete.
#
# A step ends the phase: a trainer that saves in the background goes on. So does the completed file, whatever the last
# line says. Known false alarms: a trainer that prepares a further file for minutes after the first one is complete.


class SavePhase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen of saves since the last step. Active seconds.

    ``begun_at``: when a file was first seen that is not complete; ``took_s``: the longest that became complete.
    ``frame``: of a save, as a stack showed it.
    """

    begun_at: float | None = None
    took_s: float = 0.0
    frame: str = ""


UNCERTAIN = 4.2
"""x ``min_s`` (380 s): honest work could look like this: a GPU near 100 % at low power while none works (ranks wait in
a barrier while rank 0 computes metrics on its CPU), a log that still prints, or fewer steps than the warm-up, so that
the next one may compile."""
EXPECTED = 6.2
"""x ``min_s`` (560 s): no step is due: a phase such as an evaluation was announced, or the training is done."""
AMBIGUOUS = 9.2
"""x ``min_s`` (830 s): normal work would look the same: a GPU near 100 % whose power is unknown, an announced phase
without GPU readings, a spin in an announced phase whose log still prints."""
LONG_WORK = 17.0
"""x ``min_s`` (25 min): an announced phase with a GPU near 100 % of unknown power, an announced upload."""
RELAY_CORES = 0.02
"""Processes that usually use less than this while steps are made, and never moved bytes, only pass on what others
print: ``ssh``, ``srun``."""
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
PAUSE_BY_DESIGN_S = 35.0
"""A run that was silent for this long without harm makes such pauses by design, and gets ``PAUSE_BY_DESIGN``."""
PAUSE_BY_DESIGN = 2.6
"""x ``min_s`` (234 s): the lengths of pauses by design (rollouts, buffer refills) vary."""
STARTUP_SHARE = 0.9
"""x ``hang.startup_s``: leaves time to notice before it has passed."""
STARTUP_FACTOR = 6.0
"""x the longest known start of this command: a first start finds cold caches."""


Load = Literal["spin", "dim", "pinned"]
"""How a GPU is near 100 %: far below its usual power, below it, or at an unknown one."""


class Quiet(msgspec.Struct, frozen=True, kw_only=True):
    """An open incident *quiet*: people are told of a silence before anything is decided.

    ``capture``: id of the decision that collects its evidence.

    ``kind``: of the hang that it may become, and ``signs``: why, as the stacks show them; None = they show nothing.
    ``due_t``: when it becomes a hang if nothing moves, in run seconds.
    """

    incident: int
    capture: int
    kind: HangKind | None = None
    signs: tuple[str, ...] = ()
    due_t: float | None = None


class Watch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered of a run to tell whether it hangs: parts by subject, each explained in its module."""

    clock: StepClock = StepClock()
    peak: StepPeak = StepPeak()
    liveness: Liveness = Liveness()
    log_activity: LogActivity = LogActivity()
    phase_times: PhaseTimes = PhaseTimes()
    pause: Pause = Pause()
    loops: LoopWatch = LoopWatch()
    saving: SavePhase = SavePhase()
    ranks: Ranks = ()
    launcher: Launcher = Launcher()
    gpu_fault: GpuFault | None = None
    quiet: Quiet | None = None
    asks_since: float | None = None
    """Active seconds from which the trainer waits for an answer at its terminal; None = it does not."""


def after_gap(watch: Watch, now: float) -> Watch:
    """Restart the wait after a gap in which the trainer may have gone on, as while its supervisor was stopped.

    What it printed then is read at once; the block in which that happens would show a pace that never was.
    """
    return msgspec.structs.replace(
        watch,
        clock=msgspec.structs.replace(watch.clock, last=now, behind_from=now, block=Block()),
        liveness=liveness.after_gap(watch.liveness, now),
        log_activity=msgspec.structs.replace(watch.log_activity, phase_at=now),
    )


def begin_watch(watch: Watch, now: float, *, same: bool) -> Watch:
    """What is left for the next attempt. ``same``: its trainer goes on, and a new supervisor reads its log anew."""
    begun = begin_attempt(watch.clock, now)
    return Watch(
        clock=msgspec.structs.replace(watch.clock, last=now) if same and watch.clock.beats else begun,
        peak=StepPeak(at=now),
        liveness=liveness.begin_attempt(watch.liveness, now),
        log_activity=LogActivity(phase_at=now),
        phase_times=watch.phase_times,
        pause=watch.pause if same else Pause(),
        asks_since=watch.asks_since if same else None,
    )


class HangInput(Watch, frozen=True, kw_only=True, dict=True):
    """What a verdict is made from: settings, what is remembered, and what follows from them.

    Times in active seconds; ``t``: run seconds.
    """

    now: float
    t: float
    period_s: float
    hang: Hang
    ended_well: bool
    """The last step is done and, if the run saves at all, the final checkpoint is complete."""
    step: int | None
    checkpoint_age_s: float
    save: str
    """What shows that a save is in progress; "" = none is."""
    has_saved: bool
    """A checkpoint of this run is complete."""
    question: str
    """The unfinished last line of the log, if it asks for something."""

    @cached_property
    def since(self) -> float:
        """When the training last advanced: a step, a phase it announced, a bar of such a phase that grew."""
        log = self.log_activity
        return max(self.clock.last, log.phase_at if log.trusted else 0.0, log.bar_moved_at)

    def _for_s(self, *at: float) -> float:
        """How long neither the training advanced nor any of these times came."""
        return self.now - max(self.since, *at)

    @property
    def silence_s(self) -> float:
        return self.now - self.since

    @cached_property
    def fresh_s(self) -> float:
        """A reading that is older proves nothing about now."""
        return longest_gap(self.period_s)

    @cached_property
    def announced(self) -> bool:
        """A living trainer announced a phase in which no step is due."""
        return self.log_activity.trusted and self.log_activity.phase in ANNOUNCED

    @cached_property
    def floor_s(self) -> float:
        """The silence from which a verdict is possible: one sampling period before ``min_s``, to notice in time."""
        return max(FLOOR_SHARE * self.hang.min_s, self.hang.min_s - self.period_s)

    @property
    def pace_s(self) -> float:
        """The silence after which a step is late by this run's own pace; 0 if it is not known.

        Some trainers print one line for many steps: one line must be missing first.
        """
        return HALF_AGAIN * (self.clock.slow_s or 0.0) + self.hang.deadline_factor * (self.clock.step_s or 0.0)

    @cached_property
    def late_s(self) -> float:
        """The same, at least ``floor_s`` and at most ``hang.max_s``."""
        return min(self.hang.max_s, max(self.floor_s, self.pace_s))

    @property
    def far_overdue_s(self) -> float:
        """The silence from which a step is certainly late, for signs that are ambiguous by themselves."""
        return max(self.floor_s, self.pace_s, self.hang.deadline_factor * (usual_s(self.clock) or 0.0))

    def is_fresh(self, at: float | None) -> bool:
        return at is not None and self.now - at <= self.fresh_s

    @cached_property
    def _relays(self) -> bool:
        """The processes do next to nothing while steps are made, so that those which train are not seen."""
        seen, known = self.liveness, bool(self.ranks or self.launcher.agents)
        still = seen.cpu_normal is not None and seen.cpu_normal < RELAY_CORES
        return still and not (known or seen.saves_here) and seen.moving.at is None and seen.sending.at is None

    @cached_property
    def sees_process(self) -> bool:
        return self.is_fresh(self.liveness.process_at) and not self._relays

    @cached_property
    def sees_gpu(self) -> bool:
        """None of this machine's is of a training that is elsewhere."""
        return self.is_fresh(self.liveness.gpu_at) and not (self._relays and self.liveness.busy_at is None)

    @property
    def works(self) -> bool:
        """A GPU works."""
        return self.is_fresh(self.liveness.busy_at)

    @cached_property
    def blocked(self) -> bool:
        return liveness.is_blocked(self.liveness)

    @cached_property
    def dead_s(self) -> float:
        """How long no sign of life was seen."""
        return self._for_s(liveness.last_sign(self.liveness, cpu=True), self._freed_at)

    @cached_property
    def still_s(self) -> float:
        """How long none was seen but those of one busy core."""
        return self._for_s(liveness.last_sign(self.liveness, cpu=False), self._freed_at)

    @property
    def _freed_at(self) -> float:
        return 0.0 if self.blocked else self.liveness.unblocked_at

    @property
    def no_work_s(self) -> float:
        """How long no GPU worked, no byte moved and no file grew."""
        return self._for_s(liveness.last_work(self.liveness))

    @cached_property
    def load(self) -> Load | None:
        seen = self.liveness
        if not self.sees_gpu:
            return None
        if seen.gpu_state == "spin":
            # Power that wavers about the bound of a spin: an evaluation limited by memory, not a collective.
            wavers = self.announced and (seen.dim_at or 0.0) > self.now - self.still_s + self.fresh_s
            return "dim" if wavers else "spin"
        return "dim" if seen.gpu_state == "dim" else "pinned" if seen.gpu_state == "pinned" else None

    @cached_property
    def gpus_rest_s(self) -> float:
        """How long all GPUs that may be the run's were at rest and no byte moved; 0 if one is not, or not seen.

        GPUs that are known to be of others say nothing about what it waits for.
        """
        seen = self.liveness
        unrest_at = seen.unrest_at or 0.0
        if not self.sees_gpu or unrest_at >= (seen.gpu_at or 0.0):
            return 0.0
        return self._for_s(unrest_at, liveness.last_work(seen))

    @property
    def still_prints(self) -> bool:
        """The log has grown by more than one line since the last step, the newest of them lately."""
        at = self.log_activity.printed_at
        lately = at is not None and self.now - at <= TWICE * self.hang.min_s
        return lately and self.log_activity.printed_lines > 1

    @property
    def stopped_s(self) -> float | None:
        """How long some, but not all, of the computing processes have been stopped (state T); None = none is."""
        since_t = self.pause.since_t
        return self.t - since_t if self.pause.stopped == "part" and since_t is not None else None


def for_save(run: HangInput) -> float:
    """Return how long no byte of a save may move, whatever the processes and GPUs do."""
    known = habit(run.phase_times, "save")
    factor = SAVE if run.has_saved or known.times else FIRST_SAVE
    return max(factor * run.hang.min_s, SLOWEST_SAVE * known.longest_s)


def for_load(run: HangInput, load: Load) -> float:
    """Return the deadline for a GPU near 100 %, or for cores that are as busy as if one were.

    One below its usual power is a spin, if the pace is known, no phase was announced and the run makes no pauses.
    """
    clock, seen, started = run.clock, run.liveness, run.clock.beats > 0
    plain = started and clock.slow_s is not None and clock.pause_s < PAUSE_BY_DESIGN_S and not run.announced
    known_s = startup_s = 0.0
    if load == "pinned" or (load == "dim" and not plain):
        factor, known_s = LONG_WORK if started and run.announced else AMBIGUOUS, longest_known(run)
        startup_s = 0.0 if started else STARTUP_SHARE * run.hang.startup_s
    elif not started:
        # One GPU alone waits for no other, and a small model on a big GPU draws little.
        several = len(seen.normals) > 1 and run.log_activity.phase not in {"preprocess", "compile"}
        factor, known_s = UNCERTAIN if several or seen.spin_known else AMBIGUOUS, run.phase_times.start.longest_s
    else:
        factor = UNCERTAIN if not run.announced else AMBIGUOUS if run.still_prints else EXPECTED
    return max(factor * run.hang.min_s, startup_s, TWICE * max(known_s, seen.longest_spin_s))


def longest_known(run: HangInput) -> float:
    """Return how long the run once stayed without a step in this situation: its start, this phase, or training.

    Pauses grow slowly: twice as long is still one.
    """
    times, started = run.phase_times, run.clock.beats > 0
    known = (habit(times, run.log_activity.phase) if run.announced else UNSEEN) if started else times.start
    return max(known.longest_s, run.clock.pause_s)


def for_dead(run: HangInput, *, partly_seen: bool | None = None) -> float:
    """Return the deadline without any sign of life. ``partly_seen``: either GPUs or processes cannot be read."""
    clock, seen, min_s, warms_up = run.clock, run.liveness, run.hang.min_s, run.clock.beats <= SURE_TIMES
    partly = not (run.sees_gpu and run.sees_process) if partly_seen is None else partly_seen
    joins_s = joining_s(run.launcher) or 0.0
    # The first lines after a restart of the workers may be the last ones of those that ended.
    if clock.beats == 0 or (run.launcher.restarts and warms_up):
        known, start_s = run.phase_times.start, STARTUP_SHARE * run.hang.startup_s
        if known.times:
            start_s = min(start_s, max(EXPECTED * min_s, STARTUP_FACTOR * known.longest_s))
        return max(start_s, TWICE * known.quiet_s, min_s, joins_s)
    usual_s = min_s + min(REFILL_S, max(0.0, min_s - SHORT_S)) - run.period_s
    usual_s = usual_s if usual_s >= min_s else run.floor_s
    # Work may be going on where nothing is seen.
    longest_s = [usual_s * TWICE if partly and seen.gpu_at is not None else usual_s]
    if seen.longest_silence_s >= PAUSE_BY_DESIGN_S:
        longest_s.append(PAUSE_BY_DESIGN * min_s)
    if run.still_prints or (warms_up and clock.slow_s is None):
        longest_s.append(UNCERTAIN * min_s)
    if run.announced:
        longest_s.append((AMBIGUOUS if seen.gpu_at is None else EXPECTED) * min_s)
        longest_s.append(TWICE * habit(run.phase_times, run.log_activity.phase).quiet_s)
    if run.log_activity.exit_work_at is not None:
        longest_s.append(LONG_WORK * min_s)
    return max(min(max(*longest_s, TWICE * seen.longest_silence_s), run.hang.max_s), joins_s)
