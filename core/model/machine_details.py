"""What the GPU page and the host page show beyond the samples. It is read only while one of them is open.

For people: nothing is decided by it, and no trace, journal or history has it. Samples have fan, memory clock and PCIe
rates, too, for charts. None is unknown, never 0.
"""

import msgspec


class GpuDetail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU. Clocks in MHz, temperatures in °C, PCIe in bytes a second, ECC errors since the driver was loaded."""

    index: int
    clock_sm_mhz: float | None = None
    clock_sm_max_mhz: float | None = None
    clock_mem_mhz: float | None = None
    clock_mem_max_mhz: float | None = None
    mem_util_pct: float | None = None
    """Share of the time in which the memory was read or written."""
    fan_pct: float | None = None
    slowdown_c: float | None = None
    """Temperature at which the hardware slows down."""
    shutdown_c: float | None = None
    mem_temp_c: float | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_received: float | None = None
    pcie_sent: float | None = None
    ecc: bool | None = None
    """Whether error correction is on."""
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    rows_remapped: int | None = None
    """Rows of the memory that were replaced for errors; ``rows_pending``: more wait for a reset."""
    rows_pending: bool | None = None


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process on a GPU. ``own``: of the run; None = pids of the driver are not those of this machine.

    ``kind``: C, G or CG (computes, draws). ``sm_pct``: its share of the GPU's time. ``cpu_pct``: 100 is one core.
    """

    gpu: int
    pid: int
    kind: str = "C"
    mem_bytes: float | None = None
    sm_pct: float | None = None
    mem_util_pct: float | None = None
    """Its share of the time in which the GPU's memory was read or written."""
    own: bool | None = None
    user: str | None = None
    cpu_pct: float | None = None
    rss_bytes: float | None = None
    age_s: float | None = None
    command: str | None = None


class GpuDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All GPUs at ``t`` run seconds. ``processes`` None: the driver does not list them (WSL2)."""

    t: float
    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[GpuDetail, ...] = ()
    processes: tuple[GpuProcess, ...] | None = None


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes a second of a disk or of a network interface. ``busy_pct``: share of the time that a disk was busy."""

    name: str
    received: float | None = None
    """Read, or received."""
    sent: float | None = None
    """Written, or sent."""
    busy_pct: float | None = None


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A file system of a local disk. Bytes; ``free``: what an ordinary user may still write."""

    path: str
    free: float
    total: float


class HostDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine at ``t`` run seconds; rates are over the time since the sample before."""

    t: float
    cores_pct: tuple[float | None, ...] = ()
    load: tuple[float, float, float] | None = None
    """Processes that run or wait, over 1, 5 and 15 minutes."""
    cpu_temp_c: float | None = None
    cpu_mhz: float | None = None
    """Mean of the cores."""
    ram_cached_bytes: float | None = None
    swap_in: float | None = None
    """Bytes a second that are read back from the swap; ``swap_out``: written to it."""
    swap_out: float | None = None
    disks: tuple[Traffic, ...] | None = None
    networks: tuple[Traffic, ...] | None = None
    mounts: tuple[Mount, ...] = ()
    up_s: float | None = None
    """Since the machine was started."""


class TreeProcess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process of the run. ``depth``: 0 for the trainer; rates in bytes a second."""

    pid: int
    depth: int = 0
    state: str = ""
    threads: int = 1
    cpu_pct: float | None = None
    rss_bytes: float | None = None
    read: float | None = None
    written: float | None = None
    age_s: float | None = None
    user: str | None = None
    command: str | None = None


class TreeDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The processes of the run at ``t`` run seconds, parents before children.

    ``others``: those of the machine that use most CPU or memory.
    """

    t: float
    processes: tuple[TreeProcess, ...] = ()
    others: tuple[TreeProcess, ...] = ()


class MachineDetails(msgspec.Struct, frozen=True, kw_only=True):
    gpus: GpuDetails | None = None
    host: HostDetails | None = None
    tree: TreeDetails | None = None


Detail = GpuDetails | HostDetails | TreeDetails
