"""The container of an attempt, through the client that started it: ``docker``, ``podman``, ``nerdctl``.

A container is no child of its client: a client that is killed leaves it behind, and a restart would put a second
trainer beside it. It is found by a label that the launch adds to ``docker run``; no answer of the engine is no proof
that it has ended. Sources: ``docker run``, ``docker kill``, ``docker ps`` in Docker's documentation; podman-run(1).
"""

import contextlib
import signal
from collections.abc import Mapping
from pathlib import Path

from ...model.launch.elsewhere.container import ContainerRecord
from ...model.launch.elsewhere.wrappers import Layer, layers
from ...model.run import ProcessIdentity
from .. import processes
from ..launch.attempt_records import read_order
from ..processes import ATTEMPT_VARIABLE
from .called import called
from .place import PlaceError

LABEL = "trainwatch.attempt"
UNBUFFERED = "PYTHONUNBUFFERED"
"""The output of the trainer inside comes at once."""
GPUS = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""The GPUs of the run; not passed on if the container is given single ones, which are numbered from 0 inside."""
CONTAINERS = frozenset({"container", "service"})


def container_layer(argv: tuple[str, ...]) -> tuple[Layer, tuple[str, ...]] | None:
    """``docker run`` or ``compose run`` of a command, and the words that call the engine; None if it is neither."""
    prefix: tuple[str, ...] = ()
    for layer in layers(argv):
        if layer.kind == "user":
            given = [word for name, value in layer.options for word in (name, value) if word]
            prefix = (*prefix, *layer.tool[:1], *given, *(() if layer.has("-n") else ("-n",)))
        elif layer.kind in CONTAINERS:
            program = layer.tool[0].replace("-compose", "")
            before = layer.tool[1:] if program == layer.tool[0] else ()
            return layer, (*prefix, program, *before)
        elif layer.kind != "plain":
            return None
    return None


def marked(
    argv: tuple[str, ...], directory: Path, env: Mapping[str, str], base_env: Mapping[str, str]
) -> tuple[str, ...]:
    """The command with a label that names the attempt, and with the variables of the launch passed on.

    What the user's own options say stands after it, and wins. Unchanged if it starts no container.
    """
    found = container_layer(argv)
    if found is None:
        return argv
    layer, tool = found
    gpus = () if _has_single_gpus(layer) else tuple(name for name in GPUS if name in env)
    own = sorted(n for n, value in env.items() if base_env.get(n) != value and n not in {UNBUFFERED, *GPUS})
    values = {ATTEMPT_VARIABLE: str(directory), UNBUFFERED: "1", **env}
    names = [ATTEMPT_VARIABLE, UNBUFFERED, *gpus, *own]
    hidden = Path(tool[0]).name in {"sudo", "doas"}  # it gives the client another environment
    words = [word for name in names for word in ("-e", f"{name}={values[name]}" if hidden else name)]
    return (*argv[: layer.at], "--label", f"{LABEL}={directory}", *words, *argv[layer.at :])


def _has_single_gpus(layer: Layer) -> bool:
    return layer.has("--device") or any("device=" in value for value in layer.values("--gpus"))


class Container:
    """Implements ``Place`` for the attempt of a folder. ``others``: send signals to its other processes, too."""

    def __init__(self, tool: tuple[str, ...], directory: str, *, cwd: str, env: Mapping[str, str]) -> None:
        self._tool = tool
        self._directory = directory
        self._cwd, self._env = cwd, env
        self.name = f"the container of {Path(next(w for w in tool if Path(w).name not in {'sudo', 'doas', '-n'})).name}"

    def ids(self) -> tuple[str, ...]:
        """The containers of the attempt that run or are paused."""
        return tuple(self._call("ps", "-q", "--no-trunc", "--filter", f"label={LABEL}={self._directory}").split())

    def running(self) -> bool:
        return bool(self.ids())

    def signal(self, number: int) -> None:
        """The engine signals the container's first process; others are signalled if they are visible and allowed."""
        name = signal.Signals(number).name.removeprefix("SIG")
        with contextlib.suppress(PlaceError):
            self.unpause()  # a paused process reacts to nothing
        others = () if number == signal.SIGKILL else self._others()
        for each in self.ids():
            self._to(each, "kill", "--signal", name)
        for process in others:
            with contextlib.suppress(PermissionError):
                processes.send_signal(process.key, number)

    def pause(self) -> None:
        found = self.ids()
        if not found:
            raise PlaceError("no container of this attempt runs")
        for each in found:
            self._to(each, "pause")

    def unpause(self) -> None:
        for each in self.ids():
            if self._call("inspect", "--format", "{{.State.Paused}}", each).strip() == "true":
                self._to(each, "unpause")

    def first_process(self) -> ContainerRecord | None:
        """The container's first process, as this machine's kernel numbers it; None if it is not visible here.

        An engine in a virtual machine or on another host names a pid of its own, which is not one of this machine.
        """
        for each in self.ids():
            text = self._call("inspect", "--format", "{{.State.Pid}}", each).strip()
            process = processes.read_process(int(text)) if text.isdecimal() and int(text) > 1 else None
            if process is not None and _is_of(process.pid, each):
                identity = ProcessIdentity(
                    boot_id=processes.boot_id(), pid=process.pid, start_ticks=process.start_ticks
                )
                return ContainerRecord(id=each, identity=identity)
        return None

    def _others(self) -> list[processes.Process]:
        first = self.first_process()
        return [] if first is None else processes.descendants(first.identity.pid)

    def _to(self, container: str, *words: str) -> None:
        """An order; that the container has ended meanwhile is no error."""
        try:
            self._call(*words, container)
        except PlaceError:
            if container in self.ids():
                raise

    def _call(self, *words: str) -> str:
        return called((*self._tool, *words), cwd=self._cwd, env=self._env)


def container_of(directory: str) -> Container | None:
    """The container of the attempt that was launched in a folder; None if its command starts none."""
    order = read_order(Path(directory))
    found = None if order is None else container_layer(order.argv)
    if order is None or found is None:
        return None
    return Container(found[1], directory, cwd=order.cwd, env=order.env)


def _is_of(pid: int, container: str) -> bool:
    """Whether the process is the first of a container: its control group names it, or it is number 1 of a namespace."""
    try:
        if container in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace"):
            return True
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    spaces = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
    return len(spaces) > 1 and spaces[-1] == "1"
