"""trainwatch's own files replaced while a supervisor runs, as an upgrade does; and going on with the new ones.

A supervisor has loaded most of its code, not all, and starts its runners from the files. So before a launch, and when
something failed that may be due to it, it looks whether its files are still those that it began with. If they were
replaced, and the new version can read this run, this process ends its watch in order and executes the new version
under the same pid. What was decided and has no outcome in the journal is done by that one, as after any death.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

from ...bound_process import bound
from ...store.run_directory import RunDirectory

PACKAGE = Path(__file__).absolute().parents[3]
"""In a checkout core/ is a link from here: resolved, it would lead to the tests and the environment, too."""
NAME = "trainwatch"
TRY = "--try"
"""Option of `supervise`: load what a supervisor of the run needs, and end."""
STARTS_S = 60.0
"""Longest time that the new version may take for that, on a busy machine."""
PATIENCE_S = 60.0
"""Longest time that half an upgrade is waited for."""
POLL_S = 2.0


def fingerprint(folder: Path) -> int:
    """A number that changes if a source file below ``folder`` is replaced, added or removed."""
    found = 0
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".toml")):
                try:
                    seen = os.stat(f"{place}/{name}")  # noqa: PTH116  hundreds of files
                except OSError:
                    continue
                found = crc32(f"{place}/{name} {seen.st_ino} {seen.st_size} {seen.st_mtime_ns}".encode(), found)
    return found


def new_version_reads(run: RunDirectory, home: Path) -> bool:
    """Whether the version of the files can be started, and reads this run."""
    command = [sys.executable, "-P", "-m", NAME, "supervise", run.id, TRY]
    try:
        done = subprocess.run(
            bound(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "TRAINWATCH_HOME": str(home)}, cwd="/", timeout=STARTS_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


class OwnFiles:
    """The files of this process's version. ``as_json``: how the next one prints its events."""

    def __init__(
        self,
        run: RunDirectory,
        *,
        as_json: bool = False,
        folder: Path = PACKAGE,
        works: Callable[[RunDirectory, Path], bool] = new_version_reads,
    ) -> None:
        self._run = run
        self._as_json = as_json
        self._folder = folder
        self._works = works
        self._began_with = fingerprint(folder)
        self._lock = threading.Lock()
        self._refused: int | None = None
        self.gives_way = False
        """Whether this process is to go on as the new version, once its watch has ended."""

    def give_way(self) -> bool:
        """Whether the new version is to go on. Waits for half an upgrade, up to PATIENCE_S."""
        with self._lock:
            end = time.monotonic() + PATIENCE_S
            while not self.gives_way and (now := fingerprint(self._folder)) not in {self._began_with, self._refused}:
                works = self._works(self._run, self._run.path.parents[1])
                self.gives_way = works and fingerprint(self._folder) == now
                if not self.gives_way:
                    if time.monotonic() > end:
                        self._refused = now
                    else:
                        time.sleep(POLL_S)
            return self.gives_way

    def execute(self) -> None:
        """Become the supervisor of the new version: does not return."""
        sys.stdout.flush()
        sys.stderr.flush()
        more = ["--json"] if self._as_json else []
        argv = [sys.executable, "-P", "-m", NAME, "supervise", self._run.id, *more]
        os.execve(argv[0], argv, {**os.environ, "TRAINWATCH_HOME": str(self._run.path.parents[1])})
