"""The details of a message of the NVML child: of each GPU, and of the processes on it with what /proc says of them."""

import time
from collections.abc import Iterator

import msgspec

from ...model.machine_details import GpuDetail, GpuDetails, GpuProcess
from ...model.ports.supervision import AttemptTarget, Clock, DetailDesk
from ..process.proc_stat import read_stat
from ..process.process_words import CpuShares, UserNames, age_of, command_of, is_another_users
from ..process.run_tree import tree_pids
from .gpu_readings import Device, Devices, User


class GpuDetailReadings:
    """Puts a GpuDetails for each message that has details, while somebody looks. Used by the sensor's thread."""

    def __init__(self, desk: DetailDesk, clock: Clock) -> None:
        self._desk = desk
        self._clock = clock
        self._names = UserNames()
        self._shares = CpuShares()

    def wanted(self) -> bool:
        """Whether somebody looks."""
        return self._desk.wanted()

    def take(self, devices: Devices, *, own: AttemptTarget | None, comparable: bool, limit_s: float) -> None:
        """Take a message. ``own``: whose processes are own; ``comparable``: pids are those of this machine.

        A GPU that has not answered for ``limit_s`` has no details.
        """
        found = [d for d in devices.gpus if d.detail is not None and d.code is None and d.age_s <= limit_s]
        if not found or not self._desk.wanted():
            return
        pids = None if not comparable else frozenset[int]() if own is None else tree_pids(own)
        self._shares.begin()
        listed = any(device.users is not None for device in found)
        processes = tuple(self._processes(found, pids, comparable=comparable))
        self._desk.put(
            GpuDetails(
                t=self._clock.now(),
                driver=next((d.driver for d in found if d.driver), None),
                cuda=next((d.cuda for d in found if d.cuda), None),
                gpus=tuple(msgspec.convert({**(d.detail or {}), "index": d.index}, GpuDetail) for d in found),
                # Under WSL2 the driver lists nobody, also while a trainer uses the GPU.
                processes=processes if listed and (comparable or processes) else None,
            )
        )

    def _processes(
        self, devices: list[Device], pids: frozenset[int] | None, *, comparable: bool
    ) -> Iterator[GpuProcess]:
        cpu: dict[int, float | None] = {}
        for device in devices:
            for user in device.users or ():
                own = None if pids is None else user.pid in pids
                yield (
                    self._process(device.index, user, own, cpu)
                    if comparable
                    else GpuProcess(gpu=device.index, pid=user.pid, kind=user.kind, mem_bytes=user.mem, sm_pct=user.sm)
                )

    def _process(self, gpu: int, user: User, own: bool | None, cpu: dict[int, float | None]) -> GpuProcess:
        stat = read_stat(user.pid)
        if stat is not None and user.pid not in cpu:
            cpu[user.pid] = self._shares.of(stat, time.monotonic())
        return GpuProcess(
            gpu=gpu,
            pid=user.pid,
            kind=user.kind,
            mem_bytes=user.mem,
            sm_pct=user.sm,
            mem_util_pct=user.mem_util,
            own=own,
            user=self._names.of(user.pid),
            cpu_pct=cpu.get(user.pid),
            rss_bytes=None if stat is None else stat.rss_bytes,
            age_s=None if stat is None else age_of(stat),
            command=None if own is not True and is_another_users(user.pid) else command_of(user.pid),
        )
