"""``trainwatch checkpoints list · verify · show · compare · prune · backup``: work with saved checkpoints."""

import argparse
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.model.checkpoints.checkpoint import Checkpoint

from . import checkpoint_text as text
from .output import print_json, printable

Part = Callable[[argparse.Namespace], int]


SECTION = "examine"
HELP = "list, verify, show, compare, prune and back up checkpoints"
DESCRIPTION = "Works with saved checkpoints. Nothing is ever unpickled; only prune --apply and backup write."
EXAMPLE = "list outputs/ --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(title="parts", metavar="PART", dest="part", required=True)
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
    compare.add_argument("a")
    compare.add_argument("b")
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


def _part(parts: Any, name: str, what: str, example: str, act: Part) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parts.add_parser(
        name, help=what, description=what, epilog=f"example: trainwatch checkpoints {example}"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(act_part=act)
    return parser


def act(args: argparse.Namespace) -> int:
    part: Part = args.act_part
    return part(args)


def act_list(args: argparse.Namespace) -> int:
    """Print the listing, newest first."""
    from trainwatch.core.checkpoints import list_checkpoints

    try:
        listing = list_checkpoints(_directory(args.directory))
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{args.directory}: {error.strerror or error}") from None
    if args.json:
        print_json(listing)
        return ExitCode.DONE
    if not listing.checkpoints:
        print(f"no checkpoints in {args.directory}")
    for checkpoint in listing.checkpoints:
        mark = "  <- resume point" if checkpoint.path == listing.resume_point else ""
        print(text.row(checkpoint) + mark)
    return ExitCode.DONE


def act_verify(args: argparse.Namespace) -> int:
    """Print the verdict; 1 unless complete."""
    from trainwatch.core.checkpoints import is_checkpoint_directory, list_checkpoints, verify

    path = _existing(args.path)
    inside = () if path.is_file() or is_checkpoint_directory(path) else list_checkpoints(path).checkpoints
    if len(inside) > 1:
        example = printable(inside[0].path)
        raise CliError(
            ExitCode.USAGE, f"{args.path}: holds {len(inside)} checkpoints; verify one of them, such as {example}"
        )
    found: Checkpoint = verify(path, deep=args.deep)
    if args.json:
        print_json(found)
    else:
        print(text.row(found))
        for name in found.opaque:
            print(f"  not looked into (no tensors): {name}")
    return ExitCode.DONE if found.verdict == "complete" else ExitCode.FAILED


def act_show(args: argparse.Namespace) -> int:
    """Print what is inside: members, tensors, training state."""
    from trainwatch.core.checkpoints import show

    overview = show(_existing(args.path))
    if overview is None:
        raise CliError(ExitCode.FAILED, f"{args.path}: is no checkpoint; see `trainwatch checkpoints list DIR`")
    if args.json:
        print_json(overview)
    else:
        text.print_overview(overview)
    return ExitCode.DONE


def act_compare(args: argparse.Namespace) -> int:
    """Print how far the weights moved; 1 when the two cannot be compared."""
    from trainwatch.core.checkpoints import ComparisonRefusedError, compare

    try:
        found = compare(_existing(args.a), _existing(args.b))
    except ComparisonRefusedError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    if args.json:
        print_json(found)
    else:
        text.print_comparison(found)
    return ExitCode.DONE


def act_prune(args: argparse.Namespace) -> int:
    """Print the plan, and carry it out with --apply; 1 when something was refused."""
    from trainwatch.core.checkpoints import apply_prune, plan_prune

    try:
        plan = plan_prune(_directory(args.directory), args.keep)
    except ValueError as error:
        raise CliError(ExitCode.USAGE, f"--keep: {error}") from None
    outcome = apply_prune(plan) if args.apply else None
    if args.json:
        print_json({"plan": plan, "applied": outcome})
    else:
        text.print_plan(plan, outcome)
    return ExitCode.FAILED if outcome is not None and outcome.refused else ExitCode.DONE


def act_backup(args: argparse.Namespace) -> int:
    """Copy and prove the copy; 1 when it could not be done, and then nothing is left of it."""
    from trainwatch.core.checkpoints import BackupRefusedError, backup

    source, destination = _existing(args.path), Path(args.destination)
    # A file goes by the suffix that it has: a name without one, or with a slash behind it, means a folder.
    folder = args.destination.endswith("/") or (source.is_file() and not destination.suffix)
    if not destination.absolute().parent.is_dir():
        raise CliError(ExitCode.NOT_FOUND, f"{destination.parent}: no such directory; create it first")
    made = folder and not destination.exists()
    try:
        if made:
            destination.mkdir()
        done = backup(source, destination)
    except BackupRefusedError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{args.destination}: {error.strerror or error}") from None
    finally:
        if made:
            with suppress(OSError):  # it stays where something is in it
                destination.rmdir()
    if args.json:
        print_json(done)
    else:
        print(f"{done.destination}: copied and verified ({done.checkpoint.verdict})")
    return ExitCode.DONE


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{name}: no such checkpoint; see `trainwatch checkpoints list DIR`")
    return path


def _directory(name: str) -> Path:
    path = Path(name)
    if not path.is_dir():
        raise CliError(ExitCode.NOT_FOUND, f"{name}: no such directory; give the trainer's output directory")
    return path
