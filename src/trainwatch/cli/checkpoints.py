"""``trainwatch checkpoints list · verify · show · compare · rate · prune · backup``: work with saved checkpoints."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.model.verdict_words import verdict_word

from . import checkpoint_text as text
from .output import print_json, printable
from .verb import Act, Verbs, act_part, add_part, add_parts

if TYPE_CHECKING:
    from trainwatch.core.model.checkpoint import Checkpoint


VERBS = Verbs()


def checkpoints_arguments(parser: argparse.ArgumentParser) -> None:
    parts = add_parts(parser)
    listing = _part(parts, "list", "the checkpoints of a directory", "list outputs/", act_list)
    listing.add_argument("directory", help="the directory that the trainer saves into")
    verify = _part(parts, "verify", "verify one checkpoint", "verify outputs/checkpoint-500 --deep", act_verify)
    verify.add_argument("path", help="a checkpoint file or directory")
    verify.add_argument("--deep", action="store_true", help="read every byte: checksums, and every value finite")
    show = _part(parts, "show", "what a checkpoint contains", "show outputs/checkpoint-500", act_show)
    show.add_argument("path", help="a checkpoint file or directory")
    compare = _part(
        parts, "compare", "how two checkpoints differ", "compare checkpoint-500 checkpoint-1000", act_compare
    )
    compare.add_argument("a", help="a checkpoint file or directory")
    compare.add_argument("b", help="another one")
    rate = _part(parts, "rate", "rate a checkpoint with 1 to 5 stars", "rate checkpoint-500 4 --note sharp", act_rate)
    rate.add_argument("path", help="a checkpoint, or the name of one that a run of yours saved")
    rate.add_argument(
        "stars", type=int, help="1 to 5; with 4 or 5, retention and prune never delete it; 0 removes the rating"
    )
    rate.add_argument("--note", default="", help="what you think of it")
    prune = _part(
        parts, "prune", "which old checkpoints could be deleted (dry run)", "prune outputs/ --keep 3", act_prune
    )
    prune.add_argument("directory", help="the directory that the trainer saves into")
    prune.add_argument("--keep", type=int, required=True, metavar="N", help="how many of the newest verified ones stay")
    prune.add_argument("--apply", action="store_true", help="delete them; the resume point always stays")
    backup = _part(
        parts, "backup", "copy a checkpoint and verify the copy", "backup best.safetensors /backup", act_backup
    )
    backup.add_argument("path", help="a checkpoint file or directory")
    backup.add_argument(
        "destination", help="a folder (made if missing), or a name that does not exist yet; nothing is overwritten"
    )


VERBS(
    "checkpoints",
    "list, verify, show, compare, rate, prune and back up checkpoints",
    "Works with saved checkpoints. Nothing is ever unpickled; only prune --apply and backup write.",
    "list outputs/ --json",
    checkpoints_arguments,
)(act_part)


def _part(parts: Any, name: str, what: str, example: str, act: Act) -> argparse.ArgumentParser:
    return add_part(parts, name, what, f"checkpoints {example}", act)


def act_list(args: argparse.Namespace) -> int:
    """Print the checkpoints of a folder, newest first."""
    from trainwatch.core.app.checkpoint_tools import checkpoints_in, quality_of

    found, unknown = checkpoints_in(args.directory)
    listing, known = found.listing, quality_of(found.listing.checkpoints)
    if args.json:
        print_json(text.with_quality(found, known))
        return ExitCode.DONE
    if not listing.checkpoints:
        print(f"no checkpoints in {args.directory}")
    for line in text.rows(
        [
            (named_below(c, args.directory), text.quality_words(known.get(c.path)) + text.resume_words(c, found))
            for c in listing.checkpoints
        ]
    ):
        print(line)
    others = [other.name for other in unknown]
    if others:
        more = f" and {len(others) - text.OTHERS_SHOWN} more" if len(others) > text.OTHERS_SHOWN else ""
        names = ", ".join(printable(name) for name in others[: text.OTHERS_SHOWN])
        print(f"may be the state of a training, of no known make: {names}{more}")
    return ExitCode.DONE


def named_below(checkpoint: "Checkpoint", folder: str) -> "Checkpoint":
    """With its path from the folder on as its name."""
    from msgspec.structs import replace

    return replace(checkpoint, name=os.path.relpath(checkpoint.path, folder))


def act_verify(args: argparse.Namespace) -> int:
    """Print the verdict on one checkpoint; exit code 1 unless it is complete."""
    from trainwatch.core.app.checkpoint_tools import verify_one

    found = verify_one(args.path, deep=args.deep)
    if args.json:
        print_json(found)
    else:
        print(*text.rows([(found, "")]))
        for name in found.opaque:
            print(f"  not checked (no tensors): {name}")
    return ExitCode.DONE if found.verdict == "complete" else ExitCode.FAILED


def act_show(args: argparse.Namespace) -> int:
    """Members, tensors, training state."""
    from trainwatch.core.app.checkpoint_tools import overview_of

    overview = overview_of(args.path)
    if args.json:
        print_json(overview)
    else:
        text.print_overview(overview)
    return ExitCode.DONE


def act_compare(args: argparse.Namespace) -> int:
    """1 if the two cannot be compared."""
    from msgspec import to_builtins

    from trainwatch.core.app.checkpoint_tools import compare_two, inspect_one, quality_of

    found = compare_two(args.a, args.b)
    both = [one for one in map(inspect_one, (args.a, args.b)) if one is not None]
    known = quality_of(both)
    if args.json:
        print_json({**to_builtins(found), "quality": [text.quality_object(known.get(one.path)) for one in both]})
        return ExitCode.DONE
    text.print_comparison(found)
    for one in both:
        if one.path in known:
            print(f"  {printable(one.name)}{text.quality_words(known[one.path])}")
    return ExitCode.DONE


def act_rate(args: argparse.Namespace) -> int:
    """Write the rating down; 3 if there is no such checkpoint, 2 for another number of stars."""
    from trainwatch.core.app.checkpoint_tools import rate

    found, rating = rate(args.path, args.stars, args.note)
    if args.json:
        print_json(
            {"path": found.path, "name": found.name, "rating": rating.stars or None, "note": rating.note or None}
        )
    else:
        print(f"{printable(found.name)}: {printable(rating.words) or 'not rated'}")
    return ExitCode.DONE


def act_prune(args: argparse.Namespace) -> int:
    """1 if a deletion was refused."""
    from trainwatch.core.app.checkpoint_tools import delete_planned, prune_plan

    plan = prune_plan(args.directory, args.keep)
    outcome = delete_planned(plan) if args.apply else None
    if args.json:
        print_json({"plan": plan, "applied": outcome})
    else:
        text.print_plan(plan, outcome)
    return ExitCode.FAILED if outcome is not None and outcome.refused else ExitCode.DONE


def act_backup(args: argparse.Namespace) -> int:
    """Copy and verify the copy. Returns 1 if that failed; the copy is then removed."""
    from trainwatch.core.app.checkpoint_tools import back_up

    done = back_up(args.path, args.destination)
    if args.json:
        print_json(done)
    else:
        told = "and verified" if done.checkpoint.understood else "byte for byte; whether it is whole cannot be told"
        print(f"{printable(done.destination)}: copied {told} ({verdict_word(done.checkpoint.verdict)})")
    return ExitCode.DONE
