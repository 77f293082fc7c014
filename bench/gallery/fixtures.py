"""Recorded logs: the log of an undisturbed run and what the framework's own files say, as fixtures for the tests."""

import shutil
import tomllib
from pathlib import Path

import msgspec

from .row import Row, Truth


def record(folder: Path, row: Row, version: str, log: Path, truth: Truth) -> None:
    """Write ``NAME.log`` and ``NAME.toml``. ``unsaid``: what the log never says."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(log, folder / f"{row.name}.log")
    known = {
        key: value for key, value in msgspec.structs.asdict(truth).items() if value is not None and key != "unsaid"
    }
    lines = [f'framework = "{row.distribution} {version}"', f"unsaid = {list(truth.unsaid)}", "", "[truth]"]
    lines += [f"{key} = {value}" for key, value in known.items()]
    text = "\n".join(lines) + "\n"
    tomllib.loads(text)
    (folder / f"{row.name}.toml").write_text(text)
