"""Finding, replacing, adding and removing options of a command line, in the spelling that the user chose."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec

from ...model.preset import NUMBER, Change, ChangeOf, Preset, Profile, ResumeStyle, is_option
from ...model.run import PLACEHOLDERS, RunSpec
from ...model.wrappers import SHELLS, end_of_word, options_start
from .edits import REMOVED, DeriveError, Setting, float_text, net

_TRUTH_PAIRS = (("true", "false"), ("True", "False"), ("TRUE", "FALSE"), ("1", "0"), ("yes", "no"), ("on", "off"))
_TRUTH = {text: pair for pair in _TRUTH_PAIRS for text in pair}
"""Spellings of truth values on command lines, each with its pair."""
_RESUME_OPTION = re.compile(
    r"--?[\w.-]*(resume|checkpoint|ckpt|weights|restore|load|init|start|continue|from|state)[\w.-]*", re.IGNORECASE
)
_OPTION = r"--?[a-zA-Z][\w.-]*"
_PROFILE_OPTION = r"--?[\w.-]*[Pp][Rr][Oo][Ff][Ii][Ll][Ee][\w.-]*"
_PLACEHOLDER = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")
_VANISHING = {"resume": _OPTION, "profile": _PROFILE_OPTION}
"""Placeholders that may have no value, and the option before them, which is then removed as well."""


class OptionChange(msgspec.Struct, frozen=True):
    """A command line after one option was set. ``before``/``after``: its text; None: not given; "": a bare flag."""

    argv: tuple[str, ...]
    before: str | None
    after: str | None


def is_shell_line(argv: Sequence[str]) -> bool:
    """Whether it is ``bash -c "…"``, to which the trainer's arguments cannot be appended."""
    return (
        len(argv) > 2 and PurePath(argv[0]).name in SHELLS and any(re.fullmatch(r"-\w*c", part) for part in argv[1:-1])
    )


def _name(part: str) -> str | None:
    """``--learning-rate=3`` → ``learning_rate``; ``++optim.lr=3`` (Hydra) → ``optim.lr``; None for a value."""
    if part.startswith("-") and not NUMBER.fullmatch(part):
        return part.lstrip("-").partition("=")[0].replace("-", "_")
    name, equals, _ = part.partition("=")
    bare = name.lstrip("+~")
    return bare if equals and re.fullmatch(r"[\w.]+", bare) and (bare != name or "." in bare) else None


def find_option(argv: Sequence[str], key: str) -> int | None:
    """Index of the last option of that name (``-`` equals ``_``), or None."""
    wanted = key.replace("-", "_")
    found = None
    for index in range(options_start(argv), len(argv)):
        if _name(argv[index]) == wanted:
            found = index
    return found


def dotted_names(argv: Sequence[str], key: str) -> list[str]:
    """The override that ends in ``key`` (``--training.batch_size`` for ``batch_size``), if there is only one."""
    ending = f".{key.replace('-', '_')}"
    names = {name for part in argv[options_start(argv) :] if (name := _name(part)) and name.endswith(ending)}
    return sorted(names) if len(names) == 1 else []


def set_option(argv: Sequence[str], key: str, value: Any, words: Sequence[str] = ()) -> OptionChange:
    """The command line with ``--key value``, or ``--key=value`` if the command writes its options so.

    A bool is a bare flag (left out if false), unless the user wrote it with a value or the key is dotted (an override
    of a config always has a value). A list becomes several values. ``REMOVED`` removes the option. ``words``: how a new
    option is written, if that is known.
    """
    parts = list(argv)
    negated = find_option(parts, f"no_{key}") if isinstance(value, bool) else None
    if negated is not None:
        before = parts[negated]
        if value:
            parts[negated] = f"--{key}"
        return OptionChange(tuple(parts), before, parts[negated])
    wanted = key.replace("-", "_")
    at = [index for index in range(options_start(parts), len(parts)) if _name(parts[index]) == wanted]
    if not at:
        dotted, several = "." in key, isinstance(value, list | tuple)  # an override of a config has always one value
        one = option_text(value) if dotted and several else value
        joined = _joins_values(parts) and (dotted or not several)
        added = list(words) or _written(f"--{key}", one, joined=joined, valued=dotted)
        return OptionChange((*parts, *added), None, _given(added, 0, len(added)) if added else None)
    ends = [_values_end(parts, each, value) for each in at]
    name, equals, old = parts[at[-1]].partition("=")
    given = old if equals else next(iter(parts[at[-1] + 1 : ends[-1]]), None)
    written = _written(name, value, joined=bool(equals), valued=given is not None, like=given or "")
    before = _given(parts, at[-1], ends[-1])
    parts[at[-1] : ends[-1]] = written
    for index, end in reversed(list(zip(at[:-1], ends[:-1], strict=True))):
        del parts[index:end]
    return OptionChange(tuple(parts), before, _given(written, 0, len(written)) if written else None)


def _given(parts: Sequence[str], at: int, end: int) -> str:
    if "=" in parts[at]:
        return parts[at].partition("=")[2]
    return " ".join(parts[at + 1 : end])


def _values_end(parts: Sequence[str], at: int, value: Any) -> int:
    """Index after the option's last value: one value; several if a list is set; a truth value for a bool."""
    if "=" in parts[at]:
        return at + 1
    end = at + 1
    while end < len(parts) and not is_option(parts[end]):
        if isinstance(value, bool) and parts[end] not in _TRUTH:
            break
        if not isinstance(value, list | tuple) and end > at + 1:
            break
        end += 1
    return end


def _joins_values(parts: Sequence[str]) -> bool:
    """Whether the command writes values behind ``=`` only: some trainers (nanoGPT) read no other form."""
    options = range(options_start(parts), len(parts))
    joined = any(is_option(parts[at]) and "=" in parts[at] for at in options)
    apart = any(is_option(parts[at]) and "=" not in parts[at] and not is_option(parts[at + 1]) for at in options[:-1])
    return joined and not apart


def _written(name: str, value: Any, *, joined: bool, valued: bool, like: str = "") -> list[str]:
    """An option as words. ``joined``: its value behind ``=``; ``valued``: a bool has one, in the spelling ``like``."""
    if value is REMOVED or value is None or (value is False and not valued):
        return []
    if isinstance(value, bool):
        texts = [_TRUTH.get(like, _TRUTH_PAIRS[0])[not value]] if valued else []
    elif isinstance(value, list | tuple) and not joined:
        texts = [option_text(item) for item in value]
    else:
        texts = [option_text(value)]
    return [f"{name}={texts[0]}"] if joined and texts else [name, *texts]


def option_text(value: Any) -> str:
    """A value as one argument: floats with a dot (``1.0e-05``), lists and tables as JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, str | int):
        return str(value)
    return msgspec.json.encode(value).decode()


def option_groups(flags: Sequence[str], why: str = "", of: ChangeOf = "") -> list[Setting]:
    """``("--mode", "separated", "--safe_mode")`` → two settings: mode = "separated", safe_mode = True.

    Each with its words as they are written there (``--init_from=resume`` is one word).
    """
    groups: list[list[str]] = []
    for part in flags:
        if is_option(part):
            groups.append([part])
        elif groups:
            groups[-1].append(part)
        else:
            raise DeriveError(f"profile: the flag {part!r} does not begin with a dash")
    found = []
    for words in groups:
        name, equals, value = words[0].lstrip("-").partition("=")
        values = [value, *words[1:]] if equals else list(words[1:])
        given = True if not values else values[0] if len(values) == 1 else values
        found.append(Setting(name, given, why, words=tuple(words), of=of))
    return found


def fill(
    argv: Sequence[str], values: Mapping[str, str | None], splice: Sequence[str] | None, *, alone: bool | None = None
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Replace the placeholders; returns the command and the names that were used.

    An element whose placeholder has no value is removed, and with it the option before it that belongs to it
    (``--resume {resume}``, ``-i {resume}``). An element ``{resume}`` that belongs to no option is replaced by
    ``splice``, the arguments of the preset's resume style (empty: resume is set in the config; None: the preset has no
    style, and the path is used). ``alone``: whether ``{resume}`` belongs to no option; None: only to one whose name
    says so. In a shell line (an element with blanks) only the word is removed, and values are quoted.
    """
    result: list[str] = []
    used: set[str] = set()
    option = re.compile(_OPTION) if alone is False else _RESUME_OPTION
    belongs = {"resume": option if not alone else None, "profile": re.compile(_PROFILE_OPTION)}
    for part in argv:
        names = set(_PLACEHOLDER.findall(part))
        if any(character.isspace() for character in part):
            used |= names
            result.append(_fill_line(part, values))
            continue
        absent = [name for name in names & _VANISHING.keys() if values.get(name) is None]
        before = result[-1] if result and "=" not in result[-1] else ""
        if absent:
            known = belongs[absent[0]]
            if part == f"{{{absent[0]}}}" and known is not None and known.fullmatch(before):
                result.pop()
            continue
        known = belongs["resume"]
        if part == "{resume}" and splice is not None and not (known is not None and known.fullmatch(before)):
            result.extend(splice)
            used |= names if splice else set()
            continue
        used |= names
        result.append(_PLACEHOLDER.sub(lambda match: values[match.group(1)] or "", part))
    return tuple(result), frozenset(used)


def _fill_line(line: str, values: Mapping[str, str | None]) -> str:
    for name, option in _VANISHING.items():
        if values.get(name) is None:
            line = re.sub(rf"((?<!\S)(?:{option})\s+)?\S*\{{{name}\}}\S*", "", line)
    return _PLACEHOLDER.sub(lambda match: shlex.quote(values[match.group(1)] or ""), line)


def environment(
    spec: RunSpec, preset: Preset, profile: Profile | None, changes: Sequence[Change], *, base: Mapping[str, str]
) -> tuple[dict[str, str], list[Change]]:
    """The trainer's whole environment, and the changes of profile and remedies. A preset overrides nothing."""
    env = {**preset.environment, **base, **spec.env}
    if spec.gpus is not None and "CUDA_VISIBLE_DEVICES" not in spec.env:
        # CUDA's default order begins with the fastest GPU; the indices of [run] gpus are those of nvidia-smi.
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        env["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in spec.gpus)
    wanted = (
        [Setting(k, v, f"profile {profile.name}", of="profile") for k, v in profile.env.items()]
        if profile is not None
        else []
    )
    wanted += [Setting(c.key, c.after, c.why) for c in changes if c.where == "env"]
    made = []
    for setting in wanted:
        before = env.get(setting.key)
        after = None if setting.value is None else str(setting.value)
        if after is None:
            env.pop(setting.key, None)
        else:
            env[setting.key] = after
        made.append(Change(where="env", key=setting.key, before=before, after=after, why=setting.why, of=setting.of))
    return env, net(made)


# The words by which a launch names its checkpoint, where they are not plain options at the end of the command.
#
# Overrides (``ckpt_path=…``) replace one of the same key; a positional word goes to the end. A shell text that does
# not pass its arguments on gets the words behind the script that it starts: the launch then runs the text itself
# (``bash -c TEXT`` with the name of the script as ``$0``), and the user's file stays as it is.

LONGEST_TEXT = 100_000
"""Linux takes one argument of at most 128 kB."""


def filled(words: Sequence[str], checkpoint: Path | None) -> list[str]:
    """The words with the values of their placeholders (``ResumeStyle``).

    Raises DeriveError if the name holds no number, or has another ending than the one that the trainer adds.
    """
    if checkpoint is None:
        return list(words)
    return [_RESUME_WORDS_PLACEHOLDER.sub(lambda found: _value_of(found, checkpoint), word) for word in words]


_RESUME_WORDS_PLACEHOLDER = re.compile(r"\{(?:(?P<part>path|name)(?:-(?P<ending>[^{}]*))?|(?P<other>folder|step))\}")


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
            Change(
                where="flag",
                key=next((word.partition("=")[0] for word in words), ""),
                before=None,
                after=" ".join(words),
                why=why,
                of="resume",
            )
        )
    return Told(argv=argv, options=tuple(options), env=env, changes=tuple(changes))


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
        starts = (text.rfind("\n", 0, m.start()) + 1 for m in word.finditer(text))
        found = [m for m, start in zip(word.finditer(text), starts, strict=True) if "#" not in text[start : m.start()]]
        if len(found) != 1:
            raise DeriveError(f"{change.key} does not stand exactly once in the shell text: {change.why}")
        return f"{text[: found[0].start()]}{' '.join(after)}{text[found[0].end() :]}"

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
        if not part.startswith("-") and path.is_file() and PurePath(part).name not in SHELLS:
            text = path.read_bytes()[: LONGEST_TEXT + 1].decode("utf-8", "replace")
            text = _OWN_PLACE.sub("$0", text)
            if len(text) > LONGEST_TEXT or "BASH_SOURCE" in text:
                break
            shell = argv[:at]
            if not any(PurePath(word).name in SHELLS for word in shell):
                first = text.partition("\n")[0]
                shell = [*shell, *(first[2:].split() if first.startswith("#!") else ["bash"])]
            return (*shell, "-c", change(text), part, *argv[at + 1 :])
    return None


_OWN_PLACE = re.compile(r"\$\{BASH_SOURCE(\[0\])?(:-[^{}]*)?\}|\$BASH_SOURCE\b")
"""Where a script lies: a line has no such variable, and gets the script's name as its ``$0``."""


def _inserted(text: str, script: str, words: Sequence[str]) -> str:
    end = end_of_word(text, script)
    if end is None:
        raise DeriveError(f"{script} does not stand exactly once in the shell text: write {{resume}} into the command")
    given = " ".join(shlex.quote(word) for word in words)
    return f"{text[:end]} {given}{text[end:]}"
