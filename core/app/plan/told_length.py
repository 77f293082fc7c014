"""The length of a training as its settings say it: command, profile, config, else the script's own value."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...act.config.derive import DeriveError
from ...act.config.flags import find_option, option_groups
from ...act.config.trainer_config import config_in_command
from ...act.config.trainer_settings import TrainerSettings, given_names
from ...model.launch.command_words import options_start
from ...model.launch.expected_length import ExpectedLength
from ...model.launch.told_length import EPOCH_NAMES, STEP_NAMES, ToldLength
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from ...source.trainer_source import read_source


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
    if epochs is not None and steps is not None and keys is not None:  # the framework takes one of them
        epochs, steps = (None, steps) if keys.steps_over_epochs else (epochs, None)
    return ToldLength(
        epochs=None if epochs is None else epochs[0],
        epochs_by="" if epochs is None else epochs[1],
        steps=None if steps is None else steps[0],
        steps_by="" if steps is None else steps[1],
        guess=None if expected is None else expected.steps,
        guess_by="" if expected is None else f"a guess: {expected.by}",
    )


def _number(
    settings: TrainerSettings, spec: RunSpec, profile: Profile | None, names: Sequence[str]
) -> tuple[int, str] | None:
    """The first of these settings that is a whole number above 0, and where it is set."""
    try:
        for name in names:
            for value, where in _values(settings, spec, profile, name):
                number = _whole(value)
                if number is not None:
                    return number, where.format(number)
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


def _of_source(spec: RunSpec, names: Sequence[str]) -> tuple[int, str] | None:
    """The script's own value."""
    source = read_source(spec.command, spec.cwd, spec.env)
    if isinstance(source, str):
        return None
    own = {number.name.lower().replace("-", "_"): number for number in reversed(source.numbers)}
    return next(((n.value, f"{n.name} {n.value} in {n.place}") for name in names if (n := own.get(name))), None)


def _whole(value: Any) -> int | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number == int(number) and number > 0 and not isinstance(value, bool) else None
