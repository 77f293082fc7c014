"""How the trainer of a run is resumed: decided once, before its first launch, and kept with the run."""

from typing import Literal

import msgspec

from .change import Change
from .preset import Preset, ResumeStyle

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
