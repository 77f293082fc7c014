"""What shows whether a resume was taken, where the printed count begins anew or tells nothing: a table of evidence.

A trainer may restore everything and count from zero again (musubi-tuner, XGBoost, LightGBM, Keras), so the count alone
is no evidence of a new beginning. A loss or a measure of quality that goes on, the trainer's own words, or a save whose
step goes on show that the state was restored. Only losses of a first step show a new beginning, and only if the first
and the latest losses of the run lie clearly apart (``loss_agreement.py``).
"""

import re
from collections.abc import Callable

import msgspec

from ...model.text.patterns import LazyPattern
from ..attempt_progress import AttemptProgress
from ..text.position.loss_curve import FEW, LossCurve, moved
from ..text.position.reading import Reading
from .known_checkpoint import base_name
from .loss_agreement import Compared, began_again, goes_on, has_fallen
from .step_agreement import slack_of

WAIT_BEATS = 50
"""Heartbeats for which losses are waited for: most logs print one with each step, few with every tenth."""


class Evidence(msgspec.Struct, frozen=True):
    """``went_on``: the state was restored; else the training began anew. ``why``: as a clause, for people."""

    went_on: bool
    why: str
    by: str = "loss"


def judge(attempt: AttemptProgress, reading: Reading) -> Evidence | None:
    """The first evidence of the table, of both kinds the one that it went on; None: nothing shows it (yet)."""
    found = [evidence for row in ROWS if (evidence := row(attempt, reading)) is not None]
    return next((each for each in found if each.went_on), found[0] if found else None)


def _words(attempt: AttemptProgress, _reading: Reading) -> Evidence | None:
    name = base_name(attempt.resume_from or "")
    return Evidence(went_on=True, why=f"the trainer says that it loads {name}", by="words") if attempt.says_so else None


def _measure_goes_on(attempt: AttemptProgress, reading: Reading) -> Evidence | None:
    found = goes_on(attempt.former, curve_of(attempt, reading), attempt.resumed_at)
    if found is None:
        return None
    name = attempt.former.name or "loss"
    values = f"{found.before:.4g} before the resume, {found.after:.4g} after it"
    return Evidence(went_on=True, why=f"the {name} goes on: {values}, {found.start:.4g} at the beginning of the run")


def _loss_began_again(attempt: AttemptProgress, reading: Reading) -> Evidence | None:
    found = loss_began_again(attempt, reading)
    if found is None or attempt.weights_only:  # its optimizer and schedule begin anew, so the loss may rise
        return None
    values = f"{found.before:.4g} before the resume, {found.after:.4g} after it"
    return Evidence(
        went_on=False, why=f"the loss begins again: {values}, {found.start:.4g} at the beginning of the run"
    )


ROWS: tuple[Callable[[AttemptProgress, Reading], Evidence | None], ...] = (
    _measure_goes_on,
    _words,
    _loss_began_again,
)


def of_save(attempt: AttemptProgress, stored: int) -> Evidence | None:
    """What the step that a save holds shows: the optimizer's own count goes on from the checkpoint's."""
    before, made = attempt.resume_step, attempt.step
    if not before or made is None or stored <= before:
        return None
    slack = slack_of(attempt, None)
    if stored <= made + slack or abs(stored - before - made // attempt.stride) > slack:
        return None
    return Evidence(went_on=True, why=f"a save holds step {stored}, after {made} steps from step {before}", by="save")


def awaits_losses(attempt: AttemptProgress, reading: Reading) -> bool:
    """Whether losses that are still to come may show it."""
    new = reading.curve
    if attempt.beats >= WAIT_BEATS or len(new.first) >= FEW or new.gap:
        return False
    return has_fallen(attempt.former, attempt.resumed_at)


def loss_began_again(attempt: AttemptProgress, reading: Reading) -> Compared | None:
    """What shows that the loss began again after the resume."""
    at = attempt.resumed_at
    if at is None or attempt.former.name or reading.curve.name:
        return None  # another measure may be one of the machine
    epoch, before = reading.opening.first_epoch, attempt.former_epoch
    later = epoch is not None and before is not None and int(epoch) > int(before)
    return began_again(attempt.former, curve_of(attempt, reading), at, new_epoch=later)


def curve_of(attempt: AttemptProgress, reading: Reading) -> LossCurve:
    """The losses of the attempt in the count of the run."""
    return msgspec.structs.replace(reading.curve, first=moved(reading.curve.first, attempt.offset or 0))


def says_that_it_loads(text: str, path: str) -> bool:
    """Whether a line says that this checkpoint is loaded. Words within a path are names, and settings are no words."""
    name = base_name(path)
    if _PLAIN.fullmatch(name):  # "20" and "best" may mean anything
        name = "/".join(path.rstrip("/").split("/")[-2:])
    named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    for line in text.splitlines():
        if name in line and named.search(line) is not None:
            words = _PATH_OR_QUOTE.sub(" ", line)
            if _LOADS.search(words) is not None and _NOT.search(words) is None:
                return True
    return False


_PLAIN = LazyPattern(r"\d+|[A-Za-z]+")
_PATH_OR_QUOTE = LazyPattern(r"\S*/\S*|'[^']*'|\"[^\"]*\"|\S+[=:]\S+")
_LOADS = LazyPattern(r"\b(?:resum|restor|load|continu)(?:e[ds]?|s|ing)?\b(?!\s*[=:])", re.IGNORECASE)
_NOT = LazyPattern(r"\b(?:not|no|never|cannot|fail\w*|unable|ignor\w*|skip\w*|missing|error)\b|n't\b", re.IGNORECASE)
