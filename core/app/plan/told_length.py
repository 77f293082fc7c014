"""The length of a training as its settings say it: command, profile, config, else the script's own value."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...act.config.derive import DeriveError
from ...act.config.flags import find_option, option_groups
from ...act.config.trainer_config import TrainerSettings, config_in_command, given_names
from ...model.command_words import options_start
from ...model.length import (
    DOUBTFUL_NAMES,
    EPOCH_NAMES,
    SOONER_NAMES,
    STEP_NAMES,
    UNIT_NAMES,
    ExpectedLength,
    ToldLength,
)
from ...model.preset import Preset, Profile
from ...model.run import RunSpec
from ...source.trainer_source import source_of

OF_TRAINING = re.compile(r"train|fit|loop|optim|schedul|solver|run", re.IGNORECASE)
"""What a section is called in which ``steps`` are those of the training."""
RESUMES = re.compile(r"--?(auto[-_]?)?(resume|continue|restore)", re.IGNORECASE)


class _Said(NamedTuple):
    """A whole number above 0. ``by``: where it is set, for people; ``sure``: it is no other thing of that name."""

    number: int
    by: str
    sure: bool


def told_lengths(
    spec: RunSpec, preset: Preset, profiles: Mapping[str, Profile], expected: ExpectedLength | None
) -> dict[str, ToldLength]:
    """By profile ("" = none). ``expected``: the estimate for the run, used where the settings say neither."""
    settings = TrainerSettings(spec, preset)
    fitting = {name: profile for name, profile in profiles.items() if profile.is_for(preset.name)}
    return {name: _of(settings, spec, preset, profile, expected) for name, profile in {"": None, **fitting}.items()}


def _of(
    settings: TrainerSettings, spec: RunSpec, preset: Preset, profile: Profile | None, expected: ExpectedLength | None
) -> ToldLength:
    keys = preset.length
    epochs = _number(settings, spec, profile, EPOCH_NAMES if keys is None else (keys.epochs,) if keys.epochs else ())
    steps = _number(settings, spec, profile, STEP_NAMES if keys is None else (keys.steps,) if keys.steps else ())
    known = epochs is not None or steps is not None
    units = [_number(settings, spec, profile, names) for names in UNIT_NAMES] if known else []
    sooner = _number(settings, spec, profile, SOONER_NAMES) if known else None
    if epochs is not None and steps is not None and keys is not None:  # the framework takes one of them
        epochs, steps = (None, steps) if keys.steps_over_epochs else (epochs, None)
    return ToldLength(
        epochs=None if epochs is None else epochs.number,
        epochs_by="" if epochs is None else epochs.by,
        epochs_sure=epochs is None or (epochs.sure and not settings.hidden),
        steps=None if steps is None else steps.number,
        steps_by="" if steps is None else steps.by,
        steps_sure=steps is None or (steps.sure and not settings.hidden),
        units=tuple(unit.number for unit in units if unit is not None and unit.number > 1),
        sooner_by="" if sooner is None else sooner.by,
        resumes_by=_resumes_by(spec.command) if known else "",
        guess=None if expected is None else expected.steps,
        guess_by="" if expected is None else f"a guess: {expected.by}",
    )


def _number(settings: TrainerSettings, spec: RunSpec, profile: Profile | None, names: Sequence[str]) -> _Said | None:
    """The first of these settings that is a whole number above 0."""
    try:
        for name in names:
            for value, where in _values(settings, spec, profile, name):
                number = _whole(value)
                if number is not None:
                    sure = name not in DOUBTFUL_NAMES or _is_of_training(settings.section(profile, name))
                    return _Said(number, where.format(number), sure)
                if value is not None:
                    return None
    except (DeriveError, OSError):  # check and launch report a config that cannot be read
        return None
    return None if settings.hidden else _of_source(spec, names)


def _values(settings: TrainerSettings, spec: RunSpec, profile: Profile | None, name: str) -> Iterator[tuple[Any, str]]:
    if not any(change.key == name for change in spec.changes):
        flags = {group.key.replace("-", "_"): group.value for group in option_groups(profile.flags if profile else ())}
        yield flags.get(name), f"--{name} {{}} of profile {profile.name if profile else ''}"
        yield _joined(spec.command, name), f"{name}={{}}"
    value = settings.value(profile, name)
    given = given_names(spec.command, name, ())
    written = f"--{given[-1]} {{}}" if given and find_option(spec.command, given[-1]) is not None else f"{name} {{}}"
    config = config_in_command(spec).config
    yield value, written if given or config is None else f"{name} {{}} in {config.rpartition('/')[2]}"


def _joined(command: Sequence[str], name: str) -> str | None:
    """``epochs=100`` of a command that writes its settings without dashes."""
    words = command[options_start(command) :]
    return next((word.partition("=")[2] for word in reversed(words) if word.startswith(f"{name}=")), None)


def _of_source(spec: RunSpec, names: Sequence[str]) -> _Said | None:
    """The script's own value: the default of an option, or a number that it sets under a name of its own."""
    source = source_of(spec)
    own = {number.name.lower().replace("-", "_"): number for number in reversed(source.numbers)}
    options = {option.name.lstrip("-").lower().replace("-", "_") for option in source.options}
    for name in names:
        if number := own.get(name):
            sure = name not in DOUBTFUL_NAMES or name in options or number.name.isupper()
            return _Said(number.value, f"{number.name} {number.value} in {number.place}", sure)
    return None


def _resumes_by(command: Sequence[str]) -> str:
    """The option by which the command itself resumes; "" if it has none, or each attempt fills it in."""
    pairs = zip(command, [*command[1:], ""], strict=True)
    return next(
        (word.partition("=")[0] for word, value in pairs if RESUMES.match(word) and "{" not in word + value), ""
    )


def _is_of_training(section: Sequence[str]) -> bool:
    """Whether a setting in this section of the settings is one of the training; that of no section is."""
    return not section or any(OF_TRAINING.search(part) for part in section)


def _whole(value: Any) -> int | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number == int(number) and number > 0 and not isinstance(value, bool) else None


# How a run's trainer is asked for a checkpoint: as the run says, else as its preset does.


def save_request(spec: RunSpec, preset: Preset) -> tuple[str | None, str | None]:
    """The signal's name and the path of the file, ``{output_dir}`` filled in; None = not this way."""
    own = spec.save_signal is not None or spec.save_file is not None
    name, file = (spec.save_signal, spec.save_file) if own else (preset.save_signal, preset.save_file)
    if file is not None and "{output_dir}" in file:
        file = None if spec.output_dir is None else file.replace("{output_dir}", spec.output_dir)
    return name, file
