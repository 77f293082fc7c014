"""The trainwatch.toml that a rehearsal proved: only what it needs, as text."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...config.init import write_config
from ...model.launch.rehearsal import Rehearsal
from ...model.run import RunSpec
from ..errors import CliError, ExitCode


def config_text(spec: RunSpec, result: Rehearsal) -> str:
    """The text. That of a trainwatch.toml that was rehearsed is the file's own."""
    if spec.project is not None:
        return Path(spec.project).read_text(encoding="utf-8")
    lines = ["[run]", f"name = {_text(spec.name)}", f"command = {_texts(spec.command)}"]
    if spec.preset != "generic":
        lines.append(f"preset = {_text(spec.preset)}")
    if spec.config is not None:
        lines.append(f"config = {_text(_relative(spec, spec.config))}")
    if (folder := result.saved_in or spec.output_dir) is not None:
        lines.append(f"output_dir = {_text(_relative(spec, folder))}")
    if spec.env:
        lines.append(f"env = {{ {', '.join(f'{_text(key)} = {_text(value)}' for key, value in spec.env.items())} }}")
    if spec.settings.profiles.use:
        lines += ["", "[profiles]", f"use = {_text(spec.settings.profiles.use)}"]
    if result.will == "self":
        lines += [
            "",
            "[restart]",
            'if_not_told = "go_on"            # the trainer finds its newest checkpoint by itself',
        ]
    return "\n".join(lines) + "\n"


def write_proven(folder: Path, text: str) -> Path:
    """Write it. Raises CliError (exit code 2) if there is one already."""
    try:
        return write_config(folder, text)
    except FileExistsError as error:
        raise CliError(ExitCode.USAGE, f"{error}; nothing was written") from None


def _relative(spec: RunSpec, path: str) -> str:
    place = Path(spec.cwd, path)
    return str(place.relative_to(spec.cwd)) if place.is_relative_to(spec.cwd) else str(place)


def _text(value: str) -> str:
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


def _texts(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"
