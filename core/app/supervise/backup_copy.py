"""The copy of a checkpoint that is read back and verified, as ``[backup] to`` makes it."""

from pathlib import Path

from ...checkpoints import BackupRefusedError, backup
from ...checkpoints.formats.reading_pace import BESIDE_TRAINING_BYTES_PER_S


def copy_verified(source: Path, target: Path) -> int:
    """Copy, and return the bytes. Raises ValueError with a sentence if it is refused; OSError."""
    try:
        return backup(source, target, rate_limit_bytes_per_s=BESIDE_TRAINING_BYTES_PER_S).size_bytes
    except BackupRefusedError as refused:
        raise ValueError(str(refused)) from None
