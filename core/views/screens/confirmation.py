"""Confirmations: what an action does and what it costs."""

from collections.abc import Sequence

import msgspec

from ...model.run import LIVE_STATES
from ...model.story import Situation, WithheldAction
from .. import quantity
from ..checkpoint_list import resume_point, step_words, steps_since
from ..state.run_progress import live_progress
from ..words import back_words, remedy_words, sentence

LITTLE_S = 60.0
"""Work of less than this may be lost after a single key."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """``title``: the question; ``lines``: the effects; ``lost_steps``: steps that are repeated, None = unknown.

    ``typed``: a minute of work or more is lost, or it is not known how much: "yes" has to be typed, else Enter is
    enough.
    """

    title: str
    lines: tuple[str, ...]
    confirm: str
    lost_steps: int | None = None
    typed: bool = False


def kill_price(now: Situation) -> Price:
    return _price(
        now,
        "Kill the training now?",
        f"Ends every process of {_trainer(now)} at once (SIGKILL). It cannot save.",
        "No restart follows until you resume.",
        _loss_line(now),
        confirm="kill",
    )


def end_price(now: Situation) -> Price:
    """After a kill that the supervisor does not answer. Who asked for it has agreed to the loss already."""
    return Price(
        title="End the trainer without its supervisor?",
        lines=(
            f"{sentence(now.frozen or 'the supervisor does not answer')}.",
            f"Ends every process of {_trainer(now)} at once (SIGKILL). It cannot save.",
            "When the supervisor goes on, it reads first that it was to be killed: no restart follows.",
        ),
        confirm="end it",
    )


def _price(now: Situation, title: str, *lines: str, confirm: str) -> Price:
    """Of what loses the steps since the newest complete checkpoint."""
    lost = lost_steps(now)
    return Price(title=title, lines=lines, confirm=confirm, lost_steps=lost, typed=_typed(now, lost))


def answer_price(now: Situation, held: WithheldAction) -> Price:
    """What was withheld, key Y."""
    action = held.fact
    why = f"{action.why} ({quantity.age(max(0.0, now.now_t - held.t))})"
    return Price(
        title=f"{action.question[:1].upper()}{action.question[1:]}",
        lines=tuple(filter(None, (why, action.price, "Without an answer nothing is ended or started."))),
        confirm=action.ask,
        lost_steps=action.lost_steps,
        typed=_typed(now, action.lost_steps),
    )


def stop_price(now: Situation) -> Price:
    loss = _loss_line(now)
    return _price(
        now,
        "Stop the training?",
        f"Asks {_trainer(now)} to end (INT, then TERM, then KILL) and gives it time to save.",
        "No restart follows until you resume.",
        f"If it saves nothing: {loss[0].lower()}{loss[1:]}",
        confirm="stop",
    )


def resume_price(
    now: Situation, path: str | None, *, take: Sequence[str] = (), without_remedies: bool = False
) -> Price:
    """Resume or restart, key r. ``path``: the chosen checkpoint, None = from the beginning.

    ``take``: names of proposals to apply; ``without_remedies``: applied ones are dropped.
    """
    chosen = next((c for c in now.story.checkpoints if c.path == path), None)
    lines = []
    if now.story.state in LIVE_STATES:
        lines.append(f"Ends {_trainer(now)} first, with time to save.")
    step = live_progress(now).step
    if chosen is None:
        lines.append("Starts from the beginning.")
        if now.story.checkpoints:
            there = quantity.plural(len(now.story.checkpoints), "checkpoint")
            lines.append(f"The trainer may write over what is there: {there}.")
    else:
        lines.append(f"Starts from {chosen.name} ({step_words(chosen)}), verified before the launch.")
    lost = steps_since(chosen, step)
    if lost:
        lines.append(f"{quantity.plural(lost, 'step')} will be repeated.")
    lines += _remedy_lines(now, take, without_remedies=without_remedies)
    word = "Restart" if now.story.state in LIVE_STATES else "Resume"
    newest = resume_point(now)
    given_away = lost if now.story.state in LIVE_STATES else 0
    if now.story.state not in LIVE_STATES and newest is not None and (chosen is None or chosen.path != newest.path):
        given_away = steps_since(chosen, newest.step)
    typed = _typed(now, given_away)
    return Price(title=f"{word} the training?", lines=tuple(lines), confirm=word.lower(), lost_steps=lost, typed=typed)


def _remedy_lines(now: Situation, take: Sequence[str], *, without_remedies: bool) -> list[str]:
    in_force = now.story.remedies
    lines = [f"Keeps {r.title}: {remedy_words(r)}." for r in in_force]
    if in_force and without_remedies:
        lines = [f"Drops {', '.join(r.title for r in in_force)}: {back_words(now.story)}."]
    new = [r for r in now.story.proposals if r.name in take]
    return lines + [f"New: {r.title}: {remedy_words(r)}." + (f" Cost: {r.cost}." if r.cost else "") for r in new]


def profile_price(now: Situation, name: str, *, at_once: bool) -> Price:
    """Switch of the profile, key p."""
    title = f"Switch to the profile {name}?"
    if at_once:
        ends = f"Ends {_trainer(now)} with time to save and starts it again with {name}."
        return _price(now, title, ends, _loss_line(now), confirm="switch now")
    waits = f"Continues unchanged; restarts with {name} once the next checkpoint is complete."
    return Price(title=title, lines=(waits,), confirm="switch at the next checkpoint", lost_steps=0)


def pause_price(now: Situation) -> Price:
    return Price(
        title="Pause the training?",
        lines=(
            f"Freezes {_trainer(now)} (SIGSTOP). Its GPU memory stays allocated.",
            "Nothing is lost: [r] continues.",
        ),
        confirm="pause",
        lost_steps=0,
    )


def lost_steps(now: Situation) -> int | None:
    """Steps since the newest complete checkpoint; None = unknown."""
    return steps_since(resume_point(now), live_progress(now).step)


def _typed(now: Situation, lost: int | None) -> bool:
    """Whether so many steps are a minute of work or more, as far as is known."""
    pace_s = live_progress(now).sec_per_step
    return lost != 0 and (lost is None or pace_s is None or lost * pace_s >= LITTLE_S)


def _loss_line(now: Situation) -> str:
    point, lost = resume_point(now), lost_steps(now)
    if point is None:
        return "There is no complete checkpoint: all steps would be lost."
    name = f"{point.name}, {quantity.age(max(0.0, now.now_wall - point.mtime))}"
    if lost is None:
        return f"The steps after the newest complete checkpoint ({name}) would be lost."
    if lost == 0:
        return f"Nothing is lost: the newest complete checkpoint ({name}) is of this step."
    return f"{quantity.plural(lost, 'step')} since the newest complete checkpoint ({name}) would be lost."


def _trainer(now: Situation) -> str:
    attempt = now.story.attempt
    if attempt is None:
        return "the trainer"
    return f"attempt {attempt.number}" + ("" if attempt.pid is None else f" (pid {attempt.pid})")
