"""The server side of the control socket: one JSON object per line in each direction, a thread for each client."""

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from ..model.json_line import encode_exact, encode_line
from ..model.observation import Reply, Request
from .control_client import LINE_BYTES, ONCE, ControlAddress, is_trusted, peer_uid, socket_folder
from .home import write_atomically
from .run_directory import RunDirectory

IDLE_S = 30.0
"""Seconds after which a client that sends nothing, or does not read its reply, is dropped."""
CLIENTS = 32
"""Most clients at once; the next one replaces the one that was silent for longest."""
LOOK_S = 2.0
"""Period in seconds of the check that the socket file exists: a logout removes XDG_RUNTIME_DIR, cleaners empty /tmp."""
LAST_ANSWER_S = 2.0
_TOO_LONG = Reply(ok=False, message=f"a request has at most {LINE_BYTES} bytes")

Handler = Callable[[Request], Reply]


class ControlServer:
    """Listens for a run's commands; ``handle`` is called with one request at a time, in a client's thread.

    ``handle`` should only accept and journal; an exception in it becomes a refusal. Start the server while holding the
    run's lock: an existing socket of the same name is then left over and is replaced. ``env`` names the runtime folder.
    """

    def __init__(
        self,
        run_directory: RunDirectory,
        handle: Handler,
        env: Mapping[str, str],
        *,
        idle_s: float = IDLE_S,
        look_s: float = LOOK_S,
    ) -> None:
        self.run_directory = run_directory
        self.path: Path | None = None
        self._handle = handle
        self._env = dict(env)
        self._idle_s, self._look_s = idle_s, look_s
        self._clients: dict[socket.socket, float] = {}
        """Each with when it was active last (monotonic seconds)."""
        self._answering = threading.Lock()
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None

    def start(self) -> None:
        """Listen and write control.json. If that fails (a full disk), it is tried again each ``look_s``."""
        with contextlib.suppress(OSError):
            self._listen()
        threading.Thread(target=self._serve, name="control", daemon=True).start()

    def stop(self) -> None:
        """Stop listening, send the reply that is being given, remove socket and control.json. May be called twice."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._answering.acquire(timeout=LAST_ANSWER_S)  # it may be the client that requested the stop
        self._close_listener()
        for client in list(self._clients):
            _hang_up(client)
        with contextlib.suppress(OSError):
            self.run_directory.control.unlink()

    def _listen(self) -> None:
        """Bind under a name computed from the run's folder, so that a left-over socket is replaced."""
        digest = sha256(os.fsencode(self.run_directory.path.absolute())).hexdigest()[:8]
        path = socket_folder(self._env) / f"{digest}.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(CLIENTS)
            listener.settimeout(self._look_s)
            address = ControlAddress(socket=str(path), pid=os.getpid())
            write_atomically(self.run_directory.control, encode_exact(address))
        except OSError:
            listener.close()
            raise
        self._listener, self.path = listener, path

    def _close_listener(self) -> None:
        if self._listener is not None:
            _hang_up(self._listener)
            self._listener.close()
        if self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
                if self.path.parent.name.startswith(ONCE):
                    self.path.parent.rmdir()
        self._listener = self.path = None

    def _serve(self) -> None:
        looked = time.monotonic()
        while not self._stopping.is_set():
            listener = self._listener
            try:
                if listener is None:
                    self._stopping.wait(self._look_s)
                else:
                    self._accept(listener.accept()[0])
            except OSError:  # also the time limit
                pass
            if time.monotonic() - looked >= self._look_s and not self._stopping.is_set():
                looked = time.monotonic()
                with contextlib.suppress(OSError):  # the next look tries again
                    if self.path is None or not self.path.exists() or not self.run_directory.control.exists():
                        self._close_listener()
                        self._listen()

    def _accept(self, connection: socket.socket) -> None:
        if not is_trusted(peer_uid(connection)):
            connection.close()
            return
        clients = dict(self._clients)
        if len(clients) >= CLIENTS:
            silent = min(clients, key=lambda client: clients[client])
            self._clients.pop(silent, None)
            _hang_up(silent)
        self._clients[connection] = time.monotonic()
        try:
            threading.Thread(target=self._attend, args=(connection,), name="client", daemon=True).start()
        except RuntimeError:  # no thread is left: who asks is not answered, and later ones are
            del self._clients[connection]
            connection.close()

    def _attend(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as lines:
            connection.settimeout(self._idle_s)
            while (line := lines.readline(LINE_BYTES + 1)) and connection in self._clients:
                self._clients[connection] = time.monotonic()
                if not line.endswith(b"\n"):
                    if len(line) > LINE_BYTES:
                        connection.sendall(encode_line(_TOO_LONG))
                    break
                if line.strip():
                    with self._answering:
                        if _is_gone(connection):  # who asked was told that it was not answered
                            break
                        connection.sendall(encode_line(self._answer(line)))
        self._clients.pop(connection, None)

    def _answer(self, line: bytes) -> Reply:
        try:
            request = msgspec.json.decode(line, type=Request)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return Reply(ok=False, message=f"not understood: {error}")
        try:
            return self._handle(request)
        except Exception as error:
            return Reply(ok=False, message=f"the supervisor could not take it: {error}")


def _is_gone(connection: socket.socket) -> bool:
    """Whether the other side has closed it; one that only writes no more still waits for its answer."""
    poll = select.poll()
    poll.register(connection, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
