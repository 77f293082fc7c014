"""What the command of a run can resume from: files, directories or nothing.

A checkpoint that cannot be passed to the command is not a resume point: the restart would start from the beginning.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from .checkpoint import Form, Holds
from .preset import Change, Preset, ResumeStyle

# How the trainer of a run is resumed: decided once, before its first launch, and kept with the run.

Will = Literal["yes", "self", "no", "unknown"]
Source = Literal["preset", "command", "script", "self", "config", "none"]


class ResumeWay(msgspec.Struct, frozen=True, kw_only=True):
    """``will``: a launch can name a checkpoint, the trainer finds it by itself, neither, or it cannot be told.

    ``source``: what says so: the preset, ``{resume}`` or a word of the command, an option in the trainer's source, a
    load there that no option feeds, or a switch in its config. ``how``: the option, or what is missing. ``place``:
    where it was found.
    ``why``: evidence, a clause each. ``file``, ``directory``: what a launch does for a checkpoint of that form, if
    the preset does not say it.
    """

    will: Will = "unknown"
    source: Source = "none"
    how: str = ""
    place: str = ""
    why: tuple[str, ...] = ()
    file: ResumeStyle | None = None
    directory: ResumeStyle | None = None
    stands_alone: bool = False
    """``{resume}`` in the command is a word of its own: the option before it takes no value."""

    @property
    def is_usable(self) -> bool:
        """Whether a launch can resume by it."""
        return self.will in {"yes", "self"}

    @property
    def is_found(self) -> bool:
        """Whether it is a conclusion from the trainer's source, which no resume has proved yet."""
        return self.file is not None or self.directory is not None

    @property
    def is_unproven(self) -> bool:
        """Whether neither a resume nor a rehearsal has proved it."""
        return any(style is not None and bool(style.found) for style in (self.file, self.directory))

    def proven(self, why: str) -> "ResumeWay":
        file, directory = (
            None if style is None else msgspec.structs.replace(style, found="") for style in (self.file, self.directory)
        )
        return msgspec.structs.replace(self, file=file, directory=directory, why=(*self.why, why))


class SecondStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a restart of the command does to the checkpoints, decided before the first launch and kept with the run.

    ``destroys``: what the same command deletes or writes over, a sentence each. ``drops``: what a launch that resumes
    leaves out or switches off. ``left``: what it deletes all the same, ``may``: what it may delete, as clauses; ""
    = nothing. ``config``: the file with a setting that is switched off.
    """

    destroys: tuple[str, ...] = ()
    drops: tuple[Change, ...] = ()
    left: str = ""
    may: str = ""
    config: str | None = None


def with_way(preset: Preset, way: ResumeWay | None) -> Preset:
    """The preset with the way that was decided for a run, unless that is the preset's own."""
    if way is None or (way.source == "preset" and not way.is_found):
        return preset
    return msgspec.structs.replace(preset, resume_file=way.file, resume_directory=way.directory)


# What the trainer's source shows, and the preset that was recognised with the reason.


class Imported(msgspec.Struct, frozen=True):
    """A module or a name in it that the trainer's script uses. ``place``: ``train.py:3``."""

    name: str
    place: str

    def is_of(self, pattern: str) -> bool:
        """Whether it is this module or name, or something in it."""
        return self.name == pattern or self.name.startswith(f"{pattern}.")


class SourceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``imported``: in the order of the script. ``folders``: that of the script, and the working folder.

    Nothing is imported or run for it. Empty: the script is not known or cannot be read.
    """

    imported: tuple[Imported, ...] = ()
    folders: tuple[str, ...] = ()

    def use_of(self, patterns: tuple[str, ...]) -> Imported | None:
        return next((one for one in self.imported for pattern in patterns if one.is_of(pattern)), None)


class OwnEnd(msgspec.Struct, frozen=True):
    """A text with which the trainer's own source ends it (``sys.exit(f"no recipe {name}")``).

    ``parts``: what is written out of its last line, before, between and after what is filled in. ``code``: the
    function, the tests and the statement around it. ``place``: ``train.py:12``.
    """

    parts: tuple[str, ...]
    code: str = ""
    place: str = ""

    def says(self, line: str) -> bool:
        """Whether the line is this text."""
        first, *rest = self.parts
        if not rest or not line.startswith(first):
            return not rest and line == first
        at = len(first)
        for part in rest[:-1]:
            found = line.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return line.endswith(rest[-1]) and at <= len(line) - len(rest[-1])


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """``why``: for people ("train.py:3 imports lightning"). ``resumes``: the preset's ways to resume may be used."""

    preset: str
    why: str = ""
    resumes: bool = True


# The script of a command as it stood at a launch, and whether it was changed until the next one.


class ScriptState(msgspec.Struct, frozen=True, kw_only=True):
    """The script alone, not what it imports. ``mtime``: epoch seconds. ``sha256``: of its content."""

    path: str
    size: int
    mtime: float
    sha256: str


class ScriptChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The script at ``path`` is another one than at the launch of ``attempt``; its time is ``mtime``."""

    path: str
    mtime: float
    attempt: int


def change_of(before: ScriptState | None, now: ScriptState | None, attempt: int) -> ScriptChange | None:
    """How the script differs from that of ``attempt``; None if its content is the same, or if one is not known."""
    if before is None or now is None or before.path != now.path:
        return None
    if (before.size, before.sha256) == (now.size, now.sha256):
        return None
    return ScriptChange(path=now.path, mtime=now.mtime, attempt=attempt)


EVERY_FORM: frozenset[Form] = frozenset({"file", "directory"})
PLACEHOLDER = "{resume}"


class ResumeSupport(msgspec.Struct, frozen=True, kw_only=True):
    """``forms``: what a path may be; empty = the command has no place for one. ``preset``: its name, for sentences.

    ``whole_directories``: a directory must hold the training's state, not weights alone (its step is read from there).
    ``weights_are_enough``: the framework resumes from weights by design, so they count as much as a whole state.
    ``found``: where the option was found in the trainer's source; no resume has proved it. "" = it is known.
    ``names``: what stands before the path in the command or the environment. ``written``: that is the user's own text.
    ``by_itself``: the trainer finds its newest checkpoint without being told. ``unnamed``: a launch says at most
    that it is to resume, and the trainer chooses the checkpoint.
    ``deletes``: why a start that resumes deletes the run's checkpoints, ``may_delete``: why it may; "" = it does not.
    """

    forms: frozenset[Form] = EVERY_FORM
    preset: str = "generic"
    whole_directories: bool = False
    weights_are_enough: bool = False
    found: str = ""
    names: tuple[str, ...] = ()
    by_itself: bool = False
    unnamed: bool = False
    written: bool = False
    deletes: str = ""
    may_delete: str = ""

    def objection(self, form: Form, holds: Holds | None) -> str | None:
        """Why a launch cannot resume from such a checkpoint, for the user; None if it can."""
        if not self.forms:
            return f"it cannot be passed to the command (write {PLACEHOLDER} where its path belongs)"
        if form not in self.forms:
            return f"{self.preset} resumes from a {next(iter(self.forms))}, not from a {form}"
        if form == "directory" and self.whole_directories and holds == "weights":
            return f"it holds weights alone, and {self.preset} resumes from a whole training state"
        return None


def resume_support(preset: Preset, command: Sequence[str], second_start: SecondStart | None = None) -> ResumeSupport:
    """The forms of a preset, else those of ``{resume}`` in the command."""
    styles: dict[Form, ResumeStyle | None] = {"file": preset.resume_file, "directory": preset.resume_directory}
    known = [style for style in styles.values() if style is not None]
    forms = frozenset(form for form, style in styles.items() if style is not None)
    written = tuple(each.name for each in written_in(command) if each.option)
    if not forms and any(PLACEHOLDER in part for part in command):
        forms = EVERY_FORM
    return ResumeSupport(
        forms=forms,
        preset=preset.name,
        whole_directories=preset.resume == "state" and preset.resume_directory is not None and not _found(known),
        weights_are_enough=preset.resume == "weights",
        found=_found(known),
        names=written or tuple(dict.fromkeys(name for style in known for name in _names(style))),
        by_itself=any(style.by_itself for style in known),
        unnamed=bool(known)
        and not any(style.key or "{" in "".join((*style.args, *style.env.values())) for style in known),
        written=bool(written),
        deletes="" if second_start is None else second_start.left,
        may_delete="" if second_start is None else second_start.may,
    )


class Written(NamedTuple):
    """``{resume}`` in a command as the user wrote it. ``option``: what stands before it, "" if it is a word alone."""

    shown: str
    option: str = ""
    joined: bool = False

    @property
    def name(self) -> str:
        """``resume`` of ``+resume={resume}``."""
        return self.option.lstrip("+")


def written_in(command: Sequence[str]) -> Iterator[Written]:
    """Each word of a command with the placeholder; in a shell line the option is that of the line."""
    for before, word in pairwise(("", *command)):
        if PLACEHOLDER not in word:
            continue
        name, equals, _ = word.partition("=")
        if any(c.isspace() for c in word):
            found = re.search(rf"(?:(--?[\w.-]+)[ =])?\S*{re.escape(PLACEHOLDER)}\S*", word)
            yield Written(word) if found is None else Written(found[0], found[1] or "")
        elif equals:
            yield Written(word, name, joined=True)
        else:
            option = before if before.startswith("-") and "=" not in before and word == PLACEHOLDER else ""
            yield Written(f"{option} {word}".strip(), option)


def _names(style: ResumeStyle) -> Iterator[str]:
    """``--resume`` of ``--resume {path}``, ``resume`` of ``+resume={path}``, the key, the variables."""
    for word in style.args:
        name, sign, _ = word.lstrip("+").partition("=")
        if "{" not in name and (sign or word.startswith("-")):
            yield name
    if style.key is not None:
        yield style.key
    yield from style.env


def _found(styles: Sequence[ResumeStyle]) -> str:
    return next((style.found for style in styles if style.found), "")
