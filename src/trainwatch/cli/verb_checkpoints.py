"""``trainwatch checkpoints list DIR · verify PATH [--deep]``: what is saved, and whether it is sound."""

import argparse
import time
from pathlib import Path
from typing import Any

from trainwatch.core.model.checkpoint import Checkpoint

from .failure import CliError, ExitCode
from .output import print_json


def add(subparsers: Any) -> None:
    """Register the verb and its parts."""
    parser = subparsers.add_parser(
        "checkpoints",
        help="list and verify checkpoints",
        description="Looks at saved checkpoints. Nothing is unpickled, nothing is written.",
        epilog="example: trainwatch checkpoints list outputs/ --json",
    )
    parts = parser.add_subparsers(title="parts", metavar="PART", dest="part", required=True)
    listing = parts.add_parser(
        "list", help="the checkpoints of a directory", epilog="example: trainwatch checkpoints list outputs/"
    )
    listing.add_argument("directory", help="the directory that the trainer saves into")
    listing.add_argument("--json", action="store_true", help="one JSON object")
    listing.set_defaults(act=act_list)
    verify = parts.add_parser(
        "verify",
        help="prove one checkpoint",
        epilog="example: trainwatch checkpoints verify outputs/checkpoint-500 --deep",
    )
    verify.add_argument("path", help="a checkpoint file or directory")
    verify.add_argument("--deep", action="store_true", help="read every byte: checksums, and every value finite")
    verify.add_argument("--json", action="store_true", help="one JSON object")
    verify.set_defaults(act=act_verify)


def act_list(args: argparse.Namespace) -> int:
    """Print the listing, newest first; 3 when there is no such directory."""
    from trainwatch.core.checkpoints import list_checkpoints

    directory = Path(args.directory)
    if not directory.is_dir():
        raise CliError(ExitCode.NOT_FOUND, f"{args.directory}: no such directory; give the trainer's output directory")
    listing = list_checkpoints(directory)
    if args.json:
        print_json(listing)
        return ExitCode.DONE
    if not listing.checkpoints:
        print(f"no checkpoints in {directory}")
    for checkpoint in listing.checkpoints:
        mark = "  <- resume point" if checkpoint.path == listing.resume_point else ""
        print(_row(checkpoint) + mark)
    return ExitCode.DONE


def act_verify(args: argparse.Namespace) -> int:
    """Print the verdict; 1 unless complete, 3 when there is no such path."""
    from trainwatch.core.checkpoints import verify

    path = Path(args.path)
    if not path.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{args.path}: no such checkpoint; see `trainwatch checkpoints list DIR`")
    found = verify(path, deep=args.deep)
    if args.json:
        print_json(found)
    else:
        print(_row(found))
        for name in found.opaque:
            print(f"  not looked into (no tensors): {name}")
    return ExitCode.DONE if found.verdict == "complete" else ExitCode.FAILED


def _row(checkpoint: Checkpoint) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(checkpoint.mtime))
    position = [f"step {checkpoint.step:,}"] if checkpoint.step is not None else []
    position += [f"epoch {checkpoint.epoch}"] if checkpoint.epoch is not None else []
    reason = f": {checkpoint.reason}" if checkpoint.reason else ""
    size_mb = checkpoint.size_bytes / 1e6
    where = ", ".join(position) or "–"
    return f"{when}  {size_mb:10,.1f} MB  {checkpoint.name:36} {where:20} {checkpoint.verdict}{reason}"
