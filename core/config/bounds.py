"""Valid values of the settings, beyond their types. One row per setting; without a row every value is valid."""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

import msgspec

from ..model.preset import ramp_goal
from ..model.settings import Rule, Settings
from ..model.shipped import SHAPE_GROUPS, expand
from ..model.text import listen_address
from .document import Document, did_you_mean, endless


def waits(value: tuple[float, ...]) -> str | None:
    if not value:
        return "needs at least one number of seconds"
    return None if all(v >= 0 for v in value) else "must not hold negative seconds"


def names(value: tuple[str, ...]) -> str | None:
    """Names that are not empty and differ."""
    if not all(name.strip() for name in value):
        return "must not hold an empty name"
    return None if len(set(value)) == len(value) else "must not hold a name twice"


def parsed_by(parse: Callable[[Any], object]) -> Rule:
    """Empty, or what ``parse`` takes; the problem is its ValueError."""

    def rule(value: Any) -> str | None:
        try:
            if value:
                parse(value)
        except ValueError as error:
            return str(error)
        return None

    return rule


def of_form(pattern: str, complaint: str) -> Rule:
    """Empty, or a text that this regular expression matches as a whole."""
    return lambda value: None if not value or re.fullmatch(pattern, value) else complaint


def backup_command(value: tuple[str, ...]) -> str | None:
    """Empty, or a program and the place of the checkpoint's path."""
    if not value or any("{checkpoint}" in word for word in value):
        return program(value)
    return "must contain {checkpoint}, the path to copy"


def long_options(value: tuple[str, ...]) -> str | None:
    bad = [word for word in value if not re.fullmatch(r"--[a-z][\w-]*(=[^\n]*)?", word)]
    return f'must be long options, each with its value ("--mem=64G"), got "{bad[0]}"' if bad else None


def program(value: tuple[str, ...]) -> str | None:
    return None if not value or value[0].strip() else "must begin with a program"


def evaluation(value: tuple[str, ...] | str) -> str | None:
    """No command, or one that is given the checkpoint."""
    words = (value,) if isinstance(value, str) else value
    if not any(words):
        return None if not words or value == "" else "must begin with a program"
    return None if any("{checkpoint}" in word for word in words) else "must contain {checkpoint}, the path to evaluate"


def one_number(value: str) -> str | None:
    try:
        re.compile(value)
    except re.error as error:
        return f"must be a regular expression ({error})"
    return None


def filled(value: str | None) -> str | None:
    return "must not be empty" if value is not None and not value.strip() else None


def line_shapes(value: tuple[str, ...]) -> str | None:
    for pattern in value:
        try:
            groups = re.compile(_expanded(pattern)).groupindex
        except re.error as error:
            return f"must hold regular expressions ({pattern!r}: {error})"
        if not groups:
            return f"must name what it finds, as in (?P<step>\\d+) ({pattern!r} names nothing)"
        for group in groups:
            if group not in SHAPE_GROUPS:
                return f'has an unknown group "{group}"{did_you_mean(group, SHAPE_GROUPS)}'
    return None


def _expanded(pattern: str) -> str:
    if "%{" not in pattern:
        return pattern
    from .shipped import load_log_shapes  # 20 ms, for a project that uses an abbreviation

    return expand(pattern, load_log_shapes().abbreviations)


def failure_patterns(value: dict[str, tuple[str, ...]]) -> str | None:
    if not value:
        return None
    from .shipped import load_failures  # 30 ms, for a project that has patterns

    names = load_failures().names
    for failure, patterns in value.items():
        if failure not in names:
            return f'has an unknown failure class "{failure}"{did_you_mean(failure, names)}'
        for pattern in patterns:
            try:
                matches_nothing = re.compile(pattern).search("") is not None
            except re.error as error:
                return f"must hold regular expressions ({pattern!r}: {error})"
            if matches_nothing:
                return f"must be more specific: {pattern!r} matches every line"
    return None


def services(value: tuple[str, ...]) -> str | None:
    for number, url in enumerate(value, 1):
        scheme, found, rest = url.partition("://")
        if not (found and scheme.strip() and rest.strip()) or any(c.isspace() for c in scheme):
            return f'number {number} is no apprise URL: write it as "ntfy://TOPIC" or "tgram://TOKEN/CHAT"'
    return None


def tmux_name(value: str | None) -> str | None:
    """A tmux session name without "." and ":", which tmux replaces by "_"."""
    return filled(value) or ('must not contain ":" or "."' if value and set(value) & {":", "."} else None)


# ``[end] end_by``: a local time of day, or a local date and time.

_DAYS = 3
"""Days that are looked at for a time of day: one may lack it when the clocks change."""


def end_time(text: str) -> dt.time | dt.datetime | None:
    """``"08:00"``, ``"2026-11-23 08:00"``; None for an empty text. Raises ValueError."""
    if not text:
        return None
    if re.fullmatch(r"\d{1,2}:\d{2}", text):
        hour, minute = map(int, text.split(":"))
        if hour < 24 and minute < 60:
            return dt.time(hour, minute)
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}", text):
        try:
            return dt.datetime.fromisoformat(text)
        except ValueError:
            pass
    raise ValueError('must be a local time like "08:00" or "2026-11-23 08:00"')


def end_after(text: str) -> Callable[[float], float | None]:
    """The function from seconds since the epoch to the first such time after it; None if there is none.

    A date that is past counts: the run is to have ended by then.
    """
    said = end_time(text)

    def after(wall: float) -> float | None:
        if said is None:
            return None
        if isinstance(said, dt.datetime):
            return said.timestamp()
        today = dt.datetime.fromtimestamp(wall).date()  # noqa: DTZ006  local, as it is meant
        for days in range(_DAYS):
            found = dt.datetime.combine(today + dt.timedelta(days=days), said).timestamp()
            if found > wall:
                return found
        return None

    return after


HTTP = r"http://[\w.\-]+(:\d{1,5})?"
WEB = r"https?://[^\s/]+.*"
SLURM_TIME = r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}"

BOUNDS: dict[str, dict[str, Rule]] = {
    "watch": {"metadata_url": of_form(HTTP, "must be an address like http://127.0.0.1:1338")},
    "restart": {"backoff_s": waits, "network_wait_s": waits},
    "notify": {"command": program, "urls": services, "ping_url": of_form(WEB, "must be an http or https address")},
    "backup": {"command": backup_command},
    "end": {"at_finish": program, "at_give_up": program, "at_end_by": program, "end_by": parsed_by(end_time)},
    "profiles": {"use": filled, "ladder": names, "ramp": parsed_by(lambda value: [ramp_goal(text) for text in value])},
    "progress": {"shapes": line_shapes},
    "diagnose": {"patterns": failure_patterns},
    "tmux": {"socket": filled, "session": tmux_name},
    "metrics": {"prometheus": parsed_by(listen_address)},
    "slurm": {
        "time": of_form(SLURM_TIME, 'must be minutes, "HH:MM:SS" or "DAYS-HH:MM:SS"'),
        "exclude": names,
        "options": long_options,
    },
    "evaluate": {"command": evaluation, "score": one_number},
}
"""Rules that are more than a range, which stands at the field."""

ORDERED: tuple[tuple[str, str, str], ...] = (
    ("hang", "min_s", "max_s"),
    ("health", "ram_warning_pct", "ram_danger_pct"),
    ("health", "ram_available_danger_bytes", "ram_available_warning_bytes"),
    ("health", "swap_warning_bytes", "swap_danger_bytes"),
    ("health", "temp_warning_c", "temp_danger_c"),
    ("health", "disk_danger_bytes", "disk_warning_bytes"),
)
"""(section, lower, higher): the first must not be above the second."""


def complaint(section: str, key: str, value: Any) -> str | None:
    """The problem of one value beyond its type: "must be more than 0"; None = valid."""
    return endless(value) or rules_of(section).get(key, lambda _: None)(value)


def rules_of(section: str) -> dict[str, Rule]:
    """The rules of a section, by key: the ranges that stand at its fields, and the others."""
    fields = msgspec.structs.fields(type(getattr(Settings(), section))) if hasattr(Settings(), section) else ()
    parts = [(field.name, part) for field in fields for part in (field.type, *get_args(field.type))]
    ranges = {name: rule for name, part in parts for rule in getattr(part, "__metadata__", ())}
    return ranges | BOUNDS.get(section, {})


def out_of_order(settings: Settings) -> Iterator[tuple[str, str, str, str]]:
    """(section, lower, higher, sentence) of each pair in the wrong order."""
    for section, low, high in ORDERED:
        values: Any = getattr(settings, section)
        if getattr(values, low) > getattr(values, high):
            sentence = f'"{low}" ({getattr(values, low):g}) must not be above "{high}" ({getattr(values, high):g})'
            yield section, low, high, sentence


def check_order(document: Document, settings: Settings) -> None:
    for section, low, high, sentence in out_of_order(settings):
        document.add((section, low if document.has(section, low) else high), sentence)
