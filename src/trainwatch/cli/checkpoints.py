"""``trainwatch checkpoints list · verify · show · compare · rate · prune · backup``: work with saved checkpoints."""

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.model.text import size, verdict_word

from .output import printable, put
from .verb import PART_JSON, Verb, Verbs, arg, flag

if TYPE_CHECKING:
    from trainwatch.core.app import checkpoint_tools as tools
    from trainwatch.core.model.checkpoint import Checkpoint


VERBS = Verbs()


VERBS.add("checkpoints", Verb(
    "list, verify, show, compare, rate, prune and back up checkpoints",
    "Works with saved checkpoints. Nothing is ever unpickled; only prune --apply and backup write.",
    "list outputs/ --json",
    (), None,
))  # fmt: skip
SAVES = "the directory that the trainer saves into"
DIRECTORY = arg("directory", help=SAVES)
PATH = arg("path", help="a checkpoint file or directory")


@VERBS(
    "checkpoints list", "the checkpoints of a directory", "", "outputs/", PART_JSON,
    arg("directory", nargs="?", help=f"{SAVES}, or a run; left out: this project's run"),
)  # fmt: skip
def act_list(args: argparse.Namespace) -> int:
    from trainwatch.core.app.checkpoint_tools import checkpoints_in, saved_by

    directory = saved_by(args.directory)
    found, unknown = checkpoints_in(directory)
    told = ((c, quality_words(found.quality.get(c.path)) + resume_words(c, found)) for c in found.listing.checkpoints)
    lines = rows([(named_below(c, args.directory or os.curdir), words) for c, words in told])
    lines = lines or [f"no checkpoints in {directory}"]
    others = [other.name for other in unknown]
    if others:
        more = f" and {len(others) - OTHERS_SHOWN} more" if len(others) > OTHERS_SHOWN else ""
        lines.append(f"may be the state of a training, of no known make: {', '.join(others[:OTHERS_SHOWN])}{more}")
    return put(args, with_quality(found), *lines)


def named_below(checkpoint: "Checkpoint", folder: str) -> "Checkpoint":
    """With its path from the folder on as its name; the whole path if the folder is that of a run that was named."""
    from msgspec.structs import replace

    name = os.path.relpath(checkpoint.path, folder)
    return replace(checkpoint, name=checkpoint.path if name.startswith(os.pardir) else name)


@VERBS(
    "checkpoints verify", "verify one checkpoint", "", "outputs/checkpoint-500 --deep", PART_JSON, PATH,
    flag("--deep", "read every byte: checksums, and every value finite"),
)  # fmt: skip
def act_verify(args: argparse.Namespace) -> int:
    """Print the verdict on one checkpoint; exit code 1 unless it is complete."""
    from trainwatch.core.app.checkpoint_tools import verify_one

    found = verify_one(args.path, deep=args.deep)
    put(args, found, *rows([(found, "")]), *(f"  not checked (no tensors): {name}" for name in found.opaque))
    return ExitCode.DONE if found.verdict == "complete" else ExitCode.FAILED


@VERBS("checkpoints show", "what a checkpoint contains", "", "outputs/checkpoint-500", PART_JSON, PATH)
def act_show(args: argparse.Namespace) -> int:
    from trainwatch.core.app.checkpoint_tools import overview_of

    overview = overview_of(args.path)
    return put(args, overview, *overview_lines(overview))


@VERBS(
    "checkpoints compare", "how two checkpoints differ", "", "checkpoint-500 checkpoint-1000", PART_JSON,
    arg("a", help="a checkpoint file or directory"), arg("b", help="another one"),
)  # fmt: skip
def act_compare(args: argparse.Namespace) -> int:
    """1 if the two cannot be compared."""
    from msgspec import to_builtins

    from trainwatch.core.app.checkpoint_tools import compare_two, inspect_one, quality_of

    found = compare_two(args.a, args.b)
    both = [one for one in map(inspect_one, (args.a, args.b)) if one is not None]
    known = quality_of(both)
    quality = [f"  {one.name}{quality_words(known[one.path])}" for one in both if one.path in known]
    told = {**to_builtins(found), "quality": [quality_object(known.get(one.path)) for one in both]}
    return put(args, told, *comparison_lines(found), *quality)


@VERBS(
    "checkpoints rate", "rate a checkpoint with 1 to 5 stars", "", "checkpoint-500 4 --note sharp", PART_JSON,
    arg("path", help="a checkpoint, or the name of one that a run of yours saved"),
    arg("stars", type=int, help="1 to 5; with 4 or 5, retention and prune never delete it; 0 removes the rating"),
    arg("--note", default="", help="what you think of it"),
)  # fmt: skip
def act_rate(args: argparse.Namespace) -> int:
    """Write the rating down; 3 if there is no such checkpoint, 2 for another number of stars."""
    from trainwatch.core.app.checkpoint_tools import rate

    found, rating = rate(args.path, args.stars, args.note)
    told = {"path": found.path, "name": found.name, "rating": rating.stars or None, "note": rating.note or None}
    return put(args, told, f"{found.name}: {rating.words or 'not rated'}")


@VERBS(
    "checkpoints prune", "which old checkpoints could be deleted (dry run)", "", "outputs/ --keep 3", PART_JSON,
    DIRECTORY,
    arg("--keep", type=int, required=True, metavar="N", help="how many of the newest verified ones stay"),
    flag("--apply", "delete them; the resume point always stays"),
)  # fmt: skip
def act_prune(args: argparse.Namespace) -> int:
    """1 if a deletion was refused."""
    from trainwatch.core.app.checkpoint_tools import apply_prune, prune_plan

    plan = prune_plan(args.directory, args.keep)
    outcome = apply_prune(plan) if args.apply else None
    put(args, {"plan": plan, "applied": outcome}, *plan_lines(plan, outcome))
    return ExitCode.FAILED if outcome is not None and outcome.refused else ExitCode.DONE


@VERBS(
    "checkpoints backup", "copy a checkpoint and verify the copy", "", "best.safetensors /backup", PART_JSON, PATH,
    arg("destination", help="a folder (made if missing), or a name that does not exist yet; nothing is overwritten"),
)  # fmt: skip
def act_backup(args: argparse.Namespace) -> int:
    """Copy and verify the copy. Returns 1 if that failed; the copy is then removed."""
    from trainwatch.core.app.checkpoint_tools import back_up

    done = back_up(args.path, args.destination)
    told = "and verified" if done.checkpoint.understood else "byte for byte; whether it is whole cannot be told"
    return put(args, done, f"{done.destination}: copied {told} ({verdict_word(done.checkpoint.verdict)})")


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


def quality_words(known: "tools.Quality | None") -> str:
    """`` · fid 12.3 (best) · 4 of 5 stars: sharp``; empty if nothing is known."""
    if known is None:
        return ""
    from trainwatch.core.model.checkpoint import score_words

    score = "" if known.evaluation is None else score_words(known.evaluation) + (" (best)" if known.best else "")
    rating = "" if known.rating is None else known.rating.words
    return "".join(f" · {printable(part)}" for part in (score, rating) if part)


def quality_object(known: "tools.Quality | None") -> dict[str, Any]:
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


def resume_words(checkpoint: "Checkpoint", found: "tools.KnownListing") -> str:
    """Whether a restart would take it, and how far that is known; or why it does not, though it is complete."""
    why = found.unused.get(checkpoint.path)
    if why is not None:
        return f" · {printable(why)}"
    doubt = f" · {said}" if (said := found.doubts.get(checkpoint.path)) else ""
    if checkpoint.path != found.listing.resume_point:
        return doubt
    return doubt + ("  <- resume point" if checkpoint.path in found.known else QUICK_LOOK)


def with_quality(found: "tools.KnownListing") -> dict[str, Any]:
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
                **quality_object(found.quality.get(each.path)),
            }
            for each in listing.checkpoints
        ],
        "resume_point": listing.resume_point,
        "best": next((path for path, quality in found.quality.items() if quality.best), None),
    }


def overview_lines(overview: "tools.Overview") -> Iterator[str]:
    yield from rows([(overview.checkpoint, "")])
    if overview.unknown:
        from trainwatch.core.views import quantity

        yield f"  saved       {quantity.duration(max(0.0, time.time() - overview.checkpoint.mtime))} ago"
        yield f"  unknown     {overview.unknown}"
    types = ", ".join(f"{name} {count:,}" for name, count in overview.dtypes.items())
    yield f"  layout      {overview.layout}"
    yield f"  parameters  {overview.parameters:,} ({types})" if types else "  parameters  not listed"
    holds = ("optimizer", overview.has_optimizer), ("EMA", overview.has_ema), ("compiled model keys", overview.compiled)
    nothing = "weights only" if types else "nothing that can be listed without running code"
    yield f"  holds       {', '.join(name for name, there in holds if there) or nothing}"
    for key, value in overview.state.items():
        yield f"  state       {printable(f'{key} = {value}')}"
    for key, value in list(overview.metadata.items())[:SHOWN_METADATA]:
        yield f"  metadata    {printable(f'{key} = {value}')[:METADATA_WIDTH]}"
    if len(overview.metadata) > SHOWN_METADATA:
        yield f"  … and {len(overview.metadata) - SHOWN_METADATA:,} metadata values more (--json lists all)"
    for member in overview.members:
        yield f"  member      {size(member.size_bytes):>9}  {member.name}"
    for tensor in overview.tensors[:SHOWN_TENSORS]:
        yield f"  tensor      {tensor.dtype:6} {'×'.join(map(str, tensor.shape)):>18}  {tensor.name}"
    if len(overview.tensors) > SHOWN_TENSORS:
        yield f"  … and {len(overview.tensors) - SHOWN_TENSORS:,} tensors more (--json lists all)"


def comparison_lines(found: "tools.Comparison") -> Iterator[str]:
    """How far the weights moved, the largest changes first."""
    moved = "–" if found.relative_change is None else f"{found.relative_change:.2%}"
    yield f"{found.a} -> {found.b}: weights moved by {moved}"
    for title, names in (("only in the first", found.only_in_a), ("only in the second", found.only_in_b)):
        if names:
            yield f"  {title}: {len(names)} tensors, such as {names[0]}"
    for name, before, after in found.other_shape:
        yield f"  shape of {name}: {before} -> {after}"
    if found.nonfinite_a or found.nonfinite_b:
        yield f"  NaN or Inf: {found.nonfinite_a:,} in the first, {found.nonfinite_b:,} in the second"
    ordered = sorted(
        found.changes, key=lambda c: -1.0 if c.relative_change is None else c.relative_change, reverse=True
    )
    for change in ordered[:SHOWN_TENSORS]:
        amount = "–" if change.relative_change is None else f"{change.relative_change:.2%}"
        yield f"  {amount:>9}  norm {change.norm_a:.4g} -> {change.norm_b:.4g}  {change.name}"
    for name, why in found.skipped:
        yield f"  not compared: {name} ({why})"


def plan_lines(plan: "tools.PrunePlan", outcome: "tools.PruneOutcome | None") -> Iterator[str]:
    """The checkpoints that are kept, with reasons, and those that would be (or were) deleted."""
    for kept in plan.keep:
        yield f"keep    {kept.checkpoint.name:36} {kept.why}"
    for checkpoint in plan.delete:
        yield f"delete  {', '.join((checkpoint.name, *checkpoint.parts)):36} {size(checkpoint.size_bytes)}"
    if outcome is None:
        yield f"{size(plan.freed_bytes)} would be freed; nothing was deleted (--apply deletes)"
        return
    for path, why in outcome.refused:
        yield f"refused {path}: {why}"
    yield f"{len(outcome.deleted)} deleted, {size(outcome.freed_bytes)} freed"
