"""The side of the machine with the runs: ``trainwatch mirror`` sends what its runs gain over standard output.

It reads files and asks supervisors as every other screen here does, and ends with the connection: at the end of its
input, or if nothing came for SILENT_S.
"""

import contextlib
import os
import threading
import time

import msgspec

from trainwatch import __version__

from ....model.remote.messages import PROTOCOL, Answer, Ask, Call, Follow, Hello, Ping, Pong, Unfollow
from ....store.clock import boot_seconds
from ....store.mirror.frames import Frames, FrameWriter
from .followed import FollowedRun
from .services_there import answer_call

POLL_S = 1.0
RATE_BYTES_PER_S = 4 << 20
"""Most of what runs gained, before ssh compresses it: a first copy leaves room on a line of 100 Mbit/s."""
SILENT_S = 60.0
"""A screen asks every few seconds; a line that is dead for so long is given up."""


def pause_s(sent: int, *, behind: bool) -> float:
    """Seconds until the next look, after so many bytes. ``behind``: there is more to send."""
    return max(0.0 if behind else POLL_S, sent / RATE_BYTES_PER_S)


class MirrorServer:
    """One screen's connection. ``serve`` returns at its end."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._frames: Frames[Ask] = Frames(incoming, Ask)
        self._writer = FrameWriter(outgoing)
        self._asked: list[Follow | Unfollow] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._heard = boot_seconds()
        self._ended = False

    def serve(self) -> None:
        """Send until the other side has gone."""
        with contextlib.suppress(OSError):
            self._writer.send(Hello(version=__version__, protocol=PROTOCOL, wall=time.time()))
            threading.Thread(target=self._listen, name="asked", daemon=True).start()
            self._send()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            while (asked := self._frames.next()) is not None:
                self._heard = boot_seconds()
                match asked:
                    case Ping(number=number):
                        self._writer.send(Pong(number=number, wall=time.time()))
                    case Call():
                        threading.Thread(target=self._answer, args=(asked,), daemon=True).start()
                    case Follow() | Unfollow():
                        with self._lock:
                            self._asked.append(asked)
                        self._wake.set()
        self._ended = True
        self._wake.set()

    def _answer(self, call: Call) -> None:
        try:
            answer = Answer(number=call.number, data=msgspec.Raw(msgspec.msgpack.encode(answer_call(call))))
        except Exception as error:  # whatever it is, it is told to the person who asked
            answer = Answer(number=call.number, trouble=str(error) or type(error).__name__)
        with contextlib.suppress(OSError):
            self._writer.send(answer)

    def _send(self) -> None:
        followed: dict[str, FollowedRun] = {}
        while not self._ended and boot_seconds() - self._heard < SILENT_S:
            self._wake.clear()
            with self._lock:
                asked, self._asked = self._asked, []
            for each in asked:
                followed.pop(each.run, None)
                if isinstance(each, Follow):
                    followed[each.run] = FollowedRun(each)
            behind, sent = False, 0
            for run in followed.values():
                sent += sum(self._writer.send(message) for message in run.news())
                behind = behind or run.behind
            self._wake.wait(pause_s(sent, behind=behind))


def serve_mirror() -> None:
    """Serve over standard input and output until the connection ends."""
    outgoing = os.dup(1)
    os.dup2(2, 1)  # nothing else may come between
    MirrorServer(0, outgoing).serve()
