"""Which preset a command belongs to."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..model.preset import Preset

GENERIC = "generic"
_KEYS_NEEDED = 2
"""One common key is not enough (``output_dir`` is in most configs); two keys of a framework are."""
_CONFIG_BYTES = 4 * 1024 * 1024
"""A larger file is not a config but data."""


def detect_preset(command: Sequence[str], config: Path | None, presets: Mapping[str, Preset]) -> Preset:
    """Return the preset of a command: by its words, else by the keys of the trainer's config, else ``generic``.

    If several match, the one with the longest match in the command, or the most keys in the config, wins.
    """
    line = " ".join(command)
    by_command = [(length, name) for name, preset in presets.items() if (length := _match(preset, line))]
    if by_command:
        return presets[max(by_command)[1]]
    return (config and preset_of_config(config, presets)) or presets.get(GENERIC) or Preset(name=GENERIC)


def preset_of_config(config: Path, presets: Mapping[str, Preset]) -> Preset | None:
    """Return the preset whose config this file is; None if it is not clear or the file cannot be read."""
    keys = config_keys(config)
    counts = []
    for name, preset in presets.items():
        hits = sum(key in keys for key in preset.detect_config_keys)
        if hits >= min(_KEYS_NEEDED, len(preset.detect_config_keys)) and hits:
            counts.append((hits, name))
    return presets[max(counts)[1]] if counts else None


def config_keys(config: Path) -> frozenset[str]:
    """Return the keys of a TOML or YAML file, each bare and with the tables around it (``training.use_ema``).

    Empty if the file is missing or broken; the trainer reports that.
    """
    try:
        if config.stat().st_size > _CONFIG_BYTES:
            return frozenset()
        text = config.read_text(encoding="utf-8-sig")
        data = tomllib.loads(text) if config.suffix == ".toml" else _load_yaml(text)
    except Exception:  # a parser may raise anything on a broken file
        return frozenset()
    found: set[str] = set()
    _collect(data, (), found)
    return frozenset(found)


def _load_yaml(text: str) -> Any:
    from ruamel.yaml import YAML  # slow to import, and most configs are TOML

    return YAML(typ="safe", pure=True).load(text)


def _collect(data: Any, path: tuple[str, ...], found: set[str]) -> None:
    if isinstance(data, dict):
        for key, value in data.items():
            inner = (*path, str(key))
            found |= {str(key), ".".join(inner)}
            _collect(value, inner, found)


def _match(preset: Preset, line: str) -> int:
    """Return the length of the longest match of the preset's patterns, 0 for none."""
    lengths = [len(found[0]) for pattern in preset.detect_command if (found := re.search(pattern, line))]
    return max(lengths, default=0)
