"""Files beside the trainer's config that decide settings (``further_configs`` of a preset), and their copies.

kohya's ``dataset_config`` says the batch size of each dataset, and wins over ``train_batch_size``. A setting that such
a file decides has a known value only if the file can be read and says the same everywhere; a launch that changes it
gets a copy of the file with every place changed. The user's file is never written.
"""

import copy
import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...model.launch.change import Change
from ...model.shipped.preset import FurtherConfig
from ...model.shipped.remedy import UNKNOWN
from .json_edit import read_json
from .nested_keys import REMOVED, DeriveError, same
from .toml_edit import read_toml

AUTO = "auto"
"""DeepSpeed's word for: as the arguments say."""

Place = tuple[str | int, ...]
"""Keys and positions in lists, from the root to a value."""


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
        tree = _read(Path(cwd) / str(named))
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
    tree = _read(original)
    text = original.read_text(encoding="utf-8-sig")
    made = []
    edits: list[tuple[Place, Any]] = []
    for key, (value, why) in wanted.items():
        for place, before in _occurrences(tree, further.settings[key]):
            if before == AUTO or value is REMOVED:
                continue
            edits.append((place, value))
            where = f"{further.key}: {'.'.join(map(str, place))}"
            made.append(Change(where="config", key=where, before=before, after=value, why=why))
    if not edits:
        return None
    path = folder / f"{further.key}-{original.name}"
    return ConfigCopy(path, _edited_text(text, tree, edits, original), original), tuple(made)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DeriveError(f"{path}: the file cannot be read ({error})") from error
    if path.suffix.lower() not in {".toml", ".json"}:
        raise DeriveError(f"{path}: this is neither TOML nor JSON by its name, so its settings are not known")
    return read_toml(text, str(path)) if path.suffix.lower() == ".toml" else read_json(text, str(path))


def _occurrences(node: Any, name: str, above: Place = ()) -> Iterator[tuple[Place, Any]]:
    """All places of a key with their values, lists of tables included."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == name and not isinstance(value, dict | list):
                yield (*above, key), value
            else:
                yield from _occurrences(value, name, (*above, key))
    elif isinstance(node, list):
        for at, item in enumerate(node):
            yield from _occurrences(item, name, (*above, at))


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


def _edited_text(text: str, tree: dict[str, Any], edits: Sequence[tuple[Place, Any]], source: Path) -> str:
    intended = copy.deepcopy(tree)
    for place, value in edits:
        _set(intended, place, value)
    if source.suffix.lower() == ".json":
        return json.dumps(intended, indent=2, ensure_ascii=False) + "\n"
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        for place, value in edits:
            _set(document, place, value)
        made = tomlkit.dumps(document)
        if same(tomllib.loads(made), intended):
            return made
    except (TOMLKitError, tomllib.TOMLDecodeError, KeyError, IndexError, TypeError, ValueError):
        pass
    places = ", ".join(".".join(map(str, place)) for place, _ in edits)
    raise DeriveError(f"{source}: {places} could not be changed without touching other values")


def _set(tree: Any, place: Place, value: Any) -> None:
    for part in place[:-1]:
        tree = tree[part]
    tree[place[-1]] = value
