"""What the trainer's log shows besides steps: announced phases, bars of other work, and lines without progress.

Lines without a step are no heartbeat, but they lengthen the deadline. An announced phase restarts the wait for the next
step, once per phase between two steps: a hung trainer that prints "waiting for save" for ever restarts it once. A bar
of another phase than training restarts it each time its count grows: an evaluation that asks a remote model, a download
that maps its file and a decoder that is limited by memory show no other sign of life.

Known false alarms: a watchdog of a dead trainer that prints "saving checkpoint before abort" (a phase counts only if
another sign of life was seen just before); words of an upload in the name of a metric.
"""

import re

import msgspec

from ...model.progress import Phase

EXIT_WORK = re.compile(
    r"upload|push_to_hub|syncing\b|"
    r"(?:push|send|sav|writ)(?:ing|ed)? (?:\w+ ){0,8}to (?:the )?(?:hub|s3|gs|cloud|bucket|remote|storage)|"
    r"wandb: (?:Waiting|Uploading)|finali[sz]|merging|exporting|converting|compressing|archiv|copying|"
    r"transferring|back(?:ing up|up)\b|quantizing|running final|final (?:test|report|evaluation)",
    re.IGNORECASE,
)
"""Words of work that moves no counter: network transfers, and what is done after the last step."""

ANNOUNCED: frozenset[Phase] = frozenset({"load", "preprocess", "compile", "eval", "sample", "finish"})
"""Phases in which no step is due. A save is one, too, which its file ends (save_phase.py)."""
WORK: frozenset[Phase] = frozenset({"eval", "sample", "save"})
"""Phases between steps. A bar that loads or prepares something may be that of workers that are restarted for ever."""


BAR_COUNT = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)([kKMGT]?)i?B?/(\d[\d.]*[kKMGT]?i?B?) *\[")
"""A bar's count and total: ``412/2000 [``, ``1.20G/9.60G [``."""
UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
LINE_CHARS = 400
"""The newest bar, and a word that a chunk's end cuts, are looked for in this many characters at the end."""


class LogActivity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was printed since the last step. Times in active seconds.

    ``announced``: phases that began since the last step. ``exit_work_at``: when words such as "upload" came.
    ``tail``: the unfinished line, so that a word that a chunk's end cuts is read. ``printed_lines`` counts line ends.
    """

    phase: Phase = "unknown"
    phase_at: float = 0.0
    announced: tuple[Phase, ...] = ()
    printed_at: float | None = None
    printed_lines: int = 0
    exit_work_at: float | None = None
    tail: str = ""
    bar_moved_at: float = 0.0
    """When a bar that counts no steps grew."""
    work_bar_at: float = 0.0
    """The same of a bar of an evaluation, a save or samples."""
    bar_total: str = ""
    bar_count: float = 0.0
    trusted: bool = True
    """The phase was announced by a living trainer; output of a dead one does not restart the wait."""


def with_step(log: LogActivity, phase: Phase, text: str, now: float) -> LogActivity:
    """Take a text that contains a step. ``phase``: the phase after it."""
    work = now if "\n" in text and EXIT_WORK.search(text) is not None else None
    if log.phase == phase and log.printed_at is None and log.exit_work_at is None and work is None:
        return log
    since = log.phase_at if phase == log.phase else now
    announced = () if phase in {"train", "unknown"} else (phase,)
    return LogActivity(phase=phase, phase_at=since, announced=announced, exit_work_at=work)


def with_text(log: LogActivity, phase: Phase, text: str, now: float, *, alive: bool) -> LogActivity:
    """Take a text without a step. ``alive``: other signs of life were seen just before."""
    work = log.exit_work_at
    printed = log.tail + text
    if work is None and alive and EXIT_WORK.search(printed) is not None:
        work = now
    known = phase == log.phase or phase in log.announced
    total, count = (log.bar_total, log.bar_count) if phase == "train" else _bar(log, printed)
    grew = total == log.bar_total and count > log.bar_count
    return LogActivity(
        phase=phase,
        phase_at=log.phase_at if known else now,
        announced=log.announced if known else (*log.announced, phase),
        printed_at=now,
        printed_lines=log.printed_lines + text.count("\n") + text.count("\r"),
        exit_work_at=work,
        tail=printed[printed.rfind("\n") + 1 :][-LINE_CHARS:],
        bar_moved_at=now if grew else log.bar_moved_at,
        work_bar_at=now if grew and phase in WORK else log.work_bar_at,
        bar_total=total,
        bar_count=count,
        trusted=log.trusted if phase == log.phase else alive,
    )


def _bar(log: LogActivity, printed: str) -> tuple[str, float]:
    """Return total and count of the newest bar, or those known."""
    newest = None
    for newest in BAR_COUNT.finditer(printed[-LINE_CHARS:]):  # noqa: B007 the last one is wanted
        pass
    if newest is None:
        return log.bar_total, log.bar_count
    return newest[3], float(newest[1]) * UNITS[newest[2]]


def after_gap(log: LogActivity, now: float) -> LogActivity:
    """Nothing could be announced until now."""
    return msgspec.structs.replace(log, phase_at=now)
