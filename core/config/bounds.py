"""Valid values of the settings and other tables, beyond their types and ranges, which stand at their fields."""

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

import msgspec

from ..model import settings as model
from ..model.preset import Preset, Profile, is_option, ramp_goal
from ..model.settings import Settings
from ..model.shipped import SHAPE_GROUPS, expand
from ..model.text import did_you_mean, listen_address

Rule = Callable[[Any], str | None]
"""A check of one value: the problem ("must not be empty"), or None. It may stand at a field."""


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


def program(value: tuple[str, ...]) -> str | None:
    return None if not value or value[0].strip() else "must begin with a program"


def of_checkpoint(purpose: str) -> Rule:
    """No command, or one (words, or a text for ``sh``) that is given the checkpoint."""

    def rule(value: tuple[str, ...] | str) -> str | None:
        words = (value,) if value and isinstance(value, str) else tuple(value)
        given = not words or any("{checkpoint}" in word for word in words)
        return program(words) or (None if given else f"must contain {{checkpoint}}, the path to {purpose}")

    return rule


def long_options(value: tuple[str, ...]) -> str | None:
    bad = [word for word in value if not re.fullmatch(r"--[a-z][\w-]*(=[^\n]*)?", word)]
    if more := [word for word in value if word.startswith(("--ar", "--req"))]:  # sbatch takes shortened names
        return f"must not hold {more[0]}: each attempt is one job, and trainwatch submits the next; leave it out"
    return f'must be long options, each with its value ("--mem=64G"), got "{bad[0]}"' if bad else None


def filled(value: str | tuple[str, ...] | None) -> str | None:
    texts = value if isinstance(value, tuple) else (value,)
    return "must not be empty" if any(text is not None and not text.strip() for text in texts) else None


def patterns(value: Iterable[str], words: str = "must hold regular expressions") -> str | None:
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            return f"{words} ({pattern!r}: {error})"
    return None


def line_shapes(value: tuple[str, ...]) -> str | None:
    for pattern in value:
        full = pattern
        if "%{" in pattern:
            from .shipped import load_log_shapes  # 20 ms, for a project that uses an abbreviation

            full = expand(pattern, load_log_shapes().abbreviations)
        if (wrong := patterns((full,))) is not None:
            return wrong
        groups = re.compile(full).groupindex
        if not groups:
            return f"must name what it finds, as in (?P<step>\\d+) ({pattern!r} names nothing)"
        for group in groups:
            if group not in SHAPE_GROUPS:
                return f'has an unknown group "{group}"{did_you_mean(group, SHAPE_GROUPS)}'
    return None


def failure_patterns(value: dict[str, tuple[str, ...]]) -> str | None:
    if not value:
        return None
    from .shipped import load_failures  # 30 ms, for a project that has patterns

    known = load_failures().names
    for failure, of_class in value.items():
        if failure not in known:
            return f'has an unknown failure class "{failure}"{did_you_mean(failure, known)}'
        if (wrong := patterns(of_class)) is not None:
            return wrong
        for pattern in of_class:
            if re.search(pattern, "") is not None:
                return f"must be more specific: {pattern!r} matches every line"
    return None


def services(value: tuple[str, ...]) -> str | None:
    for number, url in enumerate(value, 1):
        scheme, found, rest = url.partition("://")
        if not (found and scheme.strip() and rest.strip()) or any(c.isspace() for c in scheme):
            return f'number {number} is no apprise URL: write it as "ntfy://TOPIC" or "tgram://TOKEN/CHAT"'
    return None


def flags(value: tuple[str, ...]) -> str | None:
    """The flags of a profile begin with an option. The rest may be the values of options."""
    if not value or is_option(value[0]):
        return None
    if re.fullmatch(r"[A-Za-z_]\S*", value[0]):
        right = ", ".join(show(word) for word in (f"--{value[0]}", *value[1:]))
        return f"must begin with an option, and {show(value[0])} has no dash in front; type flags = [{right}]"
    return 'must begin with an option; type the option first, as in flags = ["--batch", "2"]'


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


WEB = r"https?://[^\s/]+.*"
SLURM_TIME = r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}"
_NAMED = of_form(r"[A-Za-z0-9][\w.-]*", "may hold letters, digits and . _ - only")

BOUNDS: dict[type[msgspec.Struct], dict[str, Rule]] = {
    model.Restart: {"backoff_s": waits, "network_wait_s": waits},
    model.Notify: {"command": program, "urls": services, "ping_url": of_form(WEB, "must be an http or https address")},
    model.Backup: {"command": of_checkpoint("copy")},
    model.End: {"at_finish": program, "at_give_up": program, "end_by": parsed_by(end_time)},
    model.Profiles: {
        "use": filled,
        "ladder": names,
        "ramp": parsed_by(lambda value: [ramp_goal(text) for text in value]),
    },
    model.OwnShapes: {"shapes": line_shapes},
    model.OwnFailures: {"patterns": failure_patterns},
    model.Tmux: {"socket": filled},
    model.Metrics: {"prometheus": parsed_by(listen_address)},
    model.Slurm: {
        "time": of_form(SLURM_TIME, 'must be minutes, "HH:MM:SS" or "DAYS-HH:MM:SS"'),
        "exclude": names,
        "options": long_options,
    },
    model.Evaluate: {"command": of_checkpoint("evaluate")},
    Profile: {"name": _NAMED, "flags": flags},
    Preset: {"name": _NAMED, "detect_command": lambda value: patterns(value, "holds no regular expression")},
}
"""Rules that are more than a range, which stands at the field."""

ORDERED: tuple[tuple[str, str, str], ...] = (
    ("hang", "min_s", "max_s"),
    ("health", "ram_warning_pct", "ram_danger_pct"),
    ("health", "temp_warning_c", "temp_danger_c"),
    ("health", "disk_danger_bytes", "disk_warning_bytes"),
)
"""(section, lower, higher): the first must not be above the second."""


_RANGE = re.compile(r"Expected `\w+` ([<>]=?) (\S+)")
"""How msgspec tells that a number is out of the range of its field."""
_RANGES = {">": "more than", ">=": "at least", "<": "less than", "<=": "at most"}


@cache
def fields_of(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Its annotations are evaluated once: that is half of the time in which all presets are read."""
    return msgspec.structs.fields(struct)


def checked(struct: type[msgspec.Struct], name: str, value: Any) -> Any:
    """The value as the type of this field. Raises ValueError: ``must be more than 0, got -1``, without secrets."""
    kind = next(field.type for field in fields_of(struct) if field.name == name)
    told = f"got {show(value)}"
    try:
        # JSON has no Infinity and no NaN: such a setting would not survive in run.json.
        if any(isinstance(n, float) and not math.isfinite(n) for n in (value if isinstance(value, list) else (value,))):
            problem = "must be finite"
        else:
            good = msgspec.convert(value, type=kind)
            own = [
                rule for part in (kind, *get_args(kind)) for rule in getattr(part, "__metadata__", ()) if callable(rule)
            ]
            rules = [*own, *filter(None, [BOUNDS.get(struct, {}).get(name)])]
            problem = next(filter(None, (rule(good) for rule in rules)), "")
            if not problem:
                return good
    except msgspec.ValidationError as error:
        found = _RANGE.match(str(error))
        problem = f"must be {_RANGES[found[1]]} {float(found[2]):g}" if found else f"must be {describe_type(kind)}"
        told = _got(value, error)
    raise ValueError(problem if name in SECRET_KEYS else f"{problem}, {told}")


SECRET_KEYS = frozenset({"urls", "ping_url"})
"""Keys whose values hold tokens: a message must not show them."""


def out_of_order(settings: Settings) -> Iterator[tuple[str, str, str, str]]:
    """(section, lower, higher, sentence) of each pair in the wrong order."""
    for section, low, high in ORDERED:
        values: Any = getattr(settings, section)
        if getattr(values, low) > getattr(values, high):
            sentence = f'"{low}" ({getattr(values, low):g}) must not be above "{high}" ({getattr(values, high):g})'
            yield section, low, high, sentence


def describe_type(kind: Any) -> str:
    """Return the name of a type, such as ``a number``, ``a list of texts in quotes`` or ``"file" or "pty"``."""
    if hasattr(kind, "__metadata__"):
        return describe_type(kind.__origin__)
    if get_origin(kind) is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a list of {_PLURALS.get(get_args(kind)[0], 'values')}"
    if get_origin(kind) is dict:
        inner = get_args(kind)[1]
        return "a table of texts" if inner is str else f"a table whose values are {describe_type(inner)}"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return f"a table with {' and '.join(kind.__struct_fields__)}"
    if get_args(kind):
        return " or ".join(describe_type(part) for part in get_args(kind) if part is not type(None))
    return _NOUNS.get(kind, str(kind))


def show(value: Any) -> str:
    text = str(value) if isinstance(value, float) else msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= 60 else text[:57] + "..."


def _got(value: Any, error: msgspec.ValidationError) -> str:
    """Name the offending element of a list or table (msgspec ends its message with its path), else the value."""
    found = re.search(r"at `\$\[(\d+)\]`", str(error))
    if found and isinstance(value, list):
        return f"got {show(value[int(found[1])])} in it"
    return f"got {show(value)}"


_NOUNS = {float: "a number", int: "a whole number", str: "a text in quotes", bool: "true or false"}
_PLURALS = {float: "numbers", int: "whole numbers", str: "texts in quotes", bool: "true or false"}
