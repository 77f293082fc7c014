"""One incident in full: what was seen, cause and consequences, decisions and reasons, and its end."""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from ...model.attempt import AttemptStory, EvidenceFile, Incident
from ...model.change import Change
from ...model.progress import Level
from ...model.situation import Situation
from ...model.story import ActionStory, RunStory
from .. import quantity
from ..incident_list import IncidentView, incident_view
from ..words import of_incident, shown

Part = Literal[
    "seen", "why", "cause", "then", "evidence", "stacks", "did", "changed", "proposed", "ended", "cost", "state",
]  # fmt: skip
"""How the judge marks evidence that is a consequence of the cause."""
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


class DetailLine(msgspec.Struct, frozen=True, kw_only=True):
    """``line``: in the log of the attempt, from 1. ``ok``: the result of an action, None = not known yet."""

    part: Part
    text: str
    line: int | None = None
    level: Level | None = None


class IncidentDetail(msgspec.Struct, frozen=True, kw_only=True):
    """``log``: path of the log of the line numbers; ``files``: whether there are evidence files."""

    view: IncidentView
    attempt: int
    log: str | None
    lines: tuple[DetailLine, ...]
    captured: bool


def incident_detail(now: Situation, number: int) -> IncidentDetail | None:
    """The details of incident ``number``; None if there is none."""
    story = now.story
    incident = next((i for i in story.incidents if i.id == number), None)
    if incident is None:
        return None
    actions = tuple(a for a in story.actions if a.incident == number)
    attempt = next((a for a in story.attempts if a.number == incident.attempt), None)
    view = incident_view(incident, now)
    lines = [
        DetailLine(part="state", text=_state(view, incident), level=view.level if incident.open else None),
        DetailLine(part="seen", text=incident.reason),
    ]
    if incident.explanation:
        lines.append(DetailLine(part="why", text=incident.explanation))
    lines += _evidence(incident)
    lines += [DetailLine(part="stacks", text=a.detail) for a in actions if a.kind == "capture_stacks" and a.detail]
    lines += [_action(a, now, over=not incident.open) for a in actions]
    lines += [DetailLine(part="changed", text=said) for said in changes_after(story, incident)]
    lines += _remedies(story, number)
    if incident.ending:
        lines.append(DetailLine(part="ended", text=incident.ending))
    if view.cost:
        lines.append(DetailLine(part="cost", text=view.cost))
    return IncidentDetail(
        view=view,
        attempt=incident.attempt,
        log=None if attempt is None else attempt.log,
        lines=tuple(lines),
        captured=any(a.kind == "capture_stacks" and a.done_t is not None for a in actions),
    )


def _remedies(story: RunStory, number: int) -> list[DetailLine]:
    """Permanent changes because of it with their cost, and open decisions."""
    lines = []
    for row in of_incident(story, number):
        cost = f" Cost: {row.cost}." if row.cost else ""
        if row.applied:
            lines.append(DetailLine(part="changed", text=f"{row.title}: {row.words}.{cost}"))
        else:
            text = f"{row.title}: {row.words}.{cost} Needs your decision: {row.why}. [r] on the dashboard applies it."
            lines.append(DetailLine(part="proposed", text=text, level="warning"))
    return lines


def _state(view: IncidentView, incident: Incident) -> str:
    step = "" if incident.step is None else f" at step {quantity.count(incident.step)}"
    seen = ""
    if incident.detect_s is not None:
        seen = " · seen at once" if incident.detect_s < 1 else f" · seen after {quantity.duration(incident.detect_s)}"
    number = f"attempt {incident.attempt}" if incident.attempt else "before the first attempt"
    return f"{view.status} · {number}{step}{seen}"


def _evidence(incident: Incident) -> list[DetailLine]:
    """The first line of the log is the cause, marked lines are its consequences, the rest are other measurements."""
    lines: list[DetailLine] = []
    cause_told = incident.kind != "crash"
    for e in incident.evidence:
        part: Part = "then" if e.then else "evidence"
        if not (e.then or cause_told or e.line is None):
            part, cause_told = "cause", True
        lines.append(DetailLine(part=part, text=e.what, line=e.line))
    order = {"cause": 0, "then": 1, "evidence": 2}
    return sorted(lines, key=lambda d: order[d.part])


def _action(a: ActionStory, now: Situation, *, over: bool) -> DetailLine:
    """``over``: its incident is closed, so nothing of it is under way."""
    at = quantity.clock(now.story.wall0 + a.t, now.now_wall, seconds=True)
    text = f"{at} {_with_reason(ACTION_WORDS.get(a.kind, a.kind.replace('_', ' ')), a.reason)}"
    if a.done_t is None:
        waits = not over and a.kind not in {"give_up", "end_watch"}
        return DetailLine(part="did", text=f"{text} → under way" if waits else text)
    how, seconds = result_of(a)
    took = f" ({quantity.duration(seconds)})" if seconds else ""
    end = f" → {'' if a.ok else 'failed: '}{how or 'done'}{took}"
    return DetailLine(part="did", text=text + end, level=None if a.ok else "warning")


def result_of(a: ActionStory) -> tuple[str, float]:
    """What an action that is done says of its result, and the seconds it took: 0 if it says them, or if less than 1."""
    how = "" if a.kind == "capture_stacks" else a.detail.removesuffix(" (0.0 s)")
    seconds = 0.0 if a.done_t is None else a.done_t - a.t
    return how, 0.0 if seconds < 1 or how.endswith((" s)", " s")) else seconds


def _with_reason(words: str, reason: str) -> str:
    """``listed``, ``list the checkpoints before the launch``: a reason that says the same again goes on from there."""
    done, again, rest = words.partition(" ")[0], *reason.partition(" ")[::2]
    says_it = len(again) > 2 and done.startswith(again.removesuffix("y").removesuffix("e"))
    return f"{done} {rest}" if says_it and rest else f"{words}: {reason}"


def changes_after(story: RunStory, incident: Incident) -> tuple[str, ...]:
    """Changes of the next attempt: ``vae_batch_size 2 → 1 (CUDA out of memory)``."""
    if incident.kind not in {"crash", "hang", "resume"}:
        return ()
    before = next((a for a in story.attempts if a.number == incident.attempt), None)
    after = next((a for a in story.attempts if a.number > incident.attempt), None)
    if before is None or after is None:
        return ()
    said = [
        f"{key}  {shown(one)} → {shown(two)}" + (f"  ({why})" if why else "")
        for key, one, two, why in differences(before, after)
    ]
    if before.profile != after.profile:
        said.insert(0, f"profile  {before.profile or 'none'} → {after.profile or 'none'}")
    return tuple(said)


def differences(before: AttemptStory, after: AttemptStory) -> list[tuple[str, object, object, str]]:
    """(key, value in one attempt, value in the other, why) of each setting that differs between two launches."""
    old: dict[str, Change] = {c.key: c for c in before.changes}
    new: dict[str, Change] = {c.key: c for c in after.changes}
    found = []
    for key in dict.fromkeys([*old, *new]):
        was = old[key].after if key in old else new[key].before
        now = new[key].after if key in new else old[key].before
        if was != now:
            found.append((key, was, now, new[key].why if key in new else "back to your own config"))
    return found


HEADINGS: dict[Part, str] = {
    "state": "State",
    "seen": "What was seen",
    "why": "What it means",
    "cause": "Cause",
    "then": "Consequences",
    "evidence": "Evidence",
    "stacks": "Stacks",
    "did": "Decisions and reasons",
    "changed": "Changes",
    "proposed": "Possible changes that need your decision",
    "ended": "End",
    "cost": "Cost",
}


def incident_markdown(detail: IncidentDetail, run: str) -> str:
    view = detail.view
    text = [f"### {run}: {view.kind}, {view.title} ({view.at})"]
    part: Part | None = None
    for line in detail.lines:
        if line.part != part:
            part = line.part
            text += ["", f"**{HEADINGS[part]}**", ""]
        where = "" if line.line is None else f" (log line {quantity.count(line.line)})"
        quoted = line.part in {"cause", "then"}
        body = f"`{line.text.replace('`', chr(39))}`" if quoted else line.text
        text.append(f"- {body}{where}")
    if detail.log:
        text += ["", f"Log: `{detail.log}`"]
    return "\n".join(text) + "\n"


# The stack dumps of an incident, by process, two looks side by side.

STACK_NAME = re.compile(r"^stacks-(?P<pid>\d+)-(?P<round>\d+)\.txt$")


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """One column: a file's lines. ``differs``: indices of lines that the sheet beside it does not have."""

    name: str
    title: str
    lines: tuple[str, ...]
    differs: frozenset[int] = frozenset()
    cut: bool = False


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Two looks at one process side by side, or one file alone. ``verdict``: a sentence about both."""

    title: str
    sheets: tuple[Sheet, ...]
    verdict: str = ""


def spreads(files: Sequence[EvidenceFile]) -> tuple[Spread, ...]:
    """Stack dumps first, by process, the first and the last look; then every other file."""
    looks: dict[int, list[tuple[int, EvidenceFile]]] = {}
    others: list[EvidenceFile] = []
    for file in files:
        match = STACK_NAME.match(file.name)
        if match:
            looks.setdefault(int(match["pid"]), []).append((int(match["round"]), file))
        else:
            others.append(file)
    found = [_process(pid, [f for _, f in sorted(rounds, key=lambda r: r[0])]) for pid, rounds in looks.items()]
    for file in sorted(others, key=lambda f: (f.name != "log-tail.txt", f.name)):
        lines = tuple(file.text.splitlines())
        sheet = Sheet(name=file.name, title=file.name, lines=lines, cut=file.cut)
        found.append(Spread(title=file.name, sheets=(sheet,)))
    return tuple(found)


def _process(pid: int, rounds: list[EvidenceFile]) -> Spread:
    first, last = rounds[0], rounds[-1]
    one = tuple(first.text.splitlines())
    if first is last:
        sheet = Sheet(name=first.name, title="one look", lines=one, cut=first.cut)
        return Spread(title=f"process {pid}", sheets=(sheet,), verdict="One look only: whether it moved is unknown.")
    two = tuple(last.text.splitlines())
    sheets = (
        Sheet(name=first.name, title="first look", lines=one, differs=_missing(one, two), cut=first.cut),
        Sheet(name=last.name, title="last look", lines=two, differs=_missing(two, one), cut=last.cut),
    )
    moved = any(sheet.differs for sheet in sheets)
    verdict = "It moved between the looks." if moved else "It was at the same place in both looks."
    return Spread(title=f"process {pid}", sheets=sheets, verdict=verdict)


def _missing(lines: tuple[str, ...], beside: tuple[str, ...]) -> frozenset[int]:
    """Frames that the other look does not have; headings of threads say active or idle, which always differs."""
    known = set(beside)
    return frozenset(i for i, line in enumerate(lines) if line.startswith("    ") and line not in known)
