"""Runs the user's evaluation of a checkpoint with the lowest priority, bounded in time and memory.

Each evaluation has a folder: ``stdout.txt``, ``stderr.txt``, ``ended.txt`` (what it did, written before
it is ended) and ``result.json``. A result that is there is not measured again, whatever the journal knows of it.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...bound_process import bound
from ...model.checkpoints.checkpoint import Checkpoint
from ...model.decision import EndEvaluation, EvaluateCheckpoint
from ...model.run import RunSpec
from ...model.text.edge import EDGE
from ...model.text.memory_words import memory
from ...model.text.score import read_score
from ...private_folder import make_private
from ..processes import ATTEMPT_VARIABLE, Process, send_signal
from .limits import MARK, behind_all, marked, memory_of, tree_of

POLL_S = 0.2
READ_BYTES = 200_000
"""End of its output in which the score is looked for."""
MOST_OUTPUT_BYTES = 64_000_000
"""Output above which it is ended: it would fill the disk of the run's records."""
DAMAGED = frozenset({"writing", "torn", "corrupt", "nonfinite"})

Performed = tuple[bool, str, dict[str, Any]]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """``result.json``. ``data``: of the outcome (``Measured`` of the judge)."""

    path: str
    mtime: float
    size_bytes: int
    ok: bool
    detail: str
    data: dict[str, Any]


class Evaluator:
    """Evaluations of one run, one at a time. ``folders``: where each has a folder, by the number of its decision.

    ``verify``: path, deep → verdict. ``write``: writes a file of the folder at once and wholly.
    """

    def __init__(
        self,
        *,
        spec: RunSpec,
        folders: Path,
        verify: Callable[[Path, bool], Checkpoint],
        base_env: Mapping[str, str],
        write: Callable[[Path, bytes], None],
    ) -> None:
        self._spec = spec
        self._folders = folders
        self._verify = verify
        self._base_env = base_env
        self._write = write
        self._lock = threading.Lock()
        self._ended: set[int] = set()

    def end(self, decision: EndEvaluation) -> Performed:
        """Let the evaluation end soon; its own outcome tells when it has."""
        self._ended.add(decision.of)
        return True, "it is being ended", {}

    def evaluate(self, decision: EvaluateCheckpoint) -> Performed:
        """Evaluate; blocks until it is done or ended. Raises nothing but bugs."""
        with self._lock:
            known = self._known(decision)
            if known is not None:
                return known.ok, known.detail, known.data
            try:
                return self._evaluate(decision)
            except OSError as error:
                named = f"{error.filename}: " if error.filename else ""
                return _unknown(f"it could not be run: {named}{error.strerror or error}")

    def _known(self, decision: EvaluateCheckpoint) -> Result | None:
        """The result of an evaluation whose outcome did not reach the journal."""
        with contextlib.suppress(OSError):
            for file in sorted(self._folders.glob("*/result.json"), reverse=True):
                with contextlib.suppress(OSError, msgspec.MsgspecError):
                    found = msgspec.json.decode(file.read_bytes(), type=Result)
                    if (found.path, found.mtime) == (decision.path, decision.mtime):
                        return found
        return None

    def _evaluate(self, decision: EvaluateCheckpoint) -> Performed:
        checkpoint = Path(decision.path)
        try:
            found = self._verify(checkpoint, True)
        except FileNotFoundError:
            return _unknown("it is gone")
        if found.mtime != decision.mtime:
            return _unknown("it was written to before its evaluation")
        if found.verdict in DAMAGED:
            return _unknown(f"it is not verified: {found.verdict}" + (f" ({found.reason})" if found.reason else ""))
        folder = self._folders / f"{decision.id:06d}"
        make_private(folder)
        began = time.monotonic()
        code, why, interrupted = self._run(decision, folder)
        took_s = round(time.monotonic() - began, 1)
        if interrupted:
            return False, why, {"interrupted": True, "why": why, "took_s": took_s, "folder": str(folder)}
        settings = self._spec.settings.evaluate
        score = read_score(EDGE.text(_tail(folder / "stdout.txt")), settings.metric, settings.score)
        if not why and code != 0:
            last = _last_line(folder / "stderr.txt")
            why = f"it ended with exit code {code}" + (f": {last}" if last else "")
        if not why and self._changed(checkpoint, found):
            why = "the checkpoint was written to during its evaluation"
        why = why or score.why
        data = {
            "metric": score.metric or settings.metric,
            "score": None if why else score.value,
            "values": {} if why else score.values,
            "why": why,
            "took_s": took_s,
            "folder": str(folder),
        }
        detail = why or f"{score.metric} {score.value:.6g}"
        result = Result(
            path=decision.path,
            mtime=decision.mtime,
            size_bytes=found.size_bytes,
            ok=not why,
            detail=detail,
            data=data,
        )
        self._write(folder / "result.json", msgspec.json.format(msgspec.json.encode(result)))
        return not why, detail, data

    def _changed(self, checkpoint: Path, before: Checkpoint) -> bool:
        """Whether it is not the one any more that was given to the command."""
        try:
            now = self._verify(checkpoint, False)
        except OSError:
            return True
        return (now.mtime, now.size_bytes) != (before.mtime, before.size_bytes)

    def _run(self, decision: EvaluateCheckpoint, folder: Path) -> tuple[int | None, str, bool]:
        """(exit code, why its score is unknown, whether it was ended for the training)."""
        env = {**self._environment(decision), MARK: str(folder)}
        argv = self._argv(decision)
        with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as errors:
            process = subprocess.Popen(
                bound(behind_all(argv), tree=True, cwd=self._spec.cwd, path=env.get("PATH")),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                cwd=self._spec.cwd,
                env=env,
                start_new_session=True,
            )
        deadline = time.monotonic() + decision.timeout_s
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(POLL_S), "", False
                why = self._over_limit(decision, process.pid, folder, deadline)
                if why:
                    _keep_evidence(folder, why, process.pid)
                    return None, why, decision.id in self._ended
        finally:
            _end(process, str(folder))

    def _over_limit(self, decision: EvaluateCheckpoint, pid: int, folder: Path, deadline: float) -> str:
        if decision.id in self._ended:
            return "it was ended for the training"
        if time.monotonic() > deadline:
            return f"it took more than {decision.timeout_s:g} s (evaluate.timeout_s) and was ended"
        taken = memory_of(tree_of(pid, str(folder)))
        if taken is not None and taken > decision.memory_bytes:
            limit, got = memory(decision.memory_bytes), memory(taken)
            return f"it took {got} of RAM, more than {limit} (evaluate.memory_bytes), and was ended"
        written = sum(_size(folder / name) for name in ("stdout.txt", "stderr.txt"))
        if written > MOST_OUTPUT_BYTES:
            return f"it printed more than {MOST_OUTPUT_BYTES / 1e6:.0f} MB and was ended"
        return ""

    def _argv(self, decision: EvaluateCheckpoint) -> list[str]:
        words = {
            "{checkpoint}": decision.path,
            "{step}": "" if decision.step is None else str(decision.step),
            "{output_dir}": self._spec.output_dir or "",
            "{run}": self._spec.name,
        }
        command = self._spec.settings.evaluate.command
        if isinstance(command, str):
            return ["sh", "-c", _filled(command, {name: shlex.quote(value) for name, value in words.items()})]
        return [_filled(word, words) for word in command]

    def _environment(self, decision: EvaluateCheckpoint) -> dict[str, str]:
        env = {**self._base_env, **self._spec.env}
        env.pop(ATTEMPT_VARIABLE, None)
        return env | {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": "" if decision.gpu is None else str(decision.gpu),
            "TRAINWATCH_CHECKPOINT": decision.path,
        }


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def _unknown(why: str) -> Performed:
    return False, why, {"why": why}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - READ_BYTES))
        return file.read().decode("utf-8", "replace")


def _last_line(path: Path) -> str:
    lines = [line.strip() for line in _tail(path).splitlines() if line.strip()]
    return EDGE.text(lines[-1])[:200] if lines else ""


def _keep_evidence(folder: Path, why: str, pid: int) -> None:
    """Write what it did, before it is ended."""
    lines = [why, "", "pid state memory command"]
    lines += [_line(process) for process in tree_of(pid, str(folder))]
    with contextlib.suppress(OSError), (folder / "ended.txt").open("w") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _line(process: Process) -> str:
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
    except OSError:
        words = [process.name]
    taken = memory_of([process])
    memory = "–" if taken is None else f"{taken / 1e6:.0f} MB"
    return f"{process.pid} {process.state} {memory} {' '.join(EDGE.words(words))}"


def _end(process: "subprocess.Popen[bytes]", mark: str) -> None:
    """End what is left of it: its group, and processes that left the group."""
    left = tree_of(process.pid, mark) if process.poll() is None else marked(mark)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    for each in left:
        with contextlib.suppress(PermissionError):
            send_signal(each.key, signal.SIGKILL)
    process.wait()
