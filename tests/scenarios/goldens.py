"""Golden texts: the entries of a scenario, kept beside the tests and reviewed by diff.

``TRAINWATCH_UPDATE_GOLDENS=1 pytest tests/scenarios`` writes them anew.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "texts"


def check(name: str, text: str) -> None:
    """Compare with the golden text of that name."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("TRAINWATCH_UPDATE_GOLDENS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"no golden text {path.name}; write it with TRAINWATCH_UPDATE_GOLDENS=1 and review it"
    assert text == path.read_text(encoding="utf-8")
