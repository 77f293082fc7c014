"""A simulated GPU for the demo. It follows the activity of the trainer's processes and is marked as simulated."""

import math

import msgspec

from ...model.observation import GpuReading, GpuSample
from ...model.supervision_ports import AttemptTarget, Clock, Inbox
from ..process.proc_stat import read_all
from ..process.process_tree import Member, TreeActivity
from ..process.run_tree import tree_of
from ..sampler import OnProblem, Sampler, ignore_problem

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


class SimulatedState(msgspec.Struct, frozen=True, kw_only=True):
    """State of the GPU at one time."""

    util_pct: float = 0.0
    mem_used_bytes: float = float(IDLE_BYTES)
    temp_c: float = AMBIENT_C
    power_w: float = IDLE_W


def advance(state: SimulatedState, *, seconds: float, t: float, alive: bool, busy: bool) -> SimulatedState:
    """The state ``seconds`` later, at time ``t``. Memory is released soon after the attempt's end."""
    wave = 3.0 * math.sin(t * 0.9) + 2.0 * math.sin(t * 0.23)
    util = min(100.0, max(0.0, 94.0 + wave)) if busy and alive else 0.0
    held = TRAINING_BYTES if alive else IDLE_BYTES
    load = util / 100.0
    return SimulatedState(
        util_pct=round(util),
        mem_used_bytes=_towards(state.mem_used_bytes, held, seconds, FILLING_S if alive else DRAINING_S),
        temp_c=_towards(state.temp_c, AMBIENT_C + load * (BUSY_C - AMBIENT_C), seconds, WARMING_S),
        power_w=_towards(state.power_w, IDLE_W + load * (BUSY_W - IDLE_W), seconds, 0.5),
    )


def _towards(value: float, goal: float, seconds: float, time_constant_s: float) -> float:
    return goal + (value - goal) * math.exp(-max(0.0, seconds) / time_constant_s)


class SimulatedGpu(Sampler):
    """Puts a GpuSample(simulated=True) with ``count`` equal GPUs every ``interval_s``."""

    name = "simulated GPU"

    def __init__(
        self, *, inbox: Inbox, clock: Clock, interval_s: float, count: int = 1, on_problem: OnProblem = ignore_problem
    ) -> None:
        super().__init__(interval_s=interval_s, on_problem=on_problem)
        self._inbox = inbox
        self._clock = clock
        self._count = count
        self._state = SimulatedState()
        self._activity = TreeActivity()
        self._followed: AttemptTarget | None = None
        self._looked_t: float | None = None
        self._busy_until_t = 0.0

    def sample(self) -> None:
        """Read the trainer's activity and advance the state."""
        target, t = self.target, self._clock.now()
        if target != self._followed:
            self._followed, self._activity = target, TreeActivity()
            self._looked_t = None
            self._busy_until_t = 0.0
        tree = {} if target is None else tree_of(target, read_all())
        done = self._activity.update({pid: Member(stat, None) for pid, stat in tree.items()})
        seconds = self._interval_s if self._looked_t is None else t - self._looked_t
        if done.ticks > 0:
            self._busy_until_t = t + BUSY_S
        self._looked_t = t
        alive = any(stat.state not in "ZX" for stat in tree.values())
        self._state = advance(self._state, seconds=seconds, t=t, alive=alive, busy=t < self._busy_until_t)
        self._inbox.put(
            GpuSample(t=t, gpus=tuple(self._reading(index) for index in range(self._count)), simulated=True)
        )

    def _reading(self, index: int) -> GpuReading:
        return GpuReading(
            index=index,
            util_pct=self._state.util_pct,
            mem_used_bytes=self._state.mem_used_bytes,
            mem_total_bytes=float(TOTAL_BYTES),
            temp_c=round(self._state.temp_c, 1),
            power_w=round(self._state.power_w, 1),
            power_limit_w=POWER_LIMIT_W,
            own=True,
            name=NAME,
            clock_mhz=2500.0 if self._state.util_pct else 210.0,
            throttle=(),
            own_mem_bytes=max(0.0, self._state.mem_used_bytes - IDLE_BYTES),
        )
