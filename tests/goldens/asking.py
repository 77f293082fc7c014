"""Verbs asked in this process, each with what it prints as JSON."""

import contextlib
import io
import json
from typing import Any

from trainwatch.cli import main


def ask(*words: str, lines: bool = False, code: int = 0) -> Any:
    """The answer of a verb. ``lines``: it prints one JSON object a line. ``code``: the exit code that it has to have."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        at = words.index("--") if "--" in words else len(words)
        found = main([*words[:at], "--json", *words[at:]])
    assert found == code, f"{' '.join(words)} ended with {found}: {err.getvalue()}"
    return [json.loads(line) for line in out.getvalue().splitlines()] if lines else json.loads(out.getvalue())
