"""Results of describing, comparing and pruning checkpoints."""

from typing import Any, Literal

import msgspec

from .checkpoint import Checkpoint

KeepReason = Literal[
    "newest", "resume point", "next to a damaged one", "not complete", "a link", "deep check failed",
    "has the best score", "rated 4 or 5 stars",
]  # fmt: skip


class MemberOverview(msgspec.Struct, frozen=True, kw_only=True):
    """One file. ``tensors`` None: it holds none or could not be listed."""

    name: str
    size_bytes: int
    tensors: int | None
    elements: int | None


class TensorOverview(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    dtype: str
    shape: tuple[int, ...]


class CheckpointOverview(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known without running code.

    ``parameters``: elements of all weights; ``dtypes``: elements by type. ``compiled``: keys carry ``_orig_mod.``.
    ``state``: plain values of the state file or of the pickled object; ``metadata`` as safetensors stores it.
    ``unknown``: what cannot be told of it, as a sentence.
    """

    checkpoint: Checkpoint
    layout: str
    members: tuple[MemberOverview, ...]
    tensors: tuple[TensorOverview, ...]
    parameters: int
    dtypes: dict[str, int]
    has_optimizer: bool
    has_ema: bool
    compiled: bool
    state: dict[str, Any]
    metadata: dict[str, str]
    unknown: str = ""


class TensorChange(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor in both.

    ``relative_change`` = norm(b - a) / norm(a) over values finite in both; None when norm(a) is 0. ``norm_*``:
    Euclidean, finite values only.
    """

    name: str
    shape: tuple[int, ...]
    norm_a: float
    norm_b: float
    relative_change: float | None
    nonfinite_a: int
    nonfinite_b: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """``changes`` in the order of the names; ``skipped``: tensors whose values are not compared, and why.

    ``wrong_checksums``: members whose checksum is wrong, so that the values compared are not those that were saved.
    """

    a: str
    b: str
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    other_shape: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    other_type: tuple[tuple[str, str, str], ...]
    changes: tuple[TensorChange, ...]
    skipped: tuple[tuple[str, str], ...]
    relative_change: float | None
    nonfinite_a: int
    nonfinite_b: int
    wrong_checksums: tuple[str, ...] = ()


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    checkpoint: Checkpoint
    why: KeepReason


class PrunePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune would do. ``freed_bytes``: what the deletions give back; newest first in both lists."""

    directory: str
    keep: tuple[Kept, ...]
    delete: tuple[Checkpoint, ...]
    freed_bytes: int
    resume_point: str | None
