"""The words by which a launch names its checkpoint, where they are not plain options at the end of the command.

Overrides (``ckpt_path=…``) replace one of the same key; a positional word goes to the end. A shell text that does not
pass its arguments on gets the words behind the script that it starts: the launch then runs the text itself (``bash -c
TEXT`` with the name of the script as ``$0``), and the user's file stays as it is.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

import msgspec

from ...model.launch.change import Change
from ...model.shipped.preset import ResumeStyle
from .nested_keys import DeriveError

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
LONGEST_TEXT = 100_000
"""Linux takes one argument of at most 128 kB."""


def filled(words: Sequence[str], checkpoint: Path | None) -> list[str]:
    """The words with the values of their placeholders (``ResumeStyle``).

    Raises DeriveError if the name holds no number, or has another ending than the one that the trainer adds.
    """
    if checkpoint is None:
        return list(words)
    return [_PLACEHOLDER.sub(lambda found: _value_of(found, checkpoint), word) for word in words]


_PLACEHOLDER = re.compile(r"\{(?:(?P<part>path|name)(?:-(?P<ending>[^{}]*))?|(?P<other>folder|step))\}")


def _value_of(found: re.Match[str], checkpoint: Path) -> str:
    if found["other"] is not None:
        return str(checkpoint.parent) if found["other"] == "folder" else _number_of(checkpoint)
    value, ending = str(checkpoint) if found["part"] == "path" else checkpoint.name, found["ending"] or ""
    if not value.endswith(ending):
        raise DeriveError(f"{checkpoint.name}: the trainer adds {ending} to what it is told to resume from")
    return value.removesuffix(ending)


def _number_of(checkpoint: Path) -> str:
    """The last number in its name, without leading zeros."""
    numbers = re.findall(r"\d+", PurePath(checkpoint.name).stem or checkpoint.name)
    if not numbers:
        raise DeriveError(
            f"{checkpoint.name}: its name holds no step, which is what the trainer is told to resume from"
        )
    return str(int(numbers[-1]))


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """``argv``: the command with the words that are no options at its end; ``options``: those that are."""

    argv: tuple[str, ...]
    options: tuple[str, ...] = ()
    env: dict[str, str] = {}
    changes: tuple[Change, ...] = ()


def told_by(style: ResumeStyle, argv: tuple[str, ...], checkpoint: Path, cwd: str, why: str) -> Told:
    """The command and environment that name the checkpoint, but for plain options. Raises DeriveError."""
    words = filled(style.args, checkpoint)
    env = {name: filled([value], checkpoint)[0] for name, value in style.env.items()}
    changes = [
        Change(where="env", key=name, before=None, after=value, why=why, of="resume") for name, value in env.items()
    ]
    options: list[str] = []
    if style.word:
        argv = _with_words_inside(argv, style.word, words, cwd)
    else:
        argv, options = _with_plain_words(argv, words)
    if len(options) < len(words):
        changes.append(
            Change(where="flag", key=_shown_option(words), before=None, after=" ".join(words), why=why, of="resume")
        )
    return Told(argv=argv, options=tuple(options), env=env, changes=tuple(changes))


def _shown_option(words: Sequence[str]) -> str:
    """What a change of these words is called."""
    return next((word.partition("=")[0] for word in words), "")


def _with_plain_words(argv: Sequence[str], words: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """(the command with the words that are no options, the other words). Values behind an option stay with it."""
    parts, options = list(argv), []
    for number, word in enumerate(words):
        if word.startswith("-") or (number and words[number - 1].startswith("-") and "=" not in words[number - 1]):
            options.append(word)
            continue
        key, equals, _ = word.partition("=")
        bare = key.lstrip("+~")
        same = [
            at
            for at, part in enumerate(parts)
            if equals and part.partition("=")[0].lstrip("+~") == bare and "=" in part
        ]
        if equals and same:
            parts[same[-1]] = f"{parts[same[-1]].partition('=')[0]}={word.partition('=')[2]}"
        else:
            parts.append(word)
    return tuple(parts), options


def _with_words_inside(argv: Sequence[str], script: str, words: Sequence[str], cwd: str) -> tuple[str, ...]:
    """The command with the words behind the script that its shell text starts. Raises DeriveError if it has none."""
    changed = _with_text(argv, lambda text: _inserted(text, script, words), cwd)
    if changed is None:
        raise DeriveError(f"the checkpoint cannot be named behind {script}: write {{resume}} into the command")
    return changed


def without_word(argv: Sequence[str], change: Change, cwd: str) -> tuple[str, ...]:
    """The command with an option left out, or written as ``change.after``, in the command itself or its shell text.

    ``change.before``: the value that stands behind it; None = it is not given, so that it is added. Raises DeriveError.
    """
    after = [] if change.after is None else str(change.after).split()
    if change.before is None:
        return (*argv, *after)
    for at, part in enumerate(argv):
        if part == change.key or part.startswith(f"{change.key}="):
            end = at + 1 + (part == change.key and argv[at + 1 : at + 2] == (change.before,))
            return (*argv[:at], *after, *argv[end:])
    value = rf"[ =]{re.escape(change.before)}" if change.before else ""
    word = re.compile(rf"(?<!\S){re.escape(change.key)}{value}(?![\w.=-])")

    def left_out(text: str) -> str:
        if len(word.findall(text)) != 1:
            raise DeriveError(f"{change.key} does not stand exactly once in the shell text: {change.why}")
        return word.sub(lambda _: " ".join(after), text)

    changed = _with_text(argv, left_out, cwd)
    if changed is None:
        raise DeriveError(f"{change.key} cannot be left out: {change.why}")
    return changed


def _with_text(argv: Sequence[str], change: Callable[[str], str], cwd: str) -> tuple[str, ...] | None:
    """The command with its shell text changed; that of a script becomes a line. None if it has none."""
    for at, part in enumerate(argv):
        if part.startswith("-") and re.fullmatch(r"-\w*c", part) and at and at + 1 < len(argv):
            return (*argv[: at + 1], change(argv[at + 1]), *argv[at + 2 :])
        path = Path(cwd, part)
        if not part.startswith("-") and path.is_file() and not _is_program(argv, at):
            text = path.read_bytes()[: LONGEST_TEXT + 1].decode("utf-8", "replace")
            if len(text) > LONGEST_TEXT or "BASH_SOURCE" in text:
                break
            shell, options = _shell_of(argv, at, text)
            return (*shell, *options, "-c", change(text), part, *argv[at + 1 :])
    return None


def _is_program(argv: Sequence[str], at: int) -> bool:
    return PurePath(argv[at]).name in _SHELLS


def _shell_of(argv: Sequence[str], at: int, text: str) -> tuple[list[str], list[str]]:
    """(words of the shell and what stands before it, its options from the first line of the text)."""
    if at and any(PurePath(word).name in _SHELLS for word in argv[:at]):
        return list(argv[:at]), []
    first = text.partition("\n")[0]
    return [*argv[:at], *(first[2:].split() if first.startswith("#!") else ["bash"])], []


def _inserted(text: str, script: str, words: Sequence[str]) -> str:
    found = re.compile(rf"(?<![\w./-])(['\"]?){re.escape(script)}\1(?=[\s;&|)]|$)")
    ends = [m.end() for m in found.finditer(text) if "#" not in text[text.rfind("\n", 0, m.start()) + 1 : m.start()]]
    if len(ends) != 1:
        raise DeriveError(f"{script} does not stand exactly once in the shell text: write {{resume}} into the command")
    given = " ".join(shlex.quote(word) for word in words)
    return f"{text[: ends[0]]} {given}{text[ends[0] :]}"
