"""Patterns that a person taught: ``trainwatch.learned.toml`` beside trainwatch.toml, written by ``diagnose --teach``.

It is a file of ours, so trainwatch.toml stays as its owner wrote it. A pattern in it counts as one of ``[diagnose]
patterns``. A damaged file counts as absent when it is read for a diagnosis, and is not replaced when one is taught.
"""

import json
from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "trainwatch.learned.toml"
HEAD = """# Written by `trainwatch diagnose LOG --teach CLASS`: failure class = patterns of the lines that show it.
# They count like [diagnose] patterns in trainwatch.toml. Lines may be changed or deleted.
"""
Patterns = Mapping[str, tuple[str, ...]]


def learned_patterns(folder: Path) -> Patterns:
    """Patterns by failure class; empty if there is no file, or one that cannot be used."""
    try:
        return read_patterns(folder / FILE_NAME)
    except (OSError, ValueError, RecursionError):
        return {}


def read_patterns(path: Path) -> Patterns:
    """The patterns in the file. Raises OSError, and ValueError (one line) if it is damaged."""
    text = path.read_text(encoding="utf-8")
    import tomllib

    from .bounds import failure_patterns  # these two are slow to import, and most projects have no such file

    found = tomllib.loads(text).get("patterns", {})
    if not isinstance(found, dict) or not all(isinstance(rows, list) for rows in found.values()):
        raise ValueError(f"{path}: [patterns] must hold lists of regular expressions by failure class")
    patterns = {str(failure): tuple(str(row) for row in rows) for failure, rows in found.items()}
    if (wrong := failure_patterns(patterns)) is not None:
        raise ValueError(f"{path}: [patterns] {wrong}")
    return patterns


def with_learned(own: Patterns, folder: Path) -> Patterns:
    """A project's own patterns and the learned ones."""
    learned = learned_patterns(folder)
    return {name: (*own.get(name, ()), *learned.get(name, ())) for name in {**own, **learned}}


def text_with(known: Patterns, failure: str, pattern: str) -> str:
    """The text of the file with one more pattern."""
    rows = {**known, failure: tuple(dict.fromkeys((*known.get(failure, ()), pattern)))}
    lines = [
        f"{name} = [{', '.join(json.dumps(row, ensure_ascii=False) for row in each)}]" for name, each in rows.items()
    ]
    return f"{HEAD}\n[patterns]\n" + "\n".join(lines) + "\n"
