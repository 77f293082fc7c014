"""Writes docs/settings.md out of the settings themselves: ``python docs/make_settings.py``.

Names, defaults and reasons stand in core/model/settings.py and nowhere else; a test compares.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from trainwatch.core.model import settings

HEAD = """# All settings of trainwatch.toml

Written by `python docs/make_settings.py`; `trainwatch init` writes a file with those that people change most. A key
that is left out has its default. A wrong key or value is named with file, line and the nearest valid one. For one look
at a recorded run, `trainwatch replay TRACE --set SECTION.KEY=VALUE` takes the same names.

`[run]` (or several `[runs.NAME]`) says what to start: see the file that `trainwatch init` writes. The
file is for this run: `trainwatch run -- COMMAND` does not use it, and says so; `trainwatch run` without a command does.

`[hosts.NAME]` names another machine for `trainwatch --on NAME` ([several hosts](how-to/several-hosts.md)), here or in
`~/.config/trainwatch/config.toml`: `ssh` (what ssh takes as destination), and if need be `command` (how trainwatch is
called there) and `folder` (the working folder there).
"""
PAGE = Path(__file__).parent / "settings.md"


def page() -> str:
    """The text of docs/settings.md."""
    return HEAD + "".join(f"\n{part}" for part in _sections())


def _sections() -> Iterator[str]:
    source = ast.parse(Path(settings.__file__).read_text("utf-8"))
    classes = {node.name: node for node in source.body if isinstance(node, ast.ClassDef)}
    defaults = settings.Settings()
    for section in settings.Settings.__struct_fields__:
        value = getattr(defaults, section)
        node = classes[type(value).__name__]
        told = re.sub(r"^``\[\w+\]``[:.]?\s*", "", _flowing(ast.get_docstring(node) or "")).replace("``", "`")
        rows = [f"| `{name}` | `{_toml(default)}` | {why} |" for name, default, why in _rows(node, value)]
        intro = f"{told[0].upper()}{told[1:]}\n\n" if told else ""
        yield f"## [{section}]\n\n{intro}| key | default | why |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _rows(node: ast.ClassDef, value: Any) -> Iterator[tuple[str, Any, str]]:
    for place, statement in enumerate(node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        name = statement.target.id
        after = node.body[place + 1] if place + 1 < len(node.body) else None
        said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        why = _flowing(str(said)).replace("``", "`").replace("|", "\\|")
        choices = ", ".join(f"`{_toml(choice)}`" for choice in _choices(statement.annotation))
        yield name, getattr(value, name), " ".join(part for part in (choices and f"One of {choices}.", why) if part)


def _choices(annotation: ast.expr) -> list[Any]:
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Literal":
        return list(ast.literal_eval(annotation.slice))
    return []


def _flowing(text: str) -> str:
    return " ".join(text.split())


def _toml(value: Any) -> str:
    match value:
        case None:
            return "(none)"
        case float():
            return f"{value:g}" if abs(value) >= 1e6 else f"{value}"
        case _:
            return msgspec.json.encode(value).decode()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
