"""The GPU sensor. It reads NVML in a child process, which is killed and replaced if the driver hangs."""

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Literal

import msgspec

from ...model.observation import GpuReading, GpuSample
from ...model.settings import Watch
from ...model.supervision_ports import AttemptTarget, Clock, DetailDesk, Inbox, NoDetails
from ..process.run_tree import RunTree
from ..sampler import Wakeup
from .gpu_details import (
    Devices,
    GpuChoice,
    GpuDetailReadings,
    GpuList,
    Message,
    Refusal,
    parse_visible_devices,
    visible_devices_of,
)
from .nvml_codes import driver_message, no_answer
from .shared_readings import SharedReadings

COMMAND = (sys.executable, "-P", "-m", f"{__package__}.nvml_child")
"""``-P``: do not import a ``json.py`` from the user's working directory."""
BACKOFF_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Wait before the n-th new child without an answer; the last value repeats."""
REPLACE_FACTOR = 4.0
"""A child is replaced if no GPU answers for this many time limits. With a shorter time slow drivers never answer."""
LATE_FACTOR = 1.3
"""A message that comes on time is awaited, not missed by a moment."""
START_LIMIT_S = 30.0
"""Longest wait for the driver's first answer. Without persistence mode it takes 1.5 s per GPU
(pop-os/system76-power#492)."""
FROZEN_S = 10.0
"""A supervisor that reads the driver for others and shows no sign of life for this long is not waited for."""
STUCK_CHILDREN = 3
"""If this many children survive SIGKILL (they hang in the driver), no more are started."""
INITIAL_PID_NAMESPACE = "pid:[4026531836]"

Ending = Literal["answered", "refused", "silent", "stopped"]


def pids_are_comparable() -> bool:
    """Whether the driver reports pids of this namespace. In a container it reports the host's, under WSL2 none."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
        kernel = Path("/proc/sys/kernel/osrelease").read_text("ascii", errors="replace").lower()
    except OSError:
        return False
    return namespace == INITIAL_PID_NAMESPACE and "microsoft" not in kernel


class GpuSensor:
    """Puts a GpuSample every ``watch.interval_s``.

    A GPU that hangs or is lost stays in the sample with ``trouble``, and the others are read. If none answers, or there
    is no driver, the sample has ``trouble``, and new children are started with growing waits. ``own_gpus`` None: the
    trainer's ``CUDA_VISIBLE_DEVICES``, else all. ``command``: the program that reads the driver.
    ``trust_pids`` None: use the driver's pids if they are comparable. ``shared``: take the readings of another
    supervisor while one reads the driver. ``details``: shown while wanted.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        watch: Watch,
        own_gpus: GpuChoice = None,
        trust_pids: bool | None = None,
        start_limit_s: float = START_LIMIT_S,
        backoff_s: tuple[float, ...] = BACKOFF_S,
        command: tuple[str, ...] = COMMAND,
        shared: SharedReadings | None = None,
        details: DetailDesk | None = None,
        tree: RunTree | None = None,
    ) -> None:
        self._tree = tree or RunTree()
        self._inbox = inbox
        self._clock = clock
        self._watch = watch
        self._configured = own_gpus
        self._choice = own_gpus
        self._trust_pids = pids_are_comparable() if trust_pids is None else trust_pids
        self._start_limit_s = start_limit_s
        self._backoff_s = backoff_s
        self._command = command
        self._shared = shared
        self._details = GpuDetailReadings(details or NoDetails(), clock)
        self._decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
        self._picture = GpuList()
        self._target: AttemptTarget | None = None
        self._answered_s = 0.0
        self._said_s = 0.0
        self._refused = False
        self._abandoned: list[subprocess.Popen[bytes]] = []
        self._wakeup = Wakeup()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sense-gpu", daemon=True)
        self._thread.start()

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt whose GPUs and memory are marked as own."""
        self._target = target
        if self._configured is None and target is not None:
            self._choice = parse_visible_devices(visible_devices_of(target.trainer.pid))

    def stop(self) -> None:
        """End the thread and join it."""
        self._stopping = True
        self._wakeup.wake()
        self._wakeup.close_after(self._thread)

    # --- the thread ---

    def _run(self) -> None:
        self._answered_s = time.monotonic()
        failures = 0
        ending: Ending = "silent"
        while not self._stopping:
            self._abandoned = [child for child in self._abandoned if child.poll() is None]
            ending = "silent"
            if self._shared is not None and not self._shared.lead():
                self._take_shared(self._shared)
                failures = 0
                continue
            if len(self._abandoned) < STUCK_CHILDREN:
                try:
                    ending = self._use_child()
                except Exception as fault:
                    ending = "refused"
                    self._answered_s = time.monotonic()
                    self._put(self._picture.silent("cannot be read"), f"GPU telemetry failed ({fault})")
                    self._publish(b"")
            if ending == "silent":
                self._refused = False
                self._publish(b"")
            failures = 1 if ending == "answered" else failures + 1
            self._rest(self._backoff_s[min(failures, len(self._backoff_s) - 1)], silent=ending != "refused")
        if self._shared is not None:
            self._shared.release()

    def _take_shared(self, shared: SharedReadings) -> None:
        """Take the messages of the supervisor that reads the driver, until it ends.

        One that shows no sign of life (stopped by SIGSTOP, say) is no longer waited for: this one reads, too. What the
        driver refused stands however old it is: the reader asks again after growing waits. After an empty message
        nothing stands; number 0 is of a reader that has no message yet.
        """
        number, since_s = -1, time.monotonic()
        while not self._stopping and not shared.lead():
            if self._details.wanted():
                shared.want_details()
            found = shared.newest()
            if found is not None and found.sign_s <= FROZEN_S:
                since_s = time.monotonic()
                if found.number not in (0, number):
                    with contextlib.suppress(msgspec.MsgspecError):  # no message of this version: no answer
                        self._understand(found.line, fresh=found.age_s <= self._watch.gpu_timeout_s)
                number = found.number
            elif time.monotonic() - since_s > FROZEN_S:
                self._shared = None
                return
            self._put_no_answer()
            self._wait(None, self._watch.interval_s)

    def _understand(self, line: bytes, *, fresh: bool = True) -> Ending | None:
        """Put what a message says. Returns how the child ends by it, or that a GPU answered; None: neither.

        A refusal counts as an answer, and stands until the driver is being asked again or nothing is heard of it.
        """
        if self._refused:
            self._refused = False
            self._answered_s = time.monotonic()
        message = self._decoder.decode(line)
        if isinstance(message, Refusal):
            self._refused = True
            self._answered_s = time.monotonic()
            trouble = driver_message(message.code, message.text)
            self._put(self._picture.silent(trouble), trouble)
            return "refused"
        return "answered" if fresh and isinstance(message, Devices) and self._take(message) else None

    def _publish(self, line: bytes | None) -> None:
        if self._shared is not None:
            self._shared.publish(line)

    def _rest(self, seconds: float, *, silent: bool) -> None:
        """Wait before the next child. ``silent``: report meanwhile that there is no answer."""
        until = time.monotonic() + seconds
        while not self._stopping and (left := until - time.monotonic()) > 0:
            self._wait(None, min(left, self._watch.interval_s))
            self._publish(None)
            if silent:
                self._put_no_answer()

    def _use_child(self) -> Ending:
        """Start a child and read it until it has to be replaced. Raises OSError if it cannot be started."""
        child = subprocess.Popen(
            [*self._command, str(os.getpid()), str(self._watch.interval_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the supervisor's terminal does not reach it
        )
        try:
            return self._listen(child)
        finally:
            self._end(child)

    def _listen(self, child: subprocess.Popen[bytes]) -> Ending:
        if child.stdout is None:
            return "silent"
        fd = child.stdout.fileno()
        os.set_blocking(fd, False)
        started_s, answered, held = time.monotonic(), False, b""
        while not self._stopping:
            if self._details.wanted() or (self._shared is not None and self._shared.details_wanted()):
                self._ask_for_details(child)
            self._wait(fd, min(LATE_FACTOR * self._watch.interval_s, self._watch.gpu_timeout_s))
            data = self._read(fd)
            *lines, held = (held + (data or b"")).split(b"\n")
            self._publish(lines[-1] if lines else None)
            for line in lines:
                ending = self._understand(line)
                if ending == "refused":
                    return ending
                answered = answered or ending == "answered"
            if data == b"":
                self._put_no_answer()
                return "answered" if answered else "silent"
            silent_s = time.monotonic() - max(self._answered_s, started_s)
            limit_s = REPLACE_FACTOR * self._watch.gpu_timeout_s if answered else self._start_limit_s
            if silent_s > limit_s:
                return "answered" if answered else "silent"
            self._put_no_answer()
        return "stopped"

    def _take(self, devices: Devices) -> bool:
        """Put a sample of these readings. Returns whether a GPU answered."""
        limit_s = self._watch.gpu_timeout_s
        target = self._target
        own = target if self._trust_pids else None
        self._details.take(devices, own=own, comparable=self._trust_pids, limit_s=limit_s)
        readings = self._picture.answered(
            devices,
            limit_s=limit_s,
            choice=self._choice,
            own_pids=(lambda: frozenset(self._tree.look(target, max_age_s=1.0)))
            if target is not None and self._trust_pids
            else None,
        )
        if not devices.gpus:
            self._answered_s = time.monotonic()
            self._put(readings, "No NVIDIA GPU seen: the driver is loaded but lists none")
            return True
        if any(device.read and device.age_s <= limit_s for device in devices.gpus):
            self._answered_s = time.monotonic()
            self._put(readings, None)
            return True
        return False

    def _put_no_answer(self) -> None:
        """Put a sample without values once per interval, if there was no answer for longer than the time limit.

        Not while a refusal stands: on a busy machine a new child takes seconds until it asks the driver.
        """
        if self._refused:
            return
        now = time.monotonic()
        silent_s = now - self._answered_s
        if silent_s > self._watch.gpu_timeout_s and now - self._said_s >= self._watch.interval_s:
            self._put(self._picture.silent(f"no answer for {silent_s:.0f} s"), no_answer(silent_s))

    def _put(self, readings: tuple[GpuReading, ...], trouble: str | None) -> None:
        self._said_s = time.monotonic()
        self._inbox.put(GpuSample(t=self._clock.now(), gpus=readings, trouble=trouble))

    # --- the child ---

    def _wait(self, fd: int | None, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        if fd is not None:
            poll.register(fd, select.POLLIN)
        poll.poll(max(0.0, seconds) * 1000)

    def _ask_for_details(self, child: subprocess.Popen[bytes]) -> None:
        if child.stdin is not None:
            with contextlib.suppress(OSError):
                os.write(child.stdin.fileno(), b"d")

    def _read(self, fd: int) -> bytes | None:
        """Output of the child; b"" at its end; None if there is none."""
        try:
            return os.read(fd, 65536)
        except BlockingIOError:
            return None

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Kill the child, without waiting if it hangs in the driver."""
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        try:
            child.wait(0.3)
        except subprocess.TimeoutExpired:
            self._abandoned.append(child)
