"""Problems of a configuration."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """One problem. ``where``: the file, or a command-line option; ``line`` counts from 1."""

    where: str
    line: int | None
    text: str

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return f"{place}: {self.text}"


class ConfigError(Exception):
    """A configuration cannot be used. ``problems``: all that were found; ``str``: one line each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UnknownRun(ConfigError):  # noqa: N818  named after the condition
    """The configuration names no run of that name."""


def display_path(path: Path) -> str:
    """Return the path relative to the working folder if it is below it, else absolute."""
    relative = os.path.relpath(path)
    return str(path.absolute()) if relative.startswith("..") else relative


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, or None."""
    import difflib  # slow to import

    lowered = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "…"?``, or the known words if none is near."""
    names = sorted(known)
    guess = nearest(word, names)
    if guess is not None:
        return f'; did you mean "{guess}"?'
    return f"; there are: {', '.join(names)}" if names else ""
