"""Helpers that the user's script started beside the trainer: a ``tensorboard &``, a tunnel, a log shipper.

After a crash the trainer's own processes (loader workers, ranks) have to be ended before a restart: they hold GPU
memory, ports and files. A helper is not ours to end. A process is a helper if a shell started it, it holds no GPU, did
no work since the crash, is no rank, and no other process had the same command line. Who started it is noted while the
trainer lives, because orphans lose their parent. Standard library only.
"""

import re
import stat
from typing import NamedTuple

from ...processes import TICKS_PER_S, Process, ProcessIo, open_files, read_io, status_of, variables_of, words_of

# No pathlib here: the runner stays small.


FIRST_LOOK_S = 0.5
LONGEST_LOOK_S = 30.0
"""Period of the looks; it doubles from the first one on."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
RANK_VARIABLES = (b"RANK=", b"LOCAL_RANK=", b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")

Key = tuple[int, int]


class Lineage:
    """Who started the processes of the tree, as far as it was seen."""

    def __init__(self, now: float) -> None:
        self._period_s = FIRST_LOOK_S
        self._due = now + FIRST_LOOK_S
        self._of_shell: dict[Key, bool] = {}
        self._commands: dict[Key, str] = {}

    def wait_s(self, now: float) -> float:
        """Seconds to the next look."""
        return max(0.0, self._due - now)

    def look(self, tree: list[Process], now: float) -> None:
        """Note the new processes of the tree."""
        self._period_s = min(LONGEST_LOOK_S, 2 * self._period_s)
        self._due = now + self._period_s
        members = {process.pid: process for process in tree}
        for process in tree:
            if process.key not in self._of_shell:
                parent = members.get(process.parent)
                self._of_shell[process.key] = parent is not None and parent.name in SHELLS
            self._commands[process.key] = describe(process.pid)  # it changes with an exec

    def helpers(self, tree: list[Process], working: set[Key]) -> list[Process]:
        """The helpers among what is left. ``working``: processes that hold a GPU or showed a sign of work."""
        commands, found = list(self._commands.values()), []
        for process in tree:
            command = self._commands.get(process.key, "")
            if process.key in working or not self._of_shell.get(process.key) or commands.count(command) != 1:
                continue
            variables = variables_of(process.pid)  # None: whether it is one of several ranks cannot be read
            if command and variables is not None and not any(each.startswith(RANK_VARIABLES) for each in variables):
                found.append(process)
        return found


# The processes that a command left behind when it ended: which of them train, and which are helpers.
#
# ``setsid python train.py`` in a script and ``nohup python train.py &`` end at once, and the training goes on. A
# ``tensorboard &`` of the same script also goes on, and is not the training. A process trains if it holds a GPU,
# writes to its output, or computes. After a failure only its output counts, because loader workers of a dead trainer
# keep its GPU open and may compute a little longer. Standard library only.

LOOK_S = 0.5
"""Period of the looks."""
FIRST_S = 3.0
"""A process that shows no sign of work for this long after a success is a helper: a start computes at once."""
FAILED_S = 2.5
"""The same after a failure."""
FAILED_WRITES = 3
"""Looks at which a process must have written after a failure: dying workers report their own errors, once or twice."""
QUIET_S = 60.0
"""A process that only computed, printed nothing and holds no GPU is a helper after this long without computing."""
BUSY_CORES = 0.2
"""A process that used at least this many cores between two looks works."""
BUSY_BYTES_PER_S = 1e6
"""A process that read and wrote at least this fast between two looks works: it loads a model from a slow disk."""
GPU_FILE = re.compile(r"/dev/(?:nvidia\d+|dxg|kfd|dri/renderD\d+|accel\d+|davinci\d+)$")
OUTPUTS_KEPT = 4


class Output(NamedTuple):
    """A regular file that a process has as its standard output or error."""

    device: int
    inode: int
    size: int


class Seen(NamedTuple):
    """One process at one look. ``outputs`` by path; ``terminal``: its output is a terminal; ``gpu``: it holds one.

    ``cpu_ticks``, ``io``: since its start; zeros for what cannot be read: no sign of work.
    """

    cpu_ticks: int
    io: ProcessIo
    outputs: dict[str, Output]
    terminal: bool
    gpu: bool


class LeftProcesses:
    """Looks at what is left, again and again. ``failed``: the command ended with a failure."""

    def __init__(self, now: float, *, log: str, failed: bool) -> None:
        at = status_of(log)
        self._log = (0, 0) if at is None else (at.st_dev, at.st_ino)
        self._failed = failed
        self._began = now
        self._looked = now
        self._before: dict[Key, Seen] = {}
        self._sure: set[Key] = set()
        self._worked: dict[Key, float] = {}
        self._computing: set[Key] = set()
        self._writes: dict[Key, int] = {}
        self.followed: dict[int, Process] = {}
        """The children of this process that work, or have a descendant that does, by pid."""
        self.outputs: list[str] = []
        """Regular files other than the log that working processes have as their output."""

    @property
    def busy(self) -> set[Key]:
        """The processes that worked since the command ended, hold a GPU, or computed between the last two looks."""
        return {*self._worked, *self._computing, *(key for key, seen in self._before.items() if seen.gpu)}

    def go_on(self, tree: list[Process], now: float) -> bool:
        """Look, and return whether to go on: a process works, or it is too early to tell."""
        elapsed, self._looked = now - self._looked, now
        seen = {process.key: _look(process) for process in tree}
        sizes = {path: output.size for each in self._before.values() for path, output in each.outputs.items()}
        for process in tree:
            if self._works(process, seen[process.key], sizes, elapsed):
                self._worked[process.key] = now
                top = _top(process, tree)
                self.followed[top.pid] = top
                for path, output in seen[process.key].outputs.items():
                    new = (output.device, output.inode) != self._log and path not in self.outputs
                    if new and len(self.outputs) < OUTPUTS_KEPT:
                        self.outputs.append(path)
        self._before = seen
        if self._sure & seen.keys():
            return True
        last = max((t for key, t in self._worked.items() if key in seen), default=None)
        if last is not None:
            return now - last < QUIET_S
        return bool(tree) and now - self._began < (FAILED_S if self._failed else FIRST_S)

    def _works(self, process: Process, seen: Seen, sizes: dict[str, int], elapsed: float) -> bool:
        before = self._before.get(process.key)
        gpu = seen.gpu and not self._failed
        if before is None or elapsed <= 0.0:
            wrote = busy = moves = False
        else:
            grown = seen.terminal or any(output.size > sizes.get(p, output.size) for p, output in seen.outputs.items())
            wrote = grown and seen.io.given_bytes > before.io.given_bytes
            busy = seen.cpu_ticks - before.cpu_ticks >= BUSY_CORES * elapsed * TICKS_PER_S
            moved = seen.io.read_bytes - before.io.read_bytes + seen.io.given_bytes - before.io.given_bytes
            moves = moved >= BUSY_BYTES_PER_S * elapsed
        if wrote:
            self._writes[process.key] = self._writes.get(process.key, 0) + 1
        if not self._failed and (gpu or wrote):
            self._sure.add(process.key)
        if busy or moves:
            self._computing.add(process.key)
        if self._failed:
            return wrote and self._writes[process.key] >= FAILED_WRITES
        return gpu or wrote or busy or moves


def _top(process: Process, tree: list[Process]) -> Process:
    """The member of the tree above it, or itself, whose parent is no member."""
    members = {each.pid: each for each in tree}
    while process.parent in members:
        process = members[process.parent]
    return process


def describe(pid: int) -> str:
    """The command line of a process, cut to 200 characters; "" if it has ended."""
    return b" ".join(words_of(pid)).decode("utf-8", "replace").strip()[:200]


def _look(process: Process) -> Seen:
    """What one process does now; nothing if it has ended."""
    outputs: dict[str, Output] = {}
    terminal = gpu = False
    for number, path, _ in open_files(process.pid):
        gpu = gpu or GPU_FILE.match(path) is not None
        found = status_of(f"/proc/{process.pid}/fd/{number}") if number in {1, 2} and path.startswith("/") else None
        if found is not None:
            terminal = terminal or path.startswith("/dev/pts/")
            if stat.S_ISREG(found.st_mode):
                outputs[path] = Output(found.st_dev, found.st_ino, found.st_size)
    return Seen(process.own_ticks, read_io(process.pid) or ProcessIo(0, 0), outputs, terminal, gpu)
