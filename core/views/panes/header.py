"""The head of the screen: verdict, progress, attempt, budget."""

import msgspec

from ...model.launch.elsewhere.job import JobRecord, left_s
from ...model.run import LIVE_STATES
from ...model.situation import Situation
from .. import quantity
from ..restart_words import restarts_left
from ..state.position_words import unwatched
from ..state.run_progress import fraction, run_progress
from ..state.verdict import Verdict, verdict

RESUME = {"yes": "Resume: yes", "self": "Resume: by itself", "no": "Resume: NO", "unknown": "Resume: unknown"}
UP_GRAIN_S = 10.0
"""The bar beside it would be written each second during the first two minutes of an attempt."""


class HeaderView(msgspec.Struct, frozen=True, kw_only=True):
    """``done`` 0..1 or None (total unknown). ``facts``: short clauses, the most important first."""

    name: str
    verdict: Verdict
    done: float | None
    facts: tuple[str, ...]


def header_view(now: Situation, name: str = "") -> HeaderView:
    """Project the head. ``name``: used until the journal has one."""
    story = now.story
    done = 1.0 if story.state == "finished" else fraction(run_progress(now))
    name = story.run.name if story.run else name
    return HeaderView(
        name=name,
        verdict=verdict(now),
        done=done,
        facts=_facts(now),
    )


def job_fact(job: JobRecord, wall: float) -> str:
    """The job in few words: its number, its state if it does not run, and the time left."""
    left = left_s(job, wall)
    state = "" if job.phase == "running" else f" {job.state or job.phase}"
    why = f" ({job.reason})" if job.reason and job.phase == "queued" else ""
    return f"job {job.handle.id}{state}{why}" + ("" if left is None else f", {quantity.duration(left)} left")


def _facts(now: Situation) -> tuple[str, ...]:
    story = now.story
    attempt = story.attempt
    facts: list[str] = []
    live = attempt is not None and attempt.ended_t is None and story.state in LIVE_STATES
    if attempt is not None:
        facts.append(f"attempt {attempt.number}")
        facts += restarts_left(story.state, story.restarts_made, story.budget_max)
    if now.job is not None and live:
        facts.append(job_fact(now.job, now.now_wall))
    if story.act in {"ask", "notify"}:
        facts.append("asks first" if story.act == "ask" else "only notifies")
    if story.profile is not None:
        facts.append(f"{story.profile} next" if story.profile_pending else story.profile)
    if attempt is not None and live and not unwatched(now):
        facts.append(f"up {quantity.duration((now.now_t - attempt.t) // UP_GRAIN_S * UP_GRAIN_S)}")
    if story.run is not None and story.run.resume is not None:
        facts.append(RESUME[story.run.resume.will])
    if attempt is not None and live and attempt.pid is not None:
        facts.append(f"pid {attempt.pid}")
    return tuple(facts)
