"""The state of a run as one sentence."""

from collections.abc import Callable

import msgspec

from ...model.attempt import NO_STEP, Incident
from ...model.progress import Level
from ...model.story import Situation
from .. import quantity
from ..checkpoint_list import how_many, resume_point
from ..words import PHASE_WORDS, question_clause, sentence, title_of
from .concerns import AFTER_NAN, NAN, concerns, doubt_of, nan_since, reason_of, room_now, worst_clause
from .position_words import expected, frozen, last_seen, unconfirmed, unwatched, where
from .run_progress import SEVERITY, live_progress, run_progress, usually

ABOUT: dict[str, frozenset[str]] = {
    "hung": frozenset({"hang", "quiet"}),
    "suspended": frozenset({"stall"}),
    **dict.fromkeys(
        ("starting", "stopping", "cleaning", "backing_off", "given_up", "stopped"), frozenset({"crash", "hang"})
    ),
}
"""Kinds of incidents that the sentence of a state is about."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``clauses`` joined by `` · `` make the sentence, the most important first.

    ``aside``: one more, left out if it needs another line. ``vital``: so many of the first ones are never cut.
    """

    level: Level
    clauses: tuple[str, ...]
    aside: str = ""
    vital: int = 1
    first_level: Level | None = None
    """Of the first clause, if ``level`` is that of ``worst``, a later one."""
    worst: str = ""

    @property
    def sentence(self) -> str:
        return " · ".join((*self.clauses, self.aside) if self.aside else self.clauses)


def verdict(now: Situation) -> Verdict:
    """The sentence for a situation."""
    if unwatched(now):
        said = _unwatched(now)
    elif frozen(now):
        said = _frozen(now)
    else:
        said = SENTENCES[now.story.state](now)
    return _with_concerns(said, now)


def _with_concerns(said: Verdict, now: Situation) -> Verdict:
    """The sentence with the worst that is wrong beside what it is about: first if it is worse, else second."""
    told = {i.id for i in now.story.open_incidents if i.kind in ABOUT.get(now.story.state, ())}
    found = tuple(concern for concern in concerns(now) if concern.incident not in told)
    if not found:
        return said
    wrong = max((concern.level for concern in found), key=SEVERITY.__getitem__)
    level = wrong if SEVERITY[wrong] > SEVERITY[said.level] or said.level == "safe" else said.level
    clause = worst_clause(found)
    first = now.story.state == "running" and said.level == "safe"
    clauses = (clause, *said.clauses) if first else (said.clauses[0], clause, *said.clauses[1:])
    behind = not first and SEVERITY[level] > SEVERITY[said.level]
    return Verdict(
        level=level, clauses=clauses, aside=said.aside, vital=1 if first else 1 + said.vital,
        first_level=said.level if behind else None, worst=clause if behind else "",
    )  # fmt: skip


def _unwatched(now: Situation) -> Verdict:
    clauses = ("No supervisor is running: [S] start one", last_seen(now), *where(now)[:1])
    return Verdict(level="danger", clauses=clauses)


def _frozen(now: Situation) -> Verdict:
    return Verdict(level="danger", clauses=(now.frozen[0].upper() + now.frozen[1:], last_seen(now), *where(now)[:1]))


def _idle(now: Situation) -> Verdict:
    if not now.now_wall:  # nothing was read yet
        return Verdict(level="unknown", clauses=("Reading …",))
    return Verdict(level="unknown", clauses=("Not started yet: [Enter] start it",))


def _starting(now: Situation) -> Verdict:
    attempt, trouble = now.story.attempt, newest_trouble(now)
    if attempt is not None and attempt.t < now.story.state_t and attempt.ended_t is not None:
        number, attempt = attempt.number + 1, None  # it is being launched, and has no record yet
    else:
        number = attempt.number if attempt else 1
    since = quantity.duration(now.now_t - now.story.state_t)
    clauses = [f"Starting attempt {number}", f"{since} so far"]
    if trouble is not None and trouble.open:
        at = quantity.clock(trouble.wall, now.now_wall)
        clauses.insert(1, f"{'crashed' if trouble.kind == 'crash' else 'hung'} {at}: {title_of(trouble)}")
        return Verdict(level="warning", clauses=tuple(clauses))
    if attempt is not None and attempt.resume_step is not None:
        clauses.insert(1, f"from step {quantity.count(attempt.resume_step)}")
    else:
        clauses += expected(now)
    return Verdict(level="safe", clauses=tuple(clauses))


def _running(now: Situation) -> Verdict:
    progress = live_progress(now)
    clauses = [PHASE_WORDS[progress.phase], *where(now)]
    if len(clauses) == 1:
        told = any(i.open and i.class_ == NO_STEP for i in now.story.incidents)
        clauses += [*(() if told else ("no step seen yet",)), *expected(now)]
    question = question_clause(now)
    if question is not None:
        return Verdict(level="danger", clauses=(question, *clauses))
    return Verdict(level="safe", clauses=tuple(clauses), aside=_recoveries(now))


def _recoveries(now: Situation) -> str:
    """``1 restart at 01:07, recovered, 20 steps redone``."""
    closed = [i for i in now.story.incidents if i.closed_t is not None and i.kind in {"crash", "hang"}]
    restarts = max(0, len(now.story.attempts) - 1)
    if not closed or not restarts:
        return ""
    at = quantity.clock(now.story.wall0 + (closed[-1].closed_t or 0.0), now.now_wall)
    redone = [i.lost_steps for i in closed if i.lost_steps is not None]
    lost = f", {quantity.plural(sum(redone), 'step')} redone" if sum(redone) else ""
    last = "" if restarts == 1 else "the last "
    return f"{quantity.plural(restarts, 'restart')}, {last}recovered {at}{lost}"


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
    clauses = [
        f"Seems to hang: no step for {quantity.duration(now.now_t - last_sign_t)}{f' ({usual})' if usual else ''}"
    ]
    question = question_clause(now)
    if question is not None:
        clauses += [question, "[w] wait"]
        return Verdict(level="danger", clauses=tuple(clauses), vital=len(clauses))
    signs = _signs(now)
    if signs:
        clauses.append(signs)
    if story.until_t is not None and story.until_t > now.now_t:
        clauses.append(f"{_act_on_hang(now)} in {quantity.countdown(story.until_t - now.now_t)}")
    elif story.act not in {"ask", "notify"}:
        clauses.append(f"{_act_on_hang(now)} now")
    clauses.append("[w] wait")
    return Verdict(level="danger", clauses=tuple(clauses), vital=len(clauses))


def _act_on_hang(now: Situation) -> str:
    """What is done about a hang: ``will be ended and restarted from step 5,880``."""
    if now.story.act in {"ask", "notify"}:
        return "you are asked" if now.story.act == "ask" else "you are told"
    resume = resume_point(now)
    if resume is None or resume.step is None:
        return "will be ended and restarted"
    return f"will be ended and restarted from step {quantity.count(resume.step)}"


def _signs(now: Situation) -> str:
    """``GPU 0 %, CPU 0 %``; unknown values are left out."""
    parts = []
    utils = [g.util_pct for g in now.gpu.gpus if g.util_pct is not None and g.own is not False] if now.gpu else []
    if utils:
        parts.append(f"GPU {quantity.percent(max(utils))}")
    if now.process is not None and now.process.cpu_cores is not None:
        parts.append(f"CPU {quantity.percent(100 * now.process.cpu_cores)}")
    return ", ".join(parts)


def _stopping(now: Situation) -> Verdict:
    return _with_reason(now, "Stopping", "warning")


def _cleaning(now: Situation) -> Verdict:
    return _held(now) or _after_trouble(now, ("cleaning up before the restart",))


def _held(now: Situation) -> Verdict | None:
    """What the restart waits for; None if it waits for nothing."""
    why = now.story.state_why
    if not why.holds:
        return None
    room = tuple(filter(None, [room_now(now)]))
    level: Level = "danger" if why.until_t is None else "warning"  # it is launched again without a person
    return msgspec.structs.replace(_after_trouble(now, (reason_of(now.story), *room)), level=level)


def _backing_off(now: Situation) -> Verdict:
    story = now.story
    if (held := _held(now)) is not None:
        return held
    if story.until_t is not None and story.until_t > now.now_t:
        when = f"restarting in {quantity.countdown(story.until_t - now.now_t)}"
    else:
        when = "restarting"
    resume = resume_point(now)
    if resume is not None and resume.step is not None:
        when += f" from step {quantity.count(resume.step)}"
    return _after_trouble(now, (when,))


def _after_trouble(now: Situation, clauses: tuple[str, ...]) -> Verdict:
    trouble = newest_trouble(now)
    if trouble is None or not trouble.open:  # one that is over is not why it stops now
        told = reason_of(now.story)
        reason = (told,) if told and told not in clauses else ()
        return Verdict(level="warning", clauses=(sentence(clauses[0]), *clauses[1:], *reason))
    word = "Crashed" if trouble.kind == "crash" else "Hung"
    at = quantity.clock(trouble.wall, now.now_wall)
    return Verdict(level="warning", clauses=(f"{word} {at}: {title_of(trouble)}", *clauses), vital=2)


def _paused(now: Situation) -> Verdict:
    since = quantity.age(now.now_t - now.story.state_t)
    doubt = unconfirmed(now.story)
    said = f"To be paused, asked {since}, {doubt}" if doubt else f"Paused {since}"
    return Verdict(level="warning", clauses=(f"{said}: [r] continue", *where(now)[:1]))


def _suspended(now: Situation) -> Verdict:
    since = quantity.age(now.now_t - now.story.state_t)
    said = f"Stopped by a signal {since}, not by trainwatch: [r] continue"
    return Verdict(level="warning", clauses=(said, *where(now)[:1]))


def _queued(now: Situation) -> Verdict:
    since = quantity.age(now.now_t - now.story.state_t)
    return Verdict(level="unknown", clauses=(f"In the queue since {since}: {now.story.state_reason}", *where(now)[:1]))


def _stopped(now: Situation) -> Verdict:
    at = quantity.clock(now.story.wall0 + now.story.state_t, now.now_wall)
    question = question_clause(now)
    if question is not None:
        return msgspec.structs.replace(_after_trouble(now, (question, *where(now)[:1])), level="danger")
    told, attempt = reason_of(now.story), now.story.attempt
    if now.story.state_why.kind == "person" and attempt is not None and attempt.how == "killed":
        return Verdict(level="warning", clauses=(f"You killed it at {at}: [r] resume", *where(now)[:1]))
    reason = (told,) if told else ()
    return Verdict(level="warning", clauses=(f"Stopped {at}: [r] resume", *reason, *where(now)[:1]))


def _interrupted(now: Situation) -> Verdict:
    key = "[S] start a supervisor, which resumes it" if now.supervisor_alive is False else "resuming"
    reason = (now.story.state_reason,) if now.story.state_reason else ()
    return Verdict(level="warning", clauses=("Interrupted", key, *reason, *where(now)[:1]))


def _finished(now: Situation) -> Verdict:
    story = now.story
    clauses = [f"Finished {quantity.clock(story.wall0 + story.state_t, now.now_wall)}"]
    took = quantity.duration(story.state_t)
    step = run_progress(now).step
    clauses.append(f"{quantity.plural(step, 'step')} in {took}" if step is not None else f"took {took}")
    if story.checkpoints:
        clauses.append(how_many((c.verdict for c in story.checkpoints), "checkpoint"))
    doubts = [doubt for c in story.checkpoints if (doubt := doubt_of(c, story))]
    if doubts:
        what = "NaN" if doubts[-1] == AFTER_NAN else "divergence"
        clauses.append(f"{quantity.count(len(doubts))} of them saved after the {what}")
    restarts = max(0, len(story.attempts) - 1)
    if restarts:
        clauses.append(quantity.plural(restarts, "restart"))
    if story.state_why.kind == "unproven":
        return Verdict(level="warning", clauses=(clauses[0], story.state_reason, *clauses[1:]))
    return Verdict(level="safe", clauses=tuple(clauses))


def _ended_early(now: Situation) -> Verdict:
    story = now.story
    at = quantity.clock(story.wall0 + story.state_t, now.now_wall)
    clauses = (f"Ended early {at}", "[r] resume", story.state_reason or "the end of the training was not reached")
    return Verdict(level="danger", clauses=(*clauses, *where(now)[:1]), vital=3)


def _given_up(now: Situation) -> Verdict:
    story = now.story
    trouble = newest_trouble(now)
    said = trouble is None or (trouble.class_ in NAN and nan_since(story) is not None)  # by the concern about the loss
    why = () if said or trouble is None else (title_of(trouble),)
    doubt = unconfirmed(story)
    first = f"Given up, {doubt}" if doubt else "Given up"
    reason = story.state_reason or "no further attempt is made"
    return Verdict(level="danger", clauses=(first, *why, "[e] see why", "[r] resume", reason), vital=4 + len(why))


def _with_reason(now: Situation, word: str, level: Level) -> Verdict:
    since = quantity.duration(now.now_t - now.story.state_t)
    reason = (now.story.state_reason,) if now.story.state_reason else ()
    return Verdict(level=level, clauses=(f"{word} for {since}", *reason))


SENTENCES: dict[str, Callable[[Situation], Verdict]] = {
    "idle": _idle,
    "starting": _starting,
    "running": _running,
    "hung": _hung,
    "stopping": _stopping,
    "cleaning": _cleaning,
    "backing_off": _backing_off,
    "paused": _paused,
    "suspended": _suspended,
    "queued": _queued,
    "stopped": _stopped,
    "interrupted": _interrupted,
    "finished": _finished,
    "ended_early": _ended_early,
    "given_up": _given_up,
}
