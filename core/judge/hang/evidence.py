"""What a verdict of a hang is told with: stack frames, signs of the GPUs, sentences."""

from collections.abc import Iterator
from typing import NamedTuple

from ...model.observation import Outcome
from ...model.run import Evidence, HangKind
from ...model.text import LazyPattern, plural, size
from ..scales import WHILE_S
from . import liveness
from .activity import GpuState
from .deadlines import HangInput
from .launcher import waiting
from .liveness import Liveness
from .ranks import silent

# The kind of a hang as the stack frames of the hung processes show it, whatever GPU and CPU looked like.
#
# Sources: py-spy dumps of hung DataLoaders (the main process waits in ``_try_get_data``: pytorch/pytorch issues 1355
# and 75147, RolnickLab/ami-data-companion issue 140), of collectives whose peers never come (NCCL watchdog reports),
# and of a GPU that does not finish its kernels (``cudaStreamSynchronize`` below ``item`` or ``synchronize``). A
# process that moved between the two looks proves nothing: a healthy training synchronises, too, but not for ten
# seconds in one place.


class Sign(NamedTuple):
    """The kind of hang that a stack shows. ``what``: a sentence of evidence."""

    kind: HangKind
    what: str


FRAMES: tuple[tuple[LazyPattern, HangKind, str], ...] = (
    (LazyPattern(r"_try_get_data\b"), "starved", "waits for a data loader worker that brings nothing"),
    (
        LazyPattern(r"\bp?nccl[A-Z]\w+|ProcessGroupNCCL|\b(?:all_reduce|all_gather\w*|barrier) \(torch/distributed"),
        "spin",
        "waits in a collective for other ranks",
    ),
    (
        LazyPattern(
            r"\b(?:cuda|cu)(?:Stream|Device|Event|Ctx)Synchronize|\bcu(?:da)?Memcpy\w*"
            r"|\bsynchronize \(torch/cuda/(?:__init__|streams)\.py|\(libcuda(?:_loader)?\.so"
        ),
        "spin",
        "waits for the GPU to finish its kernels",
    ),
)
"""Strongest first: a process that waits for data does so whatever else is on its stack."""


SAVE_FRAME = LazyPattern(r"(?:^|[.\s])_*(?:\w+_)?(?:save|serialize_file)(?:_\w+)? \(")
"""A function that saves: ``save (torch/serialization.py:967)``, ``save_checkpoint (train.py:49)``."""


def save_frame(outcome: Outcome | None) -> str:
    """Return the frame of a save in the captured stacks; "" if none shows one."""
    every = (frame for _, frames in _stacks(outcome, "frames") for frame in frames)
    return next((frame for frame in every if SAVE_FRAME.search(frame)), "")


def signs_of(outcome: Outcome | None) -> tuple[Sign, ...]:
    """Return the signs in the captured stacks of processes that did not move, strongest first."""
    found: list[tuple[int, Sign]] = []
    moved = {} if outcome is None else outcome.data.get("moved") or {}
    for pid, frames in _stacks(outcome, "native", "frames"):
        if moved.get(pid) is True:
            continue
        for rank, (pattern, kind, means) in enumerate(FRAMES):
            frame = next((frame for frame in frames if pattern.search(frame)), None)
            if frame is not None:
                found.append((rank, Sign(kind=kind, what=f"process {pid} {means}: {frame}")))
                break
    return tuple(sign for _, sign in sorted(found, key=lambda pair: pair[0])[:3])


def _stacks(outcome: Outcome | None, *parts: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each process that was captured, and its frames, those of the first part first."""
    tables = [] if outcome is None else [outcome.data.get(name) or {} for name in parts]
    for pid in tables[-1] if tables else ():
        yield pid, [str(frame) for table in tables for frame in table.get(pid) or ()]


# The evidence of a hang in sentences for the user: each names a sign of life and how long ago it was last seen.


def evidence_of(run: HangInput, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> tuple[Evidence, ...]:
    clock, seen, log, now = run.clock, run.liveness, run.log_activity, run.now
    lines = [*first, *(sentence for sentence in (silent(run.ranks, run.t), waiting(run.launcher)) if sentence)]
    if clock.beats == 0:
        lines.append(f"no step yet, {duration(now - clock.start)} after the start")
    else:
        usual = f"; usually one progress line every {clock.typical_s:.3g} s" if clock.typical_s is not None else ""
        at = f"step {run.step}" if run.step is not None else "the last step"
        lines.append(f"{at} was {duration(now - clock.last)} ago{usual}")
    if run.announced:
        lines.append(f"phase {log.phase}, announced {duration(now - log.phase_at)} ago")
    if run.save:
        lines.append(f"a save is in progress: {run.save}")
    lines.extend(_gpu_evidence(seen))
    if seen.process_at is not None and seen.cpu is not None:
        usual = f" (usually {seen.cpu_normal:.2f})" if seen.cpu_normal is not None else ""
        of = f" of {seen.procs} process{'es' * (seen.procs != 1)}" if seen.procs is not None else ""
        lines.append(f"CPU{of}: {seen.cpu:.2f} cores{usual}")
    if seen.read_bytes is not None or seen.write_bytes is not None:
        few = f"less than {size(liveness.IDLE_BYTES_PER_S)}/s"
        moved = seen.bytes_at
        none_yet = f"{few} read and written so far"
        lines.append(none_yet if moved is None else f"last bytes moved {duration(now - moved)} ago ({few} since)")
    if seen.sending.at is not None:
        lines.append(f"last traffic of its sockets {duration(now - seen.sending.at)} ago")
    if run.stopped_s is not None:
        lines.append(f"{stopped_in(run, 'has', 'have')} been stopped (state T) for {duration(run.stopped_s)}")
    if seen.blocked_from is not None:
        lines.append(f"a process has been blocked in the kernel (state D) for {duration(now - seen.blocked_from)}")
    if seen.silent_mounts:
        lines.append(f"does not answer: {', '.join(seen.silent_mounts)}")
    if seen.zombies > seen.zombies_normal:
        lines.append(
            f"{plural(seen.zombies, 'dead worker process was', 'dead worker processes were')} not collected (state Z)"
        )
    if seen.procs_normal is not None and seen.procs is not None and seen.procs < seen.procs_normal:
        lines.append(f"{plural(seen.procs_normal - seen.procs, 'process', 'processes')} fewer than usual")
    if run.question:
        lines.append(f'the log ends with a question: "{run.question}"')
    if run.still_prints:
        lines.append(
            f"the log grew by {plural(log.printed_lines, 'line')} since the last step, but the step does not advance"
        )
    return tuple(Evidence(what=what) for what in (*lines, *last))


def stopped_in(run: HangInput, one: str, several: str) -> str:
    """What of the run is stopped, and the verb for ``one`` or ``several``: the ranks if any are known to be."""
    names = [str(rank) for rank in run.pause.ranks] or ["some of its processes"]
    return f"{', '.join(names)} {one if len(run.pause.ranks) == 1 else several}"


def _gpu_evidence(seen: Liveness) -> list[str]:
    power = f"{seen.spin_seen_w:.0f} W" if seen.spin_seen_w is not None else "low power"
    words: dict[GpuState, str] = {
        "spin": f"near 100 % at {power}{{}}: it waits in a kernel",
        "pinned": "near 100 %, power unknown",
        "dim": "near 100 % without a gap, at less power than usual{}",
        "idle": "idle{}",
    }
    usual = ["" if normal.busy_w is None else f", usually {normal.busy_w:.0f} W" for normal in seen.normals]
    told = zip(seen.normals, seen.gpu, usual, strict=False)
    return [f"GPU {normal.index}: {words[state].format(watts)}" for normal, state, watts in told if state in words]


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < WHILE_S else f"{seconds / 60.0:.0f} min"
