"""Incidents as a list, and one as a card: what happened, why, what was done, what it cost, what can be done about it.

No fact stands on a card twice. What can be done is chosen by a digit.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ..model.progress import Level
from ..model.run import (
    DIVERGING,
    LIVE_STATES,
    NAN_CLASSES,
    PAUSED_STATES,
    TERMINAL_STATES,
    VANISHED,
    EvidenceFile,
    Incident,
)
from ..model.story import ActionStory, RunStory, Situation, lacks_place
from ..model.text import LazyPattern
from . import quantity
from .checkpoint_list import resume_point, step_words
from .state.concerns import level_now, reason_now, reason_of
from .state.run_progress import last_step
from .words import how_likely, remedy_words, sentence, shown, switched, title_of, would_have

SHORT_S = 0.5
"""A shorter time would read *0 s*."""
BRIEF = 12
"""Characters of an ending that a list cuts the title for."""


class IncidentView(msgspec.Struct, frozen=True, kw_only=True):
    """One incident as text. Empty parts are unknown."""

    id: int
    kind: str
    title: str
    at: str
    level: Level
    open: bool
    acknowledged: bool
    status: str
    cost: str

    @property
    def endings(self) -> tuple[str, ...]:
        """Its status, from the longest text to the shortest: a list shows the first that fits."""
        short = self.status.partition(",")[0]
        full = (f"{self.status} · {self.cost}",) if self.cost else ()
        words = short.rpartition(" ")[0].partition(" (")[0]
        last = "open" if self.open else words or short
        return (*full, self.status, short, last, last if len(last) <= BRIEF else "over")


def incident_views(now: Situation) -> tuple[IncidentView, ...]:
    """All incidents, newest first, open ones before closed ones."""
    ordered = sorted(now.story.incidents, key=lambda i: (i.open, i.t, i.id), reverse=True)
    return tuple(incident_view(i, now) for i in ordered)


def folded(views: Sequence[IncidentView]) -> tuple[IncidentView, ...]:
    """Equal incidents as one, that of the newest, with how many there are and since when. In the order of the list."""
    alike: dict[tuple[str, str, bool], list[IncidentView]] = {}
    for view in views:
        alike.setdefault((view.kind, view.title, view.open), []).append(view)
    return tuple(
        newest
        if not older
        else msgspec.structs.replace(newest, title=f"{newest.title} · {len(older) + 1} times since {older[-1].at}")
        for newest, *older in alike.values()
    )


def incident_view(i: Incident, now: Situation) -> IncidentView:
    return IncidentView(
        id=i.id,
        kind=i.kind,
        title=title_now(i, now),
        at=quantity.clock(i.wall, now.now_wall, seconds=True),
        level=level_now(i, now),
        open=i.open,
        acknowledged=i.acknowledged,
        status=_status(i, now),
        cost=_cost(i),
    )


def evidence_words(i: Incident) -> tuple[str, ...]:
    """Each with its line of the log, if it is from there."""
    return tuple(e.what if e.line is None else f"{e.what} (log line {quantity.count(e.line)})" for e in i.evidence)


def title_now(i: Incident, now: Situation) -> str:
    """The name of a crash or a hang; the reason of another one, with its newest value."""
    return title_of(i) if i.kind in {"crash", "hang"} else reason_now(i, now)


def _status(i: Incident, now: Situation) -> str:
    if i.open:
        return "acknowledged" if i.acknowledged else f"open for {quantity.duration(now.now_t - i.t)}"
    ending = i.ending or "closed"
    if i.closed_t is None:
        return ending
    at, took = quantity.clock(now.story.wall0 + i.closed_t, now.now_wall, seconds=True), lasted_s(i)
    return f"{ending.partition(':')[0]} {at}" + (f", {quantity.duration(took)}" if took >= SHORT_S else "")


def lasted_s(i: Incident, until_t: float | None = None) -> float:
    """From when it began, which is before it was seen, until then, or its end; 0 while it is open."""
    end_t = i.closed_t if until_t is None else until_t
    return 0.0 if end_t is None else max(0.0, end_t - i.t) + (i.detect_s or 0.0)


LOST = "what was saved until then, but for the copies"
"""The cost of checkpoints that vanished."""


def _cost(i: Incident) -> str:
    cost = [] if i.lost_steps is None else [f"{quantity.plural(i.lost_steps, 'step')} again"]
    cost += [LOST] if i.class_ == VANISHED else []
    if i.closed_t is not None and i.detect_s is not None and (cost or i.kind == "stall"):
        cost.append(f"{quantity.duration(lasted_s(i))} without training")
    return " · ".join(cost)


# One incident as a card.

Heading = Literal["happened", "why", "where", "done", "cost", "end"]
HEADINGS: dict[Heading, str] = {
    "happened": "What happened",
    "why": "Why",
    "where": "Where it was",
    "done": "What was done",
    "cost": "What it cost",
    "end": "How it ended",
}
LABELS: dict[Heading, str] = {
    "happened": "seen", "why": "why", "where": "where", "done": "did", "cost": "cost", "end": "end",
}  # fmt: skip
"""The same in the margin."""
ACTION_WORDS: dict[str, str] = {
    "capture_stacks": "collected evidence",
    "look_for_loop": "looked for a loop",
    "stop_attempt": "ended the processes",
    "end_leftovers": "ended left-over processes",
    "clear_gpu": "waited for the GPU",
    "list_checkpoints": "listed the checkpoints",
    "copy_aside": "copied aside what a start may write over",
    "verify_checkpoint": "verified the checkpoint",
    "start_attempt": "started the next attempt",
    "pause_attempt": "paused it",
    "unpause_attempt": "continued it",
    "give_up": "gave up",
    "end_watch": "ended the watch",
}
Act = Literal["answer", "wait", "take", "remedy", "resume", "kill", "acknowledge", "log", "stacks", "copy"]
STACK_NAME = LazyPattern(r"^stacks-(?P<pid>\d+)-(?P<round>\d+)\.txt$")


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """``line``: in the log of the attempt, from 1."""

    heading: Heading
    text: str
    line: int | None = None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person can do. ``acts``: it changes the run, after a question that names the price.

    ``name``: of the remedy, for ``take``; the advice that ``remedy`` copies. ``line``: which ``log`` shows.
    """

    text: str
    act: Act
    name: str = ""
    line: int = 0
    acts: bool = True


class IncidentCard(msgspec.Struct, frozen=True, kw_only=True):
    """``failure``: its class. ``log``: which its lines are of."""

    number: int
    failure: str
    view: IncidentView
    title: str
    rows: tuple[CardRow, ...]
    choices: tuple[Choice, ...]
    log: str | None = None


def incident_card(now: Situation, number: int, remedies: Sequence[str] = ()) -> IncidentCard | None:
    """The card of an incident; None if there is none. ``remedies``: what its failure class advises."""
    story = now.story
    incident = next((i for i in story.incidents if i.id == number), None)
    if incident is None:
        return None
    view = incident_view(incident, now)
    actions = tuple(a for a in story.actions if a.incident == number)
    rows = tuple(_with_confidence(_without_repeats(_rows(now, incident, view, actions), view.title), incident))
    log = next((a.log for a in story.attempts if a.number == incident.attempt), None)
    captured = any(a.kind == "capture_stacks" and a.done_t is not None for a in actions)
    return IncidentCard(
        number=number,
        failure=incident.class_,
        view=view,
        title=f"{view.at}  {view.kind}: {view.title}",
        rows=rows,
        choices=tuple(_choices(now, incident, [r.line for r in rows if r.line and log], remedies, captured=captured)),
        log=log,
    )


def _looks(files: Iterable[EvidenceFile]) -> dict[int, list[EvidenceFile]]:
    """Process → its dumps, oldest first."""
    dumps = [(match, file) for file in files if (match := STACK_NAME.match(file.name))]
    found: dict[int, list[EvidenceFile]] = {int(match["pid"]): [] for match, _ in dumps}
    for match, file in sorted(dumps, key=lambda each: int(each[0]["round"])):
        found[int(match["pid"])].append(file)
    return found


def card_markdown(card: IncidentCard, run: str) -> str:
    text = [f"### {run}: {card.title}"]
    heading: Heading | None = None
    for row in card.rows:
        if row.heading != heading:
            heading = row.heading
            text += ["", f"**{HEADINGS[heading]}**", ""]
        text.append(f"- {row.text}" + ("" if row.line is None else f" (log line {quantity.count(row.line)})"))
    if card.log:
        text += ["", f"Log: `{card.log}`"]
    return "\n".join(text) + "\n"


def _rows(
    now: Situation, incident: Incident, view: IncidentView, actions: tuple[ActionStory, ...]
) -> Iterator[CardRow]:
    causes, others = _evidence(incident)
    if _plain(incident.reason) != _plain(view.title):  # else the title says it
        # Without the line of the log whose beginning it ends with, if the card shows more of it as the cause.
        head, _, tail = incident.reason.partition(": ")
        begins = tail.endswith("…") and any(cause.text.startswith(tail[:-1]) for cause in causes)
        yield CardRow(heading="happened", text=sentence(head if begins else incident.reason))
    at = "" if incident.step is None else f" at step {quantity.count(incident.step)}"
    number = f"attempt {incident.attempt}" if incident.attempt else "before the first attempt"
    late_s = incident.detect_s
    seen = "" if late_s is None else " · seen at once" if late_s < 1 else f" · seen after {quantity.duration(late_s)}"
    yield CardRow(heading="happened", text=f"{view.status} · {number}{at}{seen}")
    yield from causes
    if incident.explanation:
        yield CardRow(heading="why", text=incident.explanation)
    yield from others
    stacks = (a.detail for a in actions if a.kind == "capture_stacks" and a.detail)
    yield from (CardRow(heading="where", text=text) for text in stacks)
    yield from _done(now, incident, actions)
    yield from (CardRow(heading="done", text=f"changed {said}") for said in changes_after(now.story, incident))
    for remedy in now.story.remedies:
        if remedy.incident == incident.id:
            price = f"; cost: {remedy.cost}" if remedy.cost else ""
            yield CardRow(heading="done", text=f"{remedy.title}: {remedy_words(remedy)}{price}")
    step, cost = last_step(now), "not known yet" if incident.open else "nothing that is known"
    cost = "not known" if incident.kind in {"crash", "hang"} and not incident.open else cost
    if incident.open and step is not None and step.level != "safe":
        cost = f"no step for {quantity.duration(step.age_s)} so far"
    yield CardRow(heading="cost", text=view.cost or cost)
    if incident.ending:
        yield CardRow(heading="end", text=incident.ending)


def _evidence(incident: Incident) -> tuple[list[CardRow], list[CardRow]]:
    """The line of the log that is the cause of a crash and its consequences; the other measurements."""
    rows = [(e, CardRow(heading="why", text=e.what, line=e.line)) for e in incident.evidence]
    cause = next((row for e, row in rows if incident.kind == "crash" and not e.then and e.line is not None), None)
    first = ([] if cause is None else [cause]) + [row for e, row in rows if e.then]
    return first, [row for e, row in rows if row is not cause and not e.then]


def _done(now: Situation, incident: Incident, actions: tuple[ActionStory, ...]) -> Iterator[CardRow]:
    """``+6 s  ended the processes: 9 processes ended (4 s)``; seconds from the incident on."""
    if not actions and incident.open:
        yield CardRow(heading="done", text="nothing yet")
    if incident.open and incident.kind in {"crash", "hang"} and now.story.state_why.holds:
        yield CardRow(heading="done", text=reason_of(now.story))
    before = ""
    listed: set[str] = set()
    for action in actions:
        words = ACTION_WORDS.get(action.kind, action.kind.replace("_", " "))
        told = f"{words}{_outcome(action, over=not incident.open)}"
        if told != before and told not in listed:  # the checkpoints are listed again before a launch
            yield CardRow(heading="done", text=f"+{max(0.0, _began_t(action, actions) - incident.t):.0f} s  {told}")
        before = told
        if action.kind == "list_checkpoints":
            listed.add(told)


def _began_t(action: ActionStory, actions: tuple[ActionStory, ...]) -> float:
    """Run seconds. A stop waits for the evidence that was asked for before it, unless it kills."""
    looks = [a.done_t for a in actions if a.kind == "capture_stacks" and a.id < action.id and a.done_t is not None]
    before = [t for t in looks if action.kind == "stop_attempt" and (action.done_t is None or t <= action.done_t)]
    return max([action.t, *before])


def _outcome(action: ActionStory, *, over: bool) -> str:
    """What an action says of its result, and the seconds it took unless it says them."""
    if action.done_t is None:
        return "" if over or action.kind in {"give_up", "end_watch"} else ": under way"
    how = "" if action.kind == "capture_stacks" else action.detail.removesuffix(" (0.0 s)")
    told = f": {'' if action.ok else 'failed: '}{how}" if how or not action.ok else ""
    seconds = action.done_t - action.t
    return told if seconds < 1 or how.endswith((" s)", " s")) else f"{told} ({seconds:.0f} s)"


def changes_after(story: RunStory, incident: Incident) -> tuple[str, ...]:
    """Changes of the next attempt: ``vae_batch_size 2 → 1 (CUDA out of memory)``."""
    before = next((a for a in story.attempts if a.number == incident.attempt), None)
    after = next((a for a in story.attempts if a.number > incident.attempt), None)
    if incident.kind not in {"crash", "hang", "resume"} or before is None or after is None:
        return ()
    profile = (f"profile  {before.profile or 'none'} → {after.profile or 'none'}",)
    return (profile if before.profile != after.profile else ()) + tuple(
        f"{c.key}  {shown(c.before)} → {shown(c.after)}" + (f"  ({c.why})" if c.why else "")
        for c in switched(before.changes, after.changes)
    )


def _without_repeats(rows: Iterable[CardRow], title: str) -> list[CardRow]:
    """Leave out what a row before says already, or the title; the row that says it gets the line of the log."""
    kept: list[CardRow] = []
    for row in rows:
        text = _plain(row.text)
        said = next((at for at, other in enumerate(kept) if text in _plain(other.text)), None)
        if row.heading not in {"why", "where", "end"} or not kept or (said is None and text != _plain(title)):
            kept.append(row)
        elif said is not None and kept[said].line is None:
            kept[said] = msgspec.structs.replace(kept[said], line=row.line)
    return kept


def _with_confidence(rows: Iterable[CardRow], incident: Incident) -> list[CardRow]:
    """Say in the first row of the reasons how likely they are; if all of them stand elsewhere, in a row of its own."""
    found = list(rows)
    if incident.confidence is None:
        return found
    sure = sentence(how_likely(incident.confidence))
    at = next(number for number, row in enumerate(found) if row.heading != "happened")
    if incident.kind == "hang":
        found.insert(at, CardRow(heading="why", text=f"{sure} that it would not go on"))
    elif found[at].heading == "why":
        found[at] = msgspec.structs.replace(found[at], text=f"{sure}: {found[at].text}")
    else:
        found.insert(at, CardRow(heading="why", text=sure))
    return found


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()


def _choices(
    now: Situation, incident: Incident, lines: Sequence[int], remedies: Sequence[str], *, captured: bool
) -> Iterator[Choice]:
    """``lines``: of the log, if they can be shown."""
    story = now.story
    live, held = story.state in LIVE_STATES, story.question
    if held is not None and held.fact.incident in {incident.id, None}:
        what = f"yes: {held.fact.question}" if held.fact.asks else sentence(would_have(held, story.wall0, now.now_wall))
        yield Choice(text=what, act="answer")
    paused = incident.open and story.state in PAUSED_STATES
    if paused:
        yield Choice(text="let it go on (SIGCONT)", act="resume")
    elif incident.open and incident.kind in {"hang", "quiet", "stall"} and live:
        yield Choice(text="give it more time", act="wait")
    point = resume_point(now)
    start = "from the beginning" if point is None else f"from {point.name if point.step is None else step_words(point)}"
    verb = "restart" if live else "resume"
    waiting = [remedy for remedy in story.proposals if remedy.incident == incident.id]
    for remedy in waiting:
        price = f"; cost: {remedy.cost}" if remedy.cost else ""
        text = f"{verb} {start} with {remedy_words(remedy)}{price}"
        yield Choice(text=text, act="take", name=remedy.name)
    for advice in remedies:
        yield Choice(text=f"copy: {advice}", act="remedy", name=advice, acts=False)
    if live:
        restarts = incident.open and not paused
    elif story.state == "finished":  # nothing is left to train, but what was trained may be worthless
        restarts = incident.class_ in {*NAN_CLASSES, DIVERGING}
    else:
        restarts = story.state in TERMINAL_STATES or story.state == "interrupted"
    if story.attempts and restarts:
        text = f"{verb} {start}, or choose another checkpoint"
        if not live and lacks_place(story):
            text = "resume, once the script has an option that takes the path of a checkpoint, or begin anew"
        yield Choice(text=text, act="resume")
    if live and incident.open:
        yield Choice(text="kill it", act="kill")
    if incident.open and not incident.acknowledged:
        yield Choice(text="acknowledge it; it stays in the list until it is over", act="acknowledge")
    if captured:
        kept = "evidence" if incident.kind == "crash" else "stacks"  # a process that has ended has no stacks
        yield Choice(text=f"see the {kept}", act="stacks", acts=False)
    for line in dict.fromkeys(lines):
        yield Choice(text=f"see the log at line {quantity.count(line)}", act="log", line=line, acts=False)
    yield Choice(text="copy as Markdown", act="copy", acts=False)


# The evidence files of an incident: first and last stack dump of each process, then the others.


class EvidencePage(msgspec.Struct, frozen=True, kw_only=True):
    """A file. ``differs``: indices of frames that the other look at the process does not have; ``verdict``: of both."""

    title: str
    lines: tuple[str, ...]
    differs: frozenset[int] = frozenset()
    verdict: str = ""
    cut: bool = False


def evidence_pages(files: Sequence[EvidenceFile]) -> Iterator[EvidencePage]:
    for pid, found in _looks(files).items():
        shown = {"first look": found[0], "last look": found[-1]} if len(found) > 1 else {"one look": found[0]}
        texts = [tuple(file.text.splitlines()) for file in shown.values()]
        # Headings of threads say active or idle, which always differs: only frames are compared.
        differs = [
            frozenset(i for i, line in enumerate(own) if line.startswith("    ") and line not in other)
            for own, other in zip(texts, texts[::-1], strict=True)
        ]
        verdict = "It moved between the looks." if any(differs) else "It was at the same place in both looks."
        verdict = verdict if len(found) > 1 else "One look only: whether it moved is unknown."
        for (name, file), lines, others in zip(shown.items(), texts, differs, strict=True):
            title = f"process {pid} · {name}"
            yield EvidencePage(title=title, lines=lines, differs=others, verdict=verdict, cut=file.cut)
    rest = (file for file in files if not STACK_NAME.match(file.name))
    for file in sorted(rest, key=lambda f: (f.name != "log-tail.txt", f.name)):
        yield EvidencePage(title=file.name, lines=tuple(file.text.splitlines()), cut=file.cut)
