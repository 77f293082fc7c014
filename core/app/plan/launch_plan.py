"""The launch of a run as it would be now: computed once, then used by check, dry run, launch screen and actor."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ...act.config.derive import Derived, DeriveError, preview
from ...act.config.edits import read_toml, read_yaml
from ...act.config.flags import find_option, option_groups
from ...act.config.trainer_config import config_in_command, counted, own_name, remaining
from ...checkpoints.inspection import verify
from ...config.location import FILE_NAME, find_project
from ...config.project import Overrides
from ...model.decision import StartAttempt
from ...model.preset import OF_OPTIONS, Change, Preset, Profile, leaves
from ...model.run import RunSpec
from ...model.wrappers import hides_trainer, options_start
from ...processes import file_text
from ...source.trainer_source import read_source
from ...store.home import runs_folder
from ...store.run_directory import RunDirectory
from ..runs.known_runs import here, home
from .resume_plan import as_declared, decided, undeclared
from .specs import Definitions, definitions_of, read_definitions, spec_of_command, spec_of_project

GENERIC = Preset(name="generic")


def as_number(value: object) -> float | None:
    """A setting, which a command line has as text, as a number; None if it is none."""
    try:
        return None if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError):
        return None


SHOWN_FOLDER = "ATTEMPT"
"""Stands for the attempt's folder in what people are shown: its path is long and does not exist yet."""


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a run. Nothing is written for it.

    ``derived``: command line, environment and config copy; None if they cannot be derived, then ``problem`` says why.
    ``settings``: the trainer's own settings by bare name, as the launch would have them. ``config``: path, mtime (ns)
    and size (bytes) of the config that it was derived from. ``begins``: the checkpoint that a start was told to begin
    from; "": from the beginning; None: the newest one, if there is one.
    """

    spec: RunSpec
    preset: Preset = GENERIC
    profiles: Mapping[str, Profile] = {}
    derived: Derived | None = None
    problem: str | None = None
    settings: Mapping[str, Any] = {}
    config: tuple[str, int, int] | None = None
    begins: str | None = None

    @property
    def profile(self) -> Profile | None:
        return self.profiles.get(self.spec.settings.profiles.use or "")

    @property
    def expect(self) -> Mapping[str, str]:
        return {} if self.profile is None else self.profile.expect

    @property
    def command_shown(self) -> tuple[str, ...]:
        """The command line for people; a config copy is ``ATTEMPT/NAME``. The run's own if none can be derived."""
        if self.derived is None:
            return self.spec.command
        copy = self.derived.config_path
        folder = None if copy is None else str(copy.parent)
        words = self.derived.argv
        return words if folder is None else tuple(word.replace(folder, SHOWN_FOLDER) for word in words)

    def number(self, key: str) -> float | None:
        """A trainer setting as a number; None if it is not set or not a number."""
        return as_number(self.settings.get(key))

    def truth(self, key: str) -> bool | None:
        """A trainer setting as a truth value; None if it is not set. A bare flag is true."""
        value = self.settings.get(key)
        if value is None:
            return None
        return str(value).lower() in {"true", "1", "yes", "on", ""}

    def derived_for(self, decision: StartAttempt, folder: Path) -> Derived | None:
        """``derived`` if it is what this decision launches from ``folder``; None if the launch must be derived again.

        It is for the first attempt from the beginning only, and only while the trainer's config is unchanged.
        """
        if self.derived is None or decision.attempt != 1 or decision.resume_from is not None or decision.changes:
            return None
        if decision.profile != self.spec.settings.profiles.use or self.config != config_version(self.spec):
            return None
        copy = self.derived.config_path
        return self.derived if copy is None or copy.parent == folder else None

    def with_derived(self, derived: Derived) -> "LaunchPlan":
        if derived is self.derived:
            return self
        return msgspec.structs.replace(self, derived=derived, problem=None, settings=settings_of(self.spec, derived))


def plan_launch(spec: RunSpec, definitions: Definitions | None = None, state: Path | None = None) -> LaunchPlan:
    """Plan the first launch of a run. ``state``: the state folder that the run is kept in (None: this user's)."""
    definitions = definitions_of(spec) if definitions is None else definitions
    if spec.resume_way is None:
        profile = definitions.profiles.get(spec.settings.profiles.use or "")
        spec = decided(spec, definitions.preset_of(spec), profile)
    profiles = as_declared(spec, definitions.profiles)
    plan = LaunchPlan(spec=spec, preset=definitions.preset_of(spec), profiles=profiles, config=config_version(spec))
    return _derived(plan, home() if state is None else state)


def plan_from(plan: LaunchPlan, checkpoint: str) -> LaunchPlan:
    """The plan of a first launch from a checkpoint, as the launch will be: for people who look at it before."""
    if plan.derived is None:
        return plan
    spec = msgspec.structs.replace(plan.spec, begin_from=checkpoint)
    return _derived(msgspec.structs.replace(plan, spec=spec), home(), Path(checkpoint))


def _derived(plan: LaunchPlan, state: Path, point: Path | None = None) -> LaunchPlan:
    """The plan with its first launch, from a checkpoint if one is given."""
    spec, preset, profile = plan.spec, plan.preset, plan.profile
    folder = RunDirectory(runs_folder(state) / spec.id).attempt(1)
    changes: tuple[Change, ...] = ()
    try:
        if point is not None:
            known = verify(point, deep=False)
            epochs, steps = counted(spec, preset, (known.epoch, known.epoch), (known.step, known.step))
            left = remaining(spec, preset, profile, point, epochs_done=epochs, steps_done=steps)
            changes = (*left, *own_name(spec, preset, profile, point, 1))
        return plan.with_derived(preview(spec, preset, profile, point, changes, folder, base_env=os.environ))
    except DeriveError as error:
        return msgspec.structs.replace(plan, problem=str(error))


def config_version(spec: RunSpec) -> tuple[str, int, int] | None:
    """The trainer's config as it is on the disk now; None without one, or if it cannot be read."""
    config = config_in_command(spec).config
    with suppress(OSError):
        if config is not None:
            found = Path(spec.cwd, config).stat()
            return str(Path(spec.cwd, config)), found.st_mtime_ns, found.st_size
    return None


def settings_of(spec: RunSpec, derived: Derived) -> dict[str, Any]:
    """All settings of a launch by bare name: the config's, with the command line's on top. Raises DeriveError.

    The config is the run's, else the one that the command names (``--config train.yaml``). Of a shell line or a shell
    script the words count that it gives the trainer.
    """
    source = read_source(derived.argv, spec.cwd, spec.env)
    hidden = hides_trainer(derived.argv) and not source.unread
    inner = (str(source.target.file), *source.target.args, "--") if hidden else ()  # that a shell starts
    spec = config_in_command(spec)
    if spec.config is None and inner:
        spec = config_in_command(msgspec.structs.replace(spec, command=inner))
    text = derived.config_text
    if not text and spec.config is not None:  # the command does not name it, so no copy is made
        with suppress(OSError, UnicodeDecodeError):
            text = Path(spec.cwd, spec.config).read_text(encoding="utf-8-sig")
    return settings_in((*inner, *derived.argv), text or None, spec.config)


def settings_in(argv: Sequence[str], config_text: str | None, config: str | None) -> dict[str, Any]:
    """The same from the text of a config copy. ``config``: a path whose suffix gives the format."""
    return {key.rpartition(".")[2]: value for key, value in dotted_settings(argv, config_text, config).items()}


def dotted_settings(argv: Sequence[str], config_text: str | None, config: str | None) -> dict[str, Any]:
    """The same by dotted key, what is written last at the end. Raises DeriveError."""
    found: dict[str, Any] = {}
    if config_text is not None and config is not None:
        read = read_toml if config.lower().endswith(".toml") else read_yaml
        found.update(leaves(read(config_text, config)))
    first = options_start(argv)
    for number, (word, following) in enumerate(zip(argv, (*argv[1:], "--"), strict=True)):
        own = _OVERRIDE.fullmatch(word) if number >= first else None
        name, equals, value = (own[1], "=", own[2]) if own is not None else word[2:].partition("=")
        if own is None:
            if not word.startswith("--") or len(word) == 2:
                continue
            section, dot, key = name.rpartition(".")
            name, value = f"{section}{dot}{key.replace('-', '_')}", value if equals else following
            value = "" if not equals and following.startswith("--") else value
        found.pop(name, None)
        found[name] = value
    return found


_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z][\w.]*)=(.*)")
"""A setting of a command without dashes: ``epochs=100``, ``trainer.max_epochs=9``."""


# Plans of a command, and of the runs of the working folder's trainwatch.toml.

NO_OPTIONS = Overrides()


def plan_command(command: Sequence[str], overrides: Overrides = NO_OPTIONS) -> LaunchPlan:
    """The plan of ``trainwatch run -- COMMAND``."""
    definitions = read_definitions(here() / FILE_NAME)
    return plan_launch(spec_of_command(command, overrides, definitions), definitions)


def plan_project(name: str | None, overrides: Overrides = NO_OPTIONS) -> LaunchPlan | None:
    """The plan of a run of this folder's trainwatch.toml; None without such a file."""
    found = spec_and_definitions(name, overrides)
    return None if found is None else plan_launch(*found)


def spec_and_definitions(name: str | None, overrides: Overrides) -> tuple[RunSpec, Definitions] | None:
    """The section of a run in trainwatch.toml, and its definitions; None without such a file."""
    path: Path | None = find_project(here())
    if path is None:
        return None
    definitions = read_definitions(path)
    return spec_of_project(path, name, overrides, definitions), definitions


# Which profiles are offered for a run: those of its ladder; without one, those that support its framework.


def fitting_profiles(spec: RunSpec, known: Mapping[str, Profile]) -> tuple[Profile, ...]:
    """Safest first if there is a ladder. Without one, the profile in use is included, whatever it is meant for.

    Those of options, which few scripts have, are offered without a ladder if the script declares them all, or if the
    command or config names one.
    """
    ladder = spec.settings.profiles.ladder
    if ladder:
        return tuple(known[name] for name in ladder if name in known)
    used = spec.settings.profiles.use
    families = {family for family in OF_OPTIONS if _knows(spec, known, family)}
    return tuple(
        profile
        for name, profile in known.items()
        if name == used or (profile.is_for(spec.preset) and (profile.family not in OF_OPTIONS - families))
    )


def _knows(spec: RunSpec, known: Mapping[str, Profile], family: str) -> bool:
    used = known.get(spec.settings.profiles.use or "")
    if used is not None and used.family == family:
        return True
    profiles = [profile for profile in known.values() if profile.family == family and profile.flags]
    if any(undeclared(spec, profile) == () for profile in profiles):
        return True
    own = {group.key for profile in profiles for group in option_groups(profile.flags) if group.value is True}
    if any(find_option(spec.command, flag) is not None for flag in own):
        return True
    if spec.config is None:
        return False
    text = file_text(Path(spec.cwd, spec.config))
    return any(flag in text for flag in own)
