"""The trainer's own config file: reading it, finding it on the command line, copying it for an attempt."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ...model.launch.change import Change
from ...model.launch.command_words import lone_config, options_start
from ...model.run import RunSpec
from ...model.shipped.preset import Preset
from .json_edit import edit_json, read_json
from .nested_keys import DeriveError, Edit, KeyPath, locate, one_line, present, same, shown
from .toml_edit import edit_toml, read_toml
from .yaml_edit import edit_yaml, read_yaml

_FORMATS = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_IN_OPTIONS = frozenset({".toml", ".yaml", ".yml"})
"""Suffixes of configs behind ``--config``: a JSON file there may be the model's."""
_CONFIG_OPTIONS = frozenset({"config", "config_file"})
"""Options of trainers that name their config."""
_READERS: dict[str, Callable[[str, str], dict[Any, Any]]] = {
    "toml": read_toml,
    "yaml": read_yaml,
    "json": read_json,
}
_EDITORS = {"toml": edit_toml, "yaml": edit_yaml, "json": edit_json}


class TrainerConfig(msgspec.Struct, frozen=True):
    """The user's file: its text, and its values as the trainer reads them."""

    path: Path
    format: str
    text: str
    tree: dict[str, Any]
    sections_ignored: bool


def read_config(path: Path, config_format: str | None = None) -> dict[str, Any]:
    """The values of a TOML or YAML file as the trainer reads them. Raises DeriveError with file and line."""
    _, _, tree = _load(path, config_format)
    return tree


def _load(path: Path, config_format: str | None) -> tuple[str, str, dict[str, Any]]:
    """(format, text, values)."""
    kind = _FORMATS.get(path.suffix.lower(), config_format)
    if kind not in _READERS:
        raise DeriveError(f"{path}: this is neither TOML nor YAML nor JSON by its name; leave config out and use flags")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DeriveError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from error
    except OSError as error:
        raise DeriveError(
            f"{path}: the config cannot be read ({error.strerror}); check config in trainwatch.toml, or --config"
        ) from error
    return kind, text, _READERS[kind](text, str(path))


def load_config(spec: RunSpec, preset: Preset) -> TrainerConfig:
    """The config of a run. Raises DeriveError with file and line."""
    path = Path(spec.cwd) / (spec.config or "")
    kind, text, tree = _load(path, preset.config_format)
    return TrainerConfig(path, kind, text, tree, preset.sections_ignored)


def config_in_command(spec: RunSpec, *, json: bool = False) -> RunSpec:
    """The run with ``config`` set to the existing file that its command names (``--config train.yaml``), if any.

    The launch then gets its changes in a copy of that file. ``json``: a JSON file counts, too.
    """
    if spec.config is not None:
        return spec
    words = spec.command
    for at in range(options_start(words), len(words)):
        name, equals, value = words[at].partition("=")
        if name.lstrip("-").replace("-", "_") not in _CONFIG_OPTIONS or not name.startswith("-"):
            continue
        value = value if equals else words[at + 1] if at + 1 < len(words) else ""
        for path in (Path(spec.cwd) / value, Path(spec.cwd) / f"{value}.toml"):
            if value and path.suffix.lower() in (_FORMATS if json else _IN_OPTIONS) and path.is_file():
                return msgspec.structs.replace(spec, config=str(path))
    lone = lone_config(words)
    if lone is not None and (Path(spec.cwd) / lone).is_file():
        return msgspec.structs.replace(spec, config=str(Path(spec.cwd) / lone))
    return spec


def is_unread(spec: RunSpec) -> bool:
    """Whether the command names a config that is not read here: another format, or no file yet."""
    names = (word.partition("=")[0] for word in spec.command if word.startswith("-"))
    named = any(name.lstrip("-").replace("-", "_") in _CONFIG_OPTIONS for name in names)
    return named and config_in_command(spec).config is None


def takes_file_alone(spec: RunSpec) -> bool:
    """Whether the config is the trainer's only argument, so that no option may stand beside it."""
    lone = lone_config([word.replace("{config}", spec.config or "{config}") for word in spec.command])
    return lone is not None and spec.config is not None and _same_path(spec, lone, Path(spec.cwd) / spec.config)


def _same_path(spec: RunSpec, text: str, path: Path) -> bool:
    if not text or any(character in text for character in "{}\n"):
        return False
    given = os.path.normpath(Path(spec.cwd) / text)
    return given == os.path.normpath(path) or (path.suffix == ".toml" and f"{given}.toml" == os.path.normpath(path))


def names_config(spec: RunSpec, path: Path) -> bool:
    """Whether the command names the config, by ``{config}`` or by its path."""
    return any("{config}" in part or _path_part(spec, part, path) is not None for part in spec.command)


def _path_part(spec: RunSpec, part: str, path: Path) -> str | None:
    """``part`` with the config's path replaced by ``{config}``, or None if it does not contain it."""
    if _same_path(spec, part, path):
        return "{config}"
    name, equals, value = part.partition("=")
    return f"{name}={{config}}" if equals and _same_path(spec, value, path) else None


def with_placeholder(spec: RunSpec, path: Path) -> tuple[str, ...]:
    """The command with the config's own path replaced by ``{config}``."""
    return tuple(_path_part(spec, part, path) or part for part in spec.command)


def places(config: TrainerConfig, key: str) -> tuple[bool, tuple[KeyPath, ...]]:
    """(whether the key is in the config, the places where it is or belongs)."""
    found = locate(config.tree, key, str(config.path), sections_ignored=config.sections_ignored)
    return any(present(config.tree, path) for path in found), found


def config_copy(
    spec: RunSpec, config: TrainerConfig, attempt: int, edits: Sequence[Edit], changes: Sequence[Change]
) -> str:
    """Text of an attempt's copy: a header that lists the changes (JSON has no comments), and the edited original.

    Checked by reading it.
    """
    body = _EDITORS[config.format](config.text, edits, str(config.path))
    text = (_header(spec, config, attempt, changes) if config.format != "json" else "") + body
    read = _READERS[config.format]
    if not same(read(text, str(config.path)), read(body, str(config.path))):
        raise DeriveError(f"{config.path}: the copy with its header reads differently, so nothing was started with it")
    return text


def _header(spec: RunSpec, config: TrainerConfig, attempt: int, changes: Sequence[Change]) -> str:
    newline = "\r\n" if "\r\n" in config.text else "\n"
    lines = [
        f"Written by trainwatch for attempt {attempt} of {spec.name}. Do not edit: each attempt gets a new copy.",
        f"The original is {config.path} and is not changed.",
    ]
    lines.append("Changed:" if changes else "Nothing was changed.")
    for change in changes:
        why = f"  ({change.why})" if change.why else ""
        lines.append(f"  {change.key}: {shown(change.before)} -> {shown(change.after)}{why}")
    return "".join(f"# {one_line(line)}{newline}" for line in lines) + newline


def write_copy(path: Path, text: str, original: Path) -> None:
    """Write the copy atomically. Raises DeriveError if it cannot be written or would replace the original."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            if path.samefile(original):
                raise DeriveError(f"{path}: this is the original config; the attempt's directory must be another one")
        temporary = path.with_name(f".{path.name}.new")
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise DeriveError(f"{path}: the derived config cannot be written ({error.strerror})") from error
