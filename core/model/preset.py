"""What trainwatch knows about a framework (``configs/presets``), how its trainer is resumed, and profiles."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import msgspec

from .checkpoint import Form, Holds
from .progress import LengthKeys
from .text import LazyPattern

# A setting that a launch changes.

ChangeOf = Literal["", "profile", "resume"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that differs from the user's own config, and why. ``where``: config key, flag or environment.

    ``of``: the profile, or the checkpoint to resume from, which is another one in each launch.
    """

    where: Literal["config", "flag", "env"]
    key: str
    before: Any = None
    after: Any = None
    why: str = ""
    of: ChangeOf = ""


# The ramp: when a run climbs to the next rung of its ladder, and which rungs failed.

_GOAL = LazyPattern(r"(\d+(?:\.\d+)?)\s*(checkpoint|epoch|hour)s?")
_OR = LazyPattern(r"\s+or\s+|\s*,\s*")


class RampGoal(msgspec.Struct, frozen=True, kw_only=True):
    """What must be reached on a rung before the next one; one of them is enough. None = does not count."""

    checkpoints: int | None = None
    epochs: float | None = None
    hours: float | None = None


def ramp_goal(text: str) -> RampGoal:
    """Read ``3 checkpoints``, ``10 epochs``, ``6 hours`` or several with ``or``. Raises ValueError with a sentence."""
    found: dict[str, float] = {}
    for part in _OR.split(text.strip()):
        match = _GOAL.fullmatch(part)
        if match is None or float(match[1]) <= 0:
            raise ValueError('must say how long, as in "3 checkpoints", "10 epochs" or "3 checkpoints or 6 hours"')
        found[match[2]] = float(match[1])
    checkpoints = found.get("checkpoint")
    if checkpoints is not None and checkpoints != int(checkpoints):
        raise ValueError("must name a whole number of checkpoints")
    return RampGoal(
        checkpoints=None if checkpoints is None else int(checkpoints),
        epochs=found.get("epoch"),
        hours=found.get("hour"),
    )


def goal_of_rung(ramp: Sequence[str], rung: int) -> RampGoal | None:
    """The goal of a rung (0 = the lowest); the last one holds for all above. None = the ramp is off."""
    return ramp_goal(ramp[min(rung, len(ramp) - 1)]) if ramp else None


class FailedRung(msgspec.Struct, frozen=True, kw_only=True):
    """A rung that failed. ``ran_s``: seconds that it had trained there; ``failure``: what ended it."""

    profile: str
    ran_s: float
    failure: str
    step: int | None = None

    @property
    def words(self) -> str:
        return f"{self.profile} {self.end}"

    @property
    def end(self) -> str:
        if self.ran_s <= 0.0:
            return f"did not start ({self.failure})"
        return f"died after {hours(self.ran_s)} ({self.failure})"


Direction = Literal["up", "back", "forgiven"]
"""Stored in the journal. ``back``: the rung failed, so the rung below it is next."""
ALLOWED_AGAIN: Final = "forgiven"
"""An operator asked for a rung that had failed: from now on the ramp may choose it, too."""


def hours(seconds: float) -> str:
    """A length of time on a rung: ``6.2 h``, or minutes if it is short."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


SaveSignal = Literal["USR1", "USR2"]
"""Signals that no framework and no launcher uses to end. Python catches INT to end, torchrun TERM and HUP."""


class ResumeStyle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a framework is made to resume from a checkpoint.

    A config key that gets the path (``key``), arguments to append (``args``), or environment variables (``env``); in
    both ``{path}`` is the checkpoint, ``{folder}`` the folder that holds it, ``{name}`` its name there and ``{step}``
    the number in its name; ``{path-.pth}`` and ``{name-.pth}`` are without this ending.
    ``when``: a regular expression on the joined command line; without a match the command has no such option.
    ``when_imports``: the same for a script that was recognised by its imports: it must import one of these.
    """

    key: str | None = None
    args: tuple[str, ...] = ()
    when: str | None = None
    when_imports: tuple[str, ...] = ()
    env: dict[str, str] = {}
    by_itself: bool = False
    """The trainer finds its newest checkpoint without being told."""
    found: str = ""
    """Where it was found in the trainer's source (``train.py:41``): no resume has proved it yet. "" = it is known."""
    word: str = ""
    """The script in a shell text: ``args`` go behind it there, because the text does not pass its arguments on."""


class FurtherConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A second file that decides settings: what it says wins over the config and the command line.

    ``key``: the setting that names it (kohya's ``dataset_config``). ``settings``: setting → its key in that file, at
    whatever place, also in lists of tables.
    """

    key: str
    settings: dict[str, str]


FOR_A_LOG = {"COLUMNS": "200", "TQDM_MININTERVAL": "0.5"}
"""``COLUMNS`` without ``LINES``: rich's log handler stops folding lines at 80 columns, while tqdm, which
asks for both, keeps its short bar without a limit on the numbers behind it. Ten bars a second tell nothing more than
two (honoured by tqdm 4.66 and later)."""


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    title: str = ""
    description: str = ""
    detect_command: tuple[str, ...] = ()
    """Regular expressions on the joined command line; any match selects the preset."""
    detect_imports: tuple[str, ...] = ()
    """Modules, or names in them, that the trainer's script imports (``lightning``, ``transformers.Trainer``)."""
    detect_files: tuple[str, ...] = ()
    """Files beside the trainer's script, or in the working folder, that all must be there."""
    detect_config_keys: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    """Presets that match as well and are less specific: TRL's scripts import transformers, too."""
    based_on: str | None = None
    """The preset that it has everything from that it does not set itself, its remedies too."""
    never_run: bool = False
    """Written from what is known of the framework; we have not run it. It proves nothing."""
    output: tuple[str, ...] = ()
    """Where it saves, from its settings: ``{output_dir}``; one without a name in braces is the default. The first one
    whose settings are all set counts."""
    output_below: tuple[str, ...] = ()
    """The same for the folder below which it makes a new one in each launch (``lightning_logs``)."""
    finds_checkpoint: str = ""
    """How it resumes without being told from what, in words; empty = it does not."""
    finds_with: str = ""
    """The setting that must be on for that; "always": none; "": the script must do something for it."""
    config_format: Literal["toml", "yaml", "none"] = "none"
    config_option: str | None = None
    """The trainer's option for its config, for the command that ``init`` writes (``--config``)."""
    launcher: tuple[str, ...] = ()
    """Words before the script in the command that ``init`` writes, instead of the interpreter."""
    torch: Literal["needed", "unused", "unknown"] = "unknown"
    """Whether the trainer uses torch. ``check``: no torch fails, is not looked for, or is a warning."""
    sections_ignored: bool = False
    """The framework flattens its config's sections into one name space (kohya): a key may stand in any of them."""
    further_configs: tuple[FurtherConfig, ...] = ()
    """Files that the trainer reads beside its config. A launch that changes one of their settings gets a copy."""
    prints: dict[str, tuple[str, ...]] = {}
    """Setting → regular expressions with one group for lines that show its value at the start, beside its own name
    (``batch_size=4``). A remedy whose value does not show there is withdrawn."""
    dotted: dict[str, str] = {}
    """Dotted names of settings that neither config nor command contain: ``batch_size`` → ``training.batch_size``."""
    resume: Literal["state", "weights", "none"] = "state"
    """What a resume restores: everything, or weights only (the step counter starts again by design)."""
    resume_file: ResumeStyle | None = None
    resume_directory: ResumeStyle | None = None
    state_key: str | None = None
    """Setting without which it saves weights alone, so that there is no directory to resume from."""
    epochs_key: str | None = None
    steps_key: str | None = None
    """Settings that say how long to train, for ``resume = "weights"``: lowered by what was done before the resume."""
    name_key: str | None = None
    """Setting that names the checkpoint files, if each launch writes the same names (kohya's ``output_name``)."""
    name_default: str = ""
    """Their name if the config and the command do not set it."""
    checkpoint_globs: tuple[str, ...] = ()
    """Names of its checkpoints directly in the output folder; only these are watched and listed. Empty = every known
    checkpoint name."""
    layout: Literal["training_state"] | None = None
    """The members that each of its checkpoint folders must have: ``training_state`` = model.pt, optimizer.pt and
    training_state.json. None: what a folder must have is told from the files themselves."""
    sample_globs: tuple[str, ...] = ()
    """Paths of its sample images below the output folder (``samples/**/*.png``). If none matches, folders with
    usual names for samples are searched."""
    length: LengthKeys | None = None
    """Settings that say how long the training will be."""
    env: dict[str, str] = {}
    """Environment that this framework needs to print its bars without a terminal, beside ``FOR_A_LOG``."""
    save_signal: SaveSignal | None = None
    """Signal on which the framework writes a checkpoint and trains on."""
    save_file: str | None = None
    """Path on whose appearance it does, relative to the run's folder; ``{output_dir}`` is filled in."""
    success_exit_codes: tuple[int, ...] = (0,)
    source: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """What the trainer's environment has, unless the user's own says otherwise."""
        return {**FOR_A_LOG, **self.env}

    @property
    def kin(self) -> tuple[str, ...]:
        """Its name and that of the preset whose remedies it has; one that was never run has none of another one."""
        return (self.name,) if self.based_on is None or self.never_run else (self.name, self.based_on)

    def told(self, why: str) -> str:
        """What shows that it is this preset, for people, and that it was never run."""
        return "; ".join(part for part in (why, "never run by us" if self.never_run else "") if part)

    def of_command(self, command: Sequence[str], *, resumes: bool = True) -> "Preset":
        """The preset without the ways to resume that this command has no option for."""
        line = " ".join(command)

        def fits(style: ResumeStyle | None) -> ResumeStyle | None:
            if style is None or not resumes or not re.search(style.when or "", line):
                return None
            if not self.never_run:
                return style
            return msgspec.structs.replace(style, found=f"preset {self.name}, never run by us")

        file, directory = fits(self.resume_file), fits(self.resume_directory)
        return msgspec.structs.replace(self, resume_file=file, resume_directory=directory)


# Profiles: named bundles of training settings.

NO_PROFILE = "none"
"""The name for the user's own config without a profile."""
OF_OPTIONS = frozenset({"cuda-safe-mode", "cuda-safe-sizes"})
"""Families of profiles that only give options: they are for any script that declares these."""
ANY_FAMILY = frozenset({"generic", *OF_OPTIONS})
"""Families of profiles that are for any trainer. The first part of another (``kohya-sdxl``) is the preset's name."""

NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
"""A word of a command that is a value although a dash may be in front."""


def is_option(word: str) -> bool:
    """Whether a word of a command is an option (``-b``, ``--batch=2``), and no value as ``-1`` is."""
    return word.startswith("-") and len(word) > 1 and not NUMBER.fullmatch(word)


def one_each(changes: Iterable[Change]) -> list[Change]:
    """One change for each setting, from its first ``before`` to its last ``after``."""
    known: dict[tuple[str, str], Change] = {}
    for change in changes:
        first = known.pop((change.where, change.key), change)
        known[change.where, change.key] = msgspec.structs.replace(change, before=first.before)
    return list(known.values())


def leaves(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings as (dotted key, value): ``{"vae": {"tiling": True}}`` gives ``("vae.tiling", True)``."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named overlay on the trainer's own config. ``settings``: by dotted key (``training.batch_size``).

    ``family``: for which trainers it is; see ``is_for``.
    """

    name: str
    title: str = ""
    description: str = ""
    family: str = "generic"
    settings: dict[str, Any] = {}
    yields: tuple[str, ...] = ()
    """Settings that are used only if config and command do not set them, such as the length of the training."""
    env: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    expect: dict[str, str] = {}
    """Measured needs (RAM, VRAM, speed), for display."""
    source: str = ""
    rung: int | None = None
    """Its place among the profiles of its family, 0 = safest, which is their ladder if the run has none."""

    def is_for(self, preset: str) -> bool:
        """Whether trainers of this preset know its settings. A user's own profile and one of options are for all."""
        return self.family in ANY_FAMILY or self.family.partition("-")[0] == preset


def usual_ladders(profiles: Iterable[Profile]) -> dict[str, tuple[str, ...]]:
    """Family → the names of its profiles with a rung, safest first."""
    placed = sorted((profile.rung, profile.family, profile.name) for profile in profiles if profile.rung is not None)
    found: dict[str, tuple[str, ...]] = {}
    for _, family, name in placed:
        found[family] = (*found.get(family, ()), name)
    return found


# How the trainer of a run is resumed: decided once, before its first launch, and kept with the run.
#
# A checkpoint that cannot be passed to its command is not a resume point: the restart would start from the beginning.

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
    lacks: str = ""
    """What such a resume does not restore, as a clause."""
    file: ResumeStyle | None = None
    directory: ResumeStyle | None = None
    stands_alone: bool = False
    """``{resume}`` in the command is a word of its own: the option before it takes no value."""

    @property
    def is_usable(self) -> bool:
        return self.will in {"yes", "self"}

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
    leaves out or switches off. ``left``: what it deletes all the same, or may delete, as its source shows; ``may``:
    what an option may do by its name, as clauses; "" = nothing. ``config``: the file with a setting that is switched
    off. ``empties``: the absolute folders that it deletes, "": one that is not known. ``setting``: the variables of the
    environment that decided it, with digests of their values. ``lists``: where it takes every file of its folder for
    one that it saved, so that nothing of ours may be there; "" = nowhere. ``refuses``: what ends every restart.
    ``unread``: why only what its options say is known; "" = its source was read.
    """

    destroys: tuple[str, ...] = ()
    drops: tuple[Change, ...] = ()
    left: str = ""
    may: str = ""
    config: str | None = None
    empties: tuple[str, ...] = ()
    setting: dict[str, str] = {}
    lists: str = ""
    refuses: str = ""
    unread: str = ""


def with_way(preset: Preset, way: ResumeWay | None) -> Preset:
    """The preset with the way that was decided for a run, unless that is the preset's own."""
    if way is None or (way.source == "preset" and way.file is None and way.directory is None):
        return preset
    return msgspec.structs.replace(preset, resume_file=way.file, resume_directory=way.directory)


# What the trainer's source shows, and the preset that was recognised with the reason.


class Imported(msgspec.Struct, frozen=True):
    """A module or a name in it that the trainer's script uses. ``place``: ``train.py:3``."""

    name: str
    place: str


class SourceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``imported``: in the order of the script. ``folders``: that of the script, and the working folder.

    Nothing is imported or run for it. Empty: the script is not known or cannot be read.
    """

    imported: tuple[Imported, ...] = ()
    folders: tuple[str, ...] = ()

    def use_of(self, patterns: tuple[str, ...]) -> Imported | None:
        """The first that is one of these modules or names, or something in it."""
        return next((one for one in self.imported for p in patterns if f"{one.name}.".startswith(f"{p}.")), None)


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
