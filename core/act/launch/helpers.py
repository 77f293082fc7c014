"""Helpers that the user's script started beside the trainer: a ``tensorboard &``, a tunnel, a log shipper.

After a crash the trainer's own processes (loader workers, ranks) have to be ended before a restart: they hold GPU
memory, ports and files. A helper is not ours to end. A process is a helper if a shell started it, it holds no GPU, did
no work since the crash, is no rank, and no other process had the same command line. Who started it is noted while the
trainer lives, because orphans lose their parent. Standard library only.
"""
# ruff: noqa: PTH123

from ..processes import Process
from .left_processes import describe

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
        return [process for process in tree if process.key not in working and self._is_helper(process)]

    def _is_helper(self, process: Process) -> bool:
        command = self._commands.get(process.key, "")
        alone = list(self._commands.values()).count(command) == 1
        return self._of_shell.get(process.key, False) and bool(command) and alone and not _is_rank(process.pid)


def _is_rank(pid: int) -> bool:
    """Whether it is one of several processes of a distributed training; True if that cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(RANK_VARIABLES) for entry in file.read().split(b"\0"))
    except OSError:
        return True
