"""What the trainer's log says about what it is doing, besides its steps: phases it announced, talk without progress.

A log that talks while the step stands still is no heartbeat, but it earns patience; an announced phase re-arms the
step clock, once per phase between two steps (a hung trainer that prints "waiting for save" for ever earns it once).
"""

import re

import msgspec

from ..model.progress import Phase

EXIT_WORK = re.compile(
    r"upload|push_to_hub|syncing\b|"
    r"(?:push|send|sav|writ)(?:ing|ed)? (?:\w+ )*to (?:the )?(?:hub|s3|gs|cloud|bucket|remote|storage)|"
    r"wandb: (?:Waiting|Uploading)|finali[sz]|merging|exporting|converting|compressing|archiv|copying|"
    r"transferring|back(?:ing up|up)\b|quantizing|running final|final (?:test|report|evaluation)",
    re.IGNORECASE,
)
"""Words of work that moves no counter we can read: network transfers, and what is done after the last step."""

ANNOUNCED: frozenset[Phase] = frozenset({"load", "preprocess", "compile", "eval", "sample", "save", "finish"})
"""Phases in which no step is due."""


class Voice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Times in active seconds. ``heard``: phases announced since the last step; ``exit_work_at``: words like upload.

    ``tail``: the unfinished line, so that a word cut by a chunk's end is read. ``talk_n`` counts line ends.
    """

    phase: Phase = "unknown"
    phase_at: float = 0.0
    heard: tuple[Phase, ...] = ()
    talk_at: float | None = None
    talk_n: int = 0
    exit_work_at: float | None = None
    tail: str = ""
    trusted: bool = True
    """The phase was announced by a living trainer; words that come out of a dead one re-arm nothing."""


TAIL_CHARS = 200


def stepped(voice: Voice, phase: Phase, text: str, now: float) -> Voice:
    """A step was made somewhere in ``text``; the phase is ``phase`` now."""
    work = now if "\n" in text and EXIT_WORK.search(text) is not None else None
    if voice.phase == phase and voice.talk_at is None and voice.exit_work_at is None and work is None:
        return voice
    since = voice.phase_at if phase == voice.phase else now
    heard = () if phase in {"train", "unknown"} else (phase,)
    return Voice(phase=phase, phase_at=since, heard=heard, exit_work_at=work)


def spoken(voice: Voice, phase: Phase, text: str, now: float, *, alive: bool) -> Voice:
    """Text came that moved no step. ``alive``: other signs of life were seen just before."""
    work = voice.exit_work_at
    said = voice.tail + text
    if work is None and alive and EXIT_WORK.search(said) is not None:
        work = now
    known = phase == voice.phase or phase in voice.heard
    return Voice(
        phase=phase,
        phase_at=voice.phase_at if known else now,
        heard=voice.heard if known else (*voice.heard, phase),
        talk_at=now,
        talk_n=voice.talk_n + text.count("\n") + text.count("\r"),
        exit_work_at=work,
        tail=said[said.rfind("\n") + 1 :][-TAIL_CHARS:],
        trusted=voice.trusted if phase == voice.phase else alive,
    )


def after_gap(voice: Voice, now: float) -> Voice:
    """Nothing could be heard until now."""
    return msgspec.structs.replace(voice, phase_at=now)
