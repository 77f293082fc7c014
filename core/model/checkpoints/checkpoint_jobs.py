"""What screens may ask about saved checkpoints, as Protocols; the checkpoints package answers, cli/wiring hands it in.

Paths are text. Everything may block for as long as it takes to read gigabytes: call it in a thread.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from .checkpoint import Checkpoint, CheckpointListing

Progress = Callable[[int, int], None]
"""(bytes done, bytes in all); what it raises ends the work and reaches the caller (cancel)."""


class Member(Protocol):
    """One file of a checkpoint. ``tensors`` None: it holds none, or they cannot be listed."""

    @property
    def name(self) -> str: ...  # noqa: D102  see the class
    @property
    def size_bytes(self) -> int: ...  # noqa: D102
    @property
    def tensors(self) -> int | None: ...  # noqa: D102


class Overview(Protocol):
    """What a checkpoint holds. ``dtypes``: elements by type; ``state``: plain values of its state file."""

    @property
    def checkpoint(self) -> Checkpoint: ...  # noqa: D102
    @property
    def layout(self) -> str: ...  # noqa: D102
    @property
    def members(self) -> Sequence[Member]: ...  # noqa: D102
    @property
    def parameters(self) -> int: ...  # noqa: D102
    @property
    def dtypes(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def has_optimizer(self) -> bool: ...  # noqa: D102
    @property
    def has_ema(self) -> bool: ...  # noqa: D102
    @property
    def compiled(self) -> bool: ...  # noqa: D102
    @property
    def state(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def metadata(self) -> Mapping[str, str]: ...  # noqa: D102


class TensorDelta(Protocol):
    """One tensor in both. ``relative_change``: norm(b - a) / norm(a); None when norm(a) is 0."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def relative_change(self) -> float | None: ...  # noqa: D102
    @property
    def nonfinite_a(self) -> int: ...  # noqa: D102
    @property
    def nonfinite_b(self) -> int: ...  # noqa: D102


class Delta(Protocol):
    """Two checkpoints, tensor by tensor."""

    @property
    def only_in_a(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def only_in_b(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def other_shape(self) -> Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]]: ...  # noqa: D102
    @property
    def other_type(self) -> Sequence[tuple[str, str, str]]: ...  # noqa: D102
    @property
    def changes(self) -> Sequence[TensorDelta]: ...  # noqa: D102
    @property
    def skipped(self) -> Sequence[tuple[str, str]]: ...  # noqa: D102
    @property
    def relative_change(self) -> float | None: ...  # noqa: D102
    @property
    def nonfinite_a(self) -> int: ...  # noqa: D102
    @property
    def nonfinite_b(self) -> int: ...  # noqa: D102


class Keep(Protocol):
    """A checkpoint that a prune leaves alone, and why."""

    @property
    def checkpoint(self) -> Checkpoint: ...  # noqa: D102
    @property
    def why(self) -> str: ...  # noqa: D102


class Prune(Protocol):
    """What a prune would do; newest first in both lists. Given back to ``prune`` as it is."""

    @property
    def directory(self) -> str: ...  # noqa: D102
    @property
    def keep(self) -> Sequence[Keep]: ...  # noqa: D102
    @property
    def delete(self) -> Sequence[Checkpoint]: ...  # noqa: D102
    @property
    def freed_bytes(self) -> int: ...  # noqa: D102


class CheckpointJobs(Protocol):
    """The saved states of one run. Everything raises RuntimeError with a sentence where it cannot be done."""

    @property
    def directory(self) -> str | None:
        """Where the trainer saves; None when nobody said."""

    def listing(self) -> CheckpointListing:
        """What lies there, newest first, with quick verdicts."""

    def verify(self, path: str, *, deep: bool, progress: Progress) -> Checkpoint:
        """The verdict on one; deep: every byte and value."""

    def show(self, path: str) -> Overview:
        """What it holds."""

    def compare(self, a: str, b: str, *, progress: Progress) -> Delta:
        """How far the weights moved."""

    def backup(self, path: str, destination: str, *, progress: Progress) -> str:
        """A verified copy; never overwrites. Returns its path."""

    def plan_prune(self, keep: int, *, progress: Progress) -> Prune:
        """A dry run: keep the newest sound ones and what must stay. Changes nothing."""

    def prune(self, plan: Any) -> str:
        """Delete what a plan of ``plan_prune`` lists, each looked at once more. Returns a sentence on how it went."""
