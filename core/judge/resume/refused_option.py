"""Whether a trainer ended because it does not know the option that a resume added to its command.

Each parser says so in its own words, and scripts that parse by hand in any: what they share is that the option is named
where the end is explained. A line that repeats a command, lists the options, logs the settings or tells how to use one
names it, too, and proves nothing. docopt prints the synopsis alone: an option that is not in it is not known.

Sources: argparse, click, typer, absl and gflags, fire, tyro, docopt, getopt, optparse, hydra, OmegaConf, jsonargparse,
simple-parsing, ``HfArgumentParser``, pydantic, dataclasses. Known false alarm: an error that quotes the option for
another reason.
"""

import re
from collections.abc import Iterable, Sequence

from ..text.carriers import peel

BY_HAND = re.compile(r"(?:Type|Attribute|Key)Error\b")
"""What a script raises for a name that it does not know, if it has no parser. The class is that of a bug."""
LAST_LINES = 8
"""Lines from the end in which a parser says what it refuses, if nothing else shows a cause: tyro's box has five."""
_BOX = " \t│|┃╭╮╰╯─━"
_OPTION = r"--?[A-Za-z][\w-]*(?:[=\s'\",]+[^-\s'\",]\S*)?"
_BEFORE_IN_A_COMMAND = re.compile(rf"(?:^|[\s'\"\[(])(?:[\w./-]+\.(?:py|sh)|{_OPTION})['\",\s]+['\"]?$")
_ADVISED = re.compile(
    r"(?i:\b(?:use|using|pass|passing|try|add|adding|specify|set|provide|give|with|via|without)"
    r"(?: the)?(?: (?:flag|option|argument))? ['\"`]?)$"
)
_OF_A_COMMAND = re.compile(r"^\++ |\bCommand '|\bnon-zero exit status\b")
_VALUE = r"\s*[:=]\s*(?:['\"\d\[{-]|None|True|False|null|true|false)"
_USAGE = re.compile(r"\s*[Uu]sage:(?:\s|$)")
_SYNOPSIS = re.compile(r"\s|$|\S[\w ]{0,80}:$")
_QUIET = frozenset({"debug", "info", "warning"})


def refused(names: Sequence[str], *, cause: str, below: Sequence[str], last: Sequence[str], class_: str) -> str:
    """The name among ``names`` that the end of the log says is not known; "" if it says that of none.

    ``names``: of the option. ``cause``: the line that explains the end, ``below``: the lines after it; ``last``: the
    last lines of the log, which count if there is no cause. ``class_``: of the failure.
    """
    if class_ == "config_error":
        named = [name for name in names if _alone(name, below) or speaks_of(name, (cause, *below))]
    elif class_ == "unknown":
        named = [name for name in names if speaks_of(name, _of_the_end(last))]
    elif class_ == "code_bug" and BY_HAND.match(cause):
        named = [name for name in names if speaks_of(name, (cause,))]
    else:
        return ""
    if not named and class_ != "code_bug":
        named = [name for name in names[:1] if name.startswith("-") and _is_not_in_the_synopsis(name, last)]
    return named[0] if named else ""


def speaks_of(option: str, lines: Iterable[str]) -> bool:
    """Whether one of the lines names the option, as it is written or in quotes, and is no list of what there is."""
    return any(_names(option, line) for line in lines)


def _of_the_end(last: Sequence[str]) -> list[str]:
    told = [line for line in last if line.strip(_BOX)]
    return [line for line in told[-LAST_LINES:] if peel(line).level not in _QUIET]


def _names(option: str, line: str) -> bool:
    if _OF_A_COMMAND.search(line) or _USAGE.match(line):
        return False
    written = rf"(?<![\w\[-]){re.escape(option)}(?![\w-])" if option.startswith("-") else None
    quoted = rf"""['"`]\+*(?:[\w.]+\.)?{re.escape(option.lstrip("-"))}['"`](?!{_VALUE})"""
    for found in re.finditer(quoted if written is None else f"{written}|{quoted}", line):
        before = line[: found.start()]
        listed = before.isspace() or (before.strip() and not before.strip(_BOX) and before[-2:] == "  ")
        if not (listed or _BEFORE_IN_A_COMMAND.search(before) or _ADVISED.search(before)):
            return True
    return False


def _alone(option: str, lines: Iterable[str]) -> bool:
    """pydantic names a field that it does not know on a line of its own."""
    name = re.compile(rf"(?:[\w.]+\.)?{re.escape(option.lstrip('-'))}$")
    return any(name.match(line.strip()) is not None for line in lines)


def _is_not_in_the_synopsis(option: str, last: Sequence[str]) -> bool:
    """Whether the log ends with a synopsis, and nothing but it, which has options and not this one."""
    at = max((number for number, line in enumerate(last) if _USAGE.match(line)), default=None)
    if at is None or not all(_SYNOPSIS.match(line) for line in last[at + 1 :]):
        return False
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", "\n".join(last[at:])) is None
