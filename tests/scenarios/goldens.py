"""Golden texts: the entries of a scenario, kept beside the tests and reviewed by diff.

``python tests/make_goldens.py`` writes them anew.
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
    assert path.exists(), f"no golden text {path.name}; write it with tests/make_goldens.py and review it"
    assert text == path.read_text(encoding="utf-8")
