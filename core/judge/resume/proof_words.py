"""What was seen of a resume, in a sentence: which checkpoint, and the first step after it as far as it is known."""

from ..attempt_progress import AttemptProgress
from .known_checkpoint import base_name

VERIFIED = "resume verified: "
"""Begins the sentence that says that a resume took effect."""


def name_of(path: str | None) -> str:
    """The name of a checkpoint in a sentence."""
    return base_name(path) if path is not None else "nothing"


def resume_in_words(attempt: AttemptProgress) -> str:
    """The proof that a resume was taken."""
    name = name_of(attempt.resume_from)
    if attempt.weights_only:
        at = "" if attempt.resumed_at is None else f"; the run's own count continues from step {attempt.resumed_at}"
        named = " and ".join(f"the {place}" for place in attempt.named)
        return f"{VERIFIED}the weights of {name} are named in {named}; the printed step starts again{at}"
    stored, place = attempt.resume_step, attempt.resumed_at
    first = None if attempt.first_step is None else attempt.first_step + (attempt.offset or 0)
    if attempt.elsewhere:
        told = "" if stored is None else f" (step {stored})"
        return f"resumed by itself: first step {_exactly(attempt, first)}; it was told to resume from {name}{told}"
    # A log that counts batches has another number for the same place.
    other = stored is not None and stored != place and attempt.place_is_stored
    counted = f" (the log counts {place} there)" if other else ""
    if stored is not None:
        held = f"{name} holds step {stored}{counted}"
    elif attempt.resume_epoch is not None:
        held = f"{name} holds epoch {attempt.resume_epoch}"
    elif first is not None:
        return f"{VERIFIED}the first step after {name} is {_exactly(attempt, first)}"
    else:
        held = name
    return f"{VERIFIED}{held}{_goes_on(attempt, first)}"


def _goes_on(attempt: AttemptProgress, first: int | None) -> str:
    if first is None and attempt.first_epoch is not None:
        if attempt.resume_log_epoch is None:
            return f", the log goes on in epoch {attempt.first_epoch:g}"
        was = f"the log was at epoch {attempt.resume_log_epoch:g} there"
        return f"; {was}, first epoch after it {attempt.first_epoch:g}{_step_of_epoch(attempt)}"
    if first is None:
        return ""
    if attempt.resume_step is not None and first <= (attempt.resumed_at or 0):
        return f", the log goes on at step {first}"
    return f", first step after it {_exactly(attempt, first)}"


def _step_of_epoch(attempt: AttemptProgress) -> str:
    """Latest step at which the first printed epoch began, by the steps per epoch up to the checkpoint."""
    step, epoch, first = attempt.resume_step, attempt.resume_log_epoch, attempt.first_epoch
    if not step or not epoch or first is None:
        return ""
    return f" (at or before step {round(first * step / epoch)})"


def _exactly(attempt: AttemptProgress, first: int | None) -> str:
    return str(first) if attempt.first_is_exact else f"at or before {first}"
