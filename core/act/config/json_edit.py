"""Changes single values in a JSON text. JSON has no comments; the indentation of the file is kept."""

import json
import re
from collections.abc import Sequence
from typing import Any

from .nested_keys import DeriveError, Edit, edited, read_location

_INDENT = re.compile(r"\n([ \t]+)\S")


def read_json(text: str, source: str) -> dict[Any, Any]:
    """The values as the trainer reads them. Raises DeriveError with file and line."""
    try:
        found = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        problem = getattr(error, "msg", str(error))
        raise DeriveError(f"{read_location(line, source)}: not readable as JSON: {problem}") from error
    if not isinstance(found, dict):
        raise DeriveError(f"{source}: the config must be a mapping of keys to values")
    return found


def edit_json(text: str, edits: Sequence[Edit], source: str) -> str:
    """The text with the edits. Raises DeriveError if it cannot be read."""
    if not edits:
        return text
    tree = read_json(text, source)
    for edit in edits:
        tree = edited(tree, edit)
    indent = _INDENT.search(text)
    return json.dumps(tree, indent=None if indent is None else indent[1], ensure_ascii=False) + "\n"
