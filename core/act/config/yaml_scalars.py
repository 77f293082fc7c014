"""Values of YAML scalars in the two dialects that trainers use, and texts that both read as the same value."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from .nested_keys import float_text

if TYPE_CHECKING:
    from ruamel.yaml.nodes import ScalarNode

Dialect = Literal["pyyaml", "core"]
PYYAML: Dialect = "pyyaml"
"""YAML 1.1 as PyYAML's ``safe_load`` resolves it (its ``resolver.py``)."""
CORE: Dialect = "core"
"""The core schema of YAML 1.2, which ruamel.yaml follows."""

_STANDARD_TAG = "tag:yaml.org,2002:"


def _base_60(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    total = 0
    for digits in text.lstrip("+-").split(":"):
        total = total * 60 + int(digits)
    return sign * total


def _pyyaml_int(text: str) -> int:
    plain = text.replace("_", "")
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-")
    if ":" in digits:
        return _base_60(plain)
    if digits.startswith(("0b", "0x")):
        return sign * int(digits, 0)
    return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def _any_float(text: str) -> float:
    plain = text.replace("_", "").lower()
    if plain.endswith((".inf", ".nan")):
        return float(plain.replace(".", ""))
    if ":" in plain:
        sign = -1.0 if plain.startswith("-") else 1.0
        total = 0.0
        for part in plain.lstrip("+-").split(":"):
            total = total * 60 + float(part)
        return sign * total
    return float(plain)


def _core_int(text: str) -> int:
    digits = text.lstrip("+-")
    base = {"0o": 8, "0x": 16}.get(digits[:2], 10)
    number = int(digits[2:] if base != 10 else digits, base)
    return -number if text.startswith("-") else number


_Rule = tuple[re.Pattern[str], Callable[[str], Any]]
_TRUE = frozenset({"true", "yes", "on"})

_RULES: dict[Dialect, tuple[_Rule, ...]] = {
    PYYAML: (
        (re.compile(r"(?:~|null|Null|NULL|)"), lambda _: None),
        (
            re.compile(r"(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)"),
            lambda t: t.lower() in _TRUE,
        ),
        (
            re.compile(
                r"[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
            ),
            _pyyaml_int,
        ),
        (
            re.compile(
                r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
                r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
            ),
            _any_float,
        ),
    ),
    CORE: (
        (re.compile(r"(?:~|null|Null|NULL|)"), lambda _: None),
        (re.compile(r"(?:true|True|TRUE|false|False|FALSE)"), lambda t: t.lower() == "true"),
        (re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"), _core_int),
        (
            re.compile(
                r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
            ),
            _any_float,
        ),
    ),
}


def resolve_plain(text: str, dialect: Dialect) -> Any:
    """The value of an unquoted scalar. Dates stay strings."""
    for pattern, convert in _RULES[dialect]:
        if pattern.fullmatch(text):
            try:
                return convert(text)
            except ValueError:
                return text
    return text


def scalar_value(node: "ScalarNode", dialect: Dialect) -> Any:
    """The value of a scalar node; an unknown tag (``!path``) is returned with the text."""
    tag = str(node.tag)
    if not tag.startswith(_STANDARD_TAG):
        return (tag, node.value)
    return node.value if node.style else resolve_plain(node.value, dialect)


_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _quoted(text: str) -> str:
    def escape(ch: str) -> str:
        if ch in _ESCAPES:
            return _ESCAPES[ch]
        if ch.isprintable():
            return ch
        return f"\\U{ord(ch):08x}"

    return '"' + "".join(escape(ch) for ch in text) + '"'


def yaml_text(value: Any) -> str:
    """A value in flow style that both dialects read as the same value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if value != value:  # noqa: PLR0124
                return ".nan"
            return float_text(value).replace("inf", ".inf")
        case str():
            plain = _PLAIN.fullmatch(value) and all(resolve_plain(value, dialect) == value for dialect in _RULES)
            return value if plain else _quoted(value)
        case Mapping():
            return "{" + ", ".join(f"{yaml_text(key)}: {yaml_text(item)}" for key, item in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(yaml_text(item) for item in value) + "]"
        case _:
            return _quoted(str(value))
