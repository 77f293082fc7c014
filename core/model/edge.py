"""The edge: every text that leaves for a person, a notification or a shared file passes one function here.

Raw logs, journals and orders (mode 0600) keep what they hold. ``know`` adds values that are secret whatever their
form: those of the environment's secret variables and the parts of notification URLs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .redact import HIDDEN, Redaction, is_secret

COMMAND_FIELDS = frozenset({"command", "argv", "cmd", "cmdline"})
"""Fields whose list of words is a command line."""


class Edge:
    """The redaction of this process. Thread-safe: ``know`` replaces the whole value."""

    def __init__(self) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._redaction = Redaction()

    def know(self, env: Mapping[str, str], secrets: Iterable[str] = ()) -> None:
        """Hide the values of secret variables of ``env``, and ``secrets``, from now on."""
        found = {v for k, v in env.items() if is_secret(k, v)}
        self._secrets |= found | {*secrets}
        self._redaction = Redaction(secrets=self._secrets)

    def text(self, text: str) -> str:
        return self._redaction.text(text)

    def words(self, argv: Sequence[str]) -> tuple[str, ...]:
        return self._redaction.words(argv)

    def value(self, value: Any, name: str = "") -> Any:
        """The same without secrets, however deep: texts, lists, mappings, msgspec structs. ``name``: of the field."""
        if isinstance(value, str):
            return HIDDEN if is_secret(name, value) else self.text(value)
        if isinstance(value, dict):
            return {key: self.value(inner, str(key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            if name in COMMAND_FIELDS and all(isinstance(word, str) for word in value):
                return type(value)(self._redaction.words(value))
            return type(value)([self.value(inner, name) for inner in value])
        if not hasattr(value, "__struct_fields__"):
            return value
        from msgspec.structs import replace  # not in processes that have only texts

        new = {field: self.value(getattr(value, field), field) for field in value.__struct_fields__}
        changed = {field: inner for field, inner in new.items() if inner != getattr(value, field)}
        return replace(value, **changed) if changed else value


EDGE = Edge()
"""Of this process."""
