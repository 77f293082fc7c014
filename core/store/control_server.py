"""The server side of the control socket: one thread, several clients, one JSON object per line in each direction."""

import contextlib
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from ..model.control_messages import Reply, Request
from ..model.json_line import encode_exact, encode_line
from .control_client import LINE_BYTES, ControlAddress, is_trusted, peer_uid, socket_folder
from .home import write_atomically
from .run_directory import RunDirectory

IDLE_S = 30.0
"""Seconds after which a client that sends nothing, or does not read its reply, is dropped."""
CLIENTS = 32
"""Most clients at once; the next one replaces the one that was silent for longest."""
LOOK_S = 2.0
"""Period in seconds of the check that the socket file exists: a logout removes XDG_RUNTIME_DIR, cleaners empty /tmp."""

Handler = Callable[[Request], Reply]


class ControlServer:
    """Listens for a run's commands; ``handle`` is called in the server's thread, one request at a time.

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
        self._handle = handle
        self._env = dict(env)
        self._idle_s = idle_s
        self._look_s = look_s
        self._selector = selectors.DefaultSelector()
        self._clients: dict[socket.socket, _Client] = {}
        self._stopping = threading.Event()
        self._wake_receive, self._wake_send = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        self._listener: socket.socket | None = None
        self.path: Path | None = None

    def start(self) -> None:
        """Listen and write control.json. Raises OSError if no socket can be made."""
        self._selector.register(self._wake_receive, selectors.EVENT_READ)
        self._listen()
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, send the replies given so far, remove socket and control.json. May be called twice."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._wake_send.send(b"x")  # the thread may have seen the flag already and closed its side
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=2.0)
        self._close_listener()
        with contextlib.suppress(OSError):
            self.run_directory.control.unlink()
        self._wake_send.close()

    def _listen(self) -> None:
        """Bind under a name computed from the run's folder, so that a left-over socket is replaced."""
        digest = sha256(os.fsencode(self.run_directory.path.absolute())).hexdigest()[:8]
        path = socket_folder(self._env) / f"{digest}.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(CLIENTS)
            address = ControlAddress(socket=str(path), pid=os.getpid())
            write_atomically(self.run_directory.control, encode_exact(address))
        except OSError:
            listener.close()
            raise
        self._selector.register(listener, selectors.EVENT_READ)
        self._listener, self.path = listener, path

    def _close_listener(self) -> None:
        if self._listener is not None:
            with contextlib.suppress(KeyError, ValueError, RuntimeError):
                self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        if self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
            self.path = None

    def _serve(self) -> None:
        looked = time.monotonic()
        while not self._stopping.is_set():
            for key, events in self._selector.select(timeout=self._look_s):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.data, _Client) and key.data.connection in self._clients:  # not replaced meanwhile
                    self._attend(key.data, events)
            if time.monotonic() - looked >= self._look_s:
                looked = time.monotonic()
                self._drop_idle(looked)
                self._look_for_name()
        for client in list(self._clients.values()):
            client.deliver_the_rest()
            self._drop(client)
        self._selector.unregister(self._wake_receive)
        self._wake_receive.close()

    def _accept(self) -> None:
        assert self._listener is not None
        with contextlib.suppress(OSError):
            connection, _ = self._listener.accept()
            if not is_trusted(peer_uid(connection)):
                connection.close()
                return
            if len(self._clients) >= CLIENTS:  # one that asks nothing must not keep out one that does
                self._drop(min(self._clients.values(), key=lambda client: (bool(client.outgoing), client.active)))
            connection.setblocking(False)
            client = _Client(connection, self._answer)
            self._clients[connection] = client
            self._selector.register(connection, selectors.EVENT_READ, client)

    def _attend(self, client: "_Client", events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                client.read()
            client.write()
        except OSError:
            client.finished = True
        if client.finished and not client.outgoing:
            self._drop(client)
            return
        wanted = (0 if client.finished else selectors.EVENT_READ) | (selectors.EVENT_WRITE if client.outgoing else 0)
        self._selector.modify(client.connection, wanted, client)

    def _answer(self, line: bytes) -> Reply:
        try:
            request = msgspec.json.decode(line, type=Request)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return Reply(ok=False, message=f"not understood: {error}")
        try:
            return self._handle(request)
        except Exception as error:
            return Reply(ok=False, message=f"the supervisor could not take it: {error}")

    def _drop(self, client: "_Client") -> None:
        self._clients.pop(client.connection, None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.connection)
        client.connection.close()

    def _drop_idle(self, now: float) -> None:
        for client in list(self._clients.values()):
            if now - client.active >= self._idle_s:
                self._drop(client)

    def _look_for_name(self) -> None:
        """Listen again if the socket file was removed. Errors are ignored: the next check tries again."""
        if self.path is not None and self.path.exists() and self.run_directory.control.exists():
            return
        self._close_listener()
        with contextlib.suppress(OSError):
            self._listen()


class _Client:
    """One connection: bytes received so far, and bytes not sent yet."""

    def __init__(self, connection: socket.socket, answer: Callable[[bytes], Reply]) -> None:
        self.connection = connection
        self.outgoing = b""
        self.finished = False
        self.active = time.monotonic()
        self._incoming = b""
        self._answer = answer

    def read(self) -> None:
        """Read, and answer each whole line. Raises OSError if the connection is closed."""
        data = self.connection.recv(LINE_BYTES)
        if not data:
            self.finished = True
            return
        self.active = time.monotonic()
        *lines, self._incoming = (self._incoming + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._say(self._answer(line) if len(line) <= LINE_BYTES else _TOO_LONG)
        if len(self._incoming) > LINE_BYTES:
            self._say(_TOO_LONG)
            self.finished = True

    def write(self) -> None:
        """Send what can be sent without waiting. Raises OSError if the connection is closed."""
        with contextlib.suppress(BlockingIOError):
            while self.outgoing:
                sent = self.connection.send(self.outgoing)
                self.outgoing = self.outgoing[sent:]
                self.active = time.monotonic()

    def deliver_the_rest(self) -> None:
        """Wait briefly until its replies are sent: it may be the client that requested the stop."""
        with contextlib.suppress(OSError):
            self.connection.settimeout(0.5)
            self.connection.sendall(self.outgoing)

    def _say(self, reply: Reply) -> None:
        self.outgoing += encode_line(reply)


_TOO_LONG = Reply(ok=False, message=f"a request has at most {LINE_BYTES} bytes")
