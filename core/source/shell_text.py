"""The shell text that a command runs, as a list of commands, as far as needed to see which gives the exit status.

No shell is run. Quotes, comments, here-documents, substitutions, groups and keywords are understood; functions and
conditions are read as if they ran. What cannot be read is left out.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..model.wrappers import POSIX_SHELLS

OPERATORS = ("&&", "||", "|&", ";;", "|", ";", "&", "\n", "(", ")")
KEYWORDS = frozenset({"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
                      "{", "}", "!", "time"})  # fmt: skip
CONDITIONS = frozenset({"if", "elif", "while", "until"})
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_ASSIGNMENT = re.compile(r"\w+\+?=")


class Operator(str):
    """An operator that is not quoted."""

    __slots__ = ()


class ShellCommand(NamedTuple):
    """One simple command. ``after``: the operator that follows it; ``condition``: its status is asked for by ``if``."""

    words: tuple[str, ...]
    after: str
    condition: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.words)


def commands_of(text: str) -> list[ShellCommand]:
    found: list[ShellCommand] = []
    words: list[str] = []
    for part in _parts(text):
        if not isinstance(part, Operator):
            words.append(part)
            continue
        if part == "\n" and not words and found and found[-1].after in {"&&", "||", "|", "|&"}:
            continue
        condition = bool(words) and words[0] in CONDITIONS
        plain = _without_keywords(words)
        if plain:
            found.append(ShellCommand(tuple(plain), part, condition))
        elif found and found[-1].after in {";", "\n", ")"} and part in {"|", "|&", "&&", "||", "&"}:
            found[-1] = found[-1]._replace(after=part)  # "done | tee", "} && next"
        words = []
    plain = _without_keywords(words)
    if plain:
        found.append(ShellCommand(tuple(plain), ""))
    return found


def _without_keywords(words: list[str]) -> list[str]:
    while words and words[0] in KEYWORDS:
        words = [] if words[0] in {"for", "case", "in"} else words[1:]
    return words


def without_assignments(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words after ``NAME=value``."""
    at = 0
    while at < len(words) and _ASSIGNMENT.match(words[at]):
        at += 1
    return words[at:]


def assignments(words: tuple[str, ...]) -> dict[str, str]:
    """What ``NAME=value`` before a command sets."""
    own = words[: len(words) - len(without_assignments(words))]
    return {name: value for name, _, value in (word.partition("=") for word in own)}


LONGEST_BYTES = 1 << 18


class ShellProgram(NamedTuple):
    """The text that a shell runs. ``file``: its name; "" for the text behind ``-c``."""

    text: str
    options: tuple[str, ...] = ()
    file: str = ""


def shell_program(words: tuple[str, ...], cwd: Path) -> ShellProgram | None:
    """The program of a command that is a shell or a shell script; None if it is neither, or cannot be read."""
    at = shell_at(words)
    if at is None:
        return _read_script(words[0], None, cwd) if words else None
    options: list[str] = []
    for place, word in enumerate(words[at + 1 :], at + 2):
        if not word.startswith(("-", "+")) and not re.match(r"[-+].*o$", options[-1] if options else ""):
            return _read_script(word, tuple(options), cwd)
        options.append(word)
        if re.match(r"-[a-zA-Z]*c", word):
            text = next((each for each in words[place:] if not each.startswith("-")), "")
            return ShellProgram(text, tuple(options))
    return None


def shell_at(words: tuple[str, ...]) -> int | None:
    """Where the shell stands: first, or after a launcher such as ``srun -n 1``."""
    for at, word in enumerate(words):
        if Path(word).name in POSIX_SHELLS:
            return at
        if re.match(r"(?:.*/)?python[\d.]*$|.*\.(?:py|sh|bash)$", word):
            return None
    return None


def _read_script(name: str, options: tuple[str, ...] | None, cwd: Path) -> ShellProgram | None:
    """``options``: of the shell that is named before it; None: its own first line or its name tells that it is one."""
    path = cwd / name
    try:
        if "/" not in name and not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(LONGEST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    first = text.partition("\n")[0]
    shebang = first[2:].split() if first.startswith("#!") else []
    by_itself = any(Path(word).name in POSIX_SHELLS for word in shebang) if shebang else path.suffix in {".sh", ".bash"}
    if options is None and not by_itself:
        return None
    given = tuple(word for word in shebang[1:] if word.startswith("-") or word == "pipefail")
    return ShellProgram(text, given if options is None else options, name)


def _parts(text: str) -> Iterator[str]:
    """Words without their quotes, and operators."""
    word, at, quoted = "", 0, False
    ends: list[str] = []
    while at < len(text):
        char = text[at]
        here = _HERE.match(text, at) if char == "<" else None
        if here is not None and text[at : at + 3] != "<<<":
            ends.append(here[2])
            at = here.end()
        elif char == "\\":
            if text[at + 1 : at + 2] != "\n":
                word += text[at + 1 : at + 2]
            at += 2
        elif char in "'\"`":
            end = _end_of_quote(text, at)
            word, quoted, at = word + text[at + 1 : end], True, end + 1
        elif text.startswith("$(", at) or text.startswith("${", at):
            end = _end_of_group(text, at + 1)
            word, at = word + text[at:end], end
        elif char == "#" and not word:
            at = _line_end(text, at)
        elif char in "<>":
            word, at = word + char, at + 1
            if text[at : at + 1] in {"&", "|", ">", "<"}:
                word, at = word + text[at], at + 1
        elif text.startswith("&>", at):
            word, at = word + "&>", at + 2
        elif char in " \t\r" or (operator := next((o for o in OPERATORS if text.startswith(o, at)), "")):
            if word or quoted:
                yield word
            word, quoted = "", False
            if char in " \t\r":
                at += 1
                continue
            yield Operator(operator)
            at += len(operator)
            if operator == "\n" and ends:
                for mark in ends:  # over the here-documents that begin here
                    line = ""
                    while at < len(text) and line != mark:
                        line, at = text[at : _line_end(text, at)].strip(), _line_end(text, at) + 1
                ends = []
        else:
            word, at = word + char, at + 1
    if word or quoted:
        yield word


def _end_of_quote(text: str, at: int) -> int:
    """Position of the quote that closes the one at ``at``; the end of the text if there is none."""
    quote, at = text[at], at + 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" and quote != "'" else 1
    return at


def _end_of_group(text: str, at: int) -> int:
    """Position after the bracket that closes the one at ``at``."""
    opening, closing = text[at], ")" if text[at] == "(" else "}"
    depth = 0
    while at < len(text):
        if text[at] in "'\"":
            at = _end_of_quote(text, at)
        elif text[at] == opening:
            depth += 1
        elif text[at : at + 1] == closing:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(text)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
