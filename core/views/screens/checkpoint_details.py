"""The checkpoints screen: what lies on the disk, what was proven in this sitting, and what a job found."""

from collections.abc import Container, Mapping, Sequence

import msgspec

from ...model.checkpoints.checkpoint import Checkpoint, newest_complete
from ...model.checkpoints.checkpoint_jobs import Delta, Overview, Prune
from ...model.health import Level
from .. import quantity
from ..checkpoint_list import LEVELS

MOVED_MOST = 12
"""So many of the tensors that moved most are named."""
KEEP_WORDS: dict[str, str] = {"a link": "is a link", "neighbour of a bad one": "the way back from a bad one"}


class CheckpointRow(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint in words. ``proven``: how it was verified in this sitting; empty = structure only."""

    path: str
    name: str
    step: str
    epoch: str
    size: str
    age: str
    verdict: str
    level: Level
    reason: str
    resume: bool
    proven: str = ""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A verification made in this sitting. ``wall`` epoch seconds."""

    checkpoint: Checkpoint
    deep: bool
    wall: float


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A labelled sentence of the detail pane."""

    label: str
    text: str
    level: Level | None = None


def checkpoint_rows(
    checkpoints: Sequence[Checkpoint], proofs: Mapping[str, Proof], now_wall: float, skipped: Container[str] = ()
) -> tuple[CheckpointRow, ...]:
    """Newest first, as given. A proof counts while the checkpoint is the one that was proven.

    ``skipped``: paths that a restart does not take.
    """
    known = [(c, _proof(c, proofs)) for c in checkpoints]
    resume = newest_complete([c if p is None else p.checkpoint for c, p in known], skipped)
    return tuple(_row(c, p, None if resume is None else resume.path, now_wall) for c, p in known)


def _proof(c: Checkpoint, proofs: Mapping[str, Proof]) -> Proof | None:
    proof = proofs.get(c.path)
    same = proof is not None and (proof.checkpoint.mtime, proof.checkpoint.size_bytes) == (c.mtime, c.size_bytes)
    return proof if same else None


def _row(c: Checkpoint, proof: Proof | None, resume: str | None, now_wall: float) -> CheckpointRow:
    judged = proof.checkpoint if proof is not None else c
    proven = ""
    if proof is not None:
        how = "every byte read" if proof.deep else "structure checked"
        proven = f"{how} {quantity.clock(proof.wall, now_wall)}"
    return CheckpointRow(
        path=c.path,
        name=c.name,
        step=quantity.count(c.step),
        epoch=quantity.UNKNOWN if c.epoch is None else str(c.epoch),
        size=quantity.size(c.size_bytes),
        age=quantity.age(max(0.0, now_wall - c.mtime)),
        verdict=judged.verdict,
        level=LEVELS[judged.verdict],
        reason=judged.reason or "",
        resume=c.path == resume,
        proven=proven,
    )


def checkpoint_facts(row: CheckpointRow, c: Checkpoint, now_wall: float) -> tuple[Fact, ...]:
    """What is known without opening it."""
    facts = [
        Fact(label="verdict", text=row.verdict + (f": {row.reason}" if row.reason else ""), level=row.level),
        Fact(label="proven", text=row.proven or "structure and sizes; [V] reads every byte and value"),
        Fact(label="written", text=f"{quantity.clock(c.mtime, now_wall, seconds=True)}, {row.age}"),
        Fact(label="kind", text=f"{c.kind.replace('_', ' ')}, {row.size}"),
        Fact(label="path", text=c.path),
    ]
    if c.opaque:
        facts.insert(2, Fact(label="closed", text=f"not looked into (no tensors): {', '.join(c.opaque)}"))
    if row.resume:
        facts.insert(0, Fact(label="resume", text="a resume would start here", level="safe"))
    return tuple(facts)


def overview_facts(seen: Overview) -> tuple[Fact, ...]:
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
            Fact(label="note", text="saved from a compiled model (_orig_mod.): a plain one refuses it", level="warning")
        )
    facts += [Fact(label=key, text=str(value)) for key, value in seen.state.items()]
    facts += [
        Fact(label="file", text=f"{m.name}, {quantity.size(m.size_bytes)}" + _tensors(m.tensors)) for m in seen.members
    ]
    facts += [Fact(label="metadata", text=f"{key} = {value}") for key, value in list(seen.metadata.items())[:20]]
    return tuple(facts)


def _tensors(count: int | None) -> str:
    return "" if count is None else f", {quantity.plural(count, 'tensor')}"


def delta_facts(older: str, newer: str, delta: Delta) -> tuple[Fact, ...]:
    """How far the weights moved from ``older`` to ``newer`` (names)."""
    moved = quantity.UNKNOWN if delta.relative_change is None else _share(delta.relative_change)
    facts = [
        Fact(label="from", text=older),
        Fact(label="to", text=newer),
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
        facts.append(Fact(label="note", text="the weights did not move at all between them", level="warning"))
    return tuple(facts)


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


def _some(names: Sequence[str], most: int = 4) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {quantity.count(rest)} more" if rest > 0 else "")


def prune_facts(plan: Prune) -> tuple[Fact, ...]:
    """The dry run: what would go, what stays and why."""
    if not plan.delete:
        facts = [Fact(label="deletes", text="nothing: everything that is there has to stay", level="safe")]
    else:
        freed = f"{quantity.plural(len(plan.delete), 'checkpoint')}, {quantity.size(plan.freed_bytes)}"
        facts = [Fact(label="deletes", text=freed, level="warning")]
    facts += [Fact(label="- goes", text=_named(c), level="warning") for c in plan.delete]
    facts += [Fact(label="stays", text=f"{_named(k.checkpoint)}: {KEEP_WORDS.get(k.why, k.why)}") for k in plan.keep]
    return tuple(facts)


def _named(c: Checkpoint) -> str:
    step = "" if c.step is None else f", step {quantity.count(c.step)}"
    return f"{c.name}{step}, {quantity.size(c.size_bytes)}"
