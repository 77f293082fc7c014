"""Values of the launch screen: what can be started, its preview and its checks."""

from typing import Literal

import msgspec

from ..run import RunState
from .change import Change


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to start: a run of ``trainwatch.toml`` by its name, or else a command as it was typed.

    ``profile`` None: the one that the file names, if any.
    """

    run: str | None = None
    command: str = ""
    profile: str | None = None


class LaunchOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One run of ``trainwatch.toml``. ``run_id``: it was launched before and can be opened.

    Not ``of_file``: a live run of a command that was started in this folder; it can only be opened.
    """

    name: str
    command: str
    profile: str | None = None
    run_id: str | None = None
    state: RunState = "idle"
    of_file: bool = True


class LaunchPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a start would launch. ``changes``: all that differs from the user's own config, flags and environment.

    ``preset_why``: how it was found. ``profiles``: (name, title) to choose from: the ladder, or the default first.
    ``resume``: how it is resumed after a crash, in words; ``resumes``: whether it is. ``unused``: a sentence about the
    folder's trainwatch.toml, if it is not used for a command; else empty.
    """

    name: str
    preset: str
    preset_why: str
    command: tuple[str, ...]
    cwd: str
    config: str | None = None
    output_dir: str | None = None
    profile: str | None = None
    profiles: tuple[tuple[str, str], ...] = ()
    changes: tuple[Change, ...] = ()
    resume: str = ""
    resumes: bool = True
    unused: str = ""


class LaunchCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One check before the start. ``result`` None: still running; ``place``: its place in the list."""

    place: int
    name: str
    result: Literal["pass", "warn", "fail"] | None = None
    found: str = ""
    remedy: str = ""
