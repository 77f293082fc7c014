"""The expected length of a training in words, for the checks, the launch and the run before its first step."""

from collections.abc import Sequence
from typing import Any

from ..model.launch import Rehearsal
from ..model.preset import ResumeWay, SecondStart
from ..model.progress import ExpectedLength
from ..model.wrappers import Layer, layers
from ..views import quantity


def by_words(total_by: str | None) -> str:
    """`` (by --epochs 50)``: by what the end of the run is known, if not by its log."""
    if total_by is None:
        return ""
    return " (a guess)" if total_by.startswith("a guess") else f" (by {total_by})"


def time_words(expected: ExpectedLength) -> str:
    """``about 7 h 07 m``, ``4 d 4 h to 8 d 8 h``; empty if the time is unknown."""
    if expected.seconds is None:
        return ""
    least = quantity.duration(expected.seconds)
    most = expected.most_seconds
    return f"about {least}" if most is None else f"{least} to {quantity.duration(most)}"


def length_words(expected: ExpectedLength) -> str:
    """Time, pace and steps, and where they are from. A guess is called one."""
    steps = f"about {quantity.count(expected.steps)} steps: {expected.by}"
    if expected.seconds is None:
        return f"{steps}; the time per step is known after a first run or a trial"
    pace = quantity.pace(expected.pace_s)
    if not expected.guess:
        return f"{time_words(expected)} at {pace} as earlier; {steps}"
    if expected.most_seconds is not None:
        pace = f"{pace} to {quantity.pace(expected.most_seconds / expected.steps)}"
    return f"{time_words(expected)} at {pace} (a guess from {expected.guess}); {steps}"


# How a run is resumed, in one line: what is said wherever a run is begun.

UNKNOWN = ResumeWay()
REHEARSE = "`trainwatch rehearse` tells in a minute"


def resume_line(way: ResumeWay | None) -> str:
    """``Resume: yes (`--resume …`, train.py:41)``."""
    return f"Resume: {resume_words(way)}"


def resume_words(way: ResumeWay | None) -> str:
    """The same without its head."""
    way = UNKNOWN if way is None else way
    return {
        "yes": f"yes (`{way.how}`, {'; '.join(filter(None, (way.place, way.lacks)))})",
        "self": f"by itself ({way.how})",
        "no": f"NO: {way.how}",
        "unknown": f"unknown: {way.how or 'nothing is known of how this command resumes'}; {REHEARSE}",
    }[way.will]


def resume_object(way: ResumeWay | None) -> dict[str, Any]:
    """The object of ``--json``. ``how``: a text; ``place``: where it was found; ``why``: evidence."""
    way = UNKNOWN if way is None else way
    told = {"will": way.will, "how": way.how, "source": way.source, "place": way.place or None}
    return {**told, "why": list(way.why), "lacks": way.lacks or None}


def second_start_line(second: SecondStart) -> str | None:
    """What a restart leaves out, or does before it, so that nothing is deleted; None if it deletes nothing."""
    if not (second.left or second.drops or second.may):
        return None
    parts = [f"a restart would drop {change.key}" for change in second.drops]
    parts += [change.why for change in second.drops] or [second.destroys[0]]
    if second.left or second.may:
        parts.append("before a restart what it resumes from is put outside the folder")
    return f"Restart: {'; '.join(dict.fromkeys(parts))}"


def second_start_object(second: SecondStart, argv: Sequence[str]) -> dict[str, Any]:
    """The object of ``--json``. ``argv``: of a restart; ``unknown``: why what it destroys is not known, else None."""
    told = {"argv": list(argv), "drops": [change.key for change in second.drops], "destroys": list(second.destroys)}
    return {**told, "unknown": second.unread or None}


# Where the command lets the training run, if not as any process of this user: in a container, on another host.


def deciding_layer(command: Sequence[str]) -> Layer | None:
    """The wrapper that decides where it runs: a container, even if sudo starts it. None: it is a process like any."""
    away = [layer for layer in layers(command) if layer.kind != "plain"]
    return next((layer for layer in away if layer.kind != "user"), away[0] if away else None)


def place_words(command: Sequence[str]) -> str:
    """Where it runs, and what that means for a stop, as a clause; "" if it runs as any process of this user."""
    layer = deciding_layer(command)
    return "" if layer is None else words_of(layer)


LAYER_WORDS: dict[str, str] = {
    "container": "runs in a container of {tool}: stopped, paused and measured through {tool}",
    "service": "runs in a container of {tool}: stopped, paused and measured through {tool}",
    "in_container": "runs in the container {name}: {tool} exec passes no signal on, so a stop leaves it running",
    "services": "runs in the containers of `{tool} {verb}`: a stop may leave them running",
    "host": "runs on {name}: nothing of it is measured, and a stop or a lost connection leaves it running",
    "pod": "runs in the pod {name}: nothing of it is measured, and a stop leaves it running",
    "step": "runs as a step of Slurm: its CPU and GPU are not known",
    "environment": "runs in an environment of {tool}: as any process of yours",
    "user": "runs as {user}: only {tool} may signal it",
    "plain": "runs as {user}: only {tool} may signal it",
}


def words_of(layer: Layer) -> str:
    """The same of a wrapper."""
    user = next(iter(layer.values("-u", "--user")), "root")
    name = layer.names[0] if layer.names else "it"
    return LAYER_WORDS[layer.kind].format(name=name, tool=layer.program, verb=layer.verb, user=user)


# The result of a rehearsal in words, for the command line and the screen.


TOUCHED_SHOWN = 5


def rehearsal_lines(result: Rehearsal) -> list[str]:
    """For people: the proofs, and what to change."""
    word = {"safe": "SAFE", "unsafe": "NOT SAFE", "unknown": "UNKNOWN"}[result.verdict]
    marks = {True: "yes", False: "NO", None: "?"}
    after = "" if result.checkpoint_after_s is None else f" after {result.checkpoint_after_s:.0f} s"
    saved = f"yes  {result.checkpoint}{after}, in {result.saved_in or '?'}"
    will = {"yes": "yes", "self": "by itself", "no": "NO", "unknown": "unknown"}[result.will]
    lines = [
        f"tonight: {word}: {result.reason}",
        "",
        f"checkpoint   {'NO   none that a resume can use' if result.checkpoint is None else saved}",
        f"step goes on {marks[result.steps.holds]:4} {result.steps.why}",
        f"loss goes on {marks[result.loss.holds]:4} {result.loss.why}",
        f"resume       {will}{f': {result.how}' if result.how else ''}",
    ]
    lines += [f"change: {sentence}" for sentence in result.advice]
    return lines + [f"changed meanwhile in your folder: {path}" for path in result.touched[:TOUCHED_SHOWN]]
