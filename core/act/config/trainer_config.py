"""The trainer's own config file: reading it, finding it on the command line, copying it for an attempt."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...model.preset import Change, FurtherConfig, Preset, Profile
from ...model.run import RunSpec
from ...model.shipped import UNKNOWN
from ...model.wrappers import hides_trainer, lone_config, options_start
from .edits import (
    FORMATS,
    REMOVED,
    DeriveError,
    Edit,
    KeyPath,
    dotted,
    edit_text,
    locate,
    occurrences,
    one_line,
    present,
    same,
    shown,
    value_at,
)
from .flags import dotted_names, find_option, is_shell_line, set_option

_SUFFIXES = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_IN_OPTIONS = frozenset({".toml", ".yaml", ".yml"})
"""Suffixes of configs behind ``--config``: a JSON file there may be the model's."""
_CONFIG_OPTIONS = frozenset({"config", "config_file", "config_path", "cfg"})
"""Options of trainers that name their config."""


class TrainerConfig(msgspec.Struct, frozen=True):
    """The user's file: its text, and its values as the trainer reads them."""

    path: Path
    format: str
    text: str
    tree: dict[str, Any]
    sections_ignored: bool


def read_config(path: Path) -> dict[str, Any]:
    """The values of a TOML or YAML file as the trainer reads them. Raises DeriveError with file and line."""
    return _load(path)[2]


def _load(path: Path, config_format: str | None = None) -> tuple[str, str, dict[str, Any]]:
    """(format, text, values)."""
    kind = _SUFFIXES.get(path.suffix.lower(), config_format)
    if kind not in FORMATS:
        raise DeriveError(f"{path}: this is neither TOML nor YAML nor JSON by its name; leave config out and use flags")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DeriveError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from error
    except OSError as error:
        raise DeriveError(
            f"{path}: the config cannot be read ({error.strerror}); correct the path where it is named (run.config, "
            "--config, the trainer's own config)"
        ) from error
    return kind, text, FORMATS[kind].read(text, str(path))


def load_config(spec: RunSpec, preset: Preset) -> TrainerConfig:
    """The config of a run. Raises DeriveError with file and line."""
    path = Path(spec.cwd) / (spec.config or "")
    kind, text, tree = _load(path, preset.config_format)
    return TrainerConfig(path, kind, text, tree, preset.sections_ignored)


def config_in_command(spec: RunSpec, *, json: bool = False) -> RunSpec:
    """The run with ``config`` set to the existing file that its command names, if any.

    The launch then gets its changes in a copy of that file. ``json``: a JSON file counts, too.
    """
    found = None if spec.config is not None else config_of(spec.command, spec.cwd, json=json)
    return spec if found is None else msgspec.structs.replace(spec, config=found)


def config_of(words: Sequence[str], cwd: str, *, json: bool = False) -> str | None:
    """The config file that a trainer's command names (``--config_file F``, ``--config=F``, ``train.py F``), or None."""
    for at in range(options_start(words), len(words)):
        name, equals, value = words[at].partition("=")
        if name.lstrip("-").replace("-", "_") not in _CONFIG_OPTIONS or not name.startswith("-"):
            continue
        value = value if equals else words[at + 1] if at + 1 < len(words) else ""
        for path in (Path(cwd) / value, Path(cwd) / f"{value}.toml"):
            if value and path.suffix.lower() in (_SUFFIXES if json else _IN_OPTIONS) and path.is_file():
                return str(path)
    lone = lone_config(words)
    return str(Path(cwd) / lone) if lone is not None and (Path(cwd) / lone).is_file() else None


def takes_file_alone(spec: RunSpec) -> bool:
    """Whether the config is the trainer's only argument, so that no option may stand beside it."""
    lone = lone_config([word.replace("{config}", spec.config or "{config}") for word in spec.command])
    return lone is not None and spec.config is not None and _same_path(spec, lone, Path(spec.cwd) / spec.config)


def _same_path(spec: RunSpec, text: str, path: Path) -> bool:
    if not text or any(character in text for character in "{}\n"):
        return False
    given = os.path.normpath(Path(spec.cwd) / text)
    return given == os.path.normpath(path) or (path.suffix == ".toml" and f"{given}.toml" == os.path.normpath(path))


def with_placeholder(spec: RunSpec, path: Path) -> tuple[str, ...]:
    """The command with the config's own path replaced by ``{config}``."""

    def part_of(word: str) -> str:
        name, equals, value = word.partition("=")
        if _same_path(spec, word, path):
            return "{config}"
        return f"{name}={{config}}" if equals and _same_path(spec, value, path) else word

    return tuple(map(part_of, spec.command))


def names_config(spec: RunSpec, path: Path) -> bool:
    """Whether the command names the config, by ``{config}`` or by its path."""
    return any("{config}" in word for word in with_placeholder(spec, path))


def config_copy(
    spec: RunSpec, config: TrainerConfig, attempt: int, edits: Sequence[Edit], changes: Sequence[Change]
) -> str:
    """Text of an attempt's copy: a header that lists the changes (JSON has no comments), and the edited original.

    Checked by reading it.
    """
    body = edit_text(config.format, config.text, edits, str(config.path))
    text = (_header(spec, config, attempt, changes) if config.format != "json" else "") + body
    read = FORMATS[config.format].read
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


# Files beside the trainer's config that decide settings (``further_configs`` of a preset), and their copies.
#
# kohya's ``dataset_config`` says the batch size of each dataset, and wins over ``train_batch_size``. A setting that
# such a file decides has a known value only if the file can be read and says the same everywhere; a launch that
# changes it gets a copy of the file with every place changed. The user's file is never written.

AUTO = "auto"
"""DeepSpeed's word for: as the arguments say."""


class ConfigCopy(msgspec.Struct, frozen=True):
    """A copy for one attempt: where it is written, its text, and the user's file."""

    path: Path
    text: str
    original: Path


def deciding_value(cwd: str, further: FurtherConfig, named: Any, key: str, fallback: Any) -> Any:
    """The value of a setting that such a file may decide; ``UNKNOWN`` if it differs within it or cannot be read.

    ``named``: the path in the trainer's setting, None if it has none; ``fallback``: what holds if the file is silent.
    """
    if not named or named == UNKNOWN:
        return named or fallback
    try:
        tree = read_config(Path(cwd) / str(named))
    except DeriveError:
        return UNKNOWN
    found = [value for _, value in _occurrences(tree, further.settings[key]) if value != AUTO]
    if not found:
        return fallback
    deciding = found if _covers(tree, further.settings[key]) else [*found, fallback]
    return found[0] if all(same(value, found[0]) for value in deciding) else UNKNOWN


def changed_copy(
    cwd: str, further: FurtherConfig, named: Any, wanted: dict[str, tuple[Any, str]], folder: Path
) -> tuple[ConfigCopy, tuple[Change, ...]] | None:
    """The copy with the wanted values (setting → value, reason) at each place; None if the file decides none of them.

    ``folder``: of the attempt. Raises DeriveError if the file cannot be read, or cannot be changed without touching
    other values.
    """
    original = Path(cwd) / str(named)
    kind, text, tree = _load(original)
    made = []
    edits: list[Edit] = []
    for key, (value, why) in wanted.items():
        for place, before in _occurrences(tree, further.settings[key]):
            if before == AUTO or value is REMOVED:
                continue
            edits.append(Edit(place, value))
            where = f"{further.key}: {dotted(place)}"
            made.append(Change(where="config", key=where, before=before, after=value, why=why))
    if not edits:
        return None
    path = folder / f"{further.key}-{original.name}"
    return ConfigCopy(path, edit_text(kind, text, edits, str(original)), original), tuple(made)


def _occurrences(tree: dict[str, Any], name: str) -> Iterator[tuple[KeyPath, Any]]:
    """All places of a value of that name, with the value; lists of tables included."""
    for place in occurrences(tree, name, lists=True):
        if not isinstance(value := value_at(tree, place), dict | list):
            yield place, value


def _covers(tree: dict[str, Any], name: str) -> bool:
    """Whether the key holds for everything: it stands outside of lists, or in each table of a list."""
    places = [place for place, _ in _occurrences(tree, name)]
    if any(all(isinstance(part, str) for part in place) for place in places):
        return True
    lists = {key: value for key, value in tree.items() if isinstance(value, list)}
    return all(
        any(place[0] == key and place[1] == at for place in places)
        for key, items in lists.items()
        if any(place[0] == key for place in places)
        for at in range(len(items))
    )


# Names of a later attempt's checkpoints, for frameworks that count from zero at each launch.
#
# After a resume, kohya sd-scripts writes ``luca-000001.safetensors`` again, over the file of the first attempt and in
# the end over the file that it resumed from. A restart must not overwrite what an attempt saved, so the next attempt
# has a name of its own, ``luca-try2``.

_COUNT = r"(?:-\d{6}|-step\d{8})?(?:-state)?(?:\.\w+)?"
"""What kohya sd-scripts appends to the name: an epoch, a step or nothing; ``-state`` for a directory."""


def own_name(
    spec: RunSpec, preset: Preset, profile: Profile | None, resume_from: Path | None, attempt: int
) -> tuple[Change, ...]:
    """The change of the setting that names checkpoints; empty if no file could be overwritten.

    A first launch from the beginning keeps the user's name. In a shell line nothing can be set. Raises DeriveError as
    ``effective``.
    """
    key = preset.name_key
    if key is None or (attempt < 2 and resume_from is None) or is_shell_line(spec.command):
        return ()
    before, name = _saved_name(spec, preset, profile, key)
    if name is None:
        return ()  # a user's own script may not know the setting, and fail
    there = tuple(_entries(spec, resume_from))
    if not any(re.fullmatch(re.escape(name) + _COUNT, entry) for entry in there):
        return ()
    number = max(attempt, 2)
    while any(re.match(re.escape(f"{name}-try{number}") + r"(?!\d)", entry) for entry in there):
        number += 1
    why = (
        f"if the trainer uses this name, it does not overwrite what was saved as {name}: "
        f"{preset.name} counts from zero again"
    )
    return (Change(where="config", key=key, before=before, after=f"{name}-try{number}", why=why),)


def saved_under(spec: RunSpec, preset: Preset, profile: Profile | None) -> re.Pattern[str] | None:
    """Matches the names under which a launch saves checkpoints, those of earlier attempts included.

    None: they are not known. Raises DeriveError as ``effective``.
    """
    name = None if preset.name_key is None else _saved_name(spec, preset, profile, preset.name_key)[1]
    return None if name is None else re.compile(rf"{re.escape(name)}(?:-try\d+)?{_COUNT}$")


def _saved_name(spec: RunSpec, preset: Preset, profile: Profile | None, key: str) -> tuple[Any, str | None]:
    """(the setting, the name that it gives; None: that of a user's own script, which may have another default)."""
    before = effective(spec, preset, profile, key)
    known = before or any(re.search(known, " ".join(spec.command)) for known in preset.detect_command)
    return before, str(before or preset.name_default) if known else None


def _entries(spec: RunSpec, resume_from: Path | None) -> Iterator[str]:
    """Names in the output folder and beside the checkpoint to resume from. A folder that cannot be listed is empty."""
    folders = [] if spec.output_dir is None else [Path(spec.cwd) / spec.output_dir]
    if resume_from is not None:
        folders.append((Path(spec.cwd) / resume_from).parent)
    for folder in dict.fromkeys(folders):
        try:
            yield from [entry.name for entry in folder.iterdir()]
        except OSError:
            continue


# The remaining epochs or steps, for frameworks that count from zero when they resume from weights.
#
# kohya sd-scripts always trains ``max_train_epochs`` more: a run of 12 epochs that resumes at epoch 8 would train 20.


def remaining(
    spec: RunSpec,
    preset: Preset,
    profile: Profile | None,
    resume_from: Path | None,
    *,
    epochs_done: int | None,
    steps_done: int | None,
) -> tuple[Change, ...]:
    """The change that lowers the number of epochs (of steps if no epochs are set); empty if it is unknown.

    A directory has the whole state with its count, so nothing is lowered. Raises DeriveError as ``effective``.
    """
    if resume_from is None or preset.resume != "weights" or (Path(spec.cwd) / resume_from).is_dir():
        return ()
    for key, done, what in (
        (preset.epochs_key, epochs_done, "epochs"),
        (preset.steps_key, steps_done, "steps"),
    ):
        if key is None:
            continue
        value = effective(spec, preset, profile, key)
        try:
            before = int(value)  # from a command line it is text
        except (TypeError, ValueError):
            continue
        if isinstance(value, bool):
            continue
        if not done:
            return ()
        after = max(1, before - done)
        why = f"{done} of {before} {what} are in {resume_from.name}; {preset.name} counts from zero again"
        return (Change(where="config", key=key, before=before, after=after, why=why),)
    return ()


def counted(
    spec: RunSpec, preset: Preset, epochs: tuple[int | None, int | None], steps: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """(epochs, steps) that count as done; each given as those of the whole run, and those it began from.

    A length that was asked for with ``run --from CHECKPOINT --set max_train_epochs=6`` is that of the new run.
    """
    keys = (preset.epochs_key, preset.steps_key)
    asked = spec.begin_from is not None and any(change.key in keys for change in spec.changes)
    pairs = [(done, begun if asked else None) for done, begun in (epochs, steps)]
    done, more = (done if done is None or begun is None else max(0, done - begun) for done, begun in pairs)
    return done, more


class TrainerSettings:
    """The values that a launch would use for the trainer's settings. Reads the trainer's config at most once."""

    def __init__(self, spec: RunSpec, preset: Preset) -> None:
        self.spec = config_in_command(spec)
        self._preset = preset

    @cached_property
    def _config(self) -> TrainerConfig | None:
        return load_config(self.spec, self._preset) if self.spec.config is not None else None

    @cached_property
    def _where(self) -> "Callable[[str], Where]":
        """Looked for once, whatever profile asks."""
        return cache(partial(where_set, self.spec.command, self._config, self._preset))

    def value(self, profile: Profile | None, key: str) -> Any:
        """Profile over command line over config; None if it is set nowhere. Raises DeriveError.

        From a command line the value is text. A file beside the config that decides the setting wins; ``UNKNOWN`` if it
        cannot be told what it says.
        """
        own = self._own_value(profile, key)
        for further in self._preset.further_configs:
            if key in further.settings:
                named = self._own_value(profile, further.key)
                own = deciding_value(self.spec.cwd, further, named, key, own)
        return own

    def section(self, profile: Profile | None, key: str) -> tuple[str, ...]:
        """The sections in which the setting stands, on the command line or in the config; () = in none."""
        if profile is not None and key in profile.settings and key not in profile.yields:
            return ()
        at = self._where(key)
        if at.given:
            return tuple(at.given[-1].split(".")[:-1])
        return tuple(str(part) for part in at.found[-1][:-1]) if at.found else ()

    @cached_property
    def hidden(self) -> bool:
        """Whether settings may stand where they are not seen: in a shell script, or in a config that is not read."""
        command = self.spec.command
        names = (word.partition("=")[0].lstrip("-").replace("-", "_") for word in command if word.startswith("-"))
        return hides_trainer(command) or (self.spec.config is None and not _CONFIG_OPTIONS.isdisjoint(names))

    def _own_value(self, profile: Profile | None, key: str) -> Any:
        """The value by the run's own changes, profile, command line and config."""
        changed = next((c for c in reversed(self.spec.changes) if c.where != "env" and c.key == key), None)
        if changed is not None:
            return changed.after
        if profile is not None and key in profile.settings and key not in profile.yields:
            return profile.settings[key]
        at = self._where(key)
        if at.given:
            return set_option(self.spec.command, at.given[-1], REMOVED).before
        if self._config is not None and at.found:
            return value_at(self._config.tree, at.found[-1])
        if profile is None or key not in profile.settings or is_set(self._where, self._preset, key):
            return None
        return profile.settings[key]


def effective(spec: RunSpec, preset: Preset, profile: Profile | None, key: str) -> Any:
    """One value of ``TrainerSettings``."""
    return TrainerSettings(spec, preset).value(profile, key)


class Where(NamedTuple):
    """Where a setting is set. ``key``: its dotted name for a trainer that reads only these, if a plain key is nowhere.

    ``given``: its names on the command line. ``locations``: the places in the config where it is or belongs; ``found``:
    those where it is.
    """

    key: str
    given: list[str]
    locations: tuple[KeyPath, ...]
    found: tuple[KeyPath, ...]


def where_set(argv: Sequence[str], config: TrainerConfig | None, preset: Preset, key: str) -> Where:
    locations: tuple[KeyPath, ...] = ()
    found: tuple[KeyPath, ...] = ()
    for name in filter(None, (key, preset.dotted.get(key))):
        key = name
        if config is not None:
            locations = locate(config.tree, key, str(config.path), sections_ignored=config.sections_ignored)
            found = tuple(path for path in locations if present(config.tree, path))
        if found or given_names(argv, key, ()):
            break
    return Where(key, given_names(argv, key, locations), locations, found)


def given_names(argv: Sequence[str], key: str, locations: Sequence[tuple[str, ...]]) -> list[str]:
    """The names of a setting on the command line: its key, or its dotted place in the config.

    If there is no config, a dotted name that ends in the key counts if it is the only one.
    """
    names = {key, *(".".join(path) for path in locations)}
    found = [name for name in sorted(names) if find_option(argv, name) is not None]
    return found or ([] if "." in key else dotted_names(argv, key))


def is_set(where: Callable[[str], Where], preset: Preset, key: str) -> bool:
    """Whether config or command set this key; of the run's length, its epochs or its steps. ``where``: as where_set."""
    length = (preset.epochs_key, preset.steps_key)
    names = [name for name in (length if key in length else (key,)) if name is not None]
    return any(at.given or at.found for at in map(where, names))
