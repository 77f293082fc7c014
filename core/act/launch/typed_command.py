"""What to type instead of a command that cannot be started as it stands. Standard library only: the runner loads it."""

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence

# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH113, PTH118, PTH119, PTH122, PTH123


OPERATORS = frozenset({"&&", "||", ";", "|", "&", ">", ">>", "<", "2>&1", "|&"})
SHELL_WORDS = frozenset({
    ".", "source", "cd", "export", "alias", "set", "ulimit", "umask", "eval", "exec", "pushd", "unset", "trap", "if",
    "for", "while", "module", "ml", "conda", "mamba", "micromamba", "activate", "deactivate", "pyenv", "nvm",
})  # fmt: skip
"""Words that only a shell knows, or a function that its start-up file defines."""
FUNCTIONS = frozenset({"module", "ml", "conda", "mamba", "micromamba", "pyenv", "nvm"})
"""Those that a login shell defines (``bash -lic``)."""
ENVIRONMENT_ONLY = frozenset(
    {".", "source", "cd", "export", "module", "ml", "ulimit", "umask", "set", "unset", "pushd"}
)
"""Words that prepare a shell: without a command behind them there is nothing to supervise."""
INTERPRETERS = {".py": "python", ".sh": "bash", ".bash": "bash", ".zsh": "zsh", ".pl": "perl", ".rb": "ruby"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_HEAD_BYTES = 256


def typed_instead(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> str | None:
    """The command to type for one that is not found or not executable; None if none is known."""
    first = argv[0]
    is_line = len(argv) == 1 and any(letter.isspace() for letter in first)
    if is_line and first.strip() and not os.path.isfile(os.path.join(cwd, first)):
        return _of_line(first)
    name = os.path.basename(first) if first in SHELL_WORDS or "/" not in first else ""
    if name in SHELL_WORDS or _ASSIGNMENT.match(first):
        return _in_shell(" ".join(word if word in OPERATORS else _quoted(word) for word in argv))
    return _of_file(argv, cwd, env)


def interpreter_of(path: str) -> str | None:
    """The program that runs this script, by its first line or its name; None if it is no script of a known kind."""
    by_name = INTERPRETERS.get(os.path.splitext(path)[1])
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return by_name
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
        names = [os.path.basename(word) for word in words if not word.startswith("-") and "=" not in word]
        names = names[1:] if names[:1] == ["env"] else names
        return names[0] if names else by_name
    return by_name


def ends_as_on_windows(path: str) -> str:
    """What to type for a script whose first line ends with a carriage return, which belongs to the name then; or ""."""
    try:
        with open(path, "rb") as file:
            first = file.readline(_HEAD_BYTES)
    except OSError:
        return ""
    return f"its lines end as on Windows: sed -i 's/\\r$//' {shlex.quote(path)}; or " if b"\r" in first else ""


def _of_file(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> str | None:
    path = os.path.join(cwd, argv[0])
    if not os.path.isfile(path):
        return None
    word = argv[0] if "/" in argv[0] else f"./{argv[0]}"
    if os.access(path, os.X_OK) and "/" not in argv[0]:
        return shlex.join((word, *argv[1:]))
    program = interpreter_of(path)
    if program is None or ends_as_on_windows(path) or shutil.which(program, path=env.get("PATH", os.defpath)) is None:
        return None
    return shlex.join((program, word, *argv[1:]))


def _of_line(line: str) -> str:
    """For a whole line given as one word: its words, or a shell if it needs one."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return _in_shell(line)
    needs_shell = words[0] in SHELL_WORDS or _ASSIGNMENT.match(words[0]) or set(words) & OPERATORS or "$" in line
    return _in_shell(line) if needs_shell else line


def _in_shell(line: str) -> str:
    first = line.split(maxsplit=1)[0]
    rest = re.split(r"&&|;|\|", line)
    if first in ENVIRONMENT_ONLY and len(rest) == 1:  # the shell has taken the rest of the line for itself
        line = f"{line} && COMMAND"
    how = "-lic" if first in FUNCTIONS else "-c"
    return f"bash {how} {shlex.quote(line)}"


def _quoted(word: str) -> str:
    """The word for a shell line; an assignment keeps its name readable for it."""
    found = _ASSIGNMENT.match(word)
    return word[: found.end()] + shlex.quote(word[found.end() :]) if found else shlex.quote(word)
