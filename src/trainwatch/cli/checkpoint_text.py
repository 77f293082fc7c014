"""Checkpoints as lines for people."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainwatch.core.model.text import size

from .output import printable

if TYPE_CHECKING:
    from trainwatch.core.app.checkpoint_tools import (
        CheckpointOverview,
        Comparison,
        KnownListing,
        PruneOutcome,
        PrunePlan,
        Quality,
    )
    from trainwatch.core.model.checkpoint import Checkpoint


SHOWN_METADATA = 24
METADATA_WIDTH = 160
"""kohya stores whole lists of buckets and tags in one value."""
OTHERS_SHOWN = 8
SHOWN_TENSORS = 12
"""Most tensors and changes that are listed; the rest is counted. ``--json`` has all."""


def rows(checkpoints: "Sequence[tuple[Checkpoint, str]]") -> list[str]:
    """A line for each checkpoint, with what else is known of it behind its verdict."""
    from trainwatch.core.views.columns import CHECKPOINTS, text_rows

    return [printable(line) for line in text_rows(CHECKPOINTS, checkpoints)]


def quality_words(known: "Quality | None") -> str:
    """`` · fid 12.3 (best) · 4 of 5 stars: sharp``; empty if nothing is known."""
    if known is None:
        return ""
    from trainwatch.core.model.checkpoint import score_words

    score = "" if known.evaluation is None else score_words(known.evaluation) + (" (best)" if known.best else "")
    rating = "" if known.rating is None else known.rating.words
    return "".join(f" · {printable(part)}" for part in (score, rating) if part)


def quality_object(known: "Quality | None") -> dict[str, Any]:
    """Score and rating for ``--json``; null is unknown, or not evaluated, or not rated."""
    found = None if known is None else known.evaluation
    rating = None if known is None else known.rating
    return {
        "score": None if found is None else found.score,
        "metric": None if found is None else found.metric or None,
        "better": None if found is None else found.better,
        "scores": {} if found is None else found.values,
        "score_why": None if found is None else found.why or None,
        "best": known is not None and known.best,
        "rating": None if rating is None else rating.stars or None,
        "note": None if rating is None else rating.note or None,
    }


QUICK_LOOK = "  <- resume point if a deep check passes: only structure and sizes were read"
"""No journal knows it: a launch reads all its values before it takes it."""


def resume_words(checkpoint: "Checkpoint", found: "KnownListing") -> str:
    """Whether a restart would take it, and how far that is known; or why it does not, though it is complete."""
    why = found.unused.get(checkpoint.path)
    if why is not None:
        return f" · {printable(why)}"
    doubt = f" · {said}" if (said := found.doubts.get(checkpoint.path)) else ""
    if checkpoint.path != found.listing.resume_point:
        return doubt
    return doubt + ("  <- resume point" if checkpoint.path in found.known else QUICK_LOOK)


def with_quality(found: "KnownListing", known: Mapping[str, "Quality"]) -> dict[str, Any]:
    """The listing for ``--json``, each checkpoint with its score and rating; ``best``: path of the best one.

    ``unused``: why a restart does not use it, though it is complete; ``doubt``: what speaks against its weights, though
    a restart uses it; null otherwise.
    """
    from msgspec import to_builtins

    listing = found.listing
    return {
        "checkpoints": [
            {
                **to_builtins(each),
                "unused": found.unused.get(each.path),
                "doubt": found.doubts.get(each.path),
                **quality_object(known.get(each.path)),
            }
            for each in listing.checkpoints
        ],
        "resume_point": listing.resume_point,
        "best": next((path for path, quality in known.items() if quality.best), None),
    }


def print_overview(overview: "CheckpointOverview") -> None:
    """What is inside one."""
    print(*rows([(overview.checkpoint, "")]))
    if overview.unknown:
        from trainwatch.core.views import quantity

        print(f"  saved       {quantity.duration(max(0.0, time.time() - overview.checkpoint.mtime))} ago")
        print(f"  unknown     {overview.unknown}")
    types = ", ".join(f"{name} {count:,}" for name, count in overview.dtypes.items())
    print(f"  layout      {overview.layout}")
    print(f"  parameters  {overview.parameters:,} ({types})" if types else "  parameters  not listed")
    holds = [
        ("optimizer", overview.has_optimizer),
        ("EMA", overview.has_ema),
        ("compiled model keys", overview.compiled),
    ]
    nothing = "weights only" if types else "nothing that can be listed without running code"
    print(f"  holds       {', '.join(name for name, there in holds if there) or nothing}")
    for key, value in overview.state.items():
        print(f"  state       {printable(f'{key} = {value}')}")
    for key, value in list(overview.metadata.items())[:SHOWN_METADATA]:
        print(f"  metadata    {printable(f'{key} = {value}')[:METADATA_WIDTH]}")
    if len(overview.metadata) > SHOWN_METADATA:
        print(f"  … and {len(overview.metadata) - SHOWN_METADATA:,} metadata values more (--json lists all)")
    for member in overview.members:
        print(f"  member      {size(member.size_bytes):>9}  {printable(member.name)}")
    for tensor in overview.tensors[:SHOWN_TENSORS]:
        print(f"  tensor      {tensor.dtype:6} {'×'.join(map(str, tensor.shape)):>18}  {printable(tensor.name)}")
    if len(overview.tensors) > SHOWN_TENSORS:
        print(f"  … and {len(overview.tensors) - SHOWN_TENSORS:,} tensors more (--json lists all)")


def print_comparison(found: "Comparison") -> None:
    """How far the weights moved, the largest changes first."""
    moved = "–" if found.relative_change is None else f"{found.relative_change:.2%}"
    print(f"{printable(found.a)} -> {printable(found.b)}: weights moved by {moved}")
    for sentence in found.wrong_checksums:
        print(f"  WARNING {printable(sentence)}")
    for title, names in (("only in the first", found.only_in_a), ("only in the second", found.only_in_b)):
        if names:
            print(f"  {title}: {len(names)} tensors, such as {names[0]}")
    for name, before, after in found.other_shape:
        print(f"  shape of {name}: {before} -> {after}")
    for name, kind, other in found.other_type:
        print(f"  type of {name}: {kind} -> {other}")
    if found.nonfinite_a or found.nonfinite_b:
        print(f"  NaN or Inf: {found.nonfinite_a:,} in the first, {found.nonfinite_b:,} in the second")
    ordered = sorted(
        found.changes, key=lambda c: -1.0 if c.relative_change is None else c.relative_change, reverse=True
    )
    for change in ordered[:SHOWN_TENSORS]:
        amount = "–" if change.relative_change is None else f"{change.relative_change:.2%}"
        print(f"  {amount:>9}  norm {change.norm_a:.4g} -> {change.norm_b:.4g}  {change.name}")
    for name, why in found.skipped:
        print(f"  not compared: {name} ({why})")


def print_plan(plan: "PrunePlan", outcome: "PruneOutcome | None") -> None:
    """The checkpoints that are kept, with reasons, and those that would be (or were) deleted."""
    for kept in plan.keep:
        print(f"keep    {printable(kept.checkpoint.name):36} {kept.why}")
    for checkpoint in plan.delete:
        print(f"delete  {printable(checkpoint.name):36} {size(checkpoint.size_bytes)}")
    if outcome is None:
        print(f"{size(plan.freed_bytes)} would be freed; nothing was deleted (--apply deletes)")
        return
    for path, why in outcome.refused:
        print(f"refused {printable(path)}: {why}")
    print(f"{len(outcome.deleted)} deleted, {size(outcome.freed_bytes)} freed")
