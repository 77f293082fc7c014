"""The checkpoints screen: the list, its verifications, and results of jobs."""

from collections.abc import Container, Mapping, Sequence

import msgspec

from ...model.checkpoint import Checkpoint, Evaluation, Sample, newest_resumable, score_words
from ...model.checkpoint_results import CheckpointOverview, Comparison, PrunePlan
from ...model.progress import Level
from ...model.story import RunStory
from ...model.verdict_words import verdict_word
from .. import quantity
from ..checkpoint_list import LEVELS, how_many
from ..columns import Column
from ..state.concerns import AFTER_NAN, doubt_of

MOVED_MOST = 12
"""Number of the tensors with the largest change that are listed."""
KEEP_WORDS: dict[str, str] = {"a link": "is a link", "next to a damaged one": "is next to a damaged one"}


NAN_WHEN_SAVED = "loss was NaN"
"""In the column of verdicts."""
DAMAGED = frozenset({"torn", "corrupt", "nonfinite"})


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """A verification made while the screen is open. ``wall`` epoch seconds."""

    checkpoint: Checkpoint
    deep: bool
    wall: float


class CheckpointRow(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of the list. ``judged``: with the newest verdict; ``resume``: a resume starts from it."""

    judged: Checkpoint
    now_wall: float
    resume: bool = False
    verification: Verification | None = None
    doubt: str = ""
    """It was saved when the loss was NaN already."""
    evaluation: Evaluation | None = None
    best: bool = False
    """No other one has a better score."""

    @property
    def path(self) -> str:
        return self.judged.path

    @property
    def name(self) -> str:
        return self.judged.name

    @property
    def verdict(self) -> str:
        """``complete``, ``torn`` and so on."""
        return self.judged.verdict

    @property
    def word(self) -> str:
        """The verdict as people read it; of a whole file that was saved when the loss was NaN, that."""
        return NAN_WHEN_SAVED if self.spoiled else verdict_word(self.verdict)

    @property
    def spoiled(self) -> bool:
        """As a file it is complete, and the loss was NaN when it was saved."""
        return self.after_nan and self.verdict == "complete"

    @property
    def after_nan(self) -> bool:
        """The loss was NaN when it was saved."""
        return self.doubt == AFTER_NAN

    @property
    def level(self) -> Level:
        """The level of its verdict; no complete one is safe if the loss was NaN."""
        level = LEVELS[self.judged.verdict]
        return "warning" if self.doubt and level == "safe" else level

    @property
    def why(self) -> str:
        """The reason of its verdict, and that it was saved after the NaN, unless ``word`` says it."""
        said = "" if self.spoiled else self.doubt
        return "; ".join(filter(None, (said, self.judged.reason)))


def size_text(row: CheckpointRow) -> str:
    """The size on disk, for example ``870 MB``."""
    return quantity.size(row.judged.size_bytes)


def age_text(row: CheckpointRow) -> str:
    """When it was written, for example ``18 min ago``."""
    return quantity.age(max(0.0, row.now_wall - row.judged.mtime))


def short_age_text(row: CheckpointRow) -> str:
    """``18 min``: a narrow list has no room for more beside the verdict."""
    return quantity.duration(max(0.0, row.now_wall - row.judged.mtime))


def score_text(row: CheckpointRow) -> str:
    """``12.3, best``; ``unknown`` if its evaluation gave none; empty without an evaluation."""
    if row.evaluation is None:
        return ""
    if row.evaluation.score is None:
        return "unknown"
    return f"{row.evaluation.score:.4g}" + (", best" if row.best else "")


def verified_text(row: CheckpointRow) -> str:
    """How it was verified while the screen is open; empty if it was not."""
    if row.verification is None:
        return ""
    how = "every byte read" if row.verification.deep else "structure checked"
    return f"{how} {quantity.clock(row.verification.wall, row.now_wall)}"


def _name_style(row: CheckpointRow) -> str:
    return "strong" if row.resume else "text"


CHECKPOINT_COLUMNS: tuple[Column[CheckpointRow], ...] = (
    Column(title="name", text=lambda r: r.judged.name, width=34, fit=True, after=1, style=_name_style, from_width=100),
    Column(title="step", text=lambda r: quantity.count(r.judged.step), width=9, right=True, style=_name_style),
    Column(
        title="epoch",
        text=lambda r: quantity.UNKNOWN if r.judged.epoch is None else str(r.judged.epoch),
        width=7,
        right=True,
        style="label",
        from_width=56,
    ),
    Column(title="size", text=size_text, width=9, right=True, from_width=48),
    Column(title="age", text=short_age_text, width=10, right=True, style="label", below_width=48),
    Column(title="age", text=age_text, width=13, right=True, style="label", from_width=48),
    Column(
        title="score",
        text=score_text,
        width=14,
        right=True,
        style=lambda r: "strong" if r.best else "text",
        from_width=70,
        if_any=True,
    ),
    Column(
        title="verdict",
        text=lambda r: r.word,
        before=2,
        style=lambda r: r.level if r.level != "safe" else "text",
    ),
)
"""Columns of the list, left to right."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A labelled sentence of the detail pane."""

    label: str
    text: str
    level: Level | None = None


def checkpoint_rows(
    checkpoints: Sequence[Checkpoint],
    verifications: Mapping[str, Verification],
    now_wall: float,
    skipped: Container[str] = (),
    story: RunStory | None = None,
) -> tuple[CheckpointRow, ...]:
    """Newest first, as given. A verification counts while the checkpoint is unchanged since.

    ``skipped``: paths that a restart does not take. ``story``: tells which were saved after a NaN.
    """
    known = [(c, _verification(c, verifications)) for c in checkpoints]
    judged = [_with_damage(c if v is None else v.checkpoint, v, story) for c, v in known]
    doubts = {c.path: "" if story is None else doubt_of(c, story) for c in judged}
    resume = newest_resumable([c for c in judged if doubts[c.path] != AFTER_NAN], skipped)
    best = None if story is None else story.best
    return tuple(
        CheckpointRow(
            judged=c,
            now_wall=now_wall,
            resume=c is resume,
            verification=v,
            doubt=doubts[c.path],
            evaluation=None if story is None else story.evaluation(c),
            best=best is not None and best.path == c.path,
        )
        for c, (_, v) in zip(judged, known, strict=True)
    )


def _verification(c: Checkpoint, verifications: Mapping[str, Verification]) -> Verification | None:
    known = verifications.get(c.path)
    same = known is not None and (known.checkpoint.mtime, known.checkpoint.size_bytes) == (c.mtime, c.size_bytes)
    return known if same else None


def _verdict(row: CheckpointRow) -> str:
    said = f"{AFTER_NAN}; as a file it is complete" if row.spoiled else row.word
    return f"{said}: {row.why}" if row.why else said


def count_text(rows: Sequence[CheckpointRow]) -> str:
    """``2 of 6 complete``, ``6 complete, 4 of them saved after the loss became NaN``."""
    spoiled = sum(row.spoiled for row in rows)
    return how_many(row.verdict for row in rows) + (
        f", {quantity.count(spoiled)} of them {AFTER_NAN}" if spoiled else ""
    )


def _with_damage(c: Checkpoint, v: Verification | None, story: RunStory | None) -> Checkpoint:
    """With the damage that the run's journal knows of the unchanged file, unless all of it was read again since."""
    if story is None or c.verdict in DAMAGED or (v is not None and v.deep):
        return c
    same = (k for k in story.checkpoints if (k.path, k.mtime, k.size_bytes) == (c.path, c.mtime, c.size_bytes))
    known = next((k for k in same if k.verdict in DAMAGED), None)
    if known is None:
        return c
    return msgspec.structs.replace(
        c, verdict=known.verdict, reason=known.reason, nonfinite=known.nonfinite, nan=known.nan
    )


def checkpoint_facts(row: CheckpointRow) -> tuple[Fact, ...]:
    """Facts that are known without opening it."""
    c = row.judged
    facts = [
        Fact(label="verdict", text=_verdict(row), level=row.level),
        Fact(label="verified", text=verified_text(row) or "structure and sizes; [V] reads every byte and value"),
        Fact(label="written", text=f"{quantity.clock(c.mtime, row.now_wall, seconds=True)}, {age_text(row)}"),
        Fact(label="kind", text=f"{c.kind.replace('_', ' ')}, {size_text(row)}"),
        Fact(label="path", text=c.path),
    ]
    if row.evaluation is not None:
        where = f", on {row.evaluation.place}" if row.evaluation.place else ""
        score = f"{score_words(row.evaluation)}{' (the best)' if row.best else ''}{where}"
        facts.insert(2, Fact(label="score", text=score, level="safe" if row.best else None))
    if c.opaque:
        facts.insert(2, Fact(label="closed", text=f"not read (no tensors): {', '.join(c.opaque)}"))
    if row.resume:
        facts.insert(0, Fact(label="resume", text="a resume starts from it", level="safe"))
    return tuple(facts)


def overview_facts(seen: CheckpointOverview) -> tuple[Fact, ...]:
    """What a checkpoint holds."""
    parts = [f"{dtype} {quantity.count(number)}" for dtype, number in seen.dtypes.items()]
    holds = ["weights"] + [w for w, yes in (("optimizer", seen.has_optimizer), ("EMA", seen.has_ema)) if yes]
    facts = [
        Fact(label="layout", text=seen.layout),
        Fact(label="holds", text=", ".join(holds) + ("" if seen.has_optimizer else "; no optimizer state seen")),
        Fact(label="weights", text=f"{quantity.count(seen.parameters)} values ({', '.join(parts) or 'none listed'})"),
    ]
    if seen.compiled:
        facts.append(
            Fact(
                label="note",
                text="saved from a compiled model (_orig_mod.): a plain model does not load it",
                level="warning",
            )
        )
    facts += [Fact(label=key, text=str(value)) for key, value in seen.state.items()]
    facts += [
        Fact(label="file", text=f"{m.name}, {quantity.size(m.size_bytes)}" + _tensors(m.tensors)) for m in seen.members
    ]
    facts += [Fact(label="metadata", text=f"{key} = {value}") for key, value in list(seen.metadata.items())[:20]]
    return tuple(facts)


def _tensors(count: int | None) -> str:
    return "" if count is None else f", {quantity.plural(count, 'tensor')}"


def delta_facts(older: str, newer: str, delta: Comparison) -> tuple[Fact, ...]:
    """How far the weights moved from ``older`` to ``newer`` (names)."""
    named = (Fact(label="from", text=older), Fact(label="to", text=newer))
    if delta.files:
        same = sum(each.same for each in delta.files)
        told = f"{same} of {quantity.plural(len(delta.files), 'file')} have the same bytes"
        return (*named, Fact(label="files", text=told), Fact(label="unknown", text=delta.unknown))
    moved = quantity.UNKNOWN if delta.relative_change is None else _share(delta.relative_change)
    facts = [
        *named,
        Fact(label="moved", text=f"{moved} of their norm, {quantity.plural(len(delta.changes), 'tensor')} compared"),
    ]
    if delta.nonfinite_a or delta.nonfinite_b:
        counts = f"{quantity.count(delta.nonfinite_a)} before, {quantity.count(delta.nonfinite_b)} after"
        facts.append(Fact(label="NaN, Inf", text=counts, level="danger"))
    for label, names in (("only old", delta.only_in_a), ("only new", delta.only_in_b)):
        if names:
            facts.append(Fact(label=label, text=_some(names), level="warning"))
    for name, one, two in delta.other_shape[:6]:
        facts.append(Fact(label="shape", text=f"{name}: {list(one)} → {list(two)}", level="warning"))
    for name, before, after in delta.other_type[:6]:
        facts.append(Fact(label="type", text=f"{name}: {before} → {after}"))
    if delta.skipped:
        why = delta.skipped[0][1]
        facts.append(Fact(label="left out", text=f"{quantity.plural(len(delta.skipped), 'tensor')}: {why}"))
    ranked = sorted(delta.changes, key=lambda c: -(c.relative_change or 0.0))[:MOVED_MOST]
    facts += [Fact(label="most", text=f"{_share(c.relative_change or 0.0):>8}  {c.name}") for c in ranked]
    if delta.relative_change == 0:
        facts.append(Fact(label="note", text="the weights are identical", level="warning"))
    return tuple(facts)


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


def _some(names: Sequence[str], most: int = 4) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {quantity.count(rest)} more" if rest > 0 else "")


def prune_facts(plan: PrunePlan) -> tuple[Fact, ...]:
    """The dry run: what would be deleted, what stays and why."""
    if not plan.delete:
        facts = [Fact(label="deletes", text="nothing: all checkpoints have to stay", level="safe")]
    else:
        freed = f"{quantity.plural(len(plan.delete), 'checkpoint')}, {quantity.size(plan.freed_bytes)}"
        facts = [Fact(label="deletes", text=freed, level="warning")]
    facts += [Fact(label="- deleted", text=_named(c), level="warning") for c in plan.delete]
    facts += [Fact(label="stays", text=f"{_named(k.checkpoint)}: {KEEP_WORDS.get(k.why, k.why)}") for k in plan.keep]
    return tuple(facts)


def _named(c: Checkpoint) -> str:
    step = "" if c.step is None else f", step {quantity.count(c.step)}"
    return f"{c.name}{step}, {quantity.size(c.size_bytes)}"


# The list of sample images.


class SampleRow(msgspec.Struct, frozen=True, kw_only=True):
    """``moment``: the step, else the epoch, else empty."""

    path: str
    name: str
    moment: str
    age: str
    size: str


def sample_rows(samples: Sequence[Sample], now_wall: float) -> tuple[SampleRow, ...]:
    """One row per image, in their order."""
    return tuple(
        SampleRow(
            path=s.path, name=s.name, moment=moment_words(s), age=quantity.age(max(0.0, now_wall - s.mtime)),
            size=quantity.size(s.size_bytes),
        )
        for s in samples
    )  # fmt: skip


def moment_words(sample: Sample) -> str:
    """``step 500``, ``epoch 4``, or nothing."""
    if sample.step is not None:
        return f"step {quantity.count(sample.step)}"
    return "" if sample.epoch is None else f"epoch {quantity.count(sample.epoch)}"
