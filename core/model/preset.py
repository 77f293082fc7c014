"""What trainwatch knows about a framework (``configs/presets``), profiles, and the settings that a launch changes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

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
