"""The checkpoints screen: the list, its verifications, and results of jobs."""

from collections.abc import Sequence

from ...model.checkpoint import Overview, Sample, score_words
from .. import quantity
from ..checkpoint_list import CheckpointRow, how_many, step_words
from ..columns import Column, level_style
from ..state.concerns import DOUBTS
from ..words import Paragraph

CHECKPOINT_COLUMNS: tuple[Column[CheckpointRow], ...] = (
    Column(title="name", text=lambda r: r.judged.name, width=34, fit=True, after=1, from_width=100,
           style=lambda r: "strong" if r.resume else "text"),
    Column(title="step", text=lambda r: quantity.count(r.judged.step), width=9, right=True,
           style=lambda r: "strong" if r.resume else "text"),
    Column(title="epoch", text=lambda r: quantity.UNKNOWN if r.judged.epoch is None else str(r.judged.epoch), width=7,
           right=True, style="label", from_width=56),
    Column(title="size", text=lambda r: r.size, width=9, right=True, from_width=48),
    # A narrow list has no room for more beside the verdict.
    Column(title="age", text=lambda r: quantity.duration(max(0.0, r.now_wall - r.judged.mtime)), width=10, right=True,
           style="label", below_width=48),
    Column(title="age", text=lambda r: r.age, width=13, right=True, style="label", from_width=48),
    Column(title="score", text=lambda r: r.score.partition(" ")[2], width=14, right=True, from_width=70, if_any=True,
           style=lambda r: "strong" if r.best else "text"),
    Column(title="verdict", text=lambda r: r.word, before=2, style=lambda r: level_style(r.level)),
)  # fmt: skip
"""Columns of the list, left to right."""


def count_text(rows: Sequence[CheckpointRow]) -> str:
    """``2 of 6 complete``, ``6 complete, 4 of them saved after the loss became NaN``."""
    spoiled = sum(row.spoiled for row in rows)
    of_them = f", {quantity.count(spoiled)} of them {DOUBTS['nan']}" if spoiled else ""
    return how_many(row.verdict for row in rows) + of_them


def checkpoint_facts(row: CheckpointRow) -> tuple[Paragraph, ...]:
    """Facts that are known without opening it."""
    c, said = row.judged, f"{DOUBTS['nan']}; as a file it is complete" if row.spoiled else row.word
    facts = [
        Paragraph(label="verdict", text=f"{said}: {row.why}" if row.why else said, style=row.level),
        Paragraph(label="verified", text=row.verified or "structure and sizes; [V] reads every byte and value"),
        Paragraph(label="written", text=f"{quantity.clock(c.mtime, row.now_wall, seconds=True)}, {row.age}"),
        Paragraph(label="kind", text=f"{c.kind.replace('_', ' ')}, {row.size}"),
        Paragraph(label="path", text=c.path),
    ]
    if row.evaluation is not None:
        where = f", on {row.evaluation.place}" if row.evaluation.place else ""
        score = f"{score_words(row.evaluation)}{' (the best)' if row.best else ''}{where}"
        facts.insert(2, Paragraph(label="score", text=score, style="safe" if row.best else "text"))
    if c.opaque:
        facts.insert(2, Paragraph(label="closed", text=f"not read (no tensors): {', '.join(c.opaque)}"))
    if row.resume:
        facts.insert(0, Paragraph(label="resume", text="a resume starts from it", style="safe"))
    return tuple(facts)


def overview_facts(seen: Overview) -> tuple[Paragraph, ...]:
    """What a checkpoint holds."""
    parts = [f"{dtype} {quantity.count(number)}" for dtype, number in seen.dtypes.items()]
    holds = ["weights"] + [w for w, yes in (("optimizer", seen.has_optimizer), ("EMA", seen.has_ema)) if yes]
    weights = f"{quantity.count(seen.parameters)} values ({', '.join(parts) or 'none listed'})"
    facts = [
        Paragraph(label="layout", text=seen.layout),
        Paragraph(label="holds", text=", ".join(holds) + ("" if seen.has_optimizer else "; no optimizer state seen")),
        Paragraph(label="weights", text=weights),
    ]
    if seen.compiled:
        text = "saved from a compiled model (_orig_mod.): a plain model does not load it"
        facts.append(Paragraph(label="note", text=text, style="warning"))
    facts += [Paragraph(label=key, text=str(value)) for key, value in seen.state.items()]
    for m in seen.members:
        tensors = "" if m.tensors is None else f", {quantity.plural(m.tensors, 'tensor')}"
        facts.append(Paragraph(label="file", text=f"{m.name}, {quantity.size(m.size_bytes)}{tensors}"))
    facts += [Paragraph(label="metadata", text=f"{key} = {value}") for key, value in list(seen.metadata.items())[:20]]
    return tuple(facts)


# The list of sample images.


def sample_columns(now_wall: float) -> tuple[Column[Sample], ...]:
    """Step or epoch if it is known, age, size and, if there is room, name."""
    return (
        Column(title="", text=lambda s: step_words(s, ""), fit=True, style="strong"),
        Column(title="", text=lambda s: age_words(s, now_wall), fit=True, right=True, before=2, style="label"),
        Column(title="", text=lambda s: quantity.size(s.size_bytes), width=10, right=True, style="label",
               from_width=33),
        Column(title="", text=lambda s: "" if step_words(s, "") else s.name, before=2, fill=True, below_width=44),
        Column(title="", text=lambda s: s.name, before=2, fill=True, from_width=44),
    )  # fmt: skip


def age_words(sample: Sample, now_wall: float) -> str:
    return quantity.age(max(0.0, now_wall - sample.mtime))
