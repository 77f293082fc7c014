"""A checkpoint: its verdict, origin and rating; results of describing, comparing and pruning."""

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from itertools import tee
from typing import Any, Literal

import msgspec

from .checkpoint_files import is_companion, parts_among, read_name, tensor_format
from .checkpoint_suffixes import INDEX_SUFFIX, TensorFormat

Verdict = Literal["complete", "writing", "torn", "corrupt", "nonfinite", "opaque"]
"""complete: resume from it. writing: still growing. torn: cut off. corrupt: damaged. nonfinite: NaN/Inf inside.
opaque: cannot be listed without running code, or of a format that is not known."""
DAMAGED: frozenset[str] = frozenset({"torn", "corrupt", "nonfinite"})

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
    ``nan``: those with NaN among them; the first NAMES_KEPT. ``parts``: in a plan to delete it, the names of the files
    beside it that go with it; ``size_bytes`` counts them.
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
    parts: tuple[str, ...] = ()

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


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Checkpoints of one directory, newest first, and the one to resume from (``newest_usable``).

    ``others``: what else may be the state of a training but is not understood.
    """

    checkpoints: tuple[Checkpoint, ...]
    resume_point: str | None
    others: tuple[Checkpoint, ...] = ()

    @classmethod
    def of(cls, found: Sequence[Checkpoint], skipped: Container[str] = (), *others: Checkpoint) -> "Listing":
        point = newest_usable(found, skipped)
        return cls(checkpoints=tuple(found), resume_point=None if point is None else point.path, others=others)


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


def newest_usable(newest_first: Iterable[Checkpoint], skipped: Container[str] = ()) -> Checkpoint | None:
    """What a launch would take: the newest that is complete, or opaque and left to the trainer to read.

    One of an unknown make, or a part (an EMA) of one that it would take as well, only if there is no other.
    """
    usable = [c for c in newest_first if c.verdict in {"complete", "opaque"} and c.path not in skipped]
    parts = cache(lambda: parts_among(c.name for c in usable))  # of thousands the first few are asked about
    first, whole = tee(c for c in usable if not (is_companion(c.name) and c.name in parts()))
    return next((c for c in whole if not c.unknown_make), None) or next(first, None)


# What copying state aside did.


class CopiedAside(msgspec.Struct, frozen=True, kw_only=True):
    """``folder``: where the copies are. ``places``: original → its copy. ``no_room``: a disk is too full for it.

    ``refused``: why nothing was copied, as a sentence; "" if it was.
    """

    folder: str = ""
    size_bytes: int = 0
    places: dict[str, str] = {}
    refused: str = ""
    no_room: bool = False


# What a person thinks of a checkpoint.

MOST_STARS = 5
KEPT_FROM = 4
"""Stars from which no retention deletes a checkpoint."""


class Rating(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``path``: the real path. ``mtime``: of the checkpoint that was rated; one written later is not rated yet.

    ``stars``: 1 to MOST_STARS; 0 = only a note.
    """

    path: str
    mtime: float
    stars: int = 0
    note: str = ""
    by: str = ""
    wall: float = 0.0

    @property
    def key(self) -> tuple[str, float]:
        return self.path, self.mtime

    @property
    def words(self) -> str:
        """``4 of 5 stars: sharp eyes``."""
        stars = f"{self.stars} of {MOST_STARS} stars" if self.stars else ""
        return ": ".join(part for part in (stars, self.note) if part)


# Sample images that a trainer writes to show its progress.


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One picture on disk. ``step``/``epoch`` from its name, None = not in the name; ``mtime`` epoch seconds."""

    path: str
    name: str
    size_bytes: int
    mtime: float
    step: int | None = None
    epoch: int | None = None


# Whether a run wrote an entry of its output folder: the one answer to that question.
#
# Source: trainers that give their saves an older modification time (``os.utime``, ``cp -p``, ``rsync -a``, an archive
# that is unpacked), clocks that were set back, and file systems with a clock of their own. By the modification time
# alone such saves were of an earlier training, and a restart began anew over them.
#
# What stood in the folder before the first attempt is known: it was listed (``FolderList``). For a folder that became
# known later the times tell it: the modification time can be set by anybody, that of the last change only by writing,
# renaming or changing rights, the time of birth by nobody. What cannot be told is unknown, and nothing that destroys
# follows from it. Known false alarm: a person copies an older checkpoint into the folder while the run trains.

Origin = Literal["run", "earlier", "unknown"]
"""run: it was written since the run began. earlier: it stood there before. unknown: nothing tells which."""

Made = Literal["before", "since", "unclear"]
"""What the list of a folder tells of an entry."""

Whose = Literal["run", "other", "unsure"]
"""Of whom processes were seen with a checkpoint in the run's folder; unsure: another one may have written it."""

OF_LISTED: dict[Made, Origin] = {"before": "earlier", "since": "run", "unclear": "unknown"}
SECOND_NS = 1_000_000_000


class EntryState(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An entry as it is: all bytes and files in it, newest modification and change (ns), inode, birth (ns) of the top.

    ``born_ns`` None: the file system does not tell.
    """

    size_bytes: int
    mtime_ns: int
    files: int
    inode: int
    changed_ns: int
    born_ns: int | None = None

    @property
    def content(self) -> tuple[int, int, int, int]:
        """Differs only if it was written to, not if its rights or names were changed."""
        return self.size_bytes, self.mtime_ns, self.files, self.inode


class FolderList(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of an output folder by name, as they were when it became known.

    ``before_launch``: that was before the first attempt. ``place``: the folder, or if it did not exist, the one above
    it that did; ``place_inode``: its inode.
    """

    entries: dict[str, EntryState]
    before_launch: bool = False
    place: str = "/"
    place_inode: int = 0

    def made(self, name: str, now: EntryState) -> Made | None:
        """When the entry that has this name now was written, as far as the list tells; None: it does not tell."""
        made = _made(self.entries, name, now)
        return made if made == "since" or self.before_launch else None


def _made(listed: Mapping[str, EntryState], name: str, now: EntryState) -> Made:
    before = listed.get(name)
    if before == now:
        return "before"
    if before is not None and before.content[:3] == now.content[:3]:
        # Inodes alone do not tell another file: some network disks number anew at each mount.
        known = before.born_ns is not None and now.born_ns is not None
        if not known or before.inode == now.inode or before.born_ns == now.born_ns:
            return "unclear"  # its rights were changed, or it was written again in place and given its former time
    if now.born_ns is not None and any((e.born_ns, e.content) == (now.born_ns, now.content) for e in listed.values()):
        return "before"  # renamed: inodes are used again, so its birth must be known, too
    if now.mtime_ns % SECOND_NS and any(other.content[:3] == now.content[:3] for other in listed.values()):
        return "unclear"  # a copy of what stood there, or a save that was given its time
    return "since"


def origin_of(
    begun_wall: float,
    *,
    mtime: float | None,
    changed: float | None = None,
    born: float | None = None,
    made: Made | None = None,
    whose: Whose | None = None,
) -> Origin:
    """Whether a run that began then (seconds since the epoch) wrote an entry with these times.

    None: not known. Without any time it is the run's: it was seen to appear.
    """
    if whose == "unsure" and made != "before":
        return "unknown"
    if made is not None:
        return OF_LISTED[made]
    if mtime is None or mtime >= begun_wall or (born is not None and born >= begun_wall):
        return "run"
    return "unknown" if changed is not None and changed >= begun_wall else "earlier"


# How good a checkpoint is, as the user's own command measures it (``[evaluate]``). Unknown is not bad.

Better = Literal["lower", "higher"]

LOWER = frozenset(
    {"fid", "kid", "loss", "nll", "mse", "mae", "rmse", "lpips", "ppl", "perplexity", "wer", "cer", "error", "err",
     "bpc", "bpb"}
)  # fmt: skip
HIGHER = frozenset(
    {"acc", "accuracy", "clip", "psnr", "ssim", "map", "f1", "auc", "auroc", "bleu", "rouge", "iou", "miou", "dice",
     "recall", "precision", "reward", "r2"}
)  # fmt: skip
"""Words in names of metrics that tell which values are better, by the usual definition of each."""

SERIES = "evaluate/"
"""Before the names of what evaluations measured in a run's history, so that none is mixed with one of the trainer."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an evaluation of one checkpoint found.

    ``mtime``: of the checkpoint that was evaluated, seconds since the epoch; another one of that path has no score yet.
    ``score`` None = unknown, ``why``: the reason. ``values``: all numbers that it printed by name, ``metric`` the one
    that is the score. ``better``: which scores are better, None = not known. ``place``: "GPU 1" or "CPU".
    ``folder``: its output.
    """

    path: str
    mtime: float
    step: int | None = None
    metric: str = ""
    score: float | None = None
    values: dict[str, float] = {}
    better: Better | None = None
    why: str = ""
    took_s: float = 0.0
    place: str = ""
    folder: str = ""


def better_of(metric: str, said: Literal["auto", "lower", "higher"]) -> Better | None:
    """Which values of a metric are better: as the settings say, else by the words of its name; None = not known."""
    if said != "auto":
        return said
    words = set("".join(c if c.isalnum() else " " for c in metric.lower()).split())
    lower, higher = bool(words & LOWER), bool(words & HIGHER)
    return None if lower == higher else "lower" if lower else "higher"


def best_of(found: Iterable[Evaluation]) -> Evaluation | None:
    """The best by the metric of the newest that has a score; of equal ones the newest; None if it cannot be told.

    ``found``: oldest first.
    """
    scored = [each for each in found if each.score is not None]
    if not scored or scored[-1].better is None:
        return None
    newest, sign = scored[-1], -1.0 if scored[-1].better == "lower" else 1.0
    alike = [each for each in reversed(scored) if (each.metric, each.better) == (newest.metric, newest.better)]
    return max(alike, key=lambda each: sign * (each.score or 0.0))


def score_words(found: Evaluation) -> str:
    """``fid 12.3``; ``unknown (reason)`` if there is no score."""
    if found.score is None:
        return f"unknown ({found.why})" if found.why else "unknown"
    return f"{found.metric or 'score'} {found.score:.4g}"


# Results of describing, comparing and pruning checkpoints.

KeepReason = Literal[
    "newest", "resume point", "next to a damaged one", "not complete", "a link", "deep check failed",
    "has the best score", "rated 4 or 5 stars", "saved with a kept one",
    "the newest with such parts",
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


class Overview(msgspec.Struct, frozen=True, kw_only=True):
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
    """``changes`` in the order of the names; ``skipped``: tensors whose values are not compared, and why."""

    a: str
    b: str
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    other_shape: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    changes: tuple[TensorChange, ...]
    skipped: tuple[tuple[str, str], ...]
    relative_change: float | None
    nonfinite_a: int
    nonfinite_b: int


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
