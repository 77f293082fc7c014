"""Names of states, phases, hangs and findings as text. Titles of failure classes are in failures.toml."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ..model.fact import RemedyApplied, RemedyProposed
from ..model.preset import Change, ResumeWay
from ..model.progress import Level, reading_name
from ..model.run import TERMINAL_STATES, Incident
from ..model.settings import Act, Settings
from ..model.story import RunStory, Situation, WithheldAction
from ..views import quantity

TITLES: dict[str, str] = {
    "idle": "no step, nothing working",
    "spin": "no step, spinning",
    "starved": "no step, waiting for data",
    "exiting": "done but not exiting",
    "waiting": "no workers, waiting for other agents",
    "suspended": "stopped by a signal",
    "unschedulable": "its job cannot start",
    "asks": "waits for an answer",
    "missing": "no checkpoint",
    "no_progress": "no progress",
    "ram_tight": "RAM is tight",
    "vram_spare": "GPU memory is left over",
    "termination": "this machine will be ended",
    "slow_steps": "slow steps",
    "other_trainer": "another trainer writes there",
    "not_understood": "checkpoints of an unknown format",
    "vanished": "checkpoints were deleted",
    "weights_only": "a restart cannot load what is saved",
    "nan_saved": "NaN in what is saved",
    "unsure_output": "output folder not known for certain",
    "no_step": "progress unknown",
}

PHASE_WORDS: dict[str, str] = {
    "load": "Loading",
    "preprocess": "Preparing data",
    "compile": "Compiling",
    "train": "Training",
    "eval": "Evaluating",
    "sample": "Sampling",
    "save": "Saving",
    "finish": "Finishing",
    "unknown": "Running",
}


class StateWords(NamedTuple):
    """``word``: in a list; ``opening``: of a sentence about the run; ``level``: if nothing else is wrong."""

    word: str
    opening: str
    level: Level


STATES: dict[str, StateWords] = {
    "idle": StateWords("not started", "Nothing has run yet", "unknown"),
    "starting": StateWords("starting", "It is being started", "safe"),
    "running": StateWords("running", "It is running", "safe"),
    "hung": StateWords("seems to hang", "It seems to hang", "danger"),
    "stopping": StateWords("stopping", "It is being ended", "warning"),
    "cleaning": StateWords("cleaning up", "It is being restarted", "warning"),
    "backing_off": StateWords("waiting to restart", "It waits for its restart", "warning"),
    "paused": StateWords("paused", "It is paused", "warning"),
    "suspended": StateWords("stopped by a signal", "It was stopped by a signal and waits to be continued", "warning"),
    "queued": StateWords("in the queue", "Its job waits in the queue", "unknown"),
    "stopped": StateWords("stopped", "It was stopped", "warning"),
    "interrupted": StateWords("interrupted", "It was interrupted", "warning"),
    "finished": StateWords("finished", "It finished", "safe"),
    "ended_early": StateWords("ended early", "It ended early", "danger"),
    "given_up": StateWords("given up", "It was given up", "danger"),
}
STATE_WORDS = {state: words.word for state, words in STATES.items()}


def title_of(incident: Incident) -> str:
    """The title of the failure class, or of the kind of hang or finding, or the name of a reading."""
    named = reading_name(incident.class_) if incident.kind in {"health", "disk"} else None
    return incident.title or named or TITLES.get(incident.class_, incident.class_.replace("_", " "))


def incident_words(kind: str, title: str, reason: str) -> str:
    """``crash: CUDA out of memory: …``; the reason alone of what is not named by its title. ``title``: ``title_of``."""
    return ": ".join((kind, title, reason) if kind in {"crash", "hang"} else (kind, reason))


def how_likely(confidence: float) -> str:
    """A confidence of 0 to 1 in words, with the number: ``very likely (97 %)``."""
    word = next(word for least, word in _LIKELY if confidence >= least)
    return f"{word} ({100 * confidence:.0f} %)"


_LIKELY = ((0.9, "very likely"), (0.65, "likely"), (0.4, "possibly"), (0.0, "a guess"))


def sentence(text: str) -> str:
    """With a capital letter at its beginning, unless it begins with the name of a file or a setting."""
    first = text.partition(" ")[0].rstrip(".,:;")
    return text if any(sign in first for sign in "./_=") else text[:1].upper() + text[1:]


def shown(value: object) -> str:
    """The value of a setting as text; a path by its name."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return "…/" + text.rstrip("/").rpartition("/")[2] if text.startswith("/") and text.count("/") > 2 else text


def change_words(c: Change) -> str:
    """``batch_size 2 → 1 (CUDA out of memory)``, ``batch_size = 1`` if the config does not have it."""
    old, new = (
        "removed" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in (c.before, c.after)
    )
    change = f"{c.key} = {new}" if c.before is None else f"{c.key} {old} → {new}"
    return change + (f" ({c.why})" if c.why else "")


def switched(running: Sequence[Change], wanted: Sequence[Change]) -> Iterator[Change]:
    """What differs between two launches.

    Both are changes of the user's own config, so a key that only one of them has changes to or from the value there.
    """
    old, new = ({(c.where, c.key): c for c in changes} for changes in (running, wanted))
    for place in dict.fromkeys((*old, *new)):
        change = new.get(place) or msgspec.structs.replace(old[place], why="back to your own config")
        before = old[place].after if place in old else change.before
        after = new[place].after if place in new else old[place].before
        if before != after:
            yield msgspec.structs.replace(change, before=before, after=after)


def passing(sought: str) -> Callable[[str], bool]:
    """Tells whether a text contains ``sought``, or matches it as a regular expression; upper case does not matter."""
    try:
        pattern = re.compile(sought, re.IGNORECASE)
    except re.error:
        pattern = re.compile(re.escape(sought), re.IGNORECASE)
    plain = sought.lower()
    return lambda text: plain in text.lower() or pattern.search(text) is not None


# What trainwatch does without a person, in words.

ACT_WORDS: dict[Act, str] = {
    "all": "it acts by itself",
    "ask": 'act = "ask": it ends and starts nothing before you answer',
    "notify": 'act = "notify": it only notifies; it ends and starts nothing',
}


def by_itself(settings: Settings, way: ResumeWay | None) -> str:
    """What will be done without a person, and how to have it otherwise; one sentence."""
    number = settings.restart.max_restarts
    restarts = "never" if number == 0 else f"at most {number} time{'' if number == 1 else 's'}"
    ends_at_save = way is not None and way.will == "no" and settings.restart.if_not_told == "wait"
    until = " before its first save" if ends_at_save else ""
    doing = [
        "ends a trainer that hangs",
        f"restarts one that hung or crashed{until} ({restarts} without a new checkpoint in between)",
    ]
    if settings.profiles.ramp:
        doing.append("switches between the profiles of the ladder")
    if settings.checkpoints.keep_last:
        doing.append(f"deletes checkpoints of this run but the newest {settings.checkpoints.keep_last}")
    *first, last = doing
    nothing = "it ends, starts and deletes nothing"
    return {
        "all": f"without you it {', '.join(first)} and {last}; --act ask asks you first, --act notify only tells you",
        "ask": f"{nothing} without your answer: it asks, with what each answer costs "
        "(--act all acts by itself, --act notify only tells you)",
        "notify": f"{nothing}: it tells you, and the report has what it would have done "
        "(--act all acts by itself, --act ask asks you first)",
    }[settings.restart.act]


# How many restarts are left, as the screen and ``status`` say it.


def ended_words(resume: ResumeWay | None) -> str:
    """What follows a hang. Where nothing resumes, no restart is promised: once something is saved, none may come."""
    return f"will be ended{'' if resume is not None and resume.will == 'no' else ' and restarted'}"


def restarts_left(state: str, made: int, most: int, will: str | None) -> Iterator[str]:
    """``3 restarts left``; nothing if none can follow, or may. ``made``: without progress in between."""
    if most and will != "no" and state not in TERMINAL_STATES:
        yield f"{quantity.plural(max(0, most - made), 'restart')} left"


# Remedies as text: applied ones, and those that wait for the user.


def remedy_words(remedy: RemedyApplied | RemedyProposed) -> str:
    """The change: ``vae_batch_size 2 → 1, profile safe``."""
    changes = [f"{c.key} {shown(c.before)} → {shown(c.after)}" for c in remedy.changes]
    return ", ".join(changes + ([f"profile {remedy.profile}"] if remedy.profile else []))


def back_words(story: RunStory) -> str:
    """The change if all remedies are dropped: ``vae_batch_size 1 → 2``."""
    changes = [c for r in story.remedies for c in r.changes]
    return ", ".join(f"{c.key} {shown(c.after)} → {shown(c.before)}" for c in changes)


class Paragraph(msgspec.Struct, frozen=True):
    """A sentence of a page. ``label``: in the margin of its first row, unless the one above has the same.

    ``mark``: style and text before it; ``level``: it has the sign of one.
    """

    text: str = ""
    label: str = ""
    style: str = "text"
    mark: tuple[str, str] = ("text", "")
    hard: bool = False
    """Spaces kept, wrapped at the edge, a frame of a stack before its file: its end is the number that matters."""
    level: Level | None = None


# What was not done by itself, and what waits for an answer, as text.


def would_have(held: WithheldAction, wall0: float, now_wall: float | None = None) -> str:
    """``would have restarted at 03:41 from checkpoint-4000 (step 4000), after ending it``."""
    action = held.fact
    at = f"at {quantity.clock(wall0 + held.t, now_wall)}"
    if action.by:
        return f"{action.by} asked {at}: {action.question}"
    place = " ".join(filter(None, ("would have", action.would, at, action.where)))
    return f"{place}, {action.how}" if action.how else place


def question_text(held: WithheldAction, wall0: float, now_wall: float | None = None) -> str:
    """The question, or what would have been done."""
    return held.fact.question if held.fact.asks else would_have(held, wall0, now_wall)


def commands(story: RunStory) -> Iterator[tuple[str, str]]:
    """What can be done about what waits, and the command for it."""
    name = story.run.run if story.run else "RUN"
    for answer in story.question.fact.answers if story.question is not None else ():
        what, _, command = answer.partition(": ")
        yield what, command.format(run=name)


def answers(story: RunStory) -> str:
    return "; ".join(f"{what}: `{command}`" for what, command in commands(story))


def question_clause(now: Situation) -> str | None:
    """The question of the screen, with its keys; None if nothing waits."""
    held = now.story.question
    if held is None:
        return None
    text = question_text(held, now.story.wall0, now.now_wall)
    return f"{text[:1].upper()}{text[1:]}{' [Y] yes [c] no' if held.fact.asks else ': [Y] do it'}"
