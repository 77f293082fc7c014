"""Clauses about how far a run is: step, pace, when it will be done; what is said while no step is seen."""

from typing import Literal

from ...model.run import TERMINAL_STATES
from ...model.story import RunStory, Situation
from ...views import quantity
from ..length_words import by_words, time_words
from ..words import STATE_WORDS
from .concerns import SILENT
from .run_progress import last_step, live_progress, of_an_epoch, run_progress

SOON_S = 600.0
"""Seconds to the end below which a countdown is shown instead of a time of day."""


def seen_by(now: Situation) -> Literal["watched", "unwatched", "frozen"]:
    """Whether anybody looks at the run now; one that is over needs nobody.

    Without a supervisor, or with one that does not respond, its state and numbers are those of the last record.
    """
    if now.story.state in TERMINAL_STATES:
        return "watched"
    if now.supervisor_alive is False and now.story.attempts:
        return "unwatched"
    return "frozen" if now.frozen else "watched"


def standstill(now: Situation) -> str:
    """What is said of a run in state "running" in place of pace and end while no step is seen; empty while steps come.

    Without a supervisor that works nobody sees steps: then the time since the last record is all that is known.
    """
    if now.story.state != "running":
        return ""
    if seen_by(now) != "watched":
        return last_seen(now)
    late = last_step(now)
    silent = any(incident.kind in SILENT for incident in now.story.open_incidents)
    return late.words if late is not None and (silent or late.level != "safe") else ""


def where(now: Situation) -> tuple[str, ...]:
    """step 6,120 of 10,260 · 2.50 s/step · done about 04:12, without unknown parts."""
    progress, late = run_progress(now), last_step(now)
    clauses: list[str] = []
    if progress.step is not None:
        clauses.append(f"step {quantity.out_of(progress.step, progress.total_steps)}")
    elif progress.epoch is not None:
        total = f" of {progress.total_epochs}" if progress.total_epochs else ""
        clauses.append(f"epoch {progress.epoch:g}{total}")
    if part := of_an_epoch(live_progress(now)):
        clauses.append(part)
    if progress.sec_per_step is not None and (late is None or late.level == "safe"):
        clauses.append(quantity.pace(progress.sec_per_step))
    if late is not None and late.told and late.level == "safe":
        clauses.append(f"last step {quantity.duration(late.age_s)} ago")
    if progress.eta_s is not None and progress.phase != "finish" and (late is None or late.level == "safe"):
        if progress.eta_s < SOON_S:
            done = f"done in {quantity.duration(progress.eta_s)}"
        else:
            done = f"done about {quantity.clock(now.now_wall + progress.eta_s, now.now_wall)}"
        clauses.append(f"{done}{by_words(progress.total_by)}")
    return tuple(clauses)


def expected(now: Situation) -> tuple[str, ...]:
    """expected: 10,260 steps in about 7 h 8 m; nothing if it is unknown."""
    found = now.story.run.expected if now.story.run is not None else None
    if found is None:
        return ()
    span = f" in {time_words(found)}" if found.seconds is not None else ""
    guess = " (a guess)" if found.guess else ""
    return (f"expected: {quantity.count(found.steps)} steps{span}{guess}",)


def last_seen(now: Situation) -> str:
    """In which state the run was when something of it was read last, and how long ago that is."""
    return f"last seen {STATE_WORDS[now.story.state]} {quantity.age(now.now_t - last_seen_t(now))}"


def last_seen_t(now: Situation) -> float:
    """The newest record or reading of the run, in run seconds."""
    return max(now.story.t, now.progress_t, now.step_t or 0.0)


# What a state claims before it is so: a pause that nobody has confirmed, a given-up run whose trainer lives.


def unconfirmed(story: RunStory) -> str:
    """A clause; empty if the state is what it says."""
    attempt = story.attempt
    if story.state == "paused":
        asked = next((a for a in reversed(story.actions) if a.kind == "pause_attempt"), None)
        return "not confirmed yet" if asked is not None and asked.done_t is None else ""
    if story.state == "given_up" and attempt is not None and attempt.ended_t is None:
        pid = "" if attempt.pid is None else f" (pid {attempt.pid})"
        return f"but its trainer{pid} was not ended"
    return ""
