"""The places that a trainer's command, environment, config or source names, wherever on the machine they are.

A search for what it saved must look there; whose a file there is they do not tell. Only a path that the source itself
saves to does, built from constants and the options of this command.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...model.checkpoints.checkpoint_suffixes import has_checkpoint_suffix
from ...model.run import RunSpec
from ...source.trainer_source import LONGEST, TrainerSource, read_source
from ...source.values import UNKNOWN

MOST = 4096
MOST_FOLDERS = 64
"""Folders outside the working folder that are watched for it."""
CONFIG_BYTES = 1 << 18
_WORDS = re.compile(r"""[^\s"'`,;=()\[\]{}<>|&]+""")


def saved_places(spec: RunSpec, env: Mapping[str, str]) -> dict[str, str]:
    """Absolute path of a checkpoint or its folder → the place of the source that saves there (``train.py:12``)."""
    source = read_source(spec.command, spec.cwd, {**env, **spec.env})
    if isinstance(source, str) or source.target.package:
        return {}
    found: dict[str, str] = {}
    for text, place in source.saves({**env, **spec.env}):
        known, unknown, _ = text.partition(UNKNOWN)
        path = _path(f"{known}{{" if unknown else known, spec.cwd)
        is_path = "/" in known or has_checkpoint_suffix(text)
        if is_path and path is not None and path != spec.cwd and len(found) < MOST:
            found.setdefault(os.path.realpath(path), place)
    return found


def folders_elsewhere(spec: RunSpec, env: Mapping[str, str]) -> tuple[str, ...]:
    """Folders outside the working folder below which the trainer may save, as far as they are written out."""
    found = dict.fromkeys(_script_folders(spec))
    for text, _ in _texts(spec, env):
        path = _path(text, spec.cwd) if text.startswith(("/", "~", "..")) else None
        if path is not None:
            folder = os.path.dirname(path) if Path(path).is_file() else path  # noqa: PTH120
            if _is_place(folder, spec.cwd):
                found.setdefault(folder)
    return tuple(found)[:MOST_FOLDERS]


def _is_place(folder: str, cwd: str) -> bool:
    """Whether a search there is one for output: not the whole disk, what is installed, or the working folder itself."""
    parts = Path(folder).parts
    if len(parts) <= 2 or parts[1] in {"usr", "proc", "sys", "dev", "etc", "bin", "lib", "opt", "boot", "sbin"}:
        return False
    home = str(Path.home())
    if folder == home or home.startswith(folder + "/"):
        return False
    return folder != cwd and not cwd.startswith(folder.rstrip("/") + "/")


def _path(text: str, base: str) -> str | None:
    """The absolute path that a text may be; a text with a placeholder counts up to the folder before it."""
    if not text or len(text) > LONGEST or not text.isprintable() or "://" in text or text.startswith("-"):
        return None
    before, placeholder, _ = text.partition("{")
    if placeholder or "%" in text:
        before = before.partition("%")[0]
        if "/" not in before:
            return None
        text = before.rpartition("/")[0]
    if not text.strip("./~"):
        return None
    return os.path.normpath(os.path.join(base, os.path.expanduser(text)))  # noqa: PTH111, PTH118


def _texts(spec: RunSpec, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(text, where it is written), the command first."""
    for word in spec.command:
        for part in {word, word.partition("=")[2]}:
            yield part, "the command"
        yield from _of_config(Path(spec.cwd, word))
    if spec.config is not None:
        yield from _of_config(Path(spec.cwd, spec.config))
    for name, value in spec.env.items():
        yield value, f"the variable {name}"
    source = _source(spec)
    if source is None:
        return
    for shown, text in source.target.shells:
        for word in _WORDS.findall(text):
            yield word, shown
    known = {**env, **spec.env}
    for text, place in source.texts:
        yield text, place
        if text.isidentifier() and text in known:
            yield known[text], f"the variable {text} ({place})"


def _source(spec: RunSpec) -> TrainerSource | None:
    """The trainer's own source; None if it cannot be read, or is an installed program."""
    source = read_source(spec.command, spec.cwd, spec.env)
    return None if isinstance(source, str) or source.target.package else source


def _of_config(path: Path) -> Iterator[tuple[str, str]]:
    """Words of a small text file that the command names, but of a script."""
    try:
        if path.suffix in {".py", ".sh", ""} or not path.is_file() or path.stat().st_size > CONFIG_BYTES:
            return
        text = path.read_text()
    except (OSError, ValueError):
        return
    for word in _WORDS.findall(text):
        if "/" in word:
            yield word.partition(":")[2] if word.startswith(":") else word, path.name


def _script_folders(spec: RunSpec) -> tuple[str, ...]:
    """The folder of the trainer's own script, if it is not the working folder."""
    source = _source(spec)
    folder = spec.cwd if source is None else str(source.target.file.parent)
    return () if folder == spec.cwd else (folder,)
