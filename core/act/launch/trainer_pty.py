"""The trainer's pseudo-terminal in pty mode. The runner owns it: every byte goes to the log, and clients can attach.

Standard library only. The trainer never waits for a client: one that does not read is dropped. Client to runner: frames
of one type byte (``d`` data, ``w`` window size), a length (4 bytes, big endian) and the payload. Runner to client: the
bytes of the terminal, beginning with the newest RECENT_BYTES from before it attached.
"""
# No pathlib here: it keeps the runner small.

import contextlib
import errno
import os
import select
import socket
import struct
import sys
import time

from ... import spool
from . import spawn

RECENT_BYTES = 16384
"""Sent to a client that attaches: about two screens."""
CLIENT_BACKLOG_BYTES = 1 << 20
"""A client with more unread output than this is dropped."""
FRAME_LIMIT_BYTES = 65536
INPUT_LIMIT_BYTES = 65536
"""Most input that waits for the trainer; more is dropped."""
READ_BYTES = 65536
FRAME_HEAD = struct.Struct(">cI")
WINDOW = struct.Struct(">HH")
ROUNDS = 64
"""Reads per turn, so that the runner handles its signals during a flood of output."""


class Client:
    """One attached terminal."""

    def __init__(self, link: socket.socket, first: bytes) -> None:
        self.link = link
        self.outgoing = bytearray(first)
        self.incoming = bytearray()

    def frames(self) -> list[tuple[bytes, bytes]]:
        """Remove and return the complete frames. Raises ValueError if one is larger than FRAME_LIMIT_BYTES."""
        found = []
        while len(self.incoming) >= FRAME_HEAD.size:
            kind, length = FRAME_HEAD.unpack_from(self.incoming)
            if length > FRAME_LIMIT_BYTES:
                raise ValueError("oversized frame")
            end = FRAME_HEAD.size + length
            if len(self.incoming) < end:
                break
            found.append((kind, bytes(self.incoming[FRAME_HEAD.size : end])))
            del self.incoming[:end]
        return found


class LogFile:
    """The log of the terminal. While the disk is full, output is lost; a note with the number of bytes follows."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._lost = 0
        self._why = ""

    def write(self, data: bytes) -> None:
        """Append. Raises nothing."""
        if self._lost:
            note = f"\r\n[trainwatch: {self._lost} bytes of output were lost: {self._why}]\r\n".encode()
            if self._append(note):
                return
            self._lost = 0
        self._lost += self._append(data)

    def _append(self, data: bytes) -> int:
        while data:
            try:
                data = data[os.write(self._handle, data) :]
            except InterruptedError:
                continue
            except OSError as fault:
                self._why = os.strerror(fault.errno or errno.EIO)
                return len(data)
        return 0


class TrainerPty:
    """The master side of the terminal, the listening socket and the attached clients."""

    def __init__(self, master: int, log: int, directory: str) -> None:
        self._master = master
        self._log = LogFile(log)
        self._recent = bytearray()
        self._input = bytearray()
        self._clients: dict[int, Client] = {}
        self._listener = _listen(directory)
        self.ended = False
        os.set_blocking(master, False)

    def register(self, poller: "select.poll") -> None:
        """Register all file descriptors that this turn waits for."""
        if not self.ended:
            poller.register(self._master, select.POLLIN | (select.POLLOUT if self._input else 0))
        if self._listener is not None:
            poller.register(self._listener, select.POLLIN)
        for handle, client in self._clients.items():
            poller.register(handle, select.POLLIN | (select.POLLOUT if client.outgoing else 0))

    def serve(self, ready: dict[int, int]) -> None:
        """Handle the ready file descriptors: ``{file descriptor: poll events}``."""
        if ready.get(self._master, 0) and not self.ended:
            self.drain(ROUNDS)
            self._write_input()
        if self._listener is not None and ready.get(self._listener.fileno(), 0):
            self._accept(self._listener)
        for handle in [handle for handle in self._clients if ready.get(handle, 0)]:
            self._receive(handle, ready[handle])
        self._flush()

    def drain(self, rounds: int | None = None) -> None:
        """Copy the terminal's output into the log, with at most ``rounds`` reads."""
        while not self.ended and (rounds is None or rounds > 0):
            try:
                data = os.read(self._master, READ_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # EIO: no process has the other side open
                data = b""
            if not data:
                self.ended = True
                return
            self._log.write(data)
            self._recent = (self._recent + data)[-RECENT_BYTES:]
            for handle, client in list(self._clients.items()):
                client.outgoing += data
                if len(client.outgoing) > CLIENT_BACKLOG_BYTES:
                    self._drop(handle)
            rounds = None if rounds is None else rounds - 1

    def close(self, directory: str) -> None:
        """Send the clients their remaining output (for at most 1 s), close them and remove the socket."""
        deadline = time.monotonic() + 1.0
        while any(client.outgoing for client in self._clients.values()) and time.monotonic() < deadline:
            self._flush()
            time.sleep(0.01)
        for handle in list(self._clients):
            self._drop(handle)
        if self._listener is not None:
            self._listener.close()
        spool.remove(directory, spool.SOCKET)

    def _write_input(self) -> None:
        with contextlib.suppress(OSError):
            while self._input:
                del self._input[: os.write(self._master, self._input[:1024])]

    def _accept(self, listener: socket.socket) -> None:
        try:
            link, _ = listener.accept()
        except OSError:
            return
        _, user, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user not in {0, os.getuid()}:
            link.close()
            return
        link.setblocking(False)
        self._clients[link.fileno()] = Client(link, bytes(self._recent))

    def _receive(self, handle: int, events: int) -> None:
        client = self._clients[handle]
        if not events & ~select.POLLOUT:
            return
        try:
            data = client.link.recv(READ_BYTES)
            client.incoming += data
            frames = client.frames()
        except BlockingIOError:
            return
        except (OSError, ValueError):
            self._drop(handle)
            return
        for kind, payload in frames:
            if kind == b"d":
                self._input += payload[: max(0, INPUT_LIMIT_BYTES - len(self._input))]
            elif kind == b"w" and len(payload) == WINDOW.size and not self.ended:
                rows, columns = WINDOW.unpack(payload)
                if rows and columns:
                    spawn.set_size(self._master, rows, columns)
        self._write_input()
        if not data:
            self._drop(handle)

    def _flush(self) -> None:
        for handle, client in list(self._clients.items()):
            try:
                while client.outgoing:
                    del client.outgoing[: client.link.send(client.outgoing[:READ_BYTES])]
            except BlockingIOError:
                continue
            except OSError:
                self._drop(handle)

    def _drop(self, handle: int) -> None:
        self._clients.pop(handle).link.close()


def _listen(directory: str) -> socket.socket | None:
    """The socket to attach to. If none can be made, None and a line in the runner's log; the training continues."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:  # A socket address holds 107 bytes; through the open directory its length does not matter.
            listener.bind(f"/proc/self/fd/{folder}/{spool.SOCKET}")
        finally:
            os.close(folder)
        listener.listen(4)
        listener.setblocking(False)
    except OSError as fault:
        sys.stderr.write(f"no attach socket: {fault}\n")
        listener.close()
        return None
    finally:
        os.umask(before)
    return listener
