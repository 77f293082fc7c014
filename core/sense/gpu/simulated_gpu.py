"""A simulated GPU for the demo. It follows the activity of the trainer's processes and is marked as simulated."""

import math
from typing import Unpack

import msgspec

from ...model.observation import GpuReading, GpuSample
from ...model.supervision_ports import AttemptTarget
from ..process.proc_stat import read_all
from ..process.process_tree import Member, TreeActivity
from ..process.run_tree import tree_of
from ..sampler import Common, Sampler

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
    """Puts a GpuSample(simulated=True) with ``count`` equal GPUs every ``interval_s``."""

    name = "simulated GPU"

    def __init__(self, *, interval_s: float, count: int = 1, **common: Unpack[Common]) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._count = count
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
        tree = {} if target is None else tree_of(target, read_all())
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
        gpus = tuple(msgspec.structs.replace(gpu, index=index) for index in range(self._count))
        self._inbox.put(GpuSample(t=t, gpus=gpus, simulated=True))
