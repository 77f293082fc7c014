"""A saved state of the training and what is known about its soundness."""

from typing import Literal

import msgspec

Verdict = Literal["complete", "writing", "torn", "corrupt", "nonfinite", "opaque"]
"""complete: resume from it. writing: still growing. torn: cut off. corrupt: damaged. nonfinite: NaN/Inf inside.
opaque: cannot be listed without running code."""

Kind = Literal["safetensors", "torch_file", "directory", "dcp", "unknown"]

Form = Literal["file", "directory"]
"""What its path names; a set of shards is named by its index, a file."""

Holds = Literal["state", "weights"]
"""state: what a training goes on with (optimizer, or a file that says where it was). weights: weights alone."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint, a file or a directory. Field names are the contract of ``checkpoints list --json``.

    ``mtime`` in seconds since the epoch; ``step`` and ``epoch`` as stored in the state file, else the metadata, else
    the name. ``opaque`` names members that hold objects beyond tensors; they do not change the verdict. ``holds`` None:
    not known.
    """

    path: str
    name: str
    kind: Kind
    step: int | None
    epoch: int | None
    size_bytes: int
    mtime: float
    verdict: Verdict
    reason: str | None = None
    opaque: tuple[str, ...] = ()
    holds: Holds | None = None


class CheckpointListing(msgspec.Struct, frozen=True, kw_only=True):
    """Checkpoints of one directory, newest first, and the one to resume from (newest complete)."""

    checkpoints: tuple[Checkpoint, ...]
    resume_point: str | None
