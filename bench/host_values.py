"""Values of a machine that reads and writes all the time, for benchmarks."""

import random

from trainwatch.core.model.observation import HostSample

RAM_BYTES = 32e9


def host_sample(t: float, ram_used_bytes: float, most_swap_bytes: float, dice: random.Random) -> HostSample:
    """One second, in which every value changes."""
    return HostSample(
        t=t,
        ram_used_bytes=ram_used_bytes,
        ram_total_bytes=RAM_BYTES,
        ram_available_bytes=RAM_BYTES - ram_used_bytes,
        swap_used_bytes=dice.uniform(0, most_swap_bytes),
        disk_free_bytes=1e12 - t * 1e5,
        cpu_pct=dice.uniform(20, 90),
        psi_memory_pct=dice.random(),
        disk_read=dice.uniform(1e6, 1e9),
        disk_written=dice.uniform(1e6, 1e9),
        net_received=dice.uniform(1e3, 1e7),
        net_sent=dice.uniform(1e3, 1e7),
    )
