"""A run as it is now, as one value: the screen, ``status``, ``runs``, the report and Prometheus show its fields."""

from typing import Literal

import msgspec

from ..model.checkpoint import Checkpoint
from ..model.progress import Level
from ..model.run import LIVE_STATES, RunState
from ..model.situation import Situation
from ..model.story import Need
from .away import needs
from .checkpoint_list import resume_point
from .state.concerns import SILENT, Concern, concerns, diverged_since, loss_state, nan_since
from .state.position_words import frozen, last_seen, nobody_sees, standstill, unwatched
from .state.run_progress import LastStep, fraction, last_step, live_progress, run_progress
from .state.verdict import Verdict, verdict


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """What follows without a person. ``at_t``: when, in run seconds; None = as soon as it can."""

    what: Literal["end", "restart"]
    at_t: float | None = None


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
    urgent first. ``resume``: the checkpoint that a resume takes; ``restarts``: (counted against the budget, allowed).
    """

    name: str
    state: RunState
    since_t: float
    seen: Literal["watched", "unwatched", "frozen"]
    last_seen: str
    level: Level
    sentence: Verdict
    troubles: tuple[Concern, ...]
    next: Next | None
    position: Position
    late: LastStep | None
    still: str
    loss: float | None
    loss_state: str
    nan: bool
    diverged: bool
    needs: tuple[Need, ...]
    resume: Checkpoint | None
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
    story, progress, said = now.story, run_progress(now), verdict(now)
    silent = any(i.kind in SILENT for i in story.open_incidents)
    still = standstill(now)
    advances = story.state in LIVE_STATES and not nobody_sees(now) and not silent and not still
    live = live_progress(now)
    return RunSummary(
        name=story.run.name if story.run else name,
        state=story.state,
        since_t=story.state_t,
        seen="unwatched" if unwatched(now) else "frozen" if frozen(now) else "watched",
        last_seen=last_seen(now) if nobody_sees(now) else "",
        level=said.level,
        sentence=said,
        troubles=concerns(now) if story.attempts else (),
        next=_next(now),
        position=Position(
            step=progress.step,
            total_steps=progress.total_steps,
            done=1.0 if story.state == "finished" else fraction(progress),
            sec_per_step=progress.sec_per_step,
            eta_s=live.eta_s if advances else None,
            eta_by=live.total_by,
        ),
        late=last_step(now),
        still=still,
        loss=progress.loss,
        loss_state=loss_state(story),
        nan=nan_since(story) is not None,
        diverged=diverged_since(story) is not None,
        needs=tuple(needs(now)),
        resume=resume_point(now),
        checkpoints=len(story.checkpoints),
        attempts=len(story.attempts),
        restarts=(story.budget_used, story.budget_max),
    )


def _next(now: Situation) -> Next | None:
    """A restart that is decided, or the end of a silence; None without a supervisor, and if a person is asked."""
    story = now.story
    if not now.watched or story.question is not None or story.act not in {None, "all"}:
        return None
    if story.state in {"backing_off", "cleaning"}:
        waits = story.state_why.holds and story.state_why.until_t is None
        return None if waits else Next(what="restart", at_t=story.until_t)
    if story.state == "hung":
        return Next(what="end", at_t=story.until_t)
    due_t = now.outlook.hang_t
    return Next(what="end", at_t=due_t) if story.state == "running" and due_t is not None else None
