"""One copy of a verified checkpoint: to a folder on another disk, and by the user's command (rsync, rclone …)."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.decision import BackUpCheckpoint
from ...model.run import RunSpec
from ...model.text.edge import EDGE
from ..notify import run_with_event

Performed = tuple[bool, str, dict[str, Any]]
DAMAGED = frozenset({"writing", "torn", "corrupt", "nonfinite"})


class CheckpointBackup:
    """Copies of one run, one at a time.

    ``verify``: path, deep → verdict. ``copy``: source, new path → bytes; raises ValueError with a sentence, OSError.
    """

    def __init__(
        self, spec: RunSpec, verify: Callable[[Path, bool], Checkpoint], copy: Callable[[Path, Path], int]
    ) -> None:
        self._spec = spec
        self._verify = verify
        self._copy = copy
        self._lock = threading.Lock()

    def back_up(self, decision: BackUpCheckpoint) -> Performed:
        """Verify it and copy it. Blocks; raises nothing but bugs."""
        settings = self._spec.settings.backup
        with self._lock:
            try:
                found = self._verify(Path(decision.path), True)
            except FileNotFoundError:
                return False, f"{decision.path} is gone", {}
            except OSError as error:
                return False, f"{decision.path}: {error.strerror or error}", {}
            if found.mtime != decision.mtime:
                return False, f"{found.name} was written to meanwhile", {}
            if found.verdict in DAMAGED:
                return False, f"{found.name} is not verified: {found.verdict} ({found.reason})", {}
            begun = time.monotonic()
            said: list[str] = []
            if settings.to:
                ok, detail = self._to_folder(found, Path(self._spec.cwd, settings.to).expanduser())
                if not ok:
                    return False, detail, {}
                said.append(detail)
            if settings.command:
                ok, detail = self._by_command(found)
                if not ok:
                    return False, detail, {}
                said.append(detail)
        took_s = time.monotonic() - begun
        return True, f"{found.name}: {'; '.join(said)} ({took_s:.1f} s)", {"took_s": took_s}

    def _to_folder(self, found: Checkpoint, folder: Path) -> tuple[bool, str]:
        """A folder of the run's own below the one that is set; nothing there is written over."""
        if not folder.is_dir():
            return False, f"backup.to: {folder} is no folder (is the disk mounted?)"
        place = folder / self._spec.id
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(found.mtime))
        try:
            place.mkdir(exist_ok=True)
            source = Path(found.path)
            for target in (place / source.name, place / f"{source.stem}.{stamp}{source.suffix}"):
                if target.exists() and int(target.stat().st_mtime) == int(found.mtime):
                    return True, f"it is in {place} already"
                if not target.exists():
                    self._copy(source, target)
                    return True, f"copied to {target}"
        except ValueError as refused:
            return False, f"backup.to: {refused}"
        except OSError as error:
            return False, f"backup.to: {error.filename or place}: {error.strerror or error}"
        return False, f"backup.to: {place} has another {found.name} already; nothing is overwritten"

    def _by_command(self, found: Checkpoint) -> tuple[bool, str]:
        settings, spec = self._spec.settings.backup, self._spec
        filled = {"{checkpoint}": found.path, "{name}": found.name, "{run}": spec.id}
        words = []
        for word in settings.command:
            for placeholder, value in filled.items():
                word = word.replace(placeholder, value)  # noqa: PLW2901
            words.append(word)
        event = {
            "event": "backup",
            "run": EDGE.text(spec.name),
            "run_id": spec.id,
            "checkpoint": found.path,
            "step": found.step,
            "size_bytes": found.size_bytes,
            "wall": time.time(),
        }
        report = run_with_event("backup.command", words, event, timeout_s=settings.timeout_s, cwd=spec.cwd)
        return report.ok, f"copied by {words[0]}" if report.ok else report.detail
