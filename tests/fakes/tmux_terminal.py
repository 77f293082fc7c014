"""A person at a terminal: a real tmux of its own, keys in, the text of the screen out."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.fakes.tmux_place import socket_folder

PATIENCE_S = 100.0
NO_TMUX = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux")


SOCKET = "glass"


class Terminal:
    """One window of ``size`` (columns, rows) with a shell in ``cwd``.

    The tmux around it is only the glass: it takes no prefix key, and what runs in it does not know of it. Sockets of
    a tmux that a program starts inside lie where ``env`` says.
    """

    def __init__(self, sockets: str, size: tuple[int, int], cwd: Path, env: Mapping[str, str]) -> None:
        usual = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PS1": "$ "}
        foreign = {"TMUX", "TMUX_PANE", "COLUMNS", "LINES", "NO_COLOR"}
        self._inside = {k: v for k, v in env.items() if k not in foreign} | usual
        self._env = self._inside | {"TMUX_TMPDIR": sockets}
        inside = (f"{k}={v}" for k in ("TMUX_TMPDIR",) for v in [self._inside.get(k)] if v)
        self.tmux(
            "start-server", ";", "set", "-g", "remain-on-exit", "on", ";", "set", "-g", "prefix", "None", ";",
            "set", "-g", "escape-time", "0", ";", "set", "-g", "default-terminal", "tmux-256color", ";",
            "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "-c", str(cwd),
            "env", "-u", "TMUX", "-u", "TMUX_PANE", "-u", "TMUX_TMPDIR", *inside, "sh",
        )  # fmt: skip

    def tmux(self, *arguments: str) -> str:
        """One tmux command to the glass."""
        command = ["tmux", "-L", SOCKET, "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=self._env, timeout=20).stdout

    def run(self, line: str) -> None:
        """Type a command line."""
        self.tmux("send-keys", "-l", f"{line}\n")

    def trainwatch(self, *words: str) -> None:
        """Start the program under test."""
        self.run(f"exec {sys.executable} -m trainwatch {' '.join(words)}")

    def press(self, *keys: str) -> None:
        """Keys, by tmux's names."""
        self.tmux("send-keys", *keys)

    @property
    def text(self) -> str:
        """What the screen shows."""
        return self.tmux("capture-pane", "-p")

    def styles(self, text: str) -> list[tuple[str, bool]]:
        """(colour of the letters as in the escape sequence, whether they are bold) of each occurrence of a text."""
        drawn = self.tmux("capture-pane", "-e", "-p")
        colour, bold, plain = "", False, ""
        found: list[tuple[str, bool]] = []
        for part in re.split("(\x1b\\[[0-9;]*m)", drawn):
            if not part.startswith("\x1b"):
                found += [(colour, bold)] * (plain[-len(text) + 1 :] + part if len(text) > 1 else part).count(text)
                plain += part
                continue
            for code in re.findall(r"[34]8;5;\d+|[34]8;2;\d+;\d+;\d+|\d+", part) or ["0"]:
                if code in {"0", "1", "22"}:
                    bold = code == "1"
                if code in {"0", "39"} or code.startswith("38;") or 30 <= int(code.partition(";")[0]) <= 37:
                    colour = "" if code in {"0", "39"} else code
        return found

    @property
    def pid(self) -> int:
        """The process in the window."""
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))

    @property
    def ended(self) -> bool:
        """Nothing runs in the window any more."""
        pid = self.pid
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
        return True

    def until(self, true: Callable[[str], object], what: str, patience_s: float = PATIENCE_S) -> str:
        """The screen once this is true of it."""
        end = time.monotonic() + patience_s
        while True:
            text = self.text
            if true(text):
                return text
            if time.monotonic() > end:
                pytest.fail(f"not within {patience_s:g} s: {what}; the screen shows:\n{text}", pytrace=True)
            time.sleep(0.1)

    def see(self, *words: str, patience_s: float = PATIENCE_S) -> str:
        """The screen once it shows all of these."""
        return self.until(lambda text: all(word in text for word in words), f"{words}", patience_s)

    def press_until(self, key: str, *words: str) -> str:
        """Press a key, again and again with a moment between, until the screen shows all of these."""

        def shown(text: str) -> bool:
            if all(word in text for word in words):
                return True
            self.press(key)
            time.sleep(0.3)
            return False

        return self.until(shown, f"{words} after {key}")

    def close(self) -> None:
        """End the window and its tmux."""
        self.tmux("kill-server")


@contextlib.contextmanager
def terminal(size: tuple[int, int], cwd: Path, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """A terminal that is closed whatever happens."""
    with socket_folder() as sockets:
        made = Terminal(sockets, size, cwd, os.environ if env is None else env)
        try:
            yield made
        finally:
            made.close()
