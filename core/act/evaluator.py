"""The user's commands for each verified checkpoint: ``[evaluate]`` for its score, ``[backup]`` for a copy elsewhere.

An evaluation runs with the lowest priority, bounded in time and memory, and has a folder: ``stdout.txt``,
``stderr.txt``, ``ended.txt`` (what it did, written before it is ended) and ``result.json``. A result that is there is
not measured again, whatever the journal knows of it.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..bound_process import bound
from ..model.checkpoint import DAMAGED, Checkpoint
from ..model.decision import BackUpCheckpoint, EndEvaluation, EvaluateCheckpoint
from ..model.redact import EDGE
from ..model.run import RunSpec
from ..model.score import read_score
from ..model.text import memory
from ..private_folder import make_private
from ..processes import ATTEMPT_VARIABLE, Process, attempt_processes, read_process, signal_each
from ..rank_files import tail_of
from ..spool import read_record
from .launch.helpers import describe
from .local_engine import Performed
from .notify import event_of, run_with_event

POLL_S = 0.2
READ_BYTES = 200_000
"""End of its output in which the score is looked for."""
ENDED_S = 10.0
"""A command that took too long is gone so soon after its end."""
MOST_OUTPUT_BYTES = 64_000_000
"""Output above which it is ended: it would fill the disk of the run's records."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """``result.json``. ``data``: of the outcome (``EvaluateCheckpoint``)."""

    path: str
    mtime: float
    size_bytes: int
    ok: bool
    detail: str
    data: dict[str, Any]


@dataclass(kw_only=True, eq=False)
class CheckpointCommands:
    """For one run; of each kind one at a time. ``folders``: where each evaluation has one, by its decision's number.

    ``verify``: path, deep → verdict. ``write``: writes a file at once and wholly. ``copy``: source, new path; raises
    ValueError with a sentence, OSError. ``progress`` of both is called as they go on.
    """

    spec: RunSpec
    folders: Path
    verify: Callable[..., Checkpoint]
    base_env: Mapping[str, str]
    write: Callable[[Path, bytes], None]
    copy: Callable[..., object]

    def __post_init__(self) -> None:
        self._evaluating, self._copying = threading.Lock(), threading.Lock()
        self._copied_at = 0.0
        self._ended: set[int] = set()

    def end(self, decision: EndEvaluation) -> Performed:
        """Let the evaluation end soon; its own outcome tells when it has."""
        self._ended.add(decision.of)
        return True, "it is being ended", {}

    def evaluate(self, decision: EvaluateCheckpoint) -> Performed:
        """Evaluate; blocks until it is done or ended. Raises nothing but bugs."""
        if not self.spec.settings.evaluate.wanted:
            return _unknown("evaluate.command is not set")
        with self._evaluating:
            for file in sorted(self.folders.glob("*/result.json"), reverse=True):  # its outcome may be unknown
                known = read_record(file.parent, file.name, Result)
                if known is not None and (known.path, known.mtime) == (decision.path, decision.mtime):
                    return known.ok, known.detail, known.data
            found = self._verified(decision)
            if isinstance(found, str):
                return _unknown(found)
            try:
                return self._evaluate(decision, found)
            except OSError as error:
                named = f"{error.filename}: " if error.filename else ""
                return _unknown(f"it could not be run: {named}{error.strerror or error}")

    def back_up(self, decision: BackUpCheckpoint) -> Performed:
        """Copy it as each of the settings says. Blocks as long as something is copied; raises nothing but bugs.

        A server that does not answer holds a copy for ever, and nothing ends its thread: further copies fail meanwhile.
        """
        said, limit_s = list[Performed](), self.spec.settings.backup.timeout_s
        why = f"{decision.path}: nothing was copied for {limit_s:g} s (backup.timeout_s): does that disk answer?"
        if not self._copying.acquire(blocking=False):  # one that was left behind
            return False, why, {}
        self._go_on()
        copying = threading.Thread(target=lambda: said.append(self._back_up(decision)), name="copy", daemon=True)
        copying.start()
        while copying.is_alive() and time.monotonic() - self._copied_at < limit_s + ENDED_S:
            copying.join(POLL_S)
        if not (said or copying.is_alive()):
            raise RuntimeError("the copy ended by a bug: the log of the supervisor has it")
        return said[0] if said else (False, why, {})

    def _go_on(self, *_done: int) -> None:
        self._copied_at = time.monotonic()

    def _back_up(self, decision: BackUpCheckpoint) -> Performed:
        settings = self.spec.settings.backup
        try:
            found = self._verified(decision)
            if isinstance(found, str):
                return False, f"{decision.path}: {found}", {}
            begun, said = time.monotonic(), []
            for wanted, copy in ((settings.to, self._to_folder), (settings.command, self._by_command)):
                if wanted:
                    self._go_on()
                    ok, detail = copy(found)
                    if not ok:
                        return False, detail, {}
                    said.append(detail)
        finally:
            self._copying.release()
        return bool(said), f"{found.name}: {'; '.join(said)} ({time.monotonic() - begun:.1f} s)", {}

    def _verified(self, decision: EvaluateCheckpoint | BackUpCheckpoint) -> Checkpoint | str:
        """The checkpoint as it was when the judge decided; or why it is not that any more, or no whole one."""
        try:
            found = self.verify(Path(decision.path), True, progress=self._go_on)
        except FileNotFoundError:
            return "it is gone"
        except OSError as error:
            return f"it cannot be read: {error.strerror or error}"
        if found.mtime != decision.mtime:
            return "it was written to before"
        if found.verdict in {"writing", *DAMAGED}:
            return f"it is not verified: {found.verdict}" + (f" ({found.reason})" if found.reason else "")
        return found

    def _evaluate(self, decision: EvaluateCheckpoint, found: Checkpoint) -> Performed:
        folder = self.folders / f"{decision.id:06d}"
        make_private(folder)
        began = time.monotonic()
        code, why, interrupted = self._run(decision, folder)
        took_s = round(time.monotonic() - began, 1)
        if interrupted:
            return False, why, {"interrupted": True, "why": why, "took_s": took_s, "folder": str(folder)}
        score = read_score(EDGE.text(tail_of(folder / "stdout.txt", READ_BYTES)), self.spec.settings.evaluate.metric)
        if not why and code != 0:
            last = (tail_of(folder / "stderr.txt", READ_BYTES).strip().splitlines() or [""])[-1].strip()
            why = f"it ended with exit code {code}" + (f": {EDGE.text(last)[:200]}" if last else "")
        if not why and self._changed(Path(decision.path), found):
            why = "the checkpoint was written to during its evaluation"
        why = why or score.why
        data = {
            "metric": score.metric or self.spec.settings.evaluate.metric,
            "score": None if why else score.value,
            "values": {} if why else score.values,
            "why": why,
            "took_s": took_s,
            "folder": str(folder),
        }
        detail = why or f"{score.metric} {score.value:.6g}"
        result = Result(
            path=decision.path, mtime=decision.mtime, size_bytes=found.size_bytes, ok=not why, detail=detail, data=data
        )
        self.write(folder / "result.json", msgspec.json.format(msgspec.json.encode(result)))
        return not why, detail, data

    def _changed(self, checkpoint: Path, before: Checkpoint) -> bool:
        """Whether it is not the one any more that was given to the command."""
        try:
            now = self.verify(checkpoint, False)
        except OSError:
            return True
        return (now.mtime, now.size_bytes) != (before.mtime, before.size_bytes)

    def _run(self, decision: EvaluateCheckpoint, folder: Path) -> tuple[int | None, str, bool]:
        """(exit code, why its score is unknown, whether it was ended for the training)."""
        gpu, command = "" if decision.gpu is None else str(decision.gpu), self.spec.settings.evaluate.command
        env = {**self.base_env, **self.spec.env, "TRAINWATCH_CHECKPOINT": decision.path, MARK: str(folder)}
        env |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": gpu}
        env.pop(ATTEMPT_VARIABLE, None)
        step = "" if decision.step is None else str(decision.step)
        words = {"{checkpoint}": decision.path, "{step}": step, "{output_dir}": self.spec.output_dir or ""}
        words["{run}"] = self.spec.name
        if isinstance(command, str):
            argv = ["sh", "-c", _filled(command, {name: shlex.quote(value) for name, value in words.items()})]
        else:
            argv = [_filled(word, words) for word in command]
        with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as errors:
            process = subprocess.Popen(
                bound(["sh", "-c", _BEHIND, "sh", *argv], tree=True, cwd=self.spec.cwd, path=env.get("PATH")),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                cwd=self.spec.cwd,
                env=env,
                start_new_session=True,
            )
        deadline = time.monotonic() + decision.timeout_s
        own = read_process(process.pid)
        key = (process.pid, 0 if own is None else own.start_ticks)
        tree = partial(attempt_processes, key, directory=str(folder), variable=MARK)
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(POLL_S), "", False
                why = self._over_limit(decision, tree, folder, deadline)
                if why:
                    _keep_evidence(folder, why, tree())
                    return None, why, decision.id in self._ended
        finally:
            left = tree()
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            signal_each(left, signal.SIGKILL)
            process.wait()

    def _over_limit(
        self, decision: EvaluateCheckpoint, tree: Callable[[], list[Process]], folder: Path, deadline: float
    ) -> str:
        if decision.id in self._ended:
            return "it was ended for the training"
        if time.monotonic() > deadline:
            return f"it took more than {decision.timeout_s:g} s (evaluate.timeout_s) and was ended"
        taken = memory_of(tree())
        if taken is not None and taken > decision.memory_bytes:
            limit, got = memory(decision.memory_bytes), memory(taken)
            return f"it took {got} of RAM, more than {limit} (evaluate.memory_bytes), and was ended"
        written = sum((folder / name).stat().st_size for name in ("stdout.txt", "stderr.txt"))
        if written > MOST_OUTPUT_BYTES:
            return f"it printed more than {MOST_OUTPUT_BYTES / 1e6:.0f} MB and was ended"
        return ""

    def _to_folder(self, found: Checkpoint) -> tuple[bool, str]:
        """A folder of the run's own below the one that is set; nothing there is written over."""
        folder = Path(self.spec.cwd, self.spec.settings.backup.to).expanduser()
        if not folder.is_dir():
            return False, f"backup.to: {folder} is no folder (is the disk mounted?)"
        place = folder / self.spec.id
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(found.mtime))
        try:
            place.mkdir(exist_ok=True)
            source = Path(found.path)
            for target in (place / source.name, place / f"{source.stem}.{stamp}{source.suffix}"):
                if target.exists() and int(target.stat().st_mtime) == int(found.mtime):
                    return True, f"it is in {place} already"
                if not target.exists():
                    self.copy(source, target, progress=self._go_on)
                    return True, f"copied to {target}"
        except ValueError as refused:
            return False, f"backup.to: {refused}"
        except OSError as error:
            return False, f"backup.to: {error.filename or place}: {error.strerror or error}"
        return False, f"backup.to: {place} has another {found.name} already; nothing is overwritten"

    def _by_command(self, found: Checkpoint) -> tuple[bool, str]:
        settings, spec = self.spec.settings.backup, self.spec
        values = {"{checkpoint}": found.path, "{name}": found.name, "{run}": spec.id}
        words = [_filled(word, values) for word in settings.command]
        event = event_of(spec, "backup", checkpoint=found.path, step=found.step, size_bytes=found.size_bytes)
        report = run_with_event("backup.command", words, event, timeout_s=settings.timeout_s, cwd=spec.cwd)
        return report.ok, f"copied by {words[0]}" if report.ok else report.detail


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def _unknown(why: str) -> Performed:
    return False, why, {"why": why}


def _keep_evidence(folder: Path, why: str, tree: list[Process]) -> None:
    """Write what it did, before it is ended."""
    lines = [why, "", "pid state memory command"]
    for process in tree:
        taken = memory_of([process])
        size = "–" if taken is None else f"{taken / 1e6:.0f} MB"
        lines.append(f"{process.pid} {process.state} {size} {' '.join(EDGE.words(describe(process.pid).split()))}")
    with contextlib.suppress(OSError), (folder / "ended.txt").open("w") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())


MARK = "TRAINWATCH_EVALUATION"
"""Set in its environment to its folder: finds processes that left their parent and group."""
NICE = 19
FIRST_FOR_OOM = 1000
"""``oom_score_adj`` with which the kernel ends this process before any other if memory runs out."""


_BEHIND = f"""
{{ echo {FIRST_FOR_OOM} > /proc/$$/oom_score_adj; }} 2> /dev/null
command -v ionice > /dev/null && ionice -c 3 true 2> /dev/null && exec ionice -c 3 nice -n {NICE} "$@"
exec nice -n {NICE} "$@"
"""
"""Its CPU and I/O priority are lowered, and the kernel ends it first for memory, before the program begins."""


def memory_of(tree: list[Process]) -> float | None:
    """RAM that the processes take (proportional share of what they share); None if it cannot be read."""
    import psutil  # a megabyte, for evaluations

    taken = []
    for process in tree:
        with contextlib.suppress(psutil.Error, OSError):
            taken.append(psutil.Process(process.pid).memory_full_info().pss)
    return float(sum(taken)) if taken else None
