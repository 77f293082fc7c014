"""The state of a run as one sentence, and the clauses that it is made of: how far the run is, who looks at it."""

from collections.abc import Callable
from typing import Literal

import msgspec

from ...model.progress import Level
from ...model.run import LIVE_STATES, NO_STEP, TERMINAL_STATES, Incident
from ...model.story import RunStory, Situation
from .. import quantity
from ..checkpoint_list import how_many, resume_point
from ..length_words import by_words, time_words
from ..words import PHASE_WORDS, STATE_WORDS, STATES, ended_words, question_clause, sentence, title_of
from .concerns import NAN, SILENT, concerns, doubts_in, nan_since, reason_of, room_now, worst_clause
from .lost_time import steps_redone
from .run_progress import BEHIND_LINES, SEVERITY, last_step, live_progress, of_an_epoch, run_progress, usually

SLOW_START_S = 120.0
"""A start that takes longer is not shown as fine."""
ABOUT: dict[str, frozenset[str]] = {
    "hung": frozenset({"hang", "quiet"}),
    "suspended": frozenset({"stall"}),
    "disk_full": frozenset({"crash", "disk"}),
    **dict.fromkeys(
        ("starting", "stopping", "cleaning", "backing_off", "given_up", "stopped"), frozenset({"crash", "hang"})
    ),
}
"""Kinds of incidents that the sentence of a state, or of the hold of one, is about."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``clauses`` joined by `` · `` make the sentence: the state, what is wrong, what follows and when.

    ``where``: step, pace and end, which have a place of their own on the screen. ``aside``: one clause more, without
    its last parts behind ", " if it would need another line. ``vital``: so many of the first ones are never cut.
    """

    level: Level
    clauses: tuple[str, ...]
    where: tuple[str, ...] = ()
    aside: str = ""
    vital: int = 1
    first_level: Level | None = None
    """Of the first clause, if ``level`` is that of ``worst``, a later one."""
    worst: str = ""

    @property
    def sentence(self) -> str:
        return " · ".join(filter(None, (*self.clauses, *self.where, self.aside)))


def verdict(now: Situation) -> Verdict:
    """The sentence for a situation, with the worst that is wrong beside what it is about: first if it is worse."""
    story, seen = now.story, seen_by(now)
    if seen == "watched":
        said = SENTENCES[story.state](now)
    else:
        first = "No supervisor is running: [S] start one" if seen == "unwatched" else now.frozen
        lives = seen == "unwatched" and story.state in LIVE_STATES and story.attempt is not None and story.attempt.pid
        clauses = (sentence(first), *([f"its trainer lives (pid {lives})"] if lives else []), last_seen(now))
        said = Verdict(level="danger", clauses=clauses)
    if not said.where and story.state != "idle":
        said = msgspec.structs.replace(said, where=where(now)[:1])
    told = {i.id for i in story.open_incidents if i.kind in ABOUT.get(story.state_why.kind, ABOUT.get(story.state, ()))}
    named = newest_trouble(now) if story.state in {"starting", "cleaning", "backing_off"} else None
    if named is not None and named.open and named.class_ in NAN:  # the sentence names it already
        told |= {i.id for i in story.incidents if i.class_ in NAN}
    found = tuple(concern for concern in concerns(now) if concern.incident not in told)
    if not found:
        return said
    wrong = max((concern.level for concern in found), key=SEVERITY.__getitem__)
    worse = SEVERITY[wrong] > SEVERITY[said.level]
    clause, first_ = worst_clause(found, keys=True), story.state == "running" and said.level == "safe"
    clauses = (clause, *said.clauses) if first_ else (said.clauses[0], clause, *said.clauses[1:])
    behind = worse and not first_
    return Verdict(
        level=wrong if worse or said.level == "safe" else said.level,
        clauses=clauses, where=said.where, aside=said.aside, vital=1 if first_ else 1 + said.vital,
        first_level=said.level if behind else None, worst=clause if behind else "",
    )  # fmt: skip


def named_incident(now: Situation) -> int | None:
    """The incident that the sentence is about; None: it names none."""
    trouble = newest_trouble(now) if now.story.state in ABOUT else None
    if trouble is not None and trouble.open:
        return trouble.id
    return next((each.incident for each in concerns(now) if each.incident is not None), None)


def _plain(now: Situation) -> Verdict:
    """Of a state of which no more is said than since when, why, and how far the run is."""
    story = now.story
    since, ago = quantity.duration(now.now_t - story.state_t), quantity.age(now.now_t - story.state_t)
    at, reason = quantity.clock(story.wall0 + story.state_t, now.now_wall), story.state_reason
    clauses: tuple[str, ...]
    match story.state:
        case "idle":
            clauses = ("Not started yet: [Enter] start it" if now.now_wall else "Reading …",)
        case "stopping":
            clauses = (f"Stopping for {since}", reason)
        case "paused":
            doubt = unconfirmed(story)
            said = f"To be paused, asked {ago}, {doubt}" if doubt else f"Paused {ago}"
            clauses = (f"{said}: [r] continue",)
        case "suspended":
            clauses = (f"Stopped by a signal {ago}, not by trainwatch: [r] continue",)
        case "queued":
            clauses = (f"In the queue since {ago}: {reason}",)
        case "interrupted":
            key = "[S] start a supervisor, which resumes it" if now.supervisor_alive is False else "resuming"
            clauses = ("Interrupted", key, reason)
        case _:
            clauses = (f"Ended early {at}", "[r] resume", reason or "the end of the training was not reached")
    vital = 3 if story.state == "ended_early" else 1
    return Verdict(level=STATES[story.state].level, clauses=tuple(filter(None, clauses)), vital=vital)


def _starting(now: Situation) -> Verdict:
    attempt, trouble = now.story.attempt, newest_trouble(now)
    if attempt is not None and attempt.t < now.story.state_t and attempt.ended_t is not None:
        number, attempt = attempt.number + 1, None  # it is being launched, and has no record yet
    else:
        number = attempt.number if attempt else 1
    lasted_s = now.now_t - now.story.state_t
    slow = lasted_s >= SLOW_START_S  # it may load a model, or print no step for ever: nobody knows that it trains
    since = quantity.duration(lasted_s)
    clauses = [f"Starting attempt {number}", f"no step seen for {since}" if slow else f"{since} so far"]
    if trouble is not None and trouble.open:
        at = quantity.clock(trouble.wall, now.now_wall)
        clauses.insert(1, f"{'crashed' if trouble.kind == 'crash' else 'hung'} {at}: {title_of(trouble)}")
        return Verdict(level="warning", clauses=tuple(clauses))
    if attempt is not None and attempt.resume_step is not None:
        clauses.insert(1, f"from step {quantity.count(attempt.resume_step)}")
    else:
        clauses += expected(now)
    return Verdict(level="unknown" if slow else "safe", clauses=tuple(clauses))


def _running(now: Situation) -> Verdict:
    clauses, at = [PHASE_WORDS[live_progress(now).phase]], where(now)
    if not at:
        told = any(i.open and i.class_ == NO_STEP for i in now.story.incidents)
        clauses += [*(() if told else ("no step seen yet",)), *expected(now)]
    question = question_clause(now)
    if question is not None:
        return Verdict(level="danger", clauses=(question, *clauses), where=at)
    level: Level = "unknown" if now.lines_behind >= BEHIND_LINES else "safe"
    return Verdict(level=level, clauses=tuple(clauses), where=at, aside=_recoveries(now))


def _recoveries(now: Situation) -> str:
    """``1 restart, recovered 01:07, 20 steps redone``; of a restart that a person made after a give-up, when it was."""
    story, newest, restarts = now.story, now.story.attempt, max(0, len(now.story.attempts) - 1)
    closed = [i.closed_t for i in story.incidents if i.closed_t is not None and i.kind in {"crash", "hang"}]
    if newest is None or not closed or not restarts:
        return ""
    recovered = max(closed) >= newest.t
    at = quantity.clock(story.wall0 + (max(closed) if recovered else newest.t), now.now_wall)
    redone = steps_redone(story)
    lost = f", {quantity.plural(redone, 'step')} redone" if redone else ""
    last = "" if restarts == 1 else "the last "
    return f"{quantity.plural(restarts, 'restart')}, {last}{'recovered' if recovered else 'at'} {at}{lost}"


def newest_trouble(now: Situation, *, kinds: frozenset[str] = frozenset({"crash", "hang"})) -> Incident | None:
    """The newest crash or hang, open ones first."""
    found = [i for i in now.story.incidents if i.kind in kinds]
    return max(found, key=lambda i: (i.open, i.t), default=None)


def _hung(now: Situation) -> Verdict:
    story = now.story
    incident = newest_trouble(now, kinds=frozenset({"hang"}))
    last_sign_t = story.state_t
    if incident is not None and incident.open:
        last_sign_t = incident.t - (incident.detect_s or 0.0)
    usual = usually(now.outlook.usual_s, live_progress(now).sec_per_step)
    silent = quantity.duration(now.now_t - last_sign_t)
    clauses = [f"Seems to hang: no step for {silent}{f' ({usual})' if usual else ''}"]
    way = None if story.run is None else story.run.resume
    ended = f"{ended_words(way)}{'' if way is not None and way.will == 'no' else _from_step(now)}"
    what = {"ask": "you are asked", "notify": "you are told"}.get(story.act or "", ended)
    if (question := question_clause(now)) is not None:
        clauses.append(f"{question} · [w] wait")
    elif story.until_t is not None and story.until_t > now.now_t:
        clauses.append(f"{what} in {quantity.countdown(story.until_t - now.now_t)} ([w] wait)")
    else:
        clauses.append("[w] wait" if story.act in {"ask", "notify"} else f"{what} now ([w] wait)")
    vital = len(clauses)
    utils = [g.util_pct for g in now.gpu.gpus if g.util_pct is not None and g.own is not False] if now.gpu else []
    cores = None if now.process is None else now.process.cpu_cores
    signs = [f"GPU {quantity.percent(max(utils))}"] if utils else []
    signs += [] if cores is None else [f"CPU {quantity.percent(100 * cores)}"]
    clauses += [", ".join(signs)] if signs else []
    return Verdict(level="danger", clauses=tuple(clauses), vital=vital)


def _from_step(now: Situation) -> str:
    resume = resume_point(now)
    return "" if resume is None or resume.step is None else f" from step {quantity.count(resume.step)}"


def _between(now: Situation) -> Verdict:
    """Between two attempts: what the restart waits for, or when it comes."""
    story, why = now.story, now.story.state_why
    if why.holds:
        room = tuple(filter(None, [room_now(now)]))
        level: Level = "danger" if why.until_t is None else "warning"  # it is launched again without a person
        left = None if why.until_t is None else quantity.countdown(why.until_t - now.now_t)
        again = () if left is None else (f"launched again in {left}",)
        return msgspec.structs.replace(_after_trouble(now, (*again, reason_of(story), *room)), level=level)
    if story.state == "cleaning":
        return _after_trouble(now, ("cleaning up before the restart",))
    waits = story.until_t is not None and story.until_t > now.now_t
    when = f" in {quantity.countdown((story.until_t or 0.0) - now.now_t)}" if waits else ""
    return _after_trouble(now, (f"restarting{when}{_from_step(now)}",))


def _after_trouble(now: Situation, clauses: tuple[str, ...]) -> Verdict:
    trouble = newest_trouble(now)
    if trouble is None or not trouble.open:  # one that is over is not why it stops now
        told = reason_of(now.story)
        reason = (told,) if told and told not in clauses else ()
        return Verdict(level="warning", clauses=(sentence(clauses[0]), *clauses[1:], *reason))
    word = "Crashed" if trouble.kind == "crash" else "Hung"
    at = quantity.clock(trouble.wall, now.now_wall)
    return Verdict(level="warning", clauses=(f"{word} {at}: {title_of(trouble)}", *clauses), vital=2)


def _stopped(now: Situation) -> Verdict:
    story = now.story
    if (question := question_clause(now)) is not None:
        return msgspec.structs.replace(_after_trouble(now, (question,)), level="danger")
    at = quantity.clock(story.wall0 + story.state_t, now.now_wall)
    by_you = story.state_why.kind == "person" and story.attempt and story.attempt.how == "killed"
    said = (f"You killed it at {at}: [r] resume",) if by_you else (f"Stopped {at}: [r] resume", reason_of(story))
    return Verdict(level=STATES["stopped"].level, clauses=tuple(filter(None, said)))


def _finished(now: Situation) -> Verdict:
    story = now.story
    clauses = [f"Finished {quantity.clock(story.wall0 + story.state_t, now.now_wall)}"]
    took = quantity.duration(story.state_t)
    step = run_progress(now).step
    clauses.append(f"{quantity.plural(step, 'step')} in {took}" if step is not None else f"took {took}")
    if story.checkpoints:
        clauses.append(how_many((c.verdict for c in story.checkpoints), "checkpoint"))
    doubts = [doubt for doubt in map(doubts_in(story), story.checkpoints) if doubt]
    if doubts:
        what = "NaN" if doubts[-1] == "nan" else "divergence"
        clauses.append(f"{quantity.count(len(doubts))} of them saved after the {what}")
    restarts = max(0, len(story.attempts) - 1)
    if restarts:
        clauses.append(quantity.plural(restarts, "restart"))
    if story.state_why.kind == "unproven":
        return Verdict(level="warning", clauses=(clauses[0], story.state_reason, *clauses[1:]))
    return Verdict(level="safe", clauses=tuple(clauses))


def _given_up(now: Situation) -> Verdict:
    story = now.story
    trouble = newest_trouble(now)
    said = trouble is None or (trouble.class_ in NAN and nan_since(story) is not None)  # by the concern about the loss
    why = () if said or trouble is None else (title_of(trouble),)
    first = ", ".join(filter(None, ("Given up", unconfirmed(story))))
    reason = story.state_reason or "no further attempt is made"
    return Verdict(level="danger", clauses=(first, *why, "[e] see why", "[r] resume", reason), vital=4 + len(why))


SENTENCES: dict[str, Callable[[Situation], Verdict]] = {
    **dict.fromkeys(("idle", "stopping", "paused", "suspended", "queued", "interrupted", "ended_early"), _plain),
    "starting": _starting,
    "running": _running,
    "hung": _hung,
    "cleaning": _between,
    "backing_off": _between,
    "stopped": _stopped,
    "finished": _finished,
    "given_up": _given_up,
}


# How far a run is: step, pace, when it will be done; what is said while no step is seen.

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
    if now.lines_behind >= BEHIND_LINES:
        return (*clauses, f"reading {quantity.count(now.lines_behind)} lines behind")
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
    seen = now.story.states[-1].state if now.story.states else now.story.state  # that it is interrupted is found later
    return f"last seen {STATE_WORDS[seen]} {quantity.age(now.now_t - last_seen_t(now))}"


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
