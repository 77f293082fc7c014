"""Derives a launch from a run, its preset, a profile and a checkpoint: argv, environment, config copy.

The user's own config is never written. Each attempt gets a derived copy in its own directory, with a header that lists
what differs and why. The copy is read again and compared with the intended values before it is used.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from ...model.preset import Change, Preset, Profile, ResumeStyle, leaves
from ...model.run import RunSpec, place_of
from ...model.shipped import UNKNOWN
from ...model.text import typed
from . import trainer_config as configs
from .edits import REMOVED, DeriveError, Edit, Setting, net, value_at
from .flags import Told, environment, fill, filled, is_shell_line, option_groups, set_option, told_by, without_word
from .trainer_config import read_config

__all__ = ["DeriveError", "Derived", "misfit", "preview", "read_config", "write_config_copy"]


RESUME = "{resume}"
"""Stands for the checkpoint in a launch that is only shown."""


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """One launch, ready for a LaunchOrder. ``argv`` has no placeholders, ``env`` is the child's whole environment.

    ``config_path``: the derived copy (None: the run has no config file); ``config_text``: its content. ``further``:
    copies of other files that decide a setting that is changed. ``resume``: what the trainer restores: "state",
    "weights", or "none". ``told_resume``: whether the launch names the checkpoint to resume from; False if the command
    has no ``{resume}`` and the preset has no resume style.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    config_path: Path | None
    config_text: str | None
    changes: tuple[Change, ...]
    resume: Literal["state", "weights", "none"]
    told_resume: bool
    further: tuple[configs.ConfigCopy, ...] = ()


def write_config_copy(spec: RunSpec, derived: Derived) -> None:
    """Write the config copy of a launch, if it has one, and make its folder. Raises DeriveError."""
    if derived.config_path is not None and derived.config_text is not None:
        configs.write_copy(derived.config_path, derived.config_text, Path(spec.config or ""))
    for further in derived.further:
        configs.write_copy(further.path, further.text, further.original)


def preview(  # noqa: PLR0917
    spec: RunSpec,
    preset: Preset,
    profile: Profile | None,
    resume_from: Path | None,
    changes: Sequence[Change],
    attempt_directory: Path,
    *,
    attempt: int = 1,
    base_env: Mapping[str, str] | None = None,
) -> Derived:
    """Derive a launch. Nothing is written.

    ``changes``: changes of remedies, applied after the profile; ``after=None`` removes a setting. ``base_env``: the
    inherited environment (default: that of this process). Raises DeriveError with a sentence for the user.
    """
    if profile is not None and not profile.is_for(preset.name):
        raise DeriveError(misfit(profile, preset.name))
    resume = _resume_path(spec, resume_from)
    second, drops = spec.second_start, spec.second_start.drops if resume is not None else ()
    if drops:  # the config holds a setting that is to be switched off
        spec = msgspec.structs.replace(spec, config=spec.config or second.config)
    changes = (*spec.changes, *changes, *(change for change in drops if change.where == "config"))
    style = _resume_style(preset, resume)
    settings, flags = _wanted(profile, changes)
    if settings or style is not None or flags:
        found = configs.config_in_command(spec)
        # Without a setting for it the config needs no copy, unless it is all that the trainer reads.
        if settings or (style is not None and style.key is not None) or configs.takes_file_alone(found):
            spec = found
    config = configs.load_config(spec, preset) if spec.config is not None else None
    named = config is not None and configs.names_config(spec, config.path)
    config_path = attempt_directory / config.path.name if config is not None and named else None

    splice = None if style is None else filled(style.args, resume)
    argv, used = fill(
        configs.with_placeholder(spec, config.path) if config is not None and named else spec.command,
        {
            "config": None if config is None else str(config_path),
            "output_dir": spec.output_dir,
            "resume": None if resume is None else str(resume),
            "profile": None if profile is None else profile.name,
        },
        splice,
        alone=_stands_alone(spec, preset),
    )
    _refuse_unfillable(spec, used)

    named_checkpoint = resume is not None and "resume" in used
    told = Told(argv=argv)
    if resume is not None and style is not None and not named_checkpoint:
        why = f"go on from {resume.name}"
        if style.key is not None:
            settings.append(Setting(style.key, str(resume), why, of="resume"))
        told = told_by(style, argv, resume, spec.cwd, why)
        argv = told.argv
        flags += option_groups(told.options, why, "resume")
        named_checkpoint = style.key is not None or bool(style.args or style.env) or style.by_itself

    if configs.takes_file_alone(spec):
        settings, flags = settings + [_typed(flag) for flag in flags], []
    further, made = _further(spec, preset, profile, settings, attempt_directory)
    edits: list[Edit] = []
    for setting in settings:
        at = configs.where_set(argv, config, preset, setting.key)
        setting = msgspec.structs.replace(setting, key=at.key)  # noqa: PLW2901
        if setting.yields and configs.is_set(partial(configs.where_set, argv, config, preset), preset, setting.key):
            continue
        for name in at.given:  # a flag overrides the file
            argv = _option(argv, name, setting, made)
        if config is not None and named and (at.found or not at.given):
            edits.extend(_config_edits(config, at.locations, setting, made))
        elif not at.given:
            if not at.found and preset.dotted and "." not in setting.key:
                raise DeriveError(  # a trainer that reads only dotted names would ignore a bare flag, or fail
                    f"{setting.why}: the section of {setting.key} is unknown without the trainer's config; name the "
                    "config in the command (--config FILE), or write the whole dotted key"
                )
            dotted = ".".join(at.locations[0]) if at.found and not preset.sections_ignored else setting.key
            argv = _option(argv, dotted, setting, made)
    argv = _with_flags(argv, flags, drops, spec.cwd, made)

    of_config = [change for change in net(made) if change.where == "config"]
    text = (
        None if config is None or config_path is None else configs.config_copy(spec, config, attempt, edits, of_config)
    )
    env, env_changes = environment(spec, preset, profile, changes, base=os.environ if base_env is None else base_env)
    return Derived(
        argv=argv,
        env={**env, **told.env},
        config_path=config_path,
        config_text=text,
        changes=(*net(made), *told.changes, *env_changes),
        resume=_restores(preset, resume) if named_checkpoint else "none",
        told_resume=named_checkpoint,
        further=further,
    )


def _further(
    spec: RunSpec, preset: Preset, profile: Profile | None, settings: list[Setting], folder: Path
) -> tuple[tuple[configs.ConfigCopy, ...], list[Change]]:
    """Copies of the other files that decide one of these settings. Adds the settings that name the copies.

    Raises DeriveError if such a file cannot be read: the changed setting would have no effect.
    """
    copies: list[configs.ConfigCopy] = []
    made: list[Change] = []
    for further in preset.further_configs:
        wanted = {s.key: (s.value, s.why) for s in settings if s.key in further.settings and not s.yields}
        named = configs.TrainerSettings(spec, preset).value(profile, further.key) if wanted else None
        if not wanted or not named or named == UNKNOWN:
            continue
        found = configs.changed_copy(spec.cwd, further, named, wanted, folder)
        if found is not None:
            copies.append(found[0])
            made.extend(found[1])
            why = f"the copy with {', '.join(wanted)}"
            settings.append(Setting(further.key, str(found[0].path), why))
    return tuple(copies), made


def _typed(flag: Setting) -> Setting:
    """An option as a setting of a file, in which ``"4"`` is no number."""
    value = flag.value
    if not isinstance(value, str):
        return flag
    try:
        value = json.loads(value)
    except ValueError:
        return flag
    return flag if isinstance(value, dict | list) else msgspec.structs.replace(flag, value=value)


def _with_flags(
    argv: tuple[str, ...], flags: Sequence[Setting], drops: Sequence[Change], cwd: str, made: list[Change]
) -> tuple[str, ...]:
    for flag in flags:
        argv = _option(argv, flag.key, flag, made)
    for change in drops:
        if change.where == "flag":
            argv = without_word(argv, change, cwd)
            made.append(change)
    return argv


def misfit(profile: Profile, preset: str) -> str:
    """Message: why this preset cannot use the profile, and what to do."""
    return (
        f'profile "{profile.name}" is for {profile.family.partition("-")[0]} trainers, and this run has the preset '
        f'"{preset}": its settings would be unknown there; write profiles/NAME.toml beside trainwatch.toml for it, or '
        f"set the preset if it was not recognised"
    )


def _wanted(profile: Profile | None, changes: Sequence[Change]) -> tuple[list[Setting], list[Setting]]:
    """(settings, flags) of the profile, then of the remedies."""
    settings: list[Setting] = []
    flags: list[Setting] = []
    if profile is not None:
        source = f"profile {profile.name}"
        settings += [
            Setting(key, value, source, yields=key in profile.yields, of="profile")
            for key, value in profile.settings.items()
        ]
        flags += option_groups(profile.flags, source, "profile")
    for change in changes:
        value = REMOVED if change.after is None else change.after
        if change.where == "config":
            settings.append(Setting(change.key, value, change.why))
        elif change.where == "flag":
            flags.append(Setting(change.key.lstrip("-"), value, change.why))
    return settings, flags


def _refuse_unfillable(spec: RunSpec, used: frozenset[str]) -> None:
    for name, value in (("config", spec.config), ("output_dir", spec.output_dir)):
        if name in used and value is None:
            option = name.replace("_", "-")
            raise DeriveError(
                f"the command uses {{{name}}}, but no {name} is set; add {name} to [run] or pass --{option}"
            )


def _resume_path(spec: RunSpec, resume_from: Path | None) -> Path | None:
    if resume_from is None or str(resume_from) == RESUME:
        return resume_from
    path = Path(spec.cwd) / resume_from
    if not path.exists():
        raise DeriveError(
            f"{path}: the checkpoint to resume from does not exist; choose one with "
            f"`{typed('checkpoints list', str(path.parent))}`"
        )
    return path


def _stands_alone(spec: RunSpec, preset: Preset) -> bool | None:
    """Whether ``{resume}`` belongs to no option of the command; None: its name tells.

    With a preset that has an option of its own ``{resume}`` may stand behind any word, as the place for that one.
    """
    if spec.resume_way is not None and spec.resume_way.stands_alone:
        return True
    return None if preset.resume_file is not None or preset.resume_directory is not None else False


def _resume_style(preset: Preset, resume: Path | None) -> ResumeStyle | None:
    if resume is None:
        return None
    if str(resume) == RESUME:
        return preset.resume_file or preset.resume_directory
    return preset.resume_directory if resume.is_dir() else preset.resume_file


def _restores(preset: Preset, resume: Path | None) -> Literal["state", "weights", "none"]:
    """What a checkpoint restores. A directory is a saved state, also for presets whose files have weights only."""
    if resume is None:
        return "none"
    return "state" if preset.resume == "weights" and resume.is_dir() else preset.resume


def _config_edits(
    config: configs.TrainerConfig, locations: Sequence[tuple[str, ...]], setting: Setting, made: list[Change]
) -> list[Edit]:
    edits = []
    for path in locations:
        edits.append(Edit(path, setting.value))
        before = value_at(config.tree, path)
        after = None if setting.value is REMOVED else setting.value
        made.append(
            Change(where="config", key=".".join(path), before=before, after=after, why=setting.why, of=setting.of)
        )
    return edits


def _option(argv: tuple[str, ...], key: str, setting: Setting, made: list[Change]) -> tuple[str, ...]:
    change = set_option(argv, key, setting.value, setting.words)
    if change.argv == argv:
        return argv
    if is_shell_line(argv):
        raise DeriveError(
            f"the command is a shell line, so --{key} ({setting.why}) cannot be added to it; "
            "give the trainer's own command as a list, or write {resume} and the settings into the line"
        )
    made.append(
        Change(where="flag", key=f"--{key}", before=change.before, after=change.after, why=setting.why, of=setting.of)
    )
    return change.argv


# Redirects a trainer's output into another folder, so that a trial changes none of the user's files.

OUTPUT_KEYS = frozenset(
    {"output_dir", "out_dir", "outdir", "output_path", "output_folder", "save_dir", "save_path", "checkpoint_dir",
     "ckpt_dir", "logging_dir", "log_dir", "logdir", "tensorboard_dir", "sample_dir", "results_dir", "default_root_dir",
     "work_dir", "run_dir", "exp_dir"}
)  # fmt: skip
"""Settings that name a folder into which the trainer writes."""
SAVES_TO = OUTPUT_KEYS - {"logging_dir", "log_dir", "logdir", "tensorboard_dir", "sample_dir"}
"""Those of them that name the folder of checkpoints."""
WHY = "a trial writes into its own folder"


def redirected(spec: RunSpec, preset: Preset, profile: Profile | None, folder: Path) -> RunSpec:
    """The run with every output folder in its command and config replaced by ``folder`` (absolute).

    Raises DeriveError with a sentence if nothing names the output folder, or if a launch would still name the user's
    own folder.
    """
    saves: list[bool] = []

    def moved(name: str, value: str) -> str | None:
        """Where a setting points instead; None if it names no output folder."""
        bare, users = name.lstrip("-+~").replace("-", "_").rpartition(".")[2], _is_users(spec, value)
        if not value or not (bare in OUTPUT_KEYS or users):
            return None
        saves.append(bare in SAVES_TO or users)
        return _inside(spec, bare, value, folder)

    words = list(spec.command)
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        option = words[at - 1] if at else ""
        if equals and "{" not in value and (after := moved(name, value)) is not None:
            words[at] = f"{name}={after}"
        elif option.startswith("-") and "=" not in option and not word.startswith("-") and "{" not in word:
            words[at] = moved(option, word) or word
    changes = []
    config = None if spec.config is None else configs.load_config(spec, preset)
    for key, value in leaves(config.tree) if config is not None and configs.names_config(spec, config.path) else ():
        if isinstance(value, str) and (after := moved(key, value)) is not None:
            changes.append(Change(where="config", key=key, before=value, after=after, why=WHY))
    if not any(saves) and not any("{output_dir}" in word for word in spec.command):
        raise DeriveError(
            "the trainer's output folder cannot be redirected: neither the command nor its config names it; "
            f"write {{output_dir}} into {place_of(spec, 'command')} where the folder belongs"
        )
    changed = (*spec.changes, *changes)
    new = msgspec.structs.replace(spec, command=tuple(words), changes=changed, output_dir=str(folder))
    _refuse_leftovers(spec, new, preset, profile, folder)
    return new


def _inside(spec: RunSpec, key: str, value: str, folder: Path) -> str:
    """The redirected path: a path inside the user's folder keeps its relative place, another one keeps its name."""
    place = _absolute(spec, value)
    own = _own(spec)
    if own is not None and (place == own or own in place.parents):
        return str(folder / place.relative_to(own))
    return str(folder) if key in SAVES_TO else str(folder / key)


def _is_users(spec: RunSpec, value: str) -> bool:
    """Whether a value is the user's output folder or a path in it that is not an existing file."""
    own = _own(spec)
    if own is None or not value or "\n" in value or "{" in value:
        return False
    place = _absolute(spec, value)
    return place == own or (own in place.parents and not place.is_file())


def _own(spec: RunSpec) -> Path | None:
    return None if spec.output_dir is None else _absolute(spec, spec.output_dir)


def _absolute(spec: RunSpec, value: str) -> Path:
    return Path(os.path.realpath(Path(spec.cwd) / os.path.expanduser(value)))  # noqa: PTH111  Path's raises


def _refuse_leftovers(old: RunSpec, new: RunSpec, preset: Preset, profile: Profile | None, folder: Path) -> None:
    derived = preview(new, preset, profile, None, (), folder, base_env={})
    named: list[tuple[str, str]] = [*_values(derived.argv), *((f"${k}", v) for k, v in derived.env.items())]
    if old.config is not None:
        config = configs.load_config(old, preset)
        changed = {c.key: c.after for c in derived.changes if c.where == "config"}
        named += [(key, str(changed.get(key, value))) for key, value in leaves(config.tree) if isinstance(value, str)]
    for where, value in named:
        if _is_users(old, value):
            raise DeriveError(
                f"the trainer's output folder cannot be redirected: {where} still names {value}; "
                f"write {{output_dir}} into {place_of(old, 'command')} where the folder belongs"
            )


def _values(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, word in enumerate(argv):
        yield "the command", word
        if "=" in word:
            yield "the command", word.partition("=")[2]
        if at and " " in word:
            for part in word.split():  # a shell line
                yield "the command", part.strip("'\";").partition("=")[2] or part.strip("'\";")
