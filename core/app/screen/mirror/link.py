"""The line to one other machine: one ssh with ``trainwatch mirror`` at its end, begun again after a cut."""

import contextlib
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from trainwatch import __version__

from ....act.remote.ssh import SSH_FAILED, NoSshError, end_argv, needs_a_person, ssh_argv, why_failed
from ....act.remote.there import MISSING, command_there
from ....bound_process import bound
from ....model.remote.host import Host
from ....model.remote.messages import PROTOCOL, Answer, Ask, Call, Hello, Ping, Pong, Told
from ....store.clock import boot_seconds
from ....store.mirror.frames import Frames, FrameWriter
from ...hosts.run_there import missing_there, sockets
from ...hosts.ssh_output import Said, behind_mark

T = TypeVar("T")
PING_S = 3.0
SILENT_S = 12.0
"""Without a word for so long, after several pings, the line counts as lost; ssh itself waits 45 s."""
BEGIN_S = 40.0
"""Longest wait for the first word: ssh connects (10 s), and Python starts on a busy machine."""
AGAIN_S = (1.0, 2.0, 5.0, 10.0, 10.0, 10.0, 10.0, 30.0)
"""Waits before the line is tried again; the last repeats."""
PERSON_S = 300.0
"""Wait if a person has to do something first: a key, a host key, an upgrade."""
CALL_S = 30.0
CLOSE_S = 5.0
END_S = 2.0
"""Within this time ssh ends by itself when its output is closed."""
SAMPLES = 10
"""Pings whose shortest gives the difference of the clocks: its answer waited least."""


class LinkLost(RuntimeError):  # noqa: N818  named after the condition
    """There is no line, or it was cut before the answer. The message is a sentence."""


class LinkState(msgspec.Struct, frozen=True, kw_only=True):
    """``lost_s``: seconds without a line, None while there is one. ``why``: a sentence; empty before the first result.

    ``ahead_s``: the clock there less the clock here; None = not measured yet. ``version``: of trainwatch there.
    """

    lost_s: float | None = None
    why: str = ""
    ahead_s: float | None = None
    round_trip_s: float | None = None
    version: str = ""


class Link:
    """``take`` gets what is told, in the link's own thread; ``asks``: what is asked at each beginning."""

    def __init__(self, host: Host, take: Callable[[Told], None], asks: Callable[[], list[Ask]]) -> None:
        self.host = host
        self._take, self._asks = take, asks
        self._writer: FrameWriter | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = self._lost_at = boot_seconds()
        self._why = self._version = ""
        self._needs_a_person = False
        self._pings: dict[int, tuple[float, float]] = {}
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._waiting: dict[int, _Waiting] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._tried = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in the background. Further calls do nothing."""
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name=f"link {self.host.name}", daemon=True)
        self._thread.start()
        threading.Thread(target=self._watch, name=f"ping {self.host.name}", daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._end_process()

    @property
    def state(self) -> LinkState:
        best = min(self._samples, default=None)
        return LinkState(
            lost_s=None if self._writer is not None else boot_seconds() - self._lost_at,
            why=self._why,
            ahead_s=None if best is None else best[1],
            round_trip_s=None if best is None else best[0],
            version=self._version,
        )

    def wait_for_first_result(self, timeout_s: float) -> None:
        """Until there is a line, or the first attempt failed."""
        self._tried.wait(timeout_s)

    def ask(self, message: Ask) -> bool:
        """Send without waiting; False if there is no line."""
        writer = self._writer
        if writer is None:
            return False
        try:
            writer.send(message)
        except OSError:
            return False
        return True

    def call(self, what: str, run: str, type_: type[T] | Any, timeout_s: float = CALL_S, **values: Any) -> Any:
        """Ask and wait for the answer. Raises LinkLost, RuntimeError with the sentence of the other side."""
        return msgspec.msgpack.decode(self.answer(what, run, values, timeout_s), type=type_)

    def answer(self, what: str, run: str, values: Mapping[str, Any], timeout_s: float = CALL_S) -> bytes:
        """The answer as it came, in msgpack. Raises as ``call``.

        While the first connection is made, it is waited for.
        """
        if self._thread is not None:
            self._tried.wait(timeout_s)
        waiting = _Waiting()
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting[number] = waiting
        try:
            plain = msgspec.to_builtins(values)
            if not self.ask(Call(number=number, what=what, run=run, values=plain)):
                raise LinkLost(f"no line to {self.host.name}: nothing was asked there")
            if not waiting.done.wait(timeout_s) or waiting.answer is None:
                raise LinkLost(f"the line to {self.host.name} was cut: whether it was done there is not known here")
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if waiting.answer.trouble:
            raise RuntimeError(waiting.answer.trouble)
        return bytes(waiting.answer.data)

    # -- the link's own threads

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            began = self._heard
            why = self._session()
            had_line = self._heard > began
            self._lose(why)
            failures = 0 if had_line else failures + 1
            again_s = AGAIN_S[min(failures, len(AGAIN_S) - 1)]
            self._closed.wait(PERSON_S if self._needs_a_person else again_s)

    def _lose(self, why: str) -> None:
        with self._lock:
            if self._writer is not None:
                self._lost_at = self._heard
            self._writer = None
            self._why = why
            waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.done.set()
        self._pings.clear()
        self._tried.set()

    def _session(self) -> str:
        """One connection from its beginning to its end; why it ended."""
        self._needs_a_person = False
        try:
            argv = ssh_argv(self.host, sockets(), command_there(self.host, ["mirror"], marked=True))
            process = subprocess.Popen(
                bound(argv, at_end=signal.SIGTERM),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C on the screen is no reason to end it
            )
        except (NoSshError, OSError) as error:
            return str(error)
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._heard_process = process, boot_seconds()
        said = Said(process.stderr, onward=False)
        trouble = ""
        version: str | None = None
        with process.stdin, process.stdout:
            try:
                began = behind_mark(process.stdout)
                if began is not None:
                    version = began[0]
                    self._version = version
                    if version:
                        trouble = self._talk(process.stdin.fileno(), process.stdout.fileno(), began[1])
            except (OSError, ValueError, msgspec.MsgspecError) as error:
                trouble = str(error)
        try:
            code = process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        self._process = None
        if trouble:
            return f"{self.host.name}: {trouble}"
        problem = said.text()
        self._needs_a_person = code in {2, MISSING} or (version is None and needs_a_person(problem))
        if code == MISSING and not version:
            return missing_there(self.host)
        if code == 2 and version:
            return (
                f"{self.host.name} has trainwatch {version}, which cannot show its runs on another machine "
                f"(this one is {__version__}): upgrade it there; verbs work: `trainwatch --on {self.host.name} runs`"
            )
        if code == SSH_FAILED and version is None:
            return why_failed(self.host, problem)
        return f"{self.host.name}: the connection was cut"

    def _talk(self, outgoing: int, incoming: int, first: bytes) -> str:
        frames: Frames[Told] = Frames(incoming, Told, first)
        while (told := frames.next()) is not None:
            self._heard = boot_seconds()
            match told:
                case Hello(protocol=protocol, version=version):
                    if protocol != PROTOCOL:
                        self._needs_a_person = True
                        return f"trainwatch {version} there and {__version__} here cannot talk: upgrade the older one"
                    self._begin(FrameWriter(outgoing))
                case Pong(number=number, wall=wall):
                    self._measure(number, wall)
                case Answer(number=number):
                    with self._lock:
                        waiting = self._waiting.get(number)
                    if waiting is not None:
                        waiting.answer = told
                        waiting.done.set()
                case _:
                    self._take(told)
        return ""

    def _begin(self, writer: FrameWriter) -> None:
        with self._lock:
            self._writer, self._why = writer, ""
        for ask in (*self._asks(), self._ping()):
            self.ask(ask)
        self._tried.set()

    def _ping(self) -> Ping:
        with self._lock:
            self._number += 1
            self._pings[self._number] = (boot_seconds(), time.time())
            return Ping(number=self._number)

    def _measure(self, number: int, wall: float) -> None:
        sent = self._pings.pop(number, None)
        if sent is not None:
            round_trip_s = boot_seconds() - sent[0]
            self._samples.append((round_trip_s, wall - (sent[1] + round_trip_s / 2)))

    def _watch(self) -> None:
        """Ping, and end a connection that says nothing any more."""
        while not self._closed.wait(PING_S):
            if self._writer is not None:
                self.ask(self._ping())
                silent = boot_seconds() - self._heard > SILENT_S
            else:
                silent = self._process is not None and boot_seconds() - self._heard_process > BEGIN_S
            if silent:
                self._end_connection()
                self._end_process()

    def _end_connection(self) -> None:
        """A shared connection whose line is dead would take the next call with it."""
        with contextlib.suppress(NoSshError, OSError, subprocess.SubprocessError):
            subprocess.run(
                bound(end_argv(self.host, sockets())),
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=5,
                check=False,
            )

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()


class _Waiting:
    """A call whose answer is awaited."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.answer: Answer | None = None
