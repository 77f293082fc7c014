"""Recorded logs: the log of an undisturbed run and what the framework's own files say, as fixtures for the tests."""

import tomllib
from pathlib import Path

import msgspec

from .row import Row, Truth


def record(folder: Path, row: Row, version: str, log: Path, truth: Truth, *, places: dict[str, str]) -> None:
    """Write ``NAME.log`` and ``NAME.toml``. ``unsaid`` there: what the log never says.

    ``places``: folder of this machine → what stands for it in the recorded log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = log.read_bytes()
    for place, shown in places.items():
        text = text.replace(place.encode(), shown.encode())
    (folder / f"{row.name}.log").write_bytes(text)
    known = msgspec.structs.asdict(truth)
    unsaid = list(known.pop("unsaid"))
    lines = [f'framework = "{row.distribution} {version}"', f"unsaid = {unsaid}", "", "[truth]"]
    lines += [f"{key} = {value}" for key, value in known.items() if value is not None]
    facts = "\n".join(lines) + "\n"
    tomllib.loads(facts)
    (folder / f"{row.name}.toml").write_text(facts)
