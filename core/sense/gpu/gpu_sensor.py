"""The GPU sensor. It reads NVML in a child process, which is killed and replaced if the driver hangs."""

import contextlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Literal, Unpack

import msgspec

from ...model.machine_details import GpuDetail, GpuDetails, GpuProcess
from ...model.observation import GpuReading, GpuSample
from ...model.ports import AttemptTarget, DetailDesk
from ...model.settings import Watch
from ...processes import age_s, all_processes, link_of, read_process, variables_of
from ..host.host_sensor import is_wsl
from ..process.process_tree import Member, TreeActivity
from ..process.run_tree import Rates, RunTree, UserNames, command_of, is_another_users, tree_of, tree_pids
from ..sampler import Common, Observer, Sampler

# Which GPUs are the trainer's.

GpuChoice = tuple[int | str, ...] | None
"""Indices and UUIDs (or prefixes of UUIDs, as CUDA accepts them); None: all."""


def parse_visible_devices(value: str | None) -> GpuChoice:
    """Parse ``CUDA_VISIBLE_DEVICES`` as CUDA does: the list ends at the first entry that is not a device.

    Not set: all. CUDA's order is the fastest GPU first unless ``CUDA_DEVICE_ORDER=PCI_BUS_ID``, so on machines with
    different GPUs the indices may differ from the driver's.
    """
    if value is None:
        return None
    chosen: list[int | str] = []
    for entry in (part.strip() for part in value.split(",")):
        if entry.isdecimal():
            chosen.append(int(entry))
        elif entry.startswith(("GPU-", "MIG-")):
            chosen.append(entry)
        else:
            break
    return tuple(chosen)


def is_own(choice: GpuChoice, index: int, uuid: str | None) -> bool | None:
    """Whether the choice includes this GPU; None: unknown (a MIG slice, or an unknown UUID)."""
    if choice is None:
        return True
    names = [entry for entry in choice if isinstance(entry, str)]
    if index in choice or (uuid is not None and any(uuid.startswith(name) for name in names)):
        return True
    return None if any(name.startswith("MIG-") or uuid is None for name in names) else False


THROTTLE_WORDS = (
    "clock setting", "power cap", "hardware slowdown", "sync boost", "thermal (driver)", "thermal (hardware)",
    "power brake", "display clock", "board limit", "reliability",
)  # fmt: skip
"""nvmlClocksEventReason* (nvml.h), from bit 1 (0x2) on. Bit 0 means idle and is not throttling."""
DRIVER_MESSAGES = {
    4: "No permission to use the NVIDIA driver: check the rights of /dev/nvidia* (in a container: the NVIDIA runtime)",
    9: "No NVIDIA GPU seen: driver not loaded (modprobe nvidia; under WSL2 update the Windows driver)",
    12: "No NVIDIA GPU seen: no driver is installed (libnvidia-ml.so.1 not found)",
    17: "The operating system blocks the NVIDIA driver",
    18: "NVIDIA driver and library versions differ, the driver was updated while loaded: reboot (or reload the nvidia "
    "modules) before the next launch; running processes may continue",
    999: "The NVIDIA driver answers with an unknown error: look at dmesg for NVRM; in a container restart it (a "
    "systemctl daemon-reload on the host takes its GPUs away)",
}
"""NVML return codes of the whole driver."""

GPU_MESSAGES = {
    4: "no permission to read this GPU",
    15: "lost: it no longer answers on the bus; reboot to get it back",
    16: "needs a reset: end its processes, then nvidia-smi --gpu-reset, or reboot",
    999: "the driver answers with an unknown error",
}
"""NVML return codes of one GPU, before those of the driver."""


# Messages of the NVML child, and the readings that they become.


class Device(GpuReading, frozen=True, kw_only=True):
    """One GPU as the child read it ``age_s`` ago (``read`` False: the first reading has taken that long so far).

    ``code``: NVML's error code if the GPU could not be read. ``procs``: [pid, bytes] of each process on it. ``detail``:
    by field of GpuDetail; None: details are not read now.
    """

    code: int | None
    age_s: float
    read: bool
    uuid: str | None = None
    throttle_bits: int | None = None
    procs: tuple[tuple[int, int | None], ...] | None = None
    detail: dict[str, Any] | None = None
    users: tuple[GpuProcess, ...] | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """``opening``: the driver has not answered yet. ``error``: it cannot be used, and the child ends."""

    kind: Literal["opening", "gpus", "error"]
    gpus: tuple[Device, ...] = ()
    code: int = 0
    text: str = ""


class GpuList:
    """The GPUs with their last readings. A GPU that is lost or does not answer stays in the list."""

    def __init__(self) -> None:
        self._known: dict[int, GpuReading] = {}

    def answered(
        self, devices: tuple[Device, ...], *, limit_s: float, choice: GpuChoice, own_pids: frozenset[int] | None
    ) -> tuple[GpuReading, ...]:
        """Readings after a message. Values older than ``limit_s`` are unknown. ``own_pids`` None: not comparable."""
        readings, messages = {}, DRIVER_MESSAGES | GPU_MESSAGES
        for device in devices:
            reading = GpuReading(**{name: getattr(device, name) for name in GpuReading.__struct_fields__})
            known = self._known.get(device.index, reading)
            own = is_own(choice, device.index, device.uuid)
            if own is None and device.uuid is None:
                own = known.own  # its UUID was read before it was lost
            code, bits = device.code, device.throttle_bits
            trouble = None if code is None else messages.get(code, f"cannot be read (NVML {code})")
            if device.age_s > limit_s:
                known = msgspec.structs.replace(known, own=known.own if device.index in self._known else own)
                readings[device.index] = _without_values(known, f"no answer for {device.age_s:.0f} s")
                continue
            # None if the driver lists none or no amounts, or pids are not comparable.
            held = None if device.procs is None or own_pids is None else [m for p, m in device.procs if p in own_pids]
            readings[device.index] = msgspec.structs.replace(
                reading,
                own=own,
                pci=reading.pci or known.pci,
                name=reading.name or known.name,
                mem_total_bytes=known.mem_total_bytes if reading.mem_total_bytes is None else reading.mem_total_bytes,
                throttle=None if bits is None else tuple(w for n, w in enumerate(THROTTLE_WORDS, 1) if bits >> n & 1),
                own_mem_bytes=None if held is None or None in held else float(sum(m or 0 for m in held)),
                trouble=trouble,
            )
        for index in self._known.keys() - readings.keys():
            readings[index] = _without_values(self._known[index], "missing: the driver no longer lists it")
        self._known = readings
        return self.readings()

    def readings(self) -> tuple[GpuReading, ...]:
        return tuple(self._known[index] for index in sorted(self._known))

    def silent(self, trouble: str) -> tuple[GpuReading, ...]:
        self._known = {index: _without_values(known, trouble) for index, known in self._known.items()}
        return self.readings()


def _without_values(known: GpuReading, trouble: str) -> GpuReading:
    kept = {name: getattr(known, name) for name in ("index", "pci", "name", "mem_total_bytes", "own")}
    return GpuReading(**kept, trouble=trouble)


class GpuDetailReadings:
    """Makes a GpuDetails of a message that has details. Used by the sensor's thread."""

    def __init__(self) -> None:
        self._names = UserNames()
        self._shares = Rates()

    def of(self, devices: list[Device], t: float, *, own: AttemptTarget | None, comparable: bool) -> GpuDetails:
        """``own``: whose processes are own; ``comparable``: pids are those of this machine."""
        pids = None if not comparable else frozenset[int]() if own is None else tree_pids(own)
        self._shares.begin()
        listed = any(device.users is not None for device in devices)
        processes = tuple(self._processes(devices, pids))
        details = [device.detail or {} for device in devices]
        return GpuDetails(
            t=t,
            driver=next((each["driver"] for each in details if "driver" in each), None),
            cuda=next((each["cuda"] for each in details if "cuda" in each), None),
            gpus=tuple(
                msgspec.convert(
                    detail
                    | {name: getattr(device, name) for name in ("index", "fan_pct", "clock_mem_mhz")}
                    | {name: getattr(device, name) for name in ("pcie_received", "pcie_sent")},
                    GpuDetail,
                )
                for detail, device in zip(details, devices, strict=True)
            ),
            # Under WSL2 the driver lists nobody, also while a trainer uses the GPU.
            processes=processes if listed and (comparable or processes) else None,
        )

    def _processes(self, devices: list[Device], pids: frozenset[int] | None) -> Iterator[GpuProcess]:
        """``pids``: of the run; None: what the driver lists are pids of elsewhere."""
        cpu: dict[int, float | None] = {}
        for user in (user for device in devices for user in device.users or ()):
            if pids is None:
                yield user
                continue
            own, stat = user.pid in pids, read_process(user.pid)
            if stat is not None and user.pid not in cpu:
                cpu[user.pid] = self._shares.cpu_pct(stat, time.monotonic())
            yield msgspec.structs.replace(
                user,
                own=own,
                user=self._names.of(user.pid),
                cpu_pct=cpu.get(user.pid),
                rss_bytes=None if stat is None else stat.rss_bytes,
                age_s=None if stat is None else age_s(stat.start_ticks),
                command=None if not own and is_another_users(user.pid) else command_of(user.pid),
            )


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
STUCK_CHILDREN = 3
"""If this many children survive SIGKILL (they hang in the driver), no more are started."""
INITIAL_PID_NAMESPACE = "pid:[4026531836]"

Ending = Literal["answered", "refused", "silent", "stopped"]


def pids_are_comparable() -> bool:
    """Whether the driver reports pids of this namespace. In a container it reports the host's, under WSL2 none."""
    return link_of("/proc/self/ns/pid") == INITIAL_PID_NAMESPACE and not is_wsl()


class GpuSensor(Observer):
    """Puts a GpuSample every ``watch.interval_s``.

    A GPU that hangs or is lost stays in the sample with ``trouble``, and the others are read. If none answers, or there
    is no driver, the sample has ``trouble``, and new children are started with growing waits. ``own_gpus`` None: the
    trainer's ``CUDA_VISIBLE_DEVICES``, else all. ``command``: the program that reads the driver.
    ``trust_pids`` None: use the driver's pids if they are comparable. ``details``: shown while wanted.
    """

    name = "gpu"

    def __init__(
        self,
        *,
        watch: Watch,
        own_gpus: GpuChoice = None,
        trust_pids: bool | None = None,
        start_limit_s: float = START_LIMIT_S,
        backoff_s: tuple[float, ...] = BACKOFF_S,
        command: tuple[str, ...] = COMMAND,
        details: DetailDesk | None = None,
        tree: RunTree | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(**common)
        self._tree = tree or RunTree()
        self._watch = watch
        self._configured = own_gpus
        self._choice = own_gpus
        self._trust_pids = pids_are_comparable() if trust_pids is None else trust_pids
        self._start_limit_s = start_limit_s
        self._backoff_s = backoff_s
        self._command = command
        self._desk = details
        self._details = GpuDetailReadings()
        self._picture = GpuList()
        self._answered_s = 0.0
        self._said_s = 0.0
        self._refused = False
        self._abandoned: list[subprocess.Popen[bytes]] = []

    def follow(self, target: AttemptTarget | None) -> None:
        """Set the attempt whose GPUs and memory are marked as own."""
        if self._configured is None and target is not None:
            set_to = b"CUDA_VISIBLE_DEVICES="  # at its start
            found = [each for each in variables_of(target.trainer.pid) or () if each.startswith(set_to)]
            value = found[0].removeprefix(set_to).decode("utf-8", "replace") if found else None
            self._choice = parse_visible_devices(value)
        super().follow(target)

    # --- the thread ---

    def _run(self) -> None:
        self._answered_s = time.monotonic()
        failures = 0
        ending: Ending = "silent"
        while not self._stopping:
            self._abandoned = [child for child in self._abandoned if child.poll() is None]
            ending = "silent"
            if len(self._abandoned) < STUCK_CHILDREN:
                try:
                    ending = self._use_child()
                except Exception as fault:
                    ending = "refused"
                    self._answered_s = time.monotonic()
                    self._put(self._picture.silent("cannot be read"), f"GPU telemetry failed ({fault})")
            if ending == "silent":
                self._refused = False
            failures = 1 if ending == "answered" else failures + 1
            self._rest(self._backoff_s[min(failures, len(self._backoff_s) - 1)], silent=ending != "refused")

    def _understand(self, line: bytes) -> Ending | None:
        """Put what a message says. Returns how the child ends by it, or that a GPU answered; None: neither.

        A refusal counts as an answer, and stands until the driver is being asked again or nothing is heard of it.
        """
        if self._refused:
            self._refused = False
            self._answered_s = time.monotonic()
        message = msgspec.json.decode(line, type=Message)
        if message.kind == "error":
            self._refused = True
            self._answered_s = time.monotonic()
            found = DRIVER_MESSAGES.get(message.code)
            trouble = found or f"The NVIDIA driver cannot be used: {message.text} (NVML {message.code})"
            self._put(self._picture.silent(trouble), trouble)
            return "refused"
        return "answered" if message.kind == "gpus" and self._take(message.gpus) else None

    def _rest(self, seconds: float, *, silent: bool) -> None:
        """Wait before the next child. ``silent``: report meanwhile that there is no answer."""
        until = time.monotonic() + seconds
        while not self._stopping and (left := until - time.monotonic()) > 0:
            self._pause(min(left, self._watch.interval_s))
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
            if self._desk is not None and self._desk.wanted() and child.stdin is not None:
                with contextlib.suppress(OSError):
                    os.write(child.stdin.fileno(), b"d")
            self._pause(min(LATE_FACTOR * self._watch.interval_s, self._watch.gpu_timeout_s), fd)
            data: bytes | None = None
            with contextlib.suppress(BlockingIOError):
                data = os.read(fd, 65536)
            *lines, held = (held + (data or b"")).split(b"\n")
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

    def _take(self, devices: tuple[Device, ...]) -> bool:
        """Put a sample of these readings. Returns whether a GPU answered."""
        limit_s, target = self._watch.gpu_timeout_s, self.target
        detailed = [d for d in devices if d.detail is not None and d.code is None and d.age_s <= limit_s]
        if detailed and self._desk is not None and self._desk.wanted():
            own = target if self._trust_pids else None
            self._desk.put(self._details.of(detailed, self._clock.now(), own=own, comparable=self._trust_pids))
        own_pids = None
        if target is not None and self._trust_pids:
            own_pids = frozenset(self._tree.look(target, max_age_s=1.0))
        readings = self._picture.answered(devices, limit_s=limit_s, choice=self._choice, own_pids=own_pids)
        if devices and not any(device.read and device.age_s <= limit_s for device in devices):
            return False
        self._answered_s = time.monotonic()
        self._put(readings, None if devices else "No NVIDIA GPU seen: the driver is loaded but lists none")
        return True

    def _put_no_answer(self) -> None:
        """Put a sample without values once per interval, if there was no answer for longer than the time limit.

        Not while a refusal stands: on a busy machine a new child takes seconds until it asks the driver.
        """
        if self._refused:
            return
        now = time.monotonic()
        silent_s = now - self._answered_s
        if silent_s > self._watch.gpu_timeout_s and now - self._said_s >= self._watch.interval_s:
            trouble = f"GPU telemetry has not answered for {silent_s:.0f} s"
            self._put(self._picture.silent(f"no answer for {silent_s:.0f} s"), trouble)

    def _put(self, readings: tuple[GpuReading, ...], trouble: str | None) -> None:
        self._said_s = time.monotonic()
        self._inbox.put(GpuSample(t=self._clock.now(), gpus=readings, trouble=trouble))

    def _pause(self, seconds: float, *descriptors: int) -> None:
        self._wakeup.wait(seconds, *descriptors)

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


# A simulated GPU for the demo. It follows the activity of the trainer's processes and is marked as simulated.

NAME = "Simulated GPU 16 GB"
TOTAL_BYTES = 16_376 * 2**20
IDLE_BYTES = 400 * 2**20
TRAINING_BYTES = 14_900 * 2**20
"""Memory of a typical SDXL LoRA training on a 16 GB GPU: 91 %."""
POWER_LIMIT_W = 320.0
IDLE_W, BUSY_W = 22.0, 285.0
AMBIENT_C, BUSY_C = 34.0, 67.0
BUSY_S = 2.0
"""A trainer that used CPU within this time is busy. The demo's trainer uses a clock tick every half second, a hung one
none."""
WARMING_S, FILLING_S, DRAINING_S = 12.0, 1.5, 0.6


class SimulatedGpu(Sampler):
    """Puts a GpuSample(simulated=True) with one GPU every ``interval_s``."""

    name = "simulated GPU"

    def __init__(self, *, interval_s: float, **common: Unpack[Common]) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._activity = TreeActivity()
        self._followed: AttemptTarget | None = None
        self._looked_t: float | None = None
        self._busy_until_t = 0.0
        self._mem, self._temp_c, self._power_w = float(IDLE_BYTES), AMBIENT_C, IDLE_W

    def sample(self) -> None:
        """Read the trainer's activity and advance the state. Memory is released soon after the attempt's end."""
        target, t = self.target, self._clock.now()
        if target != self._followed:
            self._followed, self._activity, self._looked_t, self._busy_until_t = target, TreeActivity(), None, 0.0
        tree = {} if target is None else tree_of(target, all_processes())
        if self._activity.update({pid: Member(stat, None) for pid, stat in tree.items()}).ticks > 0:
            self._busy_until_t = t + BUSY_S
        seconds = self._interval_s if self._looked_t is None else t - self._looked_t
        self._looked_t = t
        alive = any(stat.state not in "ZX" for stat in tree.values())
        wave = 3.0 * math.sin(t * 0.9) + 2.0 * math.sin(t * 0.23)
        util = round(94.0 + wave) if alive and t < self._busy_until_t else 0
        load = util / 100.0

        def towards(value: float, goal: float, time_constant_s: float) -> float:
            return goal + (value - goal) * math.exp(-max(0.0, seconds) / time_constant_s)

        held, quick_s = (TRAINING_BYTES, FILLING_S) if alive else (IDLE_BYTES, DRAINING_S)
        self._mem = towards(self._mem, held, quick_s)
        self._temp_c = towards(self._temp_c, AMBIENT_C + load * (BUSY_C - AMBIENT_C), WARMING_S)
        self._power_w = towards(self._power_w, IDLE_W + load * (BUSY_W - IDLE_W), 0.5)
        gpu = GpuReading(
            index=0,
            util_pct=float(util),
            mem_used_bytes=self._mem,
            mem_total_bytes=float(TOTAL_BYTES),
            temp_c=round(self._temp_c, 1),
            power_w=round(self._power_w, 1),
            power_limit_w=POWER_LIMIT_W,
            own=True,
            name=NAME,
            clock_mhz=2500.0 if util else 210.0,
            throttle=(),
            own_mem_bytes=max(0.0, self._mem - IDLE_BYTES),
        )
        self._inbox.put(GpuSample(t=t, gpus=(gpu,), simulated=True))
