"""The values of the trainer's settings in a launch: profile before command line before config."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ...model.launch.command_words import hides_trainer
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from .flags import dotted_names, find_option, set_option
from .further_config import deciding_value
from .nested_keys import REMOVED, leaves, present, value_at
from .trainer_config import TrainerConfig, config_in_command, is_unread, load_config, places


class TrainerSettings:
    """The values that a launch would use for the trainer's settings. Reads the trainer's config at most once."""

    def __init__(self, spec: RunSpec, preset: Preset) -> None:
        self._spec = config_in_command(spec)
        self._preset = preset

    @cached_property
    def _config(self) -> TrainerConfig | None:
        return load_config(self._spec, self._preset) if self._spec.config is not None else None

    def value(self, profile: Profile | None, key: str) -> Any:
        """Profile over command line over config; None if it is set nowhere. Raises DeriveError.

        From a command line the value is text. A file beside the config that decides the setting wins; ``UNKNOWN`` if it
        cannot be told what it says.
        """
        own = self._own_value(profile, key)
        for further in self._preset.further_configs:
            if key in further.settings:
                named = self._own_value(profile, further.key)
                own = deciding_value(self._spec.cwd, further, named, key, own)
        return own

    def section(self, profile: Profile | None, key: str) -> tuple[str, ...]:
        """The sections in which the setting stands, on the command line or in the config; () = in none."""
        if profile is not None and key in dict(leaves(profile.settings)) and key not in profile.yields:
            return ()
        command, config = self._spec.command, self._config
        full = full_name(command, config, self._preset, key)
        _, locations = places(config, full) if config is not None else (False, ())
        if given := given_names(command, full, locations):
            return tuple(given[-1].split(".")[:-1])
        found = [path for path in locations if config is not None and present(config.tree, path)]
        return tuple(str(part) for part in found[-1][:-1]) if found else ()

    @cached_property
    def hidden(self) -> bool:
        """Whether settings may stand where they are not seen: in a shell script, or in a config that is not read."""
        return hides_trainer(self._spec.command) or is_unread(self._spec)

    def _own_value(self, profile: Profile | None, key: str) -> Any:
        """The value by the run's own changes, profile, command line and config."""
        changed = next((c for c in reversed(self._spec.changes) if c.where != "env" and c.key == key), None)
        if changed is not None:
            return changed.after
        if profile is not None:
            settings = dict(leaves(profile.settings))
            if key in settings and key not in profile.yields:
                return settings[key]
        command, config = self._spec.command, self._config
        full = full_name(command, config, self._preset, key)
        _, locations = places(config, full) if config is not None else (False, ())
        given = given_names(command, full, locations)
        if given:
            return set_option(command, given[-1], REMOVED).before
        found = [path for path in locations if config is not None and present(config.tree, path)]
        if config is not None and found:
            return value_at(config.tree, found[-1])
        if profile is None or is_set(command, config, self._preset, key):
            return None
        return dict(leaves(profile.settings)).get(key)


def effective(spec: RunSpec, preset: Preset, profile: Profile | None, key: str) -> Any:
    """One value of ``TrainerSettings``."""
    return TrainerSettings(spec, preset).value(profile, key)


def full_name(argv: Sequence[str], config: TrainerConfig | None, preset: Preset, key: str) -> str:
    """The dotted name of a plain key that is set nowhere, for trainers that read only dotted names."""
    full = preset.dotted.get(key)
    if full is None or given_names(argv, key, ()) or (config is not None and places(config, key)[0]):
        return key
    return full


def given_names(argv: Sequence[str], key: str, locations: Sequence[tuple[str, ...]]) -> list[str]:
    """The names of a setting on the command line: its key, or its dotted place in the config.

    If there is no config, a dotted name that ends in the key counts if it is the only one.
    """
    names = {key, *(".".join(path) for path in locations)}
    found = [name for name in sorted(names) if find_option(argv, name) is not None]
    return found or ([] if "." in key else dotted_names(argv, key))


def is_set(argv: Sequence[str], config: TrainerConfig | None, preset: Preset, key: str) -> bool:
    """Whether config or command set this key; of the run's length, its epochs or its steps."""
    length = (preset.epochs_key, preset.steps_key)
    for name in (n for n in (length if key in length else (key,)) if n is not None):
        _, locations = places(config, name) if config is not None else (False, ())
        if given_names(argv, name, locations):
            return True
        if config is not None and any(present(config.tree, path) for path in locations):
            return True
    return False
