"""One incident as one card: what happened, why, where, what was done, what it cost, and what can be done about it.

No fact stands there twice. Every choice has a letter; digits lead to screens.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ...model.attempt import EvidenceFile, Incident
from ...model.run import LIVE_STATES, TERMINAL_STATES
from ...model.situation import Situation
from ...model.story import ActionStory, Need, NeedKind, Summary, lacks_place
from .. import quantity
from ..checkpoint_list import resume_point
from ..incident_list import IncidentView
from ..state.by_itself import reason_of
from ..state.run_progress import last_step
from ..withheld_words import would_have
from ..words import how_likely, of_incident, sentence
from .incident_detail import ACTION_WORDS, STACK_NAME, IncidentDetail, Part, changes_after, incident_detail, result_of

Heading = Literal["happened", "why", "where", "done", "cost", "end"]
HEADINGS: dict[Heading, str] = {
    "happened": "What happened",
    "why": "Why",
    "where": "Where it was",
    "done": "What was done",
    "cost": "What it cost",
    "end": "How it ended",
}
LETTERS = "abdefghimnop"
"""For proposed remedies: no letter that is a choice of its own, and none that scrolls or closes."""
Act = Literal["answer", "wait", "take", "resume", "kill", "acknowledge", "log", "stacks", "teach", "copy"]
MOST_PROCESSES = 8
HINT = 0.5
"""Below this confidence a cause is no more than a hint, and a person may know better."""
_FRAME = re.compile(r"^ {4}(?P<function>.+?) \((?P<file>[^()]+?):(?P<line>\d+)\)\s*$")
_LIBRARY = re.compile(r"site-packages|dist-packages|/lib/python\d|<frozen|<string>|importlib")
_LIBRARY_SHORT = re.compile(
    r"^(torch|threading|selectors|queue|socket|subprocess|multiprocessing|asyncio|concurrent|ssl|connection|popen)\b"
)


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """``line``: in the log of the attempt, from 1."""

    heading: Heading
    text: str
    line: int | None = None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person can do: press ``key``. ``acts``: it changes the run, after a question that names the price."""

    key: str
    text: str
    act: Act
    name: str = ""
    """Of the remedy, for ``take``."""
    acts: bool = True


class IncidentCard(msgspec.Struct, frozen=True, kw_only=True):
    """``line``: of the cause, in the log ``log``."""

    number: int
    title: str
    rows: tuple[CardRow, ...]
    choices: tuple[Choice, ...]
    danger: bool
    log: str | None = None
    line: int | None = None


def incident_card(now: Situation, number: int, where: Sequence[str] = ()) -> IncidentCard | None:
    """The card of an incident; None if there is none. ``where``: ``innermost`` of its evidence files."""
    incident = next((i for i in now.story.incidents if i.id == number), None)
    detail = incident_detail(now, number)
    if incident is None or detail is None:
        return None
    view = detail.view
    rows = tuple(_with_confidence(_without_repeats(_rows(now, incident, detail, where), view.title), incident))
    line = next((row.line for row in rows if row.line is not None), None)
    return IncidentCard(
        number=number,
        title=f"{view.at}  {view.kind}: {view.title}",
        rows=rows,
        choices=tuple(_choices(now, incident, detail, line)),
        danger=view.open and view.level == "danger",
        log=detail.log,
        line=line,
    )


def innermost(files: Iterable[EvidenceFile]) -> tuple[str, ...]:
    """The innermost frame of the user's own code in each process, by its newest dump: ``train.py:88 in step (pid 7)``.

    A process in which no such frame is seen is left out.
    """
    newest: dict[int, tuple[int, str]] = {}
    for file in files:
        if match := STACK_NAME.match(file.name):
            pid, look = int(match["pid"]), int(match["round"])
            if pid not in newest or look > newest[pid][0]:
                newest[pid] = (look, file.text)
    frames = ((pid, _own_frame(text)) for pid, (_, text) in sorted(newest.items()))
    return tuple(f"{frame} (pid {pid})" for pid, frame in frames if frame)[:MOST_PROCESSES]


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


def _own_frame(dump: str) -> str:
    """The main thread comes first in a dump, and the innermost frame first in a thread."""
    found = [match for line in dump.splitlines() if (match := _FRAME.match(line))]
    own = [f for f in found if not _LIBRARY.search(f["file"]) and not _LIBRARY_SHORT.match(f["file"])]
    chosen = (own or found)[:1]
    return f"{chosen[0]['file']}:{chosen[0]['line']} in {chosen[0]['function']}" if chosen else ""


def _rows(now: Situation, incident: Incident, detail: IncidentDetail, where: Sequence[str]) -> Iterator[CardRow]:
    parts: dict[Part, Heading] = {"cause": "why", "then": "why", "why": "why", "evidence": "why", "stacks": "where"}
    if _plain(incident.reason) != _plain(detail.view.title):  # else the title says it
        yield CardRow(heading="happened", text=sentence(_without_cause(incident.reason, detail)))
    yield CardRow(heading="happened", text=next(line.text for line in detail.lines if line.part == "state"))
    for part, heading in parts.items():
        for line in detail.lines:
            if line.part == part:
                yield CardRow(heading=heading, text=line.text, line=line.line)
        if part == "stacks":
            stacks = " ".join(line.text for line in detail.lines if line.part == "stacks")
            for frame in where:
                if frame.partition(" ")[0] not in stacks:
                    yield CardRow(heading="where", text=frame)
    yield from _done(now, incident)
    for said in changes_after(now.story, incident):
        yield CardRow(heading="done", text=f"changed {said}")
    for row in of_incident(now.story, incident.id):
        if row.applied:
            price = f"; cost: {row.cost}" if row.cost else ""
            yield CardRow(heading="done", text=f"{row.title}: {row.words}{price}")
    yield CardRow(heading="cost", text=_cost(now, incident, detail.view))
    if incident.ending:
        yield CardRow(heading="end", text=incident.ending)


def _without_cause(reason: str, detail: IncidentDetail) -> str:
    """The reason without a line of the log whose beginning it ends with, if the card shows more of it as the cause."""
    head, colon, tail = reason.partition(": ")
    causes = (line.text for line in detail.lines if line.part == "cause")
    begins = tail.endswith("…") and any(cause.startswith(tail[:-1]) for cause in causes)
    return head if colon and begins else reason


def _done(now: Situation, incident: Incident) -> Iterator[CardRow]:
    """``+6 s  ended the processes: 9 processes ended (4 s)``; seconds from the incident on."""
    actions = [a for a in now.story.actions if a.incident == incident.id]
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
            yield CardRow(heading="done", text=f"+{max(0.0, action.t - incident.t):.0f} s  {told}")
        before = told
        if action.kind == "list_checkpoints":
            listed.add(told)


def _outcome(action: ActionStory, *, over: bool) -> str:
    if action.done_t is None:
        return "" if over or action.kind in {"give_up", "end_watch"} else ": under way"
    how, seconds = result_of(action)
    told = f": {'' if action.ok else 'failed: '}{how}" if how or not action.ok else ""
    return f"{told} ({seconds:.0f} s)" if seconds else told


def _cost(now: Situation, incident: Incident, view: IncidentView) -> str:
    if view.cost:
        return view.cost
    step = last_step(now)
    if incident.open and step is not None and step.level != "safe":
        return f"no step for {quantity.duration(step.age_s)} so far"
    return "not known yet" if incident.open else "nothing that is known"


def _without_repeats(rows: Iterable[CardRow], title: str) -> Iterator[CardRow]:
    """Leave out what a row before says already, or the title; the row that says it gets the line of the log."""
    kept: list[CardRow] = []
    for row in rows:
        text = _plain(row.text)
        said = next((at for at, other in enumerate(kept) if text in _plain(other.text)), None)
        if row.heading not in {"why", "where", "end"} or not kept or (said is None and text != _plain(title)):
            kept.append(row)
        elif said is not None and kept[said].line is None:
            kept[said] = msgspec.structs.replace(kept[said], line=row.line)
    yield from kept


def _with_confidence(rows: Iterable[CardRow], incident: Incident) -> Iterator[CardRow]:
    """Say in the first row of the reasons how likely they are; if all of them stand elsewhere, in a row of its own."""
    sure = "" if incident.confidence is None else sentence(how_likely(incident.confidence))
    hangs = CardRow(heading="why", text=f"{sure} that it would not go on")
    for row in rows:
        if sure and incident.kind == "hang" and row.heading != "happened":
            yield hangs
            sure = ""
        if sure and row.heading == "why":
            yield msgspec.structs.replace(row, text=f"{sure}: {row.text}")
            sure = ""
            continue
        if sure and row.heading != "happened":
            yield CardRow(heading="why", text=sure)
            sure = ""
        yield row


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()


def _choices(now: Situation, incident: Incident, detail: IncidentDetail, line: int | None) -> Iterator[Choice]:
    story = now.story
    live, held = story.state in LIVE_STATES, story.question
    if held is not None and held.action.incident in {incident.id, None}:
        what = f"yes: {held.action.question}" if held.action.asks else sentence(would_have(held, story.wall0))
        yield Choice(key="Y", text=what, act="answer")
    if incident.open and story.state == "suspended":
        yield Choice(key="r", text="let it go on (SIGCONT)", act="resume")
    elif incident.open and incident.kind in {"hang", "quiet", "stall"} and live:
        yield Choice(key="w", text="give it more time", act="wait")
    point = resume_point(now)
    start = "from the beginning" if point is None else f"from {_place(point.step, point.name)}"
    verb = "restart" if live else "resume"
    waiting = [row for row in of_incident(story, incident.id) if not row.applied]
    for letter, row in zip(LETTERS, waiting, strict=False):
        price = f"; cost: {row.cost}" if row.cost else ""
        yield Choice(key=letter, text=f"{verb} {start} with {row.words}{price}", act="take", name=row.name)
    over = live and not incident.open  # nothing has to be done about it
    if story.attempts and not over and (live or story.state in TERMINAL_STATES or story.state == "interrupted"):
        text = f"{verb} {start}, or choose another checkpoint"
        if not live and lacks_place(story):
            text = "resume, once the script has an option that takes the path of a checkpoint, or begin anew"
        yield Choice(key="r", text=text, act="resume")
    if live and incident.open:
        yield Choice(key="k", text="kill it", act="kill")
    if incident.open and not incident.acknowledged:
        yield Choice(key="c", text="acknowledge it; it stays in the list until it is over", act="acknowledge")
    if line is not None and detail.log:
        yield Choice(key="l", text=f"see the log at line {quantity.count(line)}", act="log", acts=False)
    if detail.captured:
        kept = "evidence" if incident.kind == "crash" else "stacks"  # a process that has ended has no stacks
        yield Choice(key="s", text=f"see the {kept}", act="stacks", acts=False)
    if incident.kind == "crash" and (incident.class_ == "unknown" or (incident.confidence or 1.0) < HINT):
        yield Choice(key="t", text="name the cause: the line that ended it is learned", act="teach")
    yield Choice(key="y", text="copy as Markdown", act="copy", acts=False)


def _place(step: int | None, name: str) -> str:
    return name if step is None else f"step {quantity.count(step)}"


# The card for somebody who comes back: what happened, and a key for each thing that needs them.

AwayAct = Literal["answer", "resume", "supervisor", "explain", "checkpoints"]
KEYS: dict[NeedKind, tuple[str, AwayAct]] = {
    "given_up": ("r", "resume"),
    "ended_early": ("r", "resume"),
    "held": ("r", "resume"),
    "question": ("Y", "answer"),
    "paused": ("r", "resume"),
    "unwatched": ("S", "supervisor"),
    "nan": ("r", "resume"),
    "incident": ("e", "explain"),
    "checkpoints": ("4", "checkpoints"),
    "unclear": ("4", "checkpoints"),
}
FURTHER = "abcdfghi"
"""For further incidents: no key that scrolls or closes, and none of KEYS."""


class AwayChoice(msgspec.Struct, frozen=True, kw_only=True):
    """``key`` empty: nothing on the screen can do it. ``incident``: what ``explain`` is of."""

    key: str
    text: str
    act: AwayAct | None
    incident: int | None = None

    @property
    def acts(self) -> bool:
        """It changes the run, after a question that names the price."""
        return self.act in {"answer", "resume", "supervisor"}


class AwayCard(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    rows: tuple[str, ...]
    choices: tuple[AwayChoice, ...]
    danger: bool


def away_card(said: Summary) -> AwayCard:
    return AwayCard(
        title=said.title,
        rows=said.lines,
        choices=tuple(_away_card_choices(said.needs)),
        danger=any(need.urgent for need in said.needs),
    )


def _away_card_choices(needs: tuple[Need, ...]) -> Iterator[AwayChoice]:
    used: set[str] = set()
    further = iter(FURTHER)
    for need in needs:
        key, act = KEYS.get(need.kind, ("", None))
        if key in used and need.incident is not None:  # what is done about the first is done about this one, too
            key, act = ("e" if "e" not in used else next(further, "")), "explain"
        elif key in used:
            key, act = "", None
        used.add(key)
        yield AwayChoice(key=key, text=need.text, act=act, incident=need.incident)
