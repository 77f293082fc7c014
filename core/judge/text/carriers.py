"""What carries a line of a trainer: container, journal, launcher and logger put their own text around it.

``peel`` removes prefixes in any nesting (CRI, Docker and journald as JSON, syslog, dmesg, ranks, Ray, srun, compose,
time stamps, logger names, levels of Python, glog and TensorFlow) and keeps what they tell. ``unglued`` divides a line
on which a bar and a message stand together.
"""

import json
from typing import NamedTuple

from .lines import split_rank
from .patterns import LazyPattern

DEEPEST = 8
"""Prefixes of one line that are removed. Real logs have up to five (journal, pod, rank, time, level)."""
LEVELS = {
    "d": "debug",
    "i": "info",
    "n": "info",
    "w": "warning",
    "e": "error",
    "s": "error",
    "c": "fatal",
    "f": "fatal",
}
"""By the first letter: D/DEBUG, I/INFO, NOTICE, W/WARN/WARNING, E/ERR/ERROR, SEVERE, CRITICAL, F/FATAL."""

_TIME = r"\d{4}[-/.]\d\d[-/.]\d\d[ T_]\d\d:\d\d:\d\d(?:[.,:]\d+)?(?:Z|\s?[+-]\d\d:?\d\d)?"
_LEVEL = r"(?P<level>DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRITICAL|FATAL|SEVERE)"
_PREFIX = LazyPattern(
    rf"(?:{_TIME}\s(?:stdout|stderr)\s[FP]\s"  # CRI: containerd, Kubernetes
    # syslog, journald
    r"|[A-Z][a-z]{2}\s[\s\d]\d\s\d\d:\d\d:\d\d(?:\.\d+)?\s[\w.-]+\s[\w./@-]+(?:\[(?P<pid>\d+)\])?:\s"
    rf"|{_TIME}\s[\w.-]+\s(?:[\w./@-]+\[(?P<unit>\d+)\]|kernel):\s"
    r"|\[\s*\d+\.\d{3,6}\]\s"  # dmesg
    r"|[\w.-]+-\d+\s+\|\s"  # docker compose: trainer-1  | …
    r"|[a-z][\w.-]*\d:\s(?=\[|\d{4}-|Traceback|\s+File|[\w.]+(?:Error|Exception)\b)"  # pdsh, clush
    # glog, c10, TensorFlow
    r"|\[?(?P<glog>[DIWEF])\d{0,8}\s(?:\d\d:\d\d:\d\d[.\d]*\s+)?(?:\d+\s+)?"
    r"[\w/.<>-]+(?::\d+)?\](?:\s\[\w+\])?\s?"
    rf"|\[?{_TIME}\]?[\s:|,-]*(?:\d+\s)?(?=\S|\s{{2}})"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[\s|-]+(?![\d:<])"
    rf"|\[?{_LEVEL}\b\s?\]?(?:\s*[:|-]|\s*\|\s*\S+:\S+:\d+\s-)?\s"
    rf"|\|\s(?={_LEVEL.replace('?P<level>', '?:')}\b)"  # fairseq: | WARNING: …
    rf"|[\w.]+(?:\[\d+\])?:\s(?={_LEVEL.replace('?P<level>', '?:')}\b)"  # wandb: ERROR …
    r"|\[[\w.<>-]+(?::\d+)?(?::[\w<>]+)?\]\s(?=\[|\S+\s)(?<=\d\]\s)|\[[\w.]+:\d+:\w+\]\s"  # [launch.py:10:main]
    rf"|{_LEVEL.replace('?P<level>', '?P<named>')}:[\w.]+:"  # logging.basicConfig: ERROR:root:…
    r"|[\w.]+\s-\s(?:(?P<late>DEBUG|INFO|WARNING|ERROR|CRITICAL)\s-\s)?)"  # logging: name - LEVEL - …
)
_MESSAGES = ("message", "msg", "log", "MESSAGE", "text")
_TRACES = (
    "exc_info",
    "exc",
    "exc_text",
    "err",
    "error",
    "stack",
    "detail",
    "exception",
    "stack_trace",
    "traceback",
    "stacktrace",
)
_SOURCES = ("rank", "local_rank", "pod", "container", "process", "_PID", "pid", "host")
_MEASURED = ("loss", "step", "iter", "epoch", "prompt", "completion", "response", "question", "answer", "instruction")


class Carried(NamedTuple):
    """A line and what its carriers told.

    ``text``: the trainer's own text, several lines if a JSON record holds them. ``source``: the rank or process that
    printed it, "" = not named. ``level``: debug, info, warning, error or fatal; "" = not named.
    """

    text: str
    source: str = ""
    level: str = ""


def peel(line: str) -> Carried:
    """The line without the prefixes of its carriers. Indentation behind them is kept."""
    text, source, level = line, "", ""
    for _ in range(DEEPEST):
        if text[:1] in " \t" or not text:
            break
        if text.startswith("{") and (opened := _record(text)) is not None:
            inner = peel(opened.text) if "\n" not in opened.text else opened
            return Carried(inner.text, inner.source or opened.source or source, inner.level or opened.level or level)
        rank, rest = split_rank(text)
        if rank:
            source, text = rank, rest
            continue
        found = _PREFIX.match(text)
        if found is None or found.end() == 0:
            break
        named = found["level"] or found["glog"] or found["late"] or found["named"]
        level = LEVELS[named[0].lower()] if named else level
        source = source or found["pid"] or found["unit"] or ""
        text = text[found.end() :]
    return Carried(text, source, level)


def _record(text: str) -> Carried | None:
    """A log record in JSON; None for other JSON, such as the numbers of a training step."""
    if not text.rstrip().endswith("}"):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or any(name in found for name in _MEASURED):
        return None
    message = next((found[name] for name in _MESSAGES if isinstance(found.get(name), str)), None)
    traces = [found[name] for name in _TRACES if isinstance(found.get(name), str)]
    if message is None:
        return None
    level = next((found[name] for name in ("level", "levelname", "severity", "lvl") if found.get(name)), "")
    source = next((str(found[name]) for name in _SOURCES if isinstance(found.get(name), str | int)), "")
    words = "\n".join((message.rstrip("\n"), *traces))
    return Carried(words, source, LEVELS.get(str(level)[:1].lower(), ""))


_BAR = LazyPattern(
    r"(?:\|\s*[\d.,]+[kKMG]?\w*/[\d.,?]+[kKMG]?\w*|\b\d+[a-zA-Z]\w*)\s\[(?=\d*:?\d\d:\d\d"
    r"|\?)[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"
)
"""tqdm: ``| 612/2900 [12:01<…, avr_loss=0.1]`` or ``29948it [35:34, 7.00s/it]``."""
_STAMP = LazyPattern(r"(?<=[\w.])\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] ")
"""The first characters of a line of TensorFlow, printed behind the last number of a Keras bar."""
TRACEBACK = "Traceback (most recent call last)"


def unglued(text: str) -> tuple[str, ...]:
    """The pieces of a line: a bar, and what was printed behind it without a line end."""
    cut = 0
    if "[" in text:
        for found in _BAR.finditer(text):
            cut = found.end()
        stamp = _STAMP.search(text, 1)
        cut = cut if stamp is None else max(cut, stamp.start())
    at = text.find(TRACEBACK)
    if at > 0 and (text[at - 1].isalnum() or text[:at].rstrip()[-1:] in ("]", ")", "%", ">", "$")):
        cut = max(cut, at)
    if not cut or not text[cut:].strip():
        return (text,)
    return text[:cut], text[cut:] if cut == at else text[cut:].lstrip()
