"""Looks several times at where the busy threads of a process tree are: in a loop that changes nothing, or on the move.

Or in one call in which they wait for their GPU, if that is asked for (loop_looks.py).

A loop that changes nothing is a ``while`` in the source whose test and body only read, and in which the thread is in
every look: it ends only if somebody else changes what it reads. Or it asks the standard library again and again (an
event, a queue, a path), keeps no answer, and every look finds it there. A thread that computes is elsewhere in the next
look, keeps results, or is inside one long call; none of these is such a loop, however long it takes.

What takes little of the tree's processor time is not looked at: it waits. Processor time is measured for each thread,
so that a loop which polls for the work of another thread or process is not taken for the whole. Standard library only:
the stack probe imports this.
"""

import ast
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ... import processes
from ...bound_process import NoAnswerError, answer
from ..stop_sequence import STOPPED_STATES

PROCESSES = 16
"""Most processes that are looked at, the trainer first. A hang is visible in the first few."""
LOOKS = 8
"""Looks of one request."""
BUSY_SHARE = 0.1
"""Share of the processor time of the whole tree from which a thread is busy; less is a metrics thread."""
LEAST_TICKS = 2
"""Ticks of processor time (1/100 s) that make a thread busy at least."""
MOVING = 4
"""Innermost functions, in the looks at one thread, from which it moves through its program."""
SOURCE_BYTES = 4 << 20
CLOCK_S = 1.0
"""By how much the clocks of a file system and of the processes may differ."""
STANDARD = re.compile(r"/lib(?:64)?/python3[^/]*/(?!(?:site|dist)-packages/)|^<frozen ")
"""File of a module of the standard library."""
INSTALLED = re.compile(r"/lib(?:64)?/python3[^/]*/|/(?:site|dist)-packages/|^<frozen ")
"""File of the standard library or of an installed package."""
ASKING = re.compile(
    r"(?:^|/)(?:threading|queue|selectors|socket|ssl|subprocess|genericpath|posixpath|pathlib|weakref|"
    r"(?:multiprocessing|asyncio|concurrent)/[\w/]+)\.py$|^<frozen (?:genericpath|posixpath|os)>$"
)
"""Modules of the standard library that are asked whether something has come."""


class Frame(NamedTuple):
    """``name``: with its classes, as far as py-spy knows them."""

    name: str
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.name} ({os.path.basename(self.file)}:{self.line})"  # noqa: PTH119

    @property
    def asks(self) -> bool:
        return STANDARD.search(self.file) is not None and ASKING.search(self.file) is not None


Stack = tuple[Frame, ...]
"""Innermost first."""


def look(request: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a request of ``capture.look_for_loops``. Blocks ``pause_s`` and the time of the looks.

    Returns ``loops`` ({pid: where its loop is}), ``waits`` ({pid: the call in which it waits for its GPU}), ``polls``
    (a loop asks for something), ``elsewhere`` (a sentence: what is busy and in neither; empty if nothing is),
    ``moving`` (a busy thread moves through its program), ``unread`` (no stack could be read), ``looks``.
    """
    alive = [p for key in request["keys"][:PROCESSES] if (p := processes.living(key)) is not None]
    spy, pause_s = request["py_spy"], request["pause_s"] / LOOKS
    until = time.monotonic() + request["budget_s"]
    before = {process.pid: _ticks(process.pid) for process in alive}
    failed, looks, hot = "" if spy is not None else "py-spy was not found", 0, list[tuple[int, int]]()
    looked_at: list[processes.Process] = []
    if not failed:
        time.sleep(pause_s)
        busy = {pid for pid, _ in _busy({process.pid: _ticks(process.pid) for process in alive}, before)}
        looked_at = [process for process in alive if process.pid in busy] or alive[:1]
    seen: dict[tuple[int, int], list[Stack]] = {}
    while looks < LOOKS and not failed and time.monotonic() < until:
        for process in looked_at:
            stacks = _dump_of_moving(spy, process, until)
            failed = failed or ("" if stacks else f"process {process.pid} ({process.name}) shows no Python stack")
            for thread, stack in stacks.items():
                seen.setdefault((process.pid, thread), []).append(stack)
        looks += 1
        time.sleep(pause_s)
    if spy is not None:
        hot = _busy({process.pid: _ticks(process.pid) for process in alive}, before)
    sources = {process.pid: _sources_of(process) for process in alive}
    still: dict[int, list[int]] = {}  # busy threads that were in one call in all looks
    for pid, thread in () if failed else hot:
        each = seen.get((pid, thread), [])
        if len(each) == looks and len(set(each)) == 1:
            still.setdefault(pid, []).append(thread)
    native_s = request.get("native_s", 0.0)
    waiting = waiting_for_gpu(spy, still, native_s) if native_s > 0.0 else set()
    loops: dict[str, str] = {}
    waits: dict[str, str] = {}
    elsewhere, moving, polls = failed, False, False
    for pid, thread in hot:
        found = seen.get((pid, thread), [])
        if (pid, thread) in waiting:
            waits[str(pid)] = call_of(found[-1])
            continue
        loop = loop_of(found, sources[pid]) if len(found) == looks else None
        if loop is not None:
            loops[str(pid)], polls = loop.place, polls or loop.polls
            continue
        moving = moving or len({(f.name, f.file) for stack in found for f in own_frames(stack)[:1]}) >= MOVING
        inner = found[-1][0].place if found else "outside Python"
        elsewhere = elsewhere or f"thread {thread} of process {pid} is busy in no such loop: {inner}"
    return {
        "loops": loops,
        "waits": waits,
        "polls": polls,
        "elsewhere": elsewhere or ("" if loops or waits else "nothing is busy"),
        "moving": moving,
        "unread": bool(failed),
        "looks": looks,
    }


class Loop(NamedTuple):
    """``polls``: it asks the standard library for something, which may still come."""

    place: str
    polls: bool


def loop_of(stacks: list[Stack], read: Callable[[str], str | None]) -> Loop | None:
    """Return where the loop that changes nothing is, if all looks at a thread found it there. ``read``: a source."""
    own = [own_frames(stack) for stack in stacks]
    if len(stacks) < 2 or not all(own):
        return None
    if len({(frames[0].name, frames[0].file, frames[1:]) for frames in own}) > 1:
        return None
    name, file, _ = own[0][0]
    source = read(file)
    loop = None if source is None else enclosing_while(source, name, [frames[0].line for frames in own])
    if loop is None:
        return None
    asked = [len(frames) < len(stack) for frames, stack in zip(own, stacks, strict=True)]
    # One look inside what it asks and one elsewhere: it is no single long call.
    polls = any(asked) and len(set(stacks)) > 1 and only_asks(loop)
    if polls or (not any(asked) and only_reads(loop)):
        return Loop(Frame(name, file, loop.lineno).place, polls)
    return None


def call_of(stack: Stack) -> str:
    """Return the innermost call, and the user's own line that made it if the call is in an installed package."""
    own = next((frame for frame in stack if not INSTALLED.search(frame.file)), stack[0])
    return stack[0].place if own is stack[0] else f"{stack[0].place}, called by {own.place}"


def own_frames(stack: Stack) -> Stack:
    """Return the frames from the innermost one that does not ask the standard library; empty if all do."""
    first = next((at for at, frame in enumerate(stack) if not frame.asks), len(stack))
    return stack[first:]


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
READS = (
    ast.While, ast.If, ast.Pass, ast.Continue, ast.Break, ast.Expr, ast.Name, ast.Attribute, ast.Constant, ast.BoolOp,
    ast.UnaryOp, ast.Compare, ast.Subscript, ast.Load, ast.boolop, ast.unaryop, ast.cmpop,
)  # fmt: skip
"""Syntax that changes nothing and takes no time."""
ASKS = (*READS, ast.Call, ast.keyword, ast.Try, ast.ExceptHandler, ast.Tuple)
"""Syntax that keeps no result."""


def enclosing_while(source: str, function: str, lines: list[int]) -> ast.While | None:
    """Return the innermost ``while`` of the function that holds all these lines."""
    try:
        node: ast.AST = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    scope, loop = "<module>", None
    while True:
        inner = next((child for child in _children(node) if _holds(child, lines)), None)
        if inner is None:
            break
        if isinstance(inner, SCOPES):
            scope, loop = getattr(inner, "name", "<lambda>"), None
        elif isinstance(inner, ast.While):
            loop = inner
        node = inner
    return loop if scope == function.rpartition(".")[2] else None


def _children(node: ast.AST) -> Iterable[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if hasattr(child, "lineno"):
            yield child
        else:
            yield from _children(child)


def _holds(node: ast.AST, lines: list[int]) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", None) or 0
    return first <= min(lines) and max(lines) <= last


def only_reads(loop: ast.While) -> bool:
    """Return whether neither its test nor its body calls anything or keeps anything."""
    return all(isinstance(node, READS) for node in ast.walk(loop))


def only_asks(loop: ast.While) -> bool:
    """Return whether it may call functions, but keeps none of their results."""
    return all(isinstance(node, ASKS) for node in ast.walk(loop))


def _dump_of_moving(spy: str, process: processes.Process, until: float) -> dict[int, Stack]:
    """Stacks of the threads of a process by their native id; empty if there are none to see.

    Once more if it failed: a stack that changes while it is read gives none.
    """
    for _ in range(2):
        limit_s = max(0.1, until - time.monotonic())
        text = dump(spy, process, limit_s, [], options=("--full-filenames", "--json"))
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = {
                thread: tuple(Frame(str(f["name"]), str(f["filename"]), int(f["line"])) for f in frames)
                for thread, frames in frames_by_thread(text or "").items()
                if frames
            }
            if found:
                return found
    return {}


def _ticks(pid: int) -> dict[int, int]:
    """Processor time of each thread, in ticks."""
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
                found[int(thread)] = int(fields[11]) + int(fields[12])
    return found


def _busy(now: Mapping[int, dict[int, int]], before: Mapping[int, dict[int, int]]) -> list[tuple[int, int]]:
    """(pid, thread) of the threads that used processor time in between."""
    used = {
        (pid, thread): ticks - before.get(pid, {}).get(thread, 0)
        for pid, threads in now.items()
        for thread, ticks in threads.items()
    }
    least = max(LEAST_TICKS, BUSY_SHARE * sum(used.values()))
    return [key for key, ticks in used.items() if ticks >= least]


def _sources_of(process: processes.Process) -> Callable[[str], str | None]:
    """Reads source files as the process sees them; None for one changed after its start: it is not what runs."""
    root, cwd = f"/proc/{process.pid}/root", processes.link_of(f"/proc/{process.pid}/cwd")
    started = time.time() - processes.age_s(process.start_ticks)

    def read(file: str) -> str | None:
        with contextlib.suppress(OSError), open(root + os.path.join(cwd, file), "rb") as source:  # noqa: PTH118, PTH123
            about = os.fstat(source.fileno())
            if about.st_mtime <= started + CLOCK_S and about.st_size <= SOURCE_BYTES:
                return source.read().decode("utf-8", "replace")
        return None

    return read


# Whether a busy thread only waits for its GPU: its innermost native frames are in the driver's library.
#
# A thread in ``item()``, ``synchronize()`` or a copy uses a whole core until its GPU is done, because CUDA polls by
# default. Its Python stack is one line, as that of a long computation is. Seen on an H200 (driver 580, PyTorch 2.11)
# with ``py-spy dump --native``: a wait is in ``libcuda.so``, now and then in a clock of the vDSO or of libc called by
# it; a sort on the CPU is in ``libtorch_cpu.so``. A wait that sleeps uses no processor time and needs no such look.

DRIVER = re.compile(r"^libcuda(?:_loader)?\.so")
"""The driver's library; the loader is that of WSL2."""
CLOCKS = re.compile(r"^\[vdso\]$|^(?:__)?(?:clock_gettime|sched_yield)$")
"""What a poll of the driver calls: a file or the name of a function."""
TRIES = 3
"""Most dumps of one process: py-spy cannot always unwind what is below the vDSO."""
UNKNOWN = "?"
"""File of a frame that py-spy could not place."""
STOPPED = 4
"""Most processes that are stopped for a look: a rank that waits does so like the others."""


def waiting_for_gpu(spy: str, threads: Mapping[int, Iterable[int]], limit_s: float) -> set[tuple[int, int]]:
    """Return which of these threads, by process, wait for a GPU. Blocks at most ``limit_s``.

    Stops each process for about a second while its native frames are read. None are found if there are more than
    ``STOPPED``, or if a process cannot be read: what was not looked at may work.
    """
    found: set[tuple[int, int]] = set()
    until = time.monotonic() + limit_s
    for pid, wanted in threads.items() if len(threads) <= STOPPED else ():
        unclear = set(wanted)
        for _ in range(TRIES):
            process, left_s = processes.read_process(pid), until - time.monotonic()
            if not unclear or process is None or left_s <= 0.0:
                break
            frames = frames_by_thread(dump(spy, process, left_s, [], native=True, options=("--json",)) or "")
            seen = {thread: waits(frames.get(thread, [])) for thread in unclear}
            found |= {(pid, thread) for thread, waiting in seen.items() if waiting}
            unclear = {thread for thread, waiting in seen.items() if waiting is None}
    return found


def frames_by_thread(text: str) -> dict[int, list[dict[str, Any]]]:
    """Return the frames of each native thread id in a JSON dump, innermost first; none if it cannot be read."""
    try:
        return {int(each["os_thread_id"]): each["frames"] for each in json.loads(text) if each["os_thread_id"]}
    except (ValueError, KeyError, TypeError):
        return {}


def waits(frames: Iterable[Mapping[str, Any]]) -> bool | None:
    """Return whether the innermost frame, clocks left aside, is in the driver's library; None if unknown."""
    for frame in frames:
        file = str(frame.get("module") or frame.get("filename") or UNKNOWN).rpartition("/")[2]
        if file == UNKNOWN:
            return None
        if not (CLOCKS.search(file) or CLOCKS.search(str(frame.get("name")))):
            return DRIVER.search(file) is not None
    return None


# Runs py-spy on one process, and lets go of the process whatever py-spy does.


def find_py_spy() -> str | None:
    """Path of py-spy beside this Python, else on PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def dump(
    spy: str,
    process: processes.Process,
    timeout_s: float,
    notes: list[str],
    *,
    native: bool = False,
    options: Sequence[str] = (),
) -> str | None:
    """py-spy's dump of one process without stopping it; None and a note if that fails.

    ``native``: with native frames, for which every thread is stopped for some milliseconds. ``options``: more of
    ``py-spy dump``.
    """
    before = processes.read_process(process.pid)
    if before is None or before.start_ticks != process.start_ticks:
        return None
    try:
        # --nonblocking: stopping every thread has hung trainers and left them in state T (py-spy issues 390, 872).
        how = "--native" if native else "--nonblocking"
        text = answer([spy, "dump", how, *options, "--pid", str(process.pid)], timeout_s)
    except NoAnswerError as fault:
        late = f"py-spy took more than {timeout_s:g} s on process {process.pid} ({process.name})"
        told = {"late": late, "failed": _refusal(process, fault.said)}
        notes.append(told.get(fault.kind, f"py-spy could not be started: {fault}"))
        return None
    finally:
        after = processes.read_process(before.pid)
        if after is not None and after.state in STOPPED_STATES and before.state not in STOPPED_STATES:
            with contextlib.suppress(PermissionError):
                processes.send_signal(before.key, signal.SIGCONT)
                notes.append(f"py-spy left process {before.pid} stopped; it was continued")
    if text.strip():
        return text
    notes.append(_refusal(process, ""))
    return None


def _refusal(process: processes.Process, words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    reason = lines[0].removeprefix("Error: ") if lines else "no output"
    if "ermission" in words:
        return (
            f"py-spy may not trace process {process.pid} ({process.name}): {reason.partition(':')[0]} "
            "(kernel.yama.ptrace_scope; in a container it needs the capability SYS_PTRACE); "
            "its /proc files were kept instead"
        )
    return f"py-spy got no stack of process {process.pid} ({process.name}): {reason}"
