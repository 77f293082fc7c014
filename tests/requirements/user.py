"""A user at a shell: types commands of trainwatch, and looks for what they print. Each find is kept for the page."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from tests.fakes.e2e_world import until
from tests.fakes.left_processes import Left, end_processes_with, processes_with
from trainwatch.cli import main
from trainwatch.core.model.json_line import encode_line
from trainwatch.core.model.observation import Observation

from .shown import Shown

REPOSITORY = Path(__file__).parents[2]
MARK = "XDG_RUNTIME_DIR"
LONGEST = 240
"""Characters of a printed line that are kept."""
TORCH = """__version__ = '2.8.0+cu128'
class version:
    cuda = '12.8'
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    get_device_name = staticmethod(lambda number: 'NVIDIA GeForce RTX 4080')
"""


class Said(NamedTuple):
    """A command and what it printed."""

    command: str
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return [*self.out.splitlines(), *self.err.splitlines()]


def types(*words: str | Path) -> Said:
    """Run a verb in this process, to its end."""
    given = [str(word) for word in words]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(given)
    return Said("trainwatch " + shlex.join(given), code, out.getvalue(), err.getvalue())


def own_processes() -> list[Left]:
    """What the test started and lives: each test has a runtime folder of its own."""
    return processes_with(MARK, os.environ[MARK])


def end_own_processes() -> None:
    end_processes_with(MARK, os.environ[MARK])


class User:
    """``folder``: where the user is; all commands run there."""

    def __init__(self, folder: Path, requirements: tuple[str, ...], case: str, shown: list[Shown]) -> None:
        self.folder = folder
        self.requirements = requirements
        self.case = case
        self._shown = shown

    # -- what is there

    def writes(self, name: str, text: str | bytes) -> Path:
        """A file of the user."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def records(self, name: str, observations: list[Observation]) -> Path:
        """A trace of these observations."""
        return self.writes(name, b"".join(encode_line(one) for one in observations))

    def fills(self, name: str, images: int) -> None:
        """A folder of empty images."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        for number in range(images):
            os.mknod(folder / f"{number:05d}.png")

    def has_torch(self) -> None:
        """A torch with CUDA in the folder of the run, where the trainer's interpreter finds it: it stands in."""
        self.writes("torch.py", TORCH)

    # -- what is typed

    def types(self, *words: str | Path) -> Said:
        """Run a verb in this process, to its end."""
        return types(*words)

    def runs(self, *words: str | Path, patience_s: float = 60.0) -> Said:
        """Run a verb that supervises, in a process of its own, to its end."""
        given = [str(word) for word in words]
        done = subprocess.run(
            [sys.executable, "-m", "trainwatch", *given],
            cwd=self.folder, capture_output=True, text=True, timeout=patience_s, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return Said("trainwatch " + shlex.join(given), done.returncode, done.stdout, done.stderr)

    @contextmanager
    def watches(self, *words: str | Path) -> Iterator[Callable[[str], str]]:
        """Run a verb that supervises, in a process of its own. The function waits until it printed a line with a pattern.

        What it started and what lives at the end is killed, its tmux server too.
        """
        given = [str(word) for word in words]
        printed = self.folder.parent / "printed.txt"
        with printed.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "trainwatch", *given],
                cwd=self.folder, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )  # fmt: skip

        def line(pattern: str) -> str:
            def look() -> str | None:
                text = printed.read_text(errors="replace")
                return next((each for each in text.splitlines() if re.search(pattern, each)), None)

            found = until(look, f"a line with {pattern!r} of {given}")
            self.keeps(Said("trainwatch " + shlex.join(given), 0, "", ""), found)
            return found

        try:
            yield line
        finally:
            process.kill()  # first, or it would start again what is ended
            process.wait(30.0)
            end_own_processes()

    # -- what is looked for

    def finds(self, said: Said, pattern: str) -> "re.Match[str]":
        """The first printed line with ``pattern``; fails if there is none. It is kept for the page."""
        for line in said.lines:
            if found := re.search(pattern, line):
                self.keeps(said, line.strip())
                return found
        raise AssertionError(f"{said.command}: no line has {pattern!r} in:\n{said.out}\n{said.err}")

    def reads(self, said: Said, *path: str | int) -> Any:
        """A value of printed JSON, such as ``("health", 0, "level")``. It is kept for the page."""
        value = said.json
        for key in path:
            value = value[key]
        name = ".".join(str(key) for key in path)
        self.keeps(said, f"{name} = {json.dumps(value, ensure_ascii=False)}")
        return value

    def keeps(self, said: Said, printed: str) -> None:
        """Keep this as what the command printed."""
        command, printed = (self._plain(text) for text in (said.command, printed))
        for requirement in self.requirements:
            self._shown.append(Shown(requirement, self.case, command, printed[:LONGEST]))

    def _plain(self, text: str) -> str:
        """The text without the places of this machine."""
        text = text.replace(sys.executable, "python").replace(f"{REPOSITORY}/", "")
        text = text.replace(f"{self.folder}/", "").replace(str(self.folder), ".")
        return text.replace(str(self.folder.parent), "~").replace(str(Path.home()), "~")
