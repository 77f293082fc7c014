"""The current attempt, and how far the run has come over all its attempts.

The log tells the step of the run as far as this attempt shows it (``run_count.py``, whatever its bars do in each
epoch). A trainer may count on from the resumed step, or from zero again (weights only). ``position`` is one count over
all attempts, as far as it is known, in the unit of the log: ``stride`` of them make one optimizer step.
"""

import msgspec
from msgspec.structs import replace

from .scales import TOLERANCE
from .text.loss_run import LossCurve

STARTED_OVER_STEPS = 20
"""A resume point earlier than this proves nothing about the counter."""
PLACES = 10
"""Printed lines that an attempt must have made for two ends at the same step to count as more than coincidence."""
EPOCH_SHARE = 0.2
"""A save this near to the end of an epoch, as a share of the epoch, was made there: saves are noticed a little late."""
ACCUMULATED = 64
"""Most printed counts of one optimizer step. What holds a smaller share of the log's count numbers epochs or saves."""
READINGS, READING_S = 40, 1.0
"""Distance of the readings of the log that are kept; of the oldest quarter every second one goes to make room."""
LOOK_S = 0.05
"""Pieces that are read within this time were read in one look: all of them may have been there before it."""


class Former(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the attempts before printed: the newest of each that is known.

    ``total``: steps; ``run_total``: of the whole run, which ``may_be_of_an_epoch``; ``bar_total``: of the last bar.
    ``pace_s``: seconds of a step.
    ``shows_losses``: the lines with a step show them; ``losses``: of the run until the attempt before ended, in its
    own count; none = they cannot be compared. ``widest_gap``: the largest distance of first steps, as a bar leaves out
    some; 0 = not known. ``fresh_step``, ``fresh_epoch``: the first of a training from the beginning.
    """

    total: int | None = None
    run_total: int | None = None
    may_be_of_an_epoch: bool = False
    bar_total: int | None = None
    pace_s: float | None = None
    shows_losses: bool = False
    losses: LossCurve = LossCurve()
    epoch: float | None = None
    printed_every: int = 1
    widest_gap: int = 0
    fresh_step: int | None = None
    fresh_epoch: float | None = None


class AttemptProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``start_t``, ``beat_t``: in run seconds; ``first_beat_t``: of the first step.

    ``offset`` + printed step = position; None until it is known.

    ``readings``: run time and position at which its log was read, oldest first.

    ``resume_position``: position of the checkpoint it resumed from, at least; ``resume_spread``: so much more it may
    be. ``saved``: a new complete checkpoint came.
    ``stride``: printed counts per optimizer step, if the bar counts batches and gradients are accumulated;
    ``saved_at``: position at which the newest checkpoint was noticed, and the step stored in it.

    ``resume_verdict``: whether the resume was taken (resume_check.py), after ``beats`` steps. ``told_resume``: whether
    the launch could pass the resume point to the trainer, None = unknown; ``named``: where that file is named (derived
    config, command line, log). ``resume_epochs``: whole epochs of the run that its resume point holds, over all
    attempts. ``printed_every``: steps from the last printed one to the one before.
    """

    number: int = 0
    pid: int = 0
    start_t: float = 0.0
    beat_t: float | None = None
    first_beat_t: float | None = None
    first_beat_step: int | None = None
    """The step at that time: later than ``first_step`` if the log was read late."""
    resume_from: str | None = None
    resume_step: int | None = None
    resume_position: int | None = None
    resume_spread: int = 0
    profile: str | None = None
    adopted: bool = False
    adopted_t: float | None = None
    """When this supervisor found it running; its log is read from the beginning then, all at once."""
    weights_only: bool = False
    offset: int | None = None
    step: int | None = None
    first_step: int | None = None
    """The first that its log shows; once a resume was verified: the first after it. ``offset`` is not in it."""
    position: int | None = None
    readings: tuple[tuple[float, int], ...] = ()
    saved: bool = False
    stride: int = 1
    saved_at: tuple[int, int] | None = None
    nan_t: float | None = None
    lost_at: float | None = None
    """Active seconds at which a checkpoint was read that makes the training lost; None = none, or it is answered."""
    resume_verdict: str = "none"
    counts_anew: bool = False
    """Its printed count began anew after the resume; ``position`` goes on all the same."""
    says_so: bool = False
    """A line of its log says that it loads the resume point."""
    aside: int | None = None
    """The order to copy the resume point aside, because nothing showed whether it was taken."""
    lines_checked: int = 0
    """Of the first lines of its log, so many have not shown that the resume was taken."""
    elsewhere: bool = False
    """Its first step does not follow that of the checkpoint it was told: it took another one."""
    beats: int = 0
    told_resume: bool | None = None
    named: tuple[str, ...] = ()
    resume_epoch: int | None = None
    resume_epochs: int | None = None
    former: Former = Former()
    loss_settings: tuple[str, ...] = ()
    """What trainwatch set for it that may change what a printed loss means."""
    losses_compared: bool = False
    """Its first losses were compared with those."""
    began_again: bool = False
    """They showed that it trains from the beginning, although its steps go on."""
    log_epoch: float | None = None
    """The newest epoch of a log that prints no step; ``first_epoch``: its first in this attempt."""
    first_epoch: float | None = None
    resume_log_epoch: float | None = None
    """Where the log was when the resume point was saved."""
    printed_every: int = 1
    changes: tuple[str, ...] = ()
    """What trainwatch changed in the settings of the launch, a clause each."""
    reread_to: int | None = None
    """Position up to which a new supervisor reads the log again: those steps were made before."""
    patient_until: float = 0.0
    """Active seconds before which no hang is declared, because an operator asked for it."""

    @property
    def resumed_at(self) -> int | None:
        """Position of the run at its resume point, as far as it is known."""
        return self.resume_position if self.resume_position is not None else self.resume_step

    @property
    def place_is_sure(self) -> bool:
        """``position`` does not count on from a resume that nothing shows."""
        return not self.counts_anew or self.resume_verdict == "taken"

    @property
    def is_unplaced(self) -> bool:
        """It was told no checkpoint, and no step shows yet where it trains."""
        return self.resume_from is None and self.first_step is None

    @property
    def place_is_stored(self) -> bool:
        """The step in the checkpoint tells ``resumed_at``, in the same unit or in one that is a multiple of it."""
        stored, at = self.resume_step, self.resumed_at
        if not stored or not at:
            return stored is not None
        ratio = max(stored, at) / min(stored, at)
        return abs(ratio - round(ratio)) <= TOLERANCE / 2

    @property
    def began(self) -> int | None:
        """The step at which a resumed trainer is told to begin, if its log is known to count as the checkpoint does."""
        stored, at = self.resume_step, self.resumed_at
        if self.weights_only or not stored or not at or not self.place_is_stored:
            return None
        return stored if round(max(stored, at) / min(stored, at)) == 1 else None

    @property
    def step_offset(self) -> int:
        """Steps of earlier attempts that the trainer's own count leaves out."""
        return (self.resumed_at or 0) if self.weights_only or self.counts_anew else 0


def with_beat(
    attempt: AttemptProgress,
    step: int | None,
    t: float,
    *,
    read_t: float | None = None,
    epoch: float | None = None,
    first_step: int | None = None,
) -> AttemptProgress:
    """Add a heartbeat. ``step``: of the run as the log shows it; None = not printed, or it cannot be told.

    ``t``: when it was written, about. ``read_t``: when it was read (None: at ``t``); until then it may not have been
    there.
    ``first_step``: the first one that the log of the attempt shows.
    """
    # A bar that is drawn at 0 says nothing about a resume, however often it is drawn.
    beats = attempt.beats + 1 if attempt.resume_verdict == "open" and step != 0 else attempt.beats
    if attempt.first_beat_t is None:
        attempt = replace(attempt, first_beat_t=t, first_beat_step=step)
    if step is None:
        return replace(attempt, beat_t=t, beats=beats, log_epoch=epoch)
    offset = attempt.offset
    if offset is None:
        offset = _first_offset(attempt)
    moved = step - attempt.step if attempt.step is not None and step > attempt.step else attempt.printed_every
    again = attempt.reread_to is not None and offset + step <= attempt.reread_to
    return replace(
        attempt,
        beat_t=attempt.beat_t if again else t,
        reread_to=attempt.reread_to if again else None,
        beats=beats,
        step=step,
        log_epoch=None,
        printed_every=moved,
        first_step=attempt.first_step if attempt.first_step is not None else first_step,
        offset=offset,
        position=offset + step,
        readings=attempt.readings if again else _with_reading(attempt.readings, read_t or t, offset + step),
    )


def _with_reading(readings: tuple[tuple[float, int], ...], t: float, position: int) -> tuple[tuple[float, int], ...]:
    same = (readings and t - readings[-1][0] < LOOK_S) or (len(readings) > 1 and t - readings[-2][0] < READING_S)
    kept = readings[:-1] if same else readings
    if len(kept) >= READINGS:
        kept = (*kept[: READINGS // 4 : 2], *kept[READINGS // 4 :])
    return (*kept, (t, position))


def places_at(attempt: AttemptProgress, t: float) -> tuple[int | None, int | None]:
    """Return the positions between which the run was at run time ``t``: as its log was read before and after it.

    None: not known. Where nothing was read since, the log may be behind: both are the newest position.
    """
    before = [position for at, position in attempt.readings if at <= t]
    after = next((position for at, position in attempt.readings if at >= t), attempt.position)
    return before[-1] if before else None, after


def whole_epochs(attempt: AttemptProgress, counts: int | None) -> int | None:
    """Return the epochs that the run had done at the resume point, if it lies at the end of one; None if not known.

    ``counts``: of a whole epoch, in the log. The epoch that a checkpoint holds may count from 0 or from 1, so that it
    tells this only together with the place at which the log was when it was saved.
    """
    stored, at = attempt.resume_epochs, attempt.resume_position
    if at is None or not counts:
        return None
    found = round(at / counts)
    near = abs(at - found * counts) <= EPOCH_SHARE * counts
    return found if near and (stored is None or found in {stored, stored + 1}) else None


def knows_its_step(attempt: AttemptProgress) -> bool:
    """Return whether lines are printed often enough for the last printed step to mean one place."""
    made = (attempt.position or 0) - (attempt.resumed_at or 0)
    return attempt.printed_every <= attempt.stride or made >= PLACES * attempt.printed_every


def with_saved(attempt: AttemptProgress, saved_step: int, *, least: int | None, late: bool = False) -> AttemptProgress:
    """Add a checkpoint of this attempt. From two of them follows how many printed counts make one stored step.

    ``least``: the position before it was written; the newest may be further on, and each is so much further as lines
    are apart. Where that tells another number, a later checkpoint tells it, compared with the same one: a log of every
    100th step, and a save of every 20th, are no accumulation of 5. None = unknown: it was there before the log was
    read, as those of an adopted training are, and none follows. ``late``: it may have been saved before the last lines
    of the log; none follows.
    """
    position, before = attempt.position, attempt.saved_at
    if attempt.step is None and attempt.log_epoch is not None:  # the log prints no step: the checkpoint tells it
        made = saved_step + (attempt.offset if attempt.offset is not None else _first_offset(attempt))
        return replace(attempt, position=max(made, position or 0))
    if late or least is None or position is None or attempt.step is None:
        return attempt
    if before is not None and saved_step <= before[1]:
        return attempt
    stride = attempt.stride
    if before is not None:
        between, made = attempt.printed_every - 1, saved_step - before[1]
        ratio = (position - before[0]) / made
        low, high = (least - before[0] - between) / made, ratio + between / made
        if between and round(low) != round(high):
            return attempt
        whole = round(ratio)
        if round(low) == whole and 1 <= whole <= ACCUMULATED and abs(ratio - whole) <= TOLERANCE * whole:
            stride = whole
    return replace(attempt, stride=stride, saved_at=(position, saved_step))


def read_anew(attempt: AttemptProgress, pid: int) -> AttemptProgress:
    """Prepare for a new supervisor that reads the log from its beginning: old steps are no new epoch."""
    offset = None if attempt.offset is None else _first_offset(attempt)
    return replace(attempt, pid=pid, adopted=True, step=None, offset=offset, saved_at=None, reread_to=attempt.position)


def _first_offset(attempt: AttemptProgress) -> int:
    """Return the first offset. Only a resume from weights restarts the counter by design."""
    resumed = attempt.resumed_at
    return resumed if resumed is not None and attempt.weights_only else 0


def lost_steps(failed_at: int | None, resumed_at: int | None, stride: int = 1) -> int | None:
    if failed_at is None or resumed_at is None:
        return None
    return max(0, failed_at - resumed_at) // stride


# What is known of the job that the attempt runs as.


class JobFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``nodes``: as Slurm lists them. ``limit_t``: run time of its time limit, None = none or not known.

    ``asked_t``: run time at which the training was asked for a checkpoint because the limit is near. ``failed_node``:
    where a task failed first.
    """

    id: str = ""
    nodes: str = ""
    limit_t: float | None = None
    asked_t: float | None = None
    failed_node: str = ""

    @property
    def culprit(self) -> str:
        """The node on which the failure was; "" if that cannot be told."""
        alone = self.nodes if self.nodes and not set(self.nodes) & set("[,") else ""
        return self.failed_node or alone
