"""One launch of a run, numbered from 1."""

from typing import Literal

import msgspec

from .launch.change import Change
from .launch.script_state import ScriptChange
from .run import ProcessIdentity


class LockOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Which output locks the runner holds with the supervisor: the run, its folder, its command with working folder.

    ``created``: as in RunSpec; ``home``: the state folder.
    """

    run: str
    created: float
    home: str
    output_dir: str | None = None
    command: str | None = None


class KeepAliveOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How the runner replaces a dead or frozen supervisor: what it starts, and the files by which it knows.

    ``env``: added to the runner's own environment. ``frozen_s``: seconds without a new sign of life.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    lock: str
    life_sign: str
    log: str
    frozen_s: float


class LaunchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the runner is asked to start (``order.json`` in the attempt's directory; the runner reads only this file).

    ``argv`` has no placeholders left. ``env`` is the complete environment of the child. Grace in seconds.
    """

    version: int = 1
    attempt: int
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    log: str
    terminal: Literal["file", "pty"] = "file"
    columns: int = 120
    rows: int = 40
    interrupt_grace_s: float = 20.0
    terminate_grace_s: float = 10.0
    locks: LockOrder | None = None
    keep_alive: KeepAliveOrder | None = None


class StartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``start.json``: written atomically by the runner once the trainer exists.

    ``runner`` None: the trainer was started by something else and adopted.
    """

    version: int = 1
    attempt: int
    trainer: ProcessIdentity
    runner: ProcessIdentity | None
    wall: float
    log: str
    argv: tuple[str, ...] = ()


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``exit.json``: written atomically by the runner after the trainer has ended.

    Either ``code`` or ``signal`` is set; ``error`` if the command could not be started at all (``code`` 126/127), with
    the system's ``errno`` if it had one.
    """

    version: int = 1
    attempt: int
    wall: float
    code: int | None = None
    signal: int | None = None
    error: str | None = None
    errno: int | None = None
    stopped_by: str | None = None
    """"stop" or "kill" if the runner ended it on request."""
    stop_signal: str | None = None
    """Name of the last signal that was needed."""
    left: tuple[str, ...] = ()
    """Processes of the command that go on and are not the training: ``tensorboard --logdir runs (pid 77)``."""
    spared: tuple[tuple[int, int], ...] = ()
    """Those of them that are helpers of a failed command: (pid, start ticks)."""


class StopOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``stop.json``: asks the runner to end the process tree; SIGUSR1 makes it read the file.

    ``saves_to``: folder of the checkpoints; a save in progress is waited for. ``wsl``: processes that use the
    GPU get more time to end. ``leftovers``: the trainer has ended, and helpers that its script started are spared.
    """

    version: int = 1
    mode: Literal["gentle", "kill"]
    interrupt_grace_s: float
    terminate_grace_s: float
    saves_to: str | None = None
    wsl: bool = False
    leftovers: bool = False


class EndFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was so when an attempt ended, beside its log; the diagnosis counts it. None = unknown.

    ``disk_free_bytes``: the least of the last minute, as a trainer may delete the file that did not fit.
    ``swap_used``: a share. ``oom_kills``: processes that the kernel killed for memory during the attempt.
    ``checkpoint``: the verdict on the one that the attempt resumed from. ``kernel``: lines about GPUs and memory.
    """

    disk_free_bytes: float | None = None
    disk_free_inodes: float | None = None
    swap_used: float | None = None
    oom_kills: int | None = None
    checkpoint: str | None = None
    kernel: tuple[str, ...] = ()


class AttemptStory(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an attempt from the journal."""

    number: int
    t: float
    wall: float
    pid: int | None = None
    runner_pid: int | None = None
    log: str | None = None
    directory: str | None = None
    resume_from: str | None = None
    resume_step: int | None = None
    profile: str | None = None
    changes: tuple[Change, ...] = ()
    adopted: bool = False
    script: ScriptChange | None = None
    ended_t: float | None = None
    code: int | None = None
    signal: int | str | None = None
    how: str | None = None
    last_step: int | None = None
    productive_s: float = 0.0
    facts: EndFacts | None = None
