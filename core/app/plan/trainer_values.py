"""The trainer's settings that the table of remedies refers to: profile over command line over config."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...act.config.derive import DeriveError
from ...act.config.trainer_settings import TrainerSettings
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from ...model.shipped.profile import Profile
from ...model.shipped.remedy import UNKNOWN, Remedy
from ...sense.host.wsl import is_wsl
from .declared_options import defaults_of_options


def trainer_values(
    spec: RunSpec,
    preset: Preset,
    profiles: Mapping[str, Profile],
    table: Sequence[Remedy],
    environ: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """Profile ("" = none) → key → value; ``$NAME``: environment. Values that are unset are absent.

    ``UNKNOWN``: it cannot be told whether a setting is set, so that the framework's default must not be assumed. The
    default of an option that remedies may change is that of the script.
    """
    rows = [r for r in table if not r.presets or set(preset.kin) & set(r.presets)]
    keys = {c.key for r in rows for c in r.when}
    keys |= {f"${c.key}" if c.where == "env" else c.key for r in rows for c in r.changes}
    settings = TrainerSettings(spec, preset)
    declared = defaults_of_options(spec, {c.key for r in rows for c in r.changes if c.where == "flag"})
    found: dict[str, dict[str, Any]] = {}
    for name, profile in {"": None, **profiles}.items():
        variables = {**preset.env, **environ, **spec.env, **(profile.env if profile is not None else {})}
        values = {}
        for key in sorted(keys):
            value = variables.get(key[1:]) if key.startswith("$") else _value(settings, profile, key)
            value = declared.get(key) if value is None else value
            if value is not None:
                values[key] = value
        found[name] = values
    return found


def _value(settings: TrainerSettings, profile: Profile | None, key: str) -> Any:
    try:
        value = settings.value(profile, key)
    except DeriveError:  # check and launch report a config that cannot be read
        return UNKNOWN
    return UNKNOWN if value is None and settings.hidden else value


def traits() -> frozenset[str]:
    """Traits of this machine that exclude remedies: "wsl2"."""
    return frozenset({"wsl2"}) if is_wsl() else frozenset()
