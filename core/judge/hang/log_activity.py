"""What the trainer's log says about what it is doing, besides its steps: phases it announced, talk without progress.

A log that talks while the step stands still is no heartbeat, but it earns patience; an announced phase re-arms the
step clock, once per phase between two steps (a hung trainer that prints "waiting for save" for ever earns it once).
A bar of another phase than training re-arms it each time its count grows: an evaluation that asks a remote model, a
download that maps its file and a decoder bound by memory show no other sign.
"""

import re

import msgspec

from ...model.progress import Phase

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


BAR_COUNT = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([kKMGT]?)i?B?/(\d[\d.]*[kKMGT]?i?B?) *\[")
"""A bar's count and total: ``412/2000 [``, ``1.20G/9.60G [``."""
UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
LINE_CHARS = 400
"""The newest bar, and a word that a chunk's end cuts, are looked for in so many characters at the end."""


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
    moved_at: float = 0.0
    """A bar that is no step grew."""
    bar_total: str = ""
    bar_count: float = 0.0
    trusted: bool = True
    """The phase was announced by a living trainer; words that come out of a dead one re-arm nothing."""


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
    total, count = (voice.bar_total, voice.bar_count) if phase == "train" else _bar(voice, said)
    return Voice(
        phase=phase,
        phase_at=voice.phase_at if known else now,
        heard=voice.heard if known else (*voice.heard, phase),
        talk_at=now,
        talk_n=voice.talk_n + text.count("\n") + text.count("\r"),
        exit_work_at=work,
        tail=said[said.rfind("\n") + 1 :][-LINE_CHARS:],
        moved_at=now if total == voice.bar_total and count > voice.bar_count else voice.moved_at,
        bar_total=total,
        bar_count=count,
        trusted=voice.trusted if phase == voice.phase else alive,
    )


def _bar(voice: Voice, said: str) -> tuple[str, float]:
    """Total and count of the newest bar, or those known."""
    newest = None
    for newest in BAR_COUNT.finditer(said[-LINE_CHARS:]):  # noqa: B007 the last one is wanted
        pass
    if newest is None:
        return voice.bar_total, voice.bar_count
    return newest[3], float(newest[1]) * UNITS[newest[2]]


def after_gap(voice: Voice, now: float) -> Voice:
    """Nothing could be heard until now."""
    return msgspec.structs.replace(voice, phase_at=now)
