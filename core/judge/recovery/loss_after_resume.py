"""The first losses after a resume, beside those of the run before it: whether the weights were restored, too.

A resume is proved by the first printed step (``restart_success.py``). If the loss shows afterwards that the training
began again, the proof is withdrawn and a person is told; nothing is ended and nothing restarted for it.
"""

import msgspec

from ...model.incident import Evidence
from ..resume.loss_agreement import WEIGHTS_NOT_LOADED
from ..resume.proof_words import name_of
from ..resume.resume_evidence import loss_began_again
from ..state import JudgeState
from ..step_builder import StepBuilder
from ..text.position.loss_curve import FEW, NO_LOSSES, LossCurve, moved, thinned
from .ending.ending_evidence import main_reading
from .remedies.remedies import merged

WHAT_TO_DO = (
    "Load the weights and the optimizer from the checkpoint before the first step of a resumed run. What was saved "
    "before the resume holds the training of before; what is saved since then holds the one that began again."
)

_replace = msgspec.structs.replace


def settings_of(state: JudgeState, profile: str | None) -> tuple[str, ...]:
    """What trainwatch sets for a launch that may change what a printed loss means: its profile and its remedies."""
    changes = (f"{c.where} {c.key} {c.after}" for c in merged(state.applied) if c.where != "env")
    return (f"profile {profile}", *sorted(changes))


def former(state: JudgeState, settings: tuple[str, ...]) -> LossCurve:
    """The losses of the run so far, for an attempt that begins now with ``settings``; none if they do not compare."""
    attempt, reading = state.attempt, main_reading(state).now
    if settings != attempt.loss_settings and attempt.number:
        return NO_LOSSES
    if not reading.curve.seen:
        return attempt.former
    if attempt.resume_from is None or attempt.resume_verdict == "ignored" or attempt.began_again:
        return _replace(reading.curve, points=moved(reading.curve.points, attempt.offset or 0), last=None)
    if attempt.resume_verdict != "taken" or attempt.resumed_at is None:
        return NO_LOSSES
    before = tuple(p for p in attempt.former.points if p.step <= (attempt.resumed_at or 0))
    points = thinned((*before, *moved(reading.curve.points, attempt.offset or 0)))
    return _replace(attempt.former, points=points, gap=attempt.former.gap)


def is_due(state: JudgeState) -> bool:
    """Whether the resume of this attempt was proved by its steps, and its first losses can be compared now.

    A start from weights alone begins the optimizer, the schedule and the count of the steps anew, and says so: its loss
    may rise again with weights that were restored.
    """
    attempt = state.attempt
    if attempt.weights_only or attempt.losses_compared or attempt.resume_verdict != "taken" or not attempt.former.first:
        return False
    return len(main_reading(state).certain.curve.first) >= FEW


def compare(builder: StepBuilder) -> None:
    """Compare them, once for each attempt."""
    attempt, reading = builder.state.attempt, main_reading(builder.state).certain
    builder.set(attempt=_replace(attempt, losses_compared=True))
    found = loss_began_again(attempt, reading)
    if found is None:
        return
    builder.set(
        attempt=_replace(builder.state.attempt, began_again=True),
        found_resume=_replace(builder.state.found_resume, proven=False),
    )
    name = name_of(attempt.resume_from)
    said = f"the step was restored from {name}, the weights apparently not"
    if attempt.counts_anew:
        said = f"{name} was named as loaded, but steps and loss begin again"
    numbers = (
        f"loss {found.before:.4g} around step {found.before_at} before the resume",
        f"{found.after:.4g} after it, {found.first:.4g} at step {found.first_at}",
        f"{found.start:.4g} at the beginning of the run",
    )
    builder.note(f"the resume from {name} is not verified any more: the loss does not go on")
    reason = f"{said}: {'; '.join(numbers)}"
    evidence = tuple(Evidence(what=each) for each in numbers)
    incident = builder.open_incident("resume", WEIGHTS_NOT_LOADED, reason, evidence=evidence, explanation=WHAT_TO_DO)
    builder.notify("incident", "the weights were not restored", f"{reason}\n{WHAT_TO_DO}", incident=incident)
