"""Names of states, phases, hangs and findings as text. Titles of failure classes are in failures.toml."""

import re
from collections.abc import Callable

from ..model.incident import Incident
from ..model.text.health_words import reading_name

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

STATE_WORDS: dict[str, str] = {
    "idle": "not started",
    "starting": "starting",
    "running": "running",
    "hung": "seems to hang",
    "stopping": "stopping",
    "cleaning": "cleaning up",
    "backing_off": "waiting to restart",
    "paused": "paused",
    "suspended": "stopped by a signal",
    "queued": "in the queue",
    "stopped": "stopped",
    "interrupted": "interrupted",
    "finished": "finished",
    "ended_early": "ended early",
    "given_up": "given up",
}


def title_of(incident: Incident) -> str:
    """The title of the failure class, or of the kind of hang or finding, or the name of a reading."""
    named = reading_name(incident.class_) if incident.kind in {"health", "disk"} else None
    return incident.title or named or TITLES.get(incident.class_, incident.class_.replace("_", " "))


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


def passing(sought: str) -> Callable[[str], bool]:
    """Tells whether a text contains ``sought``, or matches it as a regular expression; upper case does not matter."""
    try:
        pattern = re.compile(sought, re.IGNORECASE)
    except re.error:
        pattern = re.compile(re.escape(sought), re.IGNORECASE)
    plain = sought.lower()
    return lambda text: plain in text.lower() or pattern.search(text) is not None
