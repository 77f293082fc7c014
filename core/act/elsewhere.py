"""Attempts that run in a container or as another user, through the client that started them."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from .. import processes, spool
from ..bound_process import NoAnswerError, answer
from ..model.ports import AttemptTarget
from ..model.wrappers import CONTAINER_FILE, ContainerRecord, Layer, layers
from ..processes import ATTEMPT_VARIABLE, Process, read_process
from ..spool import read_exit, read_order
from .stop_sequence import SAVE_POLL_S, StopStep
from .stopping import members

# The container of an attempt, through the client that started it: ``docker``, ``podman``, ``nerdctl``.
#
# A container is no child of its client: a client that is killed leaves it behind, and a restart would put a second
# trainer beside it. It is found by a label that the launch adds to ``docker run``; no answer of the engine is no proof
# that it has ended. Sources: ``docker run``, ``docker kill``, ``docker ps`` in Docker's documentation; podman-run(1).

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
    single = layer.has("--device") or any("device=" in value for value in layer.values("--gpus"))
    gpus = () if single else tuple(name for name in GPUS if name in env)
    own = sorted(n for n, value in env.items() if base_env.get(n) != value and n not in {UNBUFFERED, *GPUS})
    values = {ATTEMPT_VARIABLE: str(directory), UNBUFFERED: "1", **env}
    names = [ATTEMPT_VARIABLE, UNBUFFERED, *gpus, *own]
    hidden = Path(tool[0]).name in {"sudo", "doas"}  # it gives the client another environment
    words = [word for name in names for word in ("-e", f"{name}={values[name]}" if hidden else name)]
    return (*argv[: layer.at], "--label", f"{LABEL}={directory}", *words, *argv[layer.at :])


class Container(NamedTuple):
    """The ``Place`` of the attempt of a folder."""

    tool: tuple[str, ...]
    directory: str
    cwd: str
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        names = (Path(word).name for word in self.tool)
        return f"the container of {next(name for name in names if name not in {'sudo', 'doas', '-n'})}"

    def ids(self) -> tuple[str, ...]:
        """The containers of the attempt that run or are paused."""
        return tuple(self._call("ps", "-q", "--no-trunc", "--filter", f"label={LABEL}={self.directory}").split())

    def running(self) -> bool:
        return bool(self.ids())

    def signal(self, number: int) -> None:
        """The engine signals the container's first process; others are signalled if they are visible and allowed."""
        name = signal.Signals(number).name.removeprefix("SIG")
        with contextlib.suppress(PlaceError):
            self.unpause()  # a paused process reacts to nothing
        first = None if number == signal.SIGKILL else self.first_process()
        others = [] if first is None else processes.descendants(first.identity.pid)
        for each in self.ids():
            self._to(each, "kill", "--signal", name)
        processes.signal_each(others, number)

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
                return ContainerRecord(id=each, identity=processes.identity_of(process))
        return None

    def _to(self, container: str, *words: str) -> None:
        """An order; that the container has ended meanwhile is no error."""
        try:
            self._call(*words, container)
        except PlaceError:
            if container in self.ids():
                raise

    def _call(self, *words: str) -> str:
        return called((*self.tool, *words), cwd=self.cwd, env=self.env)


def container_of(directory: str) -> Container | None:
    """The container of the attempt that was launched in a folder; None if its command starts none."""
    order = read_order(Path(directory))
    found = None if order is None else container_layer(order.argv)
    if order is None or found is None:
        return None
    return Container(found[1], directory, cwd=order.cwd, env=order.env)


def _is_of(pid: int, container: str) -> bool:
    """Whether the process is the first of a container: its control group names it, or it is number 1 of a namespace."""
    spaces = processes.status_fields(pid).get("NSpid", "").split()
    return container in processes.file_text(f"/proc/{pid}/cgroup") or (len(spaces) > 1 and spaces[-1] == "1")


FIRST_S, LONGEST_S = 1.0, 30.0
"""Pause between two looks: an image may have to be pulled first, so it doubles up to the longest one."""


class ContainerWatch:
    """Follows the attempt, as sensors do, and keeps ``container.json`` in its folder. ``tell``: for the journal."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Nothing to do before there is a trainer."""

    def follow(self, target: AttemptTarget | None) -> None:
        """Look for the container of another attempt, if it is started in one."""
        self.stop()
        container = None if target is None else container_of(target.directory)
        if target is None or container is None or spool.read(target.directory, CONTAINER_FILE) is not None:
            return
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._look, args=(target, container, self._over), name="container", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End, without waiting for an engine that does not answer."""
        self._over.set()
        self._thread = None

    def _look(self, target: AttemptTarget, container: Container, over: threading.Event) -> None:
        pause_s, problem = FIRST_S, ""
        while not over.wait(pause_s):
            pause_s = min(LONGEST_S, 2 * pause_s)
            try:
                if not container.running():
                    continue
                found = container.first_process()
            except PlaceError as error:
                if str(error) != problem:
                    self._tell(f"{container.name} cannot be asked: {error}")
                problem = str(error)
                continue
            if over.is_set():
                return
            if found is None:
                self._tell(f"the processes of {container.name} are not visible on this machine: their CPU is unknown")
                return
            try:
                spool.write(target.directory, CONTAINER_FILE, msgspec.to_builtins(found))
            except OSError as error:
                problem = str(error)
                continue
            self._tell(f"{container.name} is {found.id[:12]}; its first process is {found.identity.pid}")
            return


def called(argv: Sequence[str], *, cwd: str, env: Mapping[str, str] | None = None) -> str:
    """What the tool printed. ``env``: the trainer's, which may name the engine (DOCKER_HOST). Raises PlaceError."""
    environment = {**(os.environ if env is None else env), "LC_ALL": "C"}
    environment.pop(ATTEMPT_VARIABLE, None)  # the call is no process of the attempt
    try:
        return answer(argv, ANSWER_S, env=environment, cwd=cwd, tree=True)
    except NoAnswerError as error:
        raise PlaceError(str(error)) from error


# Processes of another user that ``sudo`` started: they are signalled by ``sudo`` itself, if it asks for no password.
#
# sudo(8) runs as root, so that its own user may not signal it, and it ignores what its command sends; kill(2).

KILL = "/bin/kill"


class OtherUser(NamedTuple):
    """The ``Place`` of the processes of an attempt that belong to another user."""

    tool: str
    foreign: Callable[[], list[Process]]
    cwd: str
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        return "the processes of another user"

    def running(self) -> bool:
        return bool(self.foreign())

    def signal(self, number: int) -> None:
        name = signal.Signals(number).name.removeprefix("SIG")
        pids = [str(each.pid) for each in self.foreign() if each.name != self.tool]  # sudo passes the status on
        if not pids:
            pids = [str(each.pid) for each in self.foreign()] if number == signal.SIGKILL else []
        if pids:
            called((self.tool, "-n", KILL, "-s", name, *pids), cwd=self.cwd, env=self.env)

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)

    def unpause(self) -> None:
        self.signal(signal.SIGCONT)


def other_user_of(target: AttemptTarget) -> OtherUser | None:
    """The processes that this user may not signal; None if the command starts none as another user, or we are root."""
    order = read_order(Path(target.directory))
    if order is None or os.geteuid() == 0:
        return None
    user = next((each for each in layers(order.argv) if each.kind == "user"), None)
    if user is None:
        return None
    foreign = lambda: [each for each in members(target) if _owner(each) not in {None, os.geteuid()}]  # noqa: E731
    return OtherUser(user.program, foreign, cwd=order.cwd, env=order.env)


def _owner(process: Process) -> int | None:
    owner, same = processes.owner_of(process.pid), read_process(process.pid)
    return owner if same is not None and same.key == process.key else None


POLL_S = 0.5
"""Period of asking whether it still runs: each question starts a program."""
ANSWER_S = 20.0
"""Longest wait for the answer of an engine or of sudo. A daemon under memory pressure takes several seconds."""


class PlaceError(Exception):
    """The place did not answer or refused; the message is a clause. What runs there is unknown."""


Place = Container | OtherUser
"""Where an attempt runs that is no process of ours. All methods raise ``PlaceError``.

``name``: for people. ``running``: whether a process of the attempt runs there. ``signal``: nothing if what runs there
has just ended. ``pause``: everything, until ``unpause``.
"""


class PlaceEnd(NamedTuple):
    """``gone``: nothing runs there any more; ``signal``: name of the last signal that was needed, None if none was."""

    gone: bool
    signal: str | None
    seconds: float


def end_place(place: Place, steps: tuple[StopStep, ...], saving: Callable[[], bool]) -> PlaceEnd:
    """Send each signal and wait for its effect; SIGKILL waits while a checkpoint is written. Raises PlaceError.

    Blocks at most for the graces, the saves, and the answers of the place.
    """
    begun, last = time.monotonic(), None
    for step in steps:
        if not place.running():
            break
        while last is not None and step.signal == signal.SIGKILL and saving():
            time.sleep(SAVE_POLL_S)
            if not place.running():
                break
        place.signal(step.signal)
        last = signal.Signals(step.signal).name
        deadline = time.monotonic() + step.grace_s
        while (alive := place.running()) and time.monotonic() < deadline:
            time.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))
        if not alive:
            break
    return PlaceEnd(not place.running(), last, time.monotonic() - begun)


# Trainers that cannot be reached at all: on another host, in a container that is not ours, in a pod.
#
# A client that was killed, or that lost its connection, leaves them behind: whether they run on is unknown then, and
# nothing is started beside them. A status that is the trainer's own proves that it ended (ssh(1): 255 is ssh's own;
# ``docker exec``: 125 is docker's own).

OWN_STATUS = {"host": {255}, "in_container": {125}, "services": {125}, "pod": {1, 255}}
"""Exit statuses of the client itself. Slurm ends a step whose ``srun`` is gone, so that it is not among them."""
WHERE = {
    "host": "on {name}: look there (`ssh {name} pgrep -af {word}`)",
    "in_container": "in the container {name}: look there (`{tool} top {name}`)",
    "services": "in the containers of the project: look there (`{tool} ps`)",
    "pod": "in the pod {name}: look there (`{tool} exec {name} -- ps ax`)",
}
"""``tool``: the client without its verb; ``word``: the first word of the trainer's command."""


def may_run_on(directory: str) -> str:
    """What may run on where the attempt's client cannot reach it any more, as a clause; "" if nothing may."""
    order = read_order(Path(directory))
    layer = None if order is None else next((each for each in layers(order.argv) if each.kind in OWN_STATUS), None)
    if layer is None:
        return ""
    ended = read_exit(Path(directory))
    if ended is not None and ended.code is not None and ended.code not in OWN_STATUS[layer.kind]:
        return ""
    word = next((word for word in layer.inner if word.endswith(".py")), "python")
    name = layer.names[0] if layer.names else "it"
    where = WHERE[layer.kind].format(name=name, word=word, tool=" ".join(layer.tool))
    return f"the training may run on {where}"
