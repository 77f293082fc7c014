"""A checkpoint and its verdict."""

from collections.abc import Container, Iterable
from typing import Literal

import msgspec

from .checkpoint_names import read_name, tensor_format
from .checkpoint_suffixes import INDEX_SUFFIX, TensorFormat

Verdict = Literal["complete", "writing", "torn", "corrupt", "nonfinite", "opaque"]
"""complete: resume from it. writing: still growing. torn: cut off. corrupt: damaged. nonfinite: NaN/Inf inside.
opaque: cannot be listed without running code, or of a format that is not known."""

Kind = Literal["safetensors", "torch_file", "directory", "dcp", "unknown"]
KIND_OF: dict[TensorFormat, Kind] = {"safetensors": "safetensors", "torch": "torch_file", "maybe_torch": "torch_file"}

Form = Literal["file", "directory"]
"""What its path names; a set of shards is named by its index, a file."""

Holds = Literal["state", "weights"]
"""state: training can continue from it (optimizer, or a file with its step). weights: weights alone."""


NAMES_KEPT = 1000
"""Most names of tensors with values that are not finite."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint, a file or a directory. Field names are the contract of ``checkpoints list --json``.

    ``mtime`` in seconds since the epoch; ``step`` and ``epoch`` as stored in the state file, else the metadata, else
    the name. ``opaque`` names members that hold objects beyond tensors; they do not change the verdict. ``objects``:
    what ``torch.load`` refuses in it with ``weights_only``. ``holds`` None: not known. ``understood`` False: the
    verdict says what cannot be told, not that it is bad: it is opaque, or damaged only by rules that its trainer may
    not follow. No attempt may start from the beginning over it. ``unfinished``: what is written last is missing, as if
    its writer died in the middle of a save. ``nonfinite``: after a deep verification, the tensors with NaN or Inf,
    ``nan``: those with NaN among them; the first NAMES_KEPT.
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
    objects: tuple[str, ...] = ()
    holds: Holds | None = None
    understood: bool = True
    unfinished: bool = False
    nonfinite: tuple[str, ...] = ()
    nan: tuple[str, ...] = ()

    @property
    def unknown_make(self) -> bool:
        """Whether neither its name nor its bytes are those of a known make."""
        return self.kind == "unknown" and self.verdict == "opaque"


class LoadRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """``torch.load`` at ``place`` (``train.py:41``) of the trainer's source refuses ``objects`` of a checkpoint.

    ``explicit``: ``weights_only=True`` is written there, so that no variable of the environment changes it.
    """

    place: str
    objects: tuple[str, ...]
    explicit: bool = False

    @property
    def words(self) -> str:
        """What would happen, as a clause with the checkpoint as its subject."""
        more = f" and {len(self.objects) - SHOWN} more" if len(self.objects) > SHOWN else ""
        held = f"{', '.join(self.objects[:SHOWN])}{more}"
        return (
            f'holds {held}: torch.load in {self.place} takes weights only and would end with "Weights only load failed"'
        )


SHOWN = 3


class CheckpointListing(msgspec.Struct, frozen=True, kw_only=True):
    """Checkpoints of one directory, newest first, and the one to resume from (``newest_resumable``)."""

    checkpoints: tuple[Checkpoint, ...]
    resume_point: str | None


def kind_of(name: str) -> Kind:
    """The kind of a checkpoint that is a file (an index: of its shards), by its name."""
    promised = tensor_format(name.removesuffix(INDEX_SUFFIX))
    return "unknown" if promised is None else KIND_OF[promised]


AgeOrder = tuple[float, bool, int, bool, int]


def age_order(name: str, mtime: float, step: int | None, epoch: int | None) -> AgeOrder:
    """Sort key: older before newer.

    The time of modification counts, whatever the order of discovery. Ties: by step; the final one (no number in its
    name) comes last, among all if its step is unknown; then by epoch.
    """
    final = read_name(name).is_final
    return mtime, final and step is None, -1 if step is None else step, final, -1 if epoch is None else epoch


def newest_complete(newest_first: Iterable[Checkpoint], skipped: Container[str] = ()) -> Checkpoint | None:
    """The checkpoint to resume from: the newest complete one whose path is not in ``skipped``, or None."""
    return next((c for c in newest_first if c.verdict == "complete" and c.path not in skipped), None)


def newest_resumable(newest_first: Iterable[Checkpoint], skipped: Container[str] = ()) -> Checkpoint | None:
    """What a launch would take: the newest that is complete, or opaque and left to the trainer to read.

    One of an unknown make only if there is no other.
    """
    usable = [c for c in newest_first if c.verdict in {"complete", "opaque"} and c.path not in skipped]
    return next((c for c in usable if not c.unknown_make), usable[0] if usable else None)
