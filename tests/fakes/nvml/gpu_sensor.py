"""A hand-written GPU sensor: says what a scenario says, without driver, process or thread of its own."""

import msgspec

from trainwatch.core.model.observation import GpuReading, GpuSample
from trainwatch.core.model.supervision_ports import AttemptTarget, Clock, Inbox

GB = 1e9


class FakeGpuSensor:
    """Puts one GpuSample for each change of scenario, and one for each ``again``."""

    def __init__(self, *, inbox: Inbox, clock: Clock, own_gpus: tuple[int, ...] | None = None) -> None:
        self._inbox = inbox
        self._clock = clock
        self._own = own_gpus
        self._sample = GpuSample(t=0.0)
        self._started = False

    def start(self) -> None:
        self._started = True
        self.again()

    def follow(self, target: AttemptTarget | None) -> None:
        """Needs nothing of it."""

    def stop(self) -> None:
        self._started = False

    def again(self) -> None:
        """Say it once more, now."""
        if self._started:
            self._inbox.put(msgspec.structs.replace(self._sample, t=self._clock.now()))

    def gpus(self, count: int, *, util_pct: float = 12.0, power_w: float | None = 38.5) -> None:
        """So many healthy GPUs."""
        self._show(
            tuple(
                GpuReading(
                    index=index,
                    util_pct=util_pct,
                    mem_used_bytes=1.4 * GB,
                    mem_total_bytes=17.2 * GB,
                    temp_c=46.0,
                    power_w=power_w,
                    power_limit_w=None if power_w is None else 320.0,
                    own=True if self._own is None else index in self._own,
                    name="NVIDIA GeForce RTX 4080",
                    clock_mhz=2505.0,
                    throttle=(),
                )
                for index in range(count)
            )
        )

    def lose(self, lost: int) -> None:
        """One GPU falls off the bus."""
        self._show(
            tuple(self._only_trouble(g, "lost: reboot to get it back") if g.index == lost else g for g in self._gpus())
        )

    def hang_one(self, hung: int, silent_s: float) -> None:
        """Calls on one GPU do not return."""
        self._show(
            tuple(
                self._only_trouble(g, f"no answer for {silent_s:.0f} s") if g.index == hung else g for g in self._gpus()
            )
        )

    def hang(self, silent_s: float) -> None:
        """Show what the sensor reports if no call of NVML returns for ``silent_s`` seconds."""
        self._show(
            tuple(self._only_trouble(g, f"no answer for {silent_s:.0f} s") for g in self._gpus()),
            f"GPU telemetry has not answered for {silent_s:.0f} s",
        )

    def refuse(self, trouble: str) -> None:
        """The driver cannot be used."""
        self._show(tuple(self._only_trouble(g, trouble) for g in self._gpus()), trouble)

    def _gpus(self) -> tuple[GpuReading, ...]:
        return self._sample.gpus

    def _only_trouble(self, g: GpuReading, trouble: str) -> GpuReading:
        return GpuReading(index=g.index, name=g.name, mem_total_bytes=g.mem_total_bytes, own=g.own, trouble=trouble)

    def _show(self, gpus: tuple[GpuReading, ...], trouble: str | None = None) -> None:
        self._sample = GpuSample(t=0.0, gpus=gpus, trouble=trouble)
        self.again()
