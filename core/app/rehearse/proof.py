"""What the printed steps and losses before and after a resume prove. Pure: lines in, proof out.

A trainer may ignore the checkpoint (it counts from the beginning), count on without loading the weights (the loss is
that of the start again), or continue. What the lines do not tell apart is unknown, not proven.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import msgspec

from ...judge.resume import loss_agreement
from ...judge.text.position.loss_curve import FEW
from ...model.launch.rehearsal import LossProof, StepProof
from .printed_steps import Printed

SURE = 3
"""Printed steps after a resume that are looked at: some bars are drawn at 0 and then jump."""


def steps_of(lines: Sequence[Printed]) -> list[int]:
    """The printed steps, each once, without the zero of a bar that is drawn before the first step."""
    found: list[int] = []
    for line in lines:
        if line.step and (not found or line.step != found[-1]):
            found.append(line.step)
    return found


def spacing(steps: Sequence[int]) -> int:
    """The usual distance of printed steps; 1 if it is not known."""
    return int(median([b - a for a, b in pairwise(steps) if b > a] or [1]))


def tells_apart(steps: Sequence[int], checkpoint: int | None) -> bool:
    """Whether the first step after a resume would differ from that of a new start."""
    return checkpoint is not None and bool(steps) and checkpoint >= steps[0] + 2 * spacing(steps)


def prove_steps(before: Sequence[Printed], after: Sequence[Printed], checkpoint: int | None) -> StepProof:
    """Whether the steps after the resume continue from the checkpoint. ``checkpoint``: its step, as printed."""
    old, new = steps_of(before), steps_of(after)
    if not old:
        return StepProof(why="no step is read from the log")
    known = StepProof(first=old[0], checkpoint=checkpoint, killed_at=old[-1], first_after=new[0] if new else None)
    if not new:
        return _replace(known, why="no step was printed after the resume")
    if checkpoint is None:
        return _replace(known, why="the step of the checkpoint is not known")
    every = spacing(old)
    said = f"the checkpoint holds step {checkpoint}, the last step before the kill was {old[-1]}"
    if not tells_apart(old, checkpoint):
        return _replace(known, why=f"{said}: too early to tell a resume from a new start")
    first = next((step for step in new[:SURE] if step > checkpoint - every), None)
    if first is None:
        return _replace(known, holds=False, why=f"{said}, and after the resume it began at step {new[0]}")
    known = _replace(known, first_after=first)
    if first > max(checkpoint, old[-1]) + every:
        return _replace(known, why=f"{said}, and after the resume it began at step {first}: further than it had come")
    return _replace(known, holds=True, why=f"{said}, the first step after the resume was {first}")


def fall_of(before: Sequence[Printed], checkpoint: int | None) -> loss_agreement.Fall | None:
    """The fall of the loss until the kill; None if no loss was printed."""
    values = [line.loss for line in before if line.loss is not None]
    since = [
        line.loss
        for line in before
        if line.loss is not None and (checkpoint is None or line.step is None or line.step > checkpoint)
    ]
    return loss_agreement.fall_of(values, since if checkpoint is not None else None)


def prove_loss(before: Sequence[Printed], after: Sequence[Printed], checkpoint: int | None) -> LossProof:
    """Whether the loss after the resume continues, or begins where a new training begins."""
    fall = fall_of(before, checkpoint)
    if fall is None:
        return LossProof(why="no loss is read from the log")
    new = [line.loss for line in after if line.loss is not None][:FEW]
    if not new:
        return LossProof(start=fall.start, before=fall.late, why="no loss was printed after the resume")
    now = median(new)
    said = f"{fall.start:.4g} at the start, {fall.late:.4g} before the kill, {now:.4g} after the resume"
    known = LossProof(start=fall.start, before=fall.late, after=now, why=said)
    if not fall.clear:
        return _replace(known, why=f"{said}: it has not changed enough until then to tell")
    holds = loss_agreement.continues(fall, now)
    if holds:
        return _replace(known, holds=True)
    if holds is False:
        return _replace(known, holds=False, why=f"{said}: it began again, so the weights were not loaded")
    return _replace(known, why=f"{said}: between the two, nobody can tell")


def with_loss(steps: StepProof, loss: LossProof) -> StepProof:
    """A count that begins again shows no new beginning, unless the loss begins again, too: many trainers count anew."""
    if steps.holds is not False or loss.holds is False:
        return steps
    shows = "but the loss continues: what the log counts is not known"
    if not loss.holds:
        shows = f"which many trainers do that restored everything; of the loss: {loss.why}"
    return _replace(steps, holds=None, why=f"{steps.why}, {shows}")


def with_verified(steps: StepProof, said: str) -> StepProof:
    """What the printed steps leave open the judge may have verified, by the epoch for example.

    ``said``: its sentence; "" = it verified nothing.
    """
    if steps.holds is not None or not said:
        return steps
    return _replace(steps, holds=True, why=said)


def of_no_resume(steps: StepProof, loss: LossProof, checkpoint: str) -> tuple[StepProof, LossProof]:
    """An attempt that was begun without ``checkpoint``, although the command takes one, begins anew: no proof."""
    why = f"the second attempt was begun without {checkpoint}, so it shows no resume"
    return (
        _replace(steps, holds=None, why=why) if steps.holds is False else steps,
        _replace(loss, holds=None, why=why) if loss.holds is False else loss,
    )


_replace = msgspec.structs.replace
