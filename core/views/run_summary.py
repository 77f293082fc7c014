"""A run as it is now, as one value: the screen, ``status``, ``runs``, the report and Prometheus show its fields."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Literal

import msgspec

from ..model.checkpoint import DAMAGED
from ..model.progress import Level
from ..model.run import ADVISED, LIVE_STATES, TERMINAL_STATES, RunState
from ..model.story import Look, Need, RunStory, Situation
from ..model.text import typed
from ..views import quantity
from .checkpoint_list import how_to_resume, point_before
from .incidents import title_now
from .state.concerns import (
    NAN,
    SILENT,
    Concern,
    concerns,
    current_readings,
    diverged_since,
    loss_state,
    nan_since,
    next_by_itself,
    nobody_watches,
    room_now,
    since_step,
)
from .state.lost_time import LostTime, lost_time
from .state.run_progress import bounds_now, fraction, last_step, live_progress, run_progress
from .state.verdict import Verdict, last_seen, last_seen_t, seen_by, standstill, unconfirmed, verdict
from .words import answers, question_text, sentence


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Over the whole run. ``done``: the share, 0..1. ``eta_s``: while its end can be told; ``eta_by``: by what."""

    step: int | None = None
    total_steps: int | None = None
    done: float | None = None
    sec_per_step: float | None = None
    eta_s: float | None = None
    eta_by: str | None = None


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Times in run seconds, None = unknown. ``level``: its colour wherever the run is shown.

    ``seen``: who looks at it now; without a supervisor that works, state and numbers are those of the last record, and
    ``last_seen`` says from when. ``sentence``: all in one line. ``troubles``: the worst first, acknowledged ones
    marked. ``still``: what is said while steps are due and none come. ``needs``: what a person has to do, the most
    urgent first. ``restarts``: (counted against the budget, allowed).
    """

    name: str
    state: RunState
    since_t: float
    seen: Literal["watched", "unwatched", "frozen"]
    last_seen: str
    level: Level
    sentence: Verdict
    troubles: tuple[Concern, ...]
    position: Position
    still: str
    loss: float | None
    loss_state: str
    nan: bool
    diverged: bool
    needs: tuple[Need, ...]
    resumed_at: int | None
    """The step at which the newest attempt began."""
    checkpoints: int
    attempts: int
    restarts: tuple[int, int]

    @property
    def live(self) -> bool:
        """A trainer runs, and somebody watches it."""
        return self.state in LIVE_STATES and self.seen == "watched"

    @property
    def needs_you(self) -> str | None:
        """The most urgent thing that a person has to do or to decide."""
        return next((need.text for need in self.needs if need.urgent), None)


def summarise(now: Situation, name: str = "") -> RunSummary:
    """``name``: used until the journal has one."""
    story, progress, said, seen = now.story, run_progress(now), verdict(now), seen_by(now)
    silent = any(i.kind in SILENT for i in story.open_incidents)
    still, live = standstill(now), live_progress(now)
    advances = story.state in LIVE_STATES and seen == "watched" and not silent and not still
    return RunSummary(
        name=story.run.name if story.run else name,
        state=story.state,
        since_t=story.state_t,
        seen=seen,
        last_seen="" if seen == "watched" or is_over(story) else last_seen(now),
        level=said.level,
        sentence=said,
        troubles=concerns(now) if story.attempts else (),
        position=Position(
            step=progress.step,
            total_steps=progress.total_steps,
            done=1.0 if story.state == "finished" else fraction(progress),
            sec_per_step=progress.sec_per_step,
            eta_s=live.eta_s if advances else None,
            eta_by=live.total_by,
        ),
        still=still,
        loss=progress.loss,
        loss_state=loss_state(story),
        nan=nan_since(story) is not None,
        diverged=diverged_since(story) is not None,
        needs=tuple(needs(now)),
        resumed_at=None if story.attempt is None else story.attempt.resume_step,
        checkpoints=len(story.checkpoints),
        attempts=len(story.attempts),
        restarts=(story.budget_used, story.budget_max),
    )


def time_lost(now: Situation, redone: int | None = None, since_t: float = 0.0) -> LostTime | None:
    """Where the time went. A late step counts as a silence before an incident tells of it.

    ``redone``: steps, if known better than by the journal; ``since_t``: run seconds before which nothing counts.
    Nobody knows what happened since the last record or reading of a run that nobody watches.
    """
    late = last_step(now)
    return lost_time(
        now.story,
        now.now_t,
        redone,
        since_t=since_t,
        silent_from_t=now.step_t if late is not None and late.level == "warning" else None,
        unseen_from_t=None if seen_by(now) == "watched" else last_seen_t(now),
    )


# Whether somebody who opens the screen was away, or has to know something first.


AWAY_S = 3600.0
"""A person who looked less than this ago knows what goes on."""


def is_due(look: Look | None, now: Situation) -> bool:
    """Whether the summary greets them: away for more than an hour in which something happened, or something needs them.

    ``look``: the last one before now. What was seen then is not shown again.
    """
    if not now.story.attempts:
        return False
    seen = () if look is None else look.needs
    return any(key not in seen for key in urgent_keys(now)) or was_away(look, now)


def was_away(look: Look | None, now: Situation) -> bool:
    """Whether the last look is more than an hour ago, and the run went on after it."""
    since = look.wall if look is not None else now.story.wall0
    return now.now_wall - since > AWAY_S and now.story.wall0 + now.story.t > since


def since_wall(look: Look | None, now: Situation) -> float | None:
    """What the summary is of: the time since the last look; None: the whole run, if nobody was away from it."""
    return look.wall if look is not None and was_away(look, now) else None


def is_over(story: RunStory) -> bool:
    """Nothing of it runs, and nothing follows by itself."""
    return story.state in TERMINAL_STATES or story.state == "interrupted"


# What the user has to do or to decide.

SOON_S = 600.0
"""An attempt of this length has trained, also if its log has no steps."""
SAME_END = 4
"""Attempts in a row with one last step after which a person is told. Why: restarts that are charged end before."""
STILL_S = 300.0
"""A damaged checkpoint may still be written to, and a stop by a signal may be meant, for so long."""


def needs(now: Situation) -> Iterator[Need]:
    """The most urgent first."""
    story, run = now.story, () if now.story.run is None else (now.story.run.run,)
    attempt, seen = 0 if story.attempt is None else story.attempt.number, seen_by(now)
    of_the_end = tuple(_of_the_end(now, run, attempt))
    yield from of_the_end
    if seen == "unwatched":
        text = f"No supervisor is watching. Start one with `{typed('resume', *run)}`."
        yield Need(kind="unwatched", text=text, subject=attempt)
    elif seen == "frozen":
        yield Need(kind="frozen", text=f"{sentence(nobody_watches(now.frozen, *run))}.", subject=attempt)
    said = {need.incident for need in of_the_end}
    yield from (need for need in _of_incidents(now, run) if need.incident not in said)
    yield from _of_checkpoints(now)
    told = any(i.kind == "disk" for i in story.open_incidents) or story.state_why.kind == "disk_full"
    for each in now.troubles if not is_over(story) else ():
        if each.level == "danger" and not (told and each.kind == "output_disk"):
            yield Need(kind="trainwatch", text=f"{sentence(each.text)}.", subject=each.kind)
    for reading in current_readings(story, now.gpu, now.host, bounds_now(now)):
        if reading.level == "danger" and reading.metric == "disk_free" and not told:
            yield Need(kind="disk", text=f"The disk is nearly full: {quantity.size(reading.value)} free.")


def urgent_keys(now: Situation) -> tuple[str, ...]:
    """Of the urgent ones, to tell later which of them were seen."""
    return tuple(need.key for need in needs(now) if need.urgent)


def _of_the_end(now: Situation, run: tuple[str, ...], attempt: int) -> Iterator[Need]:
    """``run``: its id, as a word of a command."""
    story, why, on = now.story, now.story.state_why, how_to_resume(now.story, run)
    reason, since = story.state_reason or "no reason given", quantity.clock(story.wall0 + story.state_t, now.now_wall)
    if story.state == "given_up":
        text = f"No further attempt is made: {reason}. Fix the cause, then {on}."
        yield Need(kind="given_up", text=text, incident=why.incident, subject=attempt)
    if story.state == "ended_early":
        read = typed("logs", *run)
        text = f"The trainer exited before the end: {reason}. Read the end of its log (`{read}`), then {on}."
        yield Need(kind="ended_early", text=text, incident=why.incident, subject=attempt)
    if story.question is not None:
        text = question_text(story.question, story.wall0, now.now_wall)
        text = f"{text[:1].upper()}{text[1:]} {answers(story)}."
        yield Need(kind="question", text=text, subject=int(story.question.t))
    elif story.state == "stopped" and why.kind == "person":  # who stopped it has decided
        how = _how_on(story, run)
        yield Need(kind="stopped", text=f"You stopped it at {since}. {how} continues.", subject=attempt, urgent=False)
    elif story.state == "stopped":
        text = f"The run is held: {reason}. Continue with {_how_on(story, run)}."
        yield Need(kind="held", text=text, incident=why.incident, subject=attempt, urgent=why.holds)
    elif story.state == "paused" and not unconfirmed(story):
        text = f"The run is paused since {since}: `{typed('resume', *run)}` goes on."
        yield Need(kind="paused", text=text, subject=int(story.state_t), urgent=False)
    elif story.state not in TERMINAL_STATES and why.holds:
        room = room_now(now)
        text = f"The run is held: {story.state_reason}{room and f'; {room}'}."
        yield Need(kind="held", text=text, incident=why.incident, subject=attempt)
    elif story.state == "backing_off" and now.watched:
        began = (a.number for a in story.attempts if a.last_step or (a.ended_t or now.now_t) - a.t >= SOON_S)
        trained = max(began, default=0)
        crashes = [i for i in story.incidents if i.kind == "crash" and i.attempt > trained]
        last = None if story.attempt is None else story.attempt.last_step
        again = len(list(takewhile(lambda a: a.last_step == last, reversed(story.attempts))))
        follows = f"One follows by itself; `{typed('resume', *run)}` starts it now."
        if len(crashes) > 1 and now.now_t - crashes[0].t >= AWAY_S:
            failed = f"{len(crashes)} starts since {quantity.clock(crashes[0].wall, now.now_wall)} failed"
            text = f"{failed}: {crashes[-1].reason}. {follows}"
            yield Need(kind="held", text=text, subject=crashes[0].id)
        elif last is not None and again >= SAME_END:
            failed = f"{again} attempts in a row ended at step {quantity.count(last)}"
            newest = next((f": {i.reason}" for i in reversed(story.incidents) if i.kind == "crash"), "")
            text = f"{failed}{newest}. The cause may lie in the script or its data. {follows}"
            yield Need(kind="held", text=text, subject=attempt - again)


def _how_on(story: RunStory, run: tuple[str, ...]) -> str:
    """The commands that go on with a stopped run: a person chooses if it is not known what a resume would take."""
    if any(i.class_ == "not_understood" for i in story.open_incidents):
        return f"`{typed('resume', *run, '--from', 'newest')}` or `{typed('resume', *run, '--fresh')}`"
    return how_to_resume(story, run)


def _of_incidents(now: Situation, run: tuple[str, ...]) -> Iterator[Need]:
    nan, diverged = nan_since(now.story), diverged_since(now.story)
    worthless = "what was saved since then may be worthless"
    if nan is not None and not any(i.class_ in NAN and next_by_itself(i, now) for i in now.story.open_incidents):
        text = f"The loss is NaN{since_step(nan)}: {worthless}. Resume from a checkpoint before it."
        yield Need(kind="nan", text=text, incident=nan.id)
    if diverged is not None and not diverged.acknowledged:
        before = point_before(now.story)
        back = f"`{typed('resume', *run, '--from', before.path)}` goes back" if before else "Nothing was saved before"
        text = f"The loss diverged{since_step(diverged)}: {worthless}. {back}."
        yield Need(kind="diverged", text=text, incident=diverged.id)
    for incident in sorted(now.story.open_incidents, key=lambda i: i.severity != "danger"):
        if incident.acknowledged or incident.severity == "info" or incident is diverged:
            continue
        if (incident.class_ in NAN and nan is not None) or next_by_itself(incident, now):
            continue
        at = quantity.clock(incident.wall, now.now_wall)
        how = f"; {incident.explanation}" if incident.class_ in ADVISED else ""
        text = f"Incident {incident.id} is open since {at}: {title_now(incident, now)}{how}."
        lasts = incident.class_ == now.story.state == "suspended" and now.now_t - now.story.state_t >= STILL_S
        yield Need(kind="incident", text=text, incident=incident.id, urgent=lasts or incident.severity == "danger")


def _of_checkpoints(now: Situation) -> Iterator[Need]:
    """Removal is advised only of what nothing writes any more: a training that goes on may write the name anew."""
    story, found = now.story, now.story.checkpoints
    bad = [c for c in found if c.verdict in DAMAGED and c.understood]
    if bad:
        names = ", ".join(c.name for c in bad[-3:]) + (f" and {len(bad) - 3} more" if len(bad) > 3 else "")
        count, them = quantity.plural(len(bad), "checkpoint"), "it" if len(bad) == 1 else "them"
        still = is_over(story) and all(now.now_wall - c.mtime >= STILL_S for c in bad)
        advice = f"; you may remove {them}" if still else ""
        text = f"{count} cannot be resumed from{advice}: {names}."
        yield Need(kind="checkpoints", text=text, urgent=False)
    unclear = [c for c in found if not c.understood]
    resumed = {incident.resumed_from for incident in story.incidents}
    if unclear and not any(c.verdict == "complete" or c.path in resumed for c in found):
        names = ", ".join(c.name for c in unclear[-3:])
        text = f"Keep {names}: nothing else was saved, and only the trainer can tell whether it can go on from there."
        yield Need(kind="unclear", text=text, urgent=False)
    copy = backup_state(story)
    if copy is not None and copy["state"] == "failed":
        text = f"The newest copy off this machine failed: {copy['detail']}."
        yield Need(kind="backup", text=text, urgent=False)


# The copies of checkpoints: the newest, and whether it was made.

BACK_UP = "back_up"
"""The decision's tag in the journal."""


def backup_state(story: RunStory) -> dict[str, Any] | None:
    """``state``: copying, copied or failed; ``detail``: where to, or why not; ``t``: run seconds. None: no copy yet."""
    newest = next((action for action in reversed(story.actions) if action.kind == BACK_UP), None)
    if newest is None:
        return None
    state = "copying" if newest.ok is None else "copied" if newest.ok else "failed"
    return {"state": state, "what": newest.reason, "detail": newest.detail, "t": newest.done_t or newest.t}
