"""What the command of a run can resume from: files, directories or nothing.

A checkpoint that cannot be passed to the command is not a resume point: the restart would start from the beginning.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from .checkpoint import Form, Holds
from .preset import Preset, ResumeStyle
from .resume_way import SecondStart

EVERY_FORM: frozenset[Form] = frozenset({"file", "directory"})
PLACEHOLDER = "{resume}"


class ResumeSupport(msgspec.Struct, frozen=True, kw_only=True):
    """``forms``: what a path may be; empty = the command has no place for one. ``preset``: its name, for sentences.

    ``whole_directories``: a directory must hold the training's state, not weights alone (its step is read from there).
    ``weights_are_enough``: the framework resumes from weights by design, so they count as much as a whole state.
    ``found``: where the option was found in the trainer's source; no resume has proved it. "" = it is known.
    ``names``: what stands before the path in the command or the environment. ``written``: that is the user's own text.
    ``by_itself``: the trainer finds its newest checkpoint without being told.
    ``deletes``: why a start that resumes deletes the run's checkpoints, ``may_delete``: why it may; "" = it does not.
    """

    forms: frozenset[Form] = EVERY_FORM
    preset: str = "generic"
    whole_directories: bool = False
    weights_are_enough: bool = False
    found: str = ""
    names: tuple[str, ...] = ()
    by_itself: bool = False
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
    written = tuple(_written(command))
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
        written=bool(written),
        deletes="" if second_start is None else second_start.left,
        may_delete="" if second_start is None else second_start.may,
    )


def _written(command: Sequence[str]) -> Iterator[str]:
    """``--resume`` of ``--resume {resume}``, ``resume`` of ``resume={resume}``, as the user wrote it."""
    for before, word in pairwise(("", *command)):
        name, sign, value = word.lstrip("+").partition("=")
        if sign and PLACEHOLDER in value:
            yield name
        elif PLACEHOLDER in word and before.startswith("-"):
            yield before


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
