"""The trainer's settings: the length of a training as they say it, and those that a person changes for a run."""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ...act.config.derive import DeriveError
from ...act.config.flags import find_option, option_groups
from ...act.config.trainer_config import TrainerSettings, given_names
from ...act.local_engine import engine_of
from ...model import progress
from ...model.preset import Change, Preset, Profile
from ...model.run import RunSpec
from ...model.shipped import UNKNOWN
from ...model.text import nearest
from ...model.wrappers import options_start
from ...source.trainer_source import TrainerSource, source_of
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..runs.known_runs import home
from .launch_plan import LaunchPlan, as_number

OF_TRAINING = re.compile(r"train|fit|loop|optim|schedul|solver|run", re.IGNORECASE)
"""What a section is called in which ``steps`` are those of the training."""
RESUMES = re.compile(r"--?(auto[-_]?)?(resume|continue|restore)", re.IGNORECASE)


class _Said(NamedTuple):
    """A whole number above 0. ``by``: where it is set, for people; ``sure``: it is no other thing of that name."""

    number: int
    by: str
    sure: bool


def plan_length(plan: LaunchPlan) -> progress.ToldLength:
    """What the settings of a planned launch say of its length, with its profile."""
    fits = plan.profile is None or plan.profile.is_for(plan.preset.name)
    settings = TrainerSettings(plan.spec, plan.preset)
    return _of(settings, source_of(plan.spec), plan.preset, plan.profile) if fits else progress.ToldLength()


def told_lengths(
    spec: RunSpec, preset: Preset, profiles: Mapping[str, Profile], expected: progress.ExpectedLength | None
) -> dict[str, progress.ToldLength]:
    """By profile ("" = none). ``expected``: the estimate for the run, used where the settings say neither."""
    settings, source = TrainerSettings(spec, preset), source_of(spec)
    fitting = {name: profile for name, profile in profiles.items() if profile.is_for(preset.name)}
    return {name: _of(settings, source, preset, profile, expected) for name, profile in {"": None, **fitting}.items()}


def _of(
    settings: TrainerSettings,
    source: TrainerSource,
    preset: Preset,
    profile: Profile | None,
    expected: progress.ExpectedLength | None = None,
) -> progress.ToldLength:
    def said(names: Sequence[str]) -> _Said | None:
        return _number(settings, source, profile, names)

    keys, nothing = preset.length, _Said(0, "", sure=True)
    epochs = said(progress.EPOCH_NAMES if keys is None else (keys.epochs,) if keys.epochs else ())
    steps = said(progress.STEP_NAMES if keys is None else (keys.steps,) if keys.steps else ())
    known = epochs is not None or steps is not None
    command = settings.spec.command
    pairs = zip(command, [*command[1:], ""], strict=True)  # an option that each attempt fills in is none
    own = (word.partition("=")[0] for word, value in pairs if RESUMES.match(word) and "{" not in word + value)
    units = [said(names) for names in progress.UNIT_NAMES] if known else []
    sooner = said(progress.SOONER_NAMES) if known else None
    if epochs is not None and steps is not None and keys is not None:  # the framework takes one of them
        epochs, steps = (None, steps) if keys.steps_over_epochs else (epochs, None)
    return progress.ToldLength(
        epochs=None if epochs is None else epochs.number,
        epochs_by=(epochs or nothing).by,
        epochs_sure=epochs is None or (epochs.sure and not settings.hidden),
        steps=None if steps is None else steps.number,
        steps_by=(steps or nothing).by,
        steps_sure=steps is None or (steps.sure and not settings.hidden),
        units=tuple(unit.number for unit in units if unit is not None and unit.number > 1),
        sooner_by=(sooner or nothing).by,
        resumes_by=next(own, "") if known else "",
        guess=None if expected is None else expected.steps,
        guess_by="" if expected is None else f"a guess: {expected.by}",
    )


def _number(
    settings: TrainerSettings, source: TrainerSource, profile: Profile | None, names: Sequence[str]
) -> _Said | None:
    """The first of these settings that is a whole number above 0."""
    try:
        flags = {group.key.replace("-", "_"): group.value for group in option_groups(profile.flags if profile else ())}
        for name in names:
            for value, where in _values(settings, profile, flags, name):
                number = as_number(value)
                if number is not None and number > 0 and number.is_integer():
                    parts = settings.section(profile, name)
                    sure = name not in progress.VAGUE_NAMES or not parts or any(map(OF_TRAINING.search, parts))
                    return _Said(int(number), where.format(int(number)), sure)
                if value is not None:
                    return None
    except (DeriveError, OSError):  # check and launch report a config that cannot be read
        return None
    return None if settings.hidden else _of_source(source, names)


def _values(
    settings: TrainerSettings, profile: Profile | None, flags: Mapping[str, Any], name: str
) -> Iterator[tuple[Any, str]]:
    command, config = settings.spec.command, settings.spec.config
    if not any(change.key == name for change in settings.spec.changes):
        yield flags.get(name), f"--{name} {{}} of profile {profile.name if profile else ''}"
        words = command[options_start(command) :]  # `epochs=100`: settings without dashes
        yield next((w.partition("=")[2] for w in reversed(words) if w.startswith(f"{name}=")), None), f"{name}={{}}"
    if (value := settings.value(profile, name)) is not None:
        given = given_names(command, name, ())
        written = f"--{given[-1]} {{}}" if given and find_option(command, given[-1]) is not None else f"{name} {{}}"
        yield value, written if given or config is None else f"{name} {{}} in {config.rpartition('/')[2]}"


def _of_source(source: TrainerSource, names: Sequence[str]) -> _Said | None:
    """The script's own value: the default of an option, or a number that it sets under a name of its own."""
    options = {option.name.lstrip("-").lower().replace("-", "_") for option in source.options}
    for name in names:
        if number := source.number_of.get(name):
            sure = name not in progress.VAGUE_NAMES or name in options or number.name.isupper()
            return _Said(number.value, f"{number.name} {number.value} in {number.place}", sure)
    return None


# How a run's trainer is asked for a checkpoint: as the run says, else as its preset does.


def save_request(spec: RunSpec, preset: Preset) -> tuple[str | None, str | None]:
    """The signal's name and the path of the file, ``{output_dir}`` filled in; None = not this way."""
    own = spec.save_signal is not None or spec.save_file is not None
    name, file = (spec.save_signal, spec.save_file) if own else (preset.save_signal, preset.save_file)
    if file is not None and "{output_dir}" in file:
        file = None if spec.output_dir is None else file.replace("{output_dir}", spec.output_dir)
    return name, file


# Settings that a person changes for a run (``--set KEY=VALUE``, ``--lr X``): stored in it, over profile and config.

RATE = re.compile(r"(base_|max_|peak_|init_)?(learning_rate|lr)")
"""Bare names of the learning rate."""
PARTS = ("unet_lr", "text_encoder_lr", "prior_learning_rate")
"""Learning rates of parts of the network, which override it: they are changed by the same factor."""
USUAL = "learning_rate"
_SETTING = re.compile(r"[$\w][\w.-]*")


def asked_changes(plan: LaunchPlan, given: Sequence[str], rate: float | None) -> tuple[Change, ...]:
    """The changes that a person asks for. ``rate``: the learning rate. Raises CliError (exit code 2)."""
    pairs = [_pair(text) for text in given]
    source = source_of(plan.spec)
    for key, _ in pairs if source.declares_all and plan.spec.config is None else ():
        if not key.startswith("$") and _before(plan, key) is None and (near := _unknown(plan, key)) is not None:
            raise CliError(
                ExitCode.USAGE,
                f"--set {key}: {source.target.file.name} has no such option{near}; keys are those of the command, of "
                "the config and of the script's options (--help of the script lists them)",
            )
    found = [_change(plan, key, value) for key, value in pairs]
    if rate is not None and not (rate > 0 and math.isfinite(rate)):
        raise CliError(ExitCode.USAGE, f"--lr: must be more than 0, got {rate:g}")
    return (*found, *(() if rate is None else _rates(plan, rate)))


def without_a_place(plan: LaunchPlan, changes: Sequence[Change]) -> list[str]:
    """A sentence for each changed setting of which nobody can tell whether the trainer has it."""
    return [
        f"{c.key}: neither the command nor the config has it, and nobody can tell whether the trainer knows it"
        f"{near}; it is passed on as it stands"
        for c in changes
        if c.where == "config" and c.before is None and (near := _unknown(plan, c.key)) is not None
    ]


def _unknown(plan: LaunchPlan, key: str) -> str | None:
    """The name that is meant, as a clause, if neither settings nor script have this one; None: one of them has it."""
    preset = plan.preset
    options = (option.name.lstrip("-") for option in source_of(plan.spec).options)
    given = (word.partition("=")[0].lstrip("-") for word in plan.spec.command if word.startswith("-"))
    names = {*plan.settings, *options, *given, *preset.dotted, preset.epochs_key or "", preset.steps_key or ""}
    if _bare(key) in map(_bare, names):
        return None
    guess = nearest(key, [name for name in names if name])
    return "" if guess is None else f'; did you mean "{guess}"?'


def _bare(key: str) -> str:
    return key.rpartition(".")[2].replace("-", "_")


def with_asked(changes: Sequence[Change], before: Sequence[Change]) -> tuple[Change, ...]:
    """The changes of a run after these: a setting that was changed before gets the new value."""
    new = {(change.where, change.key) for change in changes}
    return (*(change for change in before if (change.where, change.key) not in new), *changes)


def words_of(changes: Sequence[Change]) -> str:
    """``learning_rate 0.0001 -> 5e-05``."""
    return ", ".join(f"{c.key} {'(not set)' if c.before is None else c.before} -> {c.after}" for c in changes)


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not _SETTING.fullmatch(key.lstrip("-")):
        raise CliError(ExitCode.USAGE, f"--set {text}: must be KEY=VALUE, as in --set learning_rate=5e-5")
    try:
        return key.lstrip("-"), json.loads(value)
    except ValueError:
        return key.lstrip("-"), value


def _change(plan: LaunchPlan, key: str, value: Any, option: str = "--set") -> Change:
    where: Literal["config", "env"] = "env" if key.startswith("$") else "config"
    why = f"asked for by {option}"
    return Change(where=where, key=key.lstrip("$"), before=_before(plan, key), after=value, why=why)


def _before(plan: LaunchPlan, key: str) -> Any:
    if key.startswith("$"):
        return plan.spec.env.get(key[1:])
    from ...judge.recovery.remedies import number  # of a changed setting only: it loads the judge

    try:
        found = TrainerSettings(plan.spec, plan.preset).value(plan.profile, key)
    except DeriveError:  # the launch says what is wrong with the config
        return None
    return None if found == UNKNOWN else number(found)


def _rates(plan: LaunchPlan, rate: float) -> Iterator[Change]:
    key = _rate_key(plan)
    main = _change(plan, key, rate, "--lr")
    yield main
    for part in PARTS:
        before = _before(plan, part)
        if isinstance(before, int | float) and not isinstance(before, bool):
            same = isinstance(main.before, int | float) and main.before > 0
            yield _change(plan, part, before * rate / main.before if same else rate, "--lr")


def _rate_key(plan: LaunchPlan) -> str:
    """The setting that is the learning rate: what is set, else what the script declares, else the usual name."""
    options = (option.name.lstrip("-").replace("-", "_") for option in source_of(plan.spec).options)
    for names in (plan.settings, options):
        named = [name for name in names if RATE.fullmatch(name)]
        if named:
            return min(named, key=lambda key: (key != USUAL, key != "lr", key))
    if plan.preset.name == "generic":
        raise CliError(
            ExitCode.USAGE,
            "--lr: which setting is the learning rate cannot be told: command and config have none, and the script "
            "declares none; name it: --set KEY=VALUE",
        )
    return USUAL


# What a run's first attempt would hand to a scheduler.


def job_script(plan: LaunchPlan) -> str | None:
    """The batch script; None if the attempts are not jobs, or the launch cannot be derived."""
    if plan.derived is None:
        return None
    folder = RunDirectory(home() / "runs" / plan.spec.id).attempt(1)
    engine = engine_of(plan.spec, base_env=os.environ, save=save_request(plan.spec, plan.preset))
    return engine.shown(plan.derived.argv, folder, 1)
