"""What transports a line of a trainer: container log, journal, launcher. ``own_text``: the line as it was printed."""

import json

from .patterns import LazyPattern

DEEPEST = 4
"""Transports around one line: a journal around a container around a launcher around a rank."""
_WRAPPED = LazyPattern(
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:?\d\d) (?:stdout|stderr) [FP] "  # CRI: containerd
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? [\w.-]+ [\w./@-]+(?:\[\d+\])?: "  # syslog, journalctl
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d+:-]* [\w.-]+ [\w./@-]+\[\d+\]: "  # journalctl -o short-iso
    r"|\((?:[\w.]+ )*pid=\d+(?:, ip=[^)]*)?\) ?"  # Ray
    r"|\[?(?i:default|rank)[ :]{0,2}\d+\]?: ?"  # torchrun --tee, torch
    r"|\[\d+\]: |\[\d+,\d+\]<std\w+>:? ?"  # accelerate, mpirun
    r"|\d{1,4}: (?!\s*(?:train\w*|avg|mean)?[ _]?loss|\d+\.\d))"  # srun --label; "120: loss" is a step
)
_HEADS = frozenset("0123456789([{rRdDJFMASOND")
_MESSAGES = ("log", "MESSAGE", "message", "msg")


def own_text(line: str) -> str:
    """The text without its transports; several segments, divided by carriage returns, if a record holds them."""
    for _ in range(DEEPEST):
        head = line[:1]
        if head not in _HEADS:
            break
        inner = _of_record(line) if head == "{" else None
        if inner is None:
            found = _WRAPPED.match(line)
            inner = None if found is None else line[found.end() :]
        if not inner:
            break
        line = inner
    return line


def _of_record(line: str) -> str | None:
    """The text of a log record in JSON (Docker, journalctl -o json, a JSON formatter); None for other JSON.

    A record that holds the numbers of a step beside its message is the trainer's own.
    """
    if not line.rstrip().endswith("}") or '"' not in line:
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text: str | None = next((record[name] for name in _MESSAGES if isinstance(record.get(name), str)), None)
    if text is None or any(isinstance(value, float) for name, value in record.items() if "time" not in name.lower()):
        return None
    if any(name in record for name in ("step", "epoch", "iteration", "iter", "global_step", "metrics")):
        return None
    return text.replace("\r\n", "\r").replace("\n", "\r").strip("\r")
