"""Which preset a command belongs to."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..model.preset import Preset, ResumeStyle
from ..model.resume_way import Recognition, SourceFacts

GENERIC = "generic"
_KEYS_NEEDED = 2
"""One common key is not enough (``output_dir`` is in most configs); two keys of a framework are."""
_CONFIG_BYTES = 4 * 1024 * 1024
"""A larger file is not a config but data."""


NOTHING = SourceFacts()


class _Match(NamedTuple):
    """``strength``: how much it says: by the command, the script, the config, files; then how long or how many."""

    preset: Preset
    strength: tuple[int, int]
    why: str
    by_import: bool = False


def detect_preset(
    command: Sequence[str], config: Path | None, presets: Mapping[str, Preset], source: SourceFacts = NOTHING
) -> Preset:
    found = recognise(command, config, presets, source)
    return presets.get(found.preset) or Preset(name=GENERIC)


def recognise(
    command: Sequence[str], config: Path | None, presets: Mapping[str, Preset], source: SourceFacts = NOTHING
) -> Recognition:
    """Return the preset of a command and why: by its words, its script, the config's keys or files; else ``generic``.

    One that is more specific than another one that matches as well (``over``) goes before it. If several are left, the
    one with the longest match in the command wins, or with the most keys in the config.
    """
    matches = [m for preset in presets.values() for m in _matches(preset, command, config, source)]
    general = {name for m in matches for name in m.preset.over}
    matches = [m for m in matches if m.preset.name not in general] or matches
    if not matches:
        return Recognition(preset=GENERIC, why="nothing in the command, its script or its config is of a known one")
    best = max(matches, key=lambda m: (m.strength, m.preset.name))
    told = any(m.preset.name == best.preset.name and not m.by_import for m in matches)
    needs = tuple(name for style in _styles(best.preset) for name in style.when_imports)
    resumes = told or not needs or source.use_of(needs) is not None
    return Recognition(preset=best.preset.name, why=best.why, resumes=resumes)


def _styles(preset: Preset) -> list[ResumeStyle]:
    return [style for style in (preset.resume_file, preset.resume_directory) if style is not None]


def _matches(preset: Preset, command: Sequence[str], config: Path | None, source: SourceFacts) -> Iterator[_Match]:
    said = _said(preset, " ".join(command))
    if said:
        yield _Match(preset, (3, len(said)), f'the command has "{said.strip()}"')
    used = source.use_of(preset.detect_imports)
    if used is not None:
        yield _Match(preset, (2, 0), f"{used.place} imports {used.name}", by_import=True)
    folder = _folder_of(preset, source)
    if folder is not None:
        yield _Match(preset, (2, 1), f"{' and '.join(preset.detect_files)} in {folder}")
    keys = () if config is None else _keys_of(preset, config_keys(config))
    if config is not None and keys:
        yield _Match(preset, (1, len(keys)), f"{config.name} has {', '.join(keys[:3])}")


def _folder_of(preset: Preset, source: SourceFacts) -> Path | None:
    """The folder that holds all its ``detect_files``."""
    if not preset.detect_files:
        return None
    return next(
        (f for f in map(Path, source.folders) if all((f / name).is_file() for name in preset.detect_files)), None
    )


def _keys_of(preset: Preset, keys: frozenset[str]) -> tuple[str, ...]:
    hits = tuple(key for key in preset.detect_config_keys if key in keys)
    return hits if len(hits) >= min(_KEYS_NEEDED, len(preset.detect_config_keys)) else ()


def config_keys(config: Path) -> frozenset[str]:
    """Return the keys of a TOML, YAML or JSON file, each bare and with the tables around it (``training.use_ema``).

    Empty if the file is missing or broken; the trainer reports that.
    """
    try:
        status = config.stat()
    except OSError:
        return frozenset()
    return _keys_in(config, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=32)
def _keys_in(config: Path, _modified: int, size_bytes: int) -> frozenset[str]:
    try:
        if size_bytes > _CONFIG_BYTES:
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


def _said(preset: Preset, line: str) -> str:
    """Return the longest match of the preset's patterns, "" for none."""
    return max((found[0] for each in preset.detect_command if (found := re.search(each, line))), key=len, default="")
