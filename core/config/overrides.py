"""``--set KEY=VALUE``: single settings changed from a command line."""

import tomllib
from collections.abc import Iterable
from typing import Any

import msgspec

from ..model.settings import Settings
from .bounds import complaint, out_of_order
from .document import SECRET_KEYS
from .problem import did_you_mean


def with_overrides(settings: Settings, words: Iterable[str]) -> Settings:
    """Settings with each ``section.key=value`` applied; values are TOML (``4``, ``0.5``, ``[0, 10]``, ``true``).

    Raises ValueError with a sentence that names the word and the nearest key.
    """
    given: dict[str, str] = {}
    for word in words:
        settings = _with_one(settings, word)
        given[word.partition("=")[0].strip()] = word
    for section, low, high, sentence in out_of_order(settings):
        told = given.get(f"{section}.{low}") or given.get(f"{section}.{high}")
        raise ValueError(f"--set {told}: {sentence}")
    return settings


def _with_one(settings: Settings, word: str) -> Settings:
    path, separator, text = word.partition("=")
    section, _, key = path.strip().partition(".")
    if not separator or not key:
        raise ValueError(f"--set {word}: write it as SECTION.KEY=VALUE, as in hang.min_s=60")
    if section not in Settings.__struct_fields__:
        raise ValueError(
            f'--set {word}: unknown section "{section}"{did_you_mean(section, Settings.__struct_fields__)}'
        )
    current: msgspec.Struct = getattr(settings, section)
    fields = type(current).__struct_fields__
    if key not in fields:
        raise ValueError(f'--set {word}: unknown key "{key}" in {section}{did_you_mean(key, fields)}')
    values = {**msgspec.to_builtins(current), key: _value(text.strip())}
    shown = path.strip() if key in SECRET_KEYS else word
    try:
        changed = msgspec.convert(values, type(current))
    except msgspec.ValidationError as error:
        raise ValueError(f"--set {shown}: {error}") from None
    wrong = complaint(section, key, getattr(changed, key))
    if wrong is not None:
        raise ValueError(f"--set {shown}: {wrong}")
    return msgspec.structs.replace(settings, **{section: changed})


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
