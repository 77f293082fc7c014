"""``trainwatch diagnose LOG|-|--run RUN``: report why a run failed, from its log and what else is known."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import CliError, ExitCode

from ..output import print_json, warn
from .log_input import text_blocks

if TYPE_CHECKING:
    from trainwatch.core.app.runs.ended_attempt import EndedAttempt

HELP = "why a run failed, from its log"
DESCRIPTION = (
    "Reads a log once and reports the failure class, the first cause and its consequences. The options add what else "
    "is known of the end; --run takes all of that from a run. Patterns for messages that trainwatch does not recognise "
    "can be set in trainwatch.toml ([diagnose] patterns), or with --teach, which writes trainwatch.learned.toml beside "
    "it."
)
EXAMPLE = "outputs/train.log --exit-code 1 --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", nargs="?", help="the log, or - for standard input")
    parser.add_argument(
        "--run", metavar="RUN", help="the newest attempt of this run, with all that is known of its end"
    )
    parser.add_argument("--exit-code", type=int, help="exit code of the trainer (negative or 128+N: a signal)")
    parser.add_argument("--oom-kills", type=int, metavar="N", help="processes that the kernel killed for memory")
    parser.add_argument("--disk-free", type=float, metavar="BYTES", help="room on the disk of the output")
    parser.add_argument("--inodes-free", type=float, metavar="N", help="files that could still be created there")
    parser.add_argument("--swap-used", type=float, metavar="PERCENT", help="share of swap in use")
    parser.add_argument("--kernel-log", metavar="FILE", help="lines of the kernel log from that time (dmesg)")
    parser.add_argument(
        "--checkpoint",
        choices=("complete", "torn", "corrupt", "nonfinite"),
        help="verdict on the checkpoint that it resumed from (trainwatch checkpoints verify)",
    )
    parser.add_argument("--stacks", metavar="FILE", help="where its threads stood at the end (py-spy dump)")
    parser.add_argument(
        "--earlier", action="append", default=[], metavar="CLASS", help="how an earlier attempt ended (may be repeated)"
    )
    parser.add_argument("--teach", metavar="CLASS", help="remember the line that ended it as one of this failure class")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """0 whenever there is an answer (``unknown`` included)."""
    from trainwatch.core.app.logs import diagnose_log, project_folder, teach

    end = _end(args)
    if args.log is not None:
        name = args.log
    elif end is not None:
        name = str(end.log)
    else:
        raise CliError(ExitCode.USAGE, "which log? give its path, - for standard input, or --run RUN")
    code = args.exit_code if args.exit_code is not None or end is None else end.code
    kernel = "" if args.kernel_log is None else "".join(text_blocks(args.kernel_log))
    facts, tail = _facts(args), list[str]()
    diagnosis = diagnose_log(_kept(text_blocks(name), tail), code, warn, end=end, facts=facts, kernel=kernel)
    if args.teach is not None:
        folder = end.folder if end is not None else project_folder()
        try:
            path, pattern = teach(args.teach, diagnosis, "".join(tail), folder)
        except (ValueError, OSError) as error:
            raise CliError(ExitCode.USAGE, str(error)) from None
        diagnosis = diagnose_log(tail, code, warn, end=end, facts=facts, kernel=kernel)
        if not args.json:
            print(f"{path}: {args.teach} += {pattern}")
    if args.json:
        print_json(diagnosis)
        return ExitCode.DONE
    restart = diagnosis.retry_reason or ("a restart may help" if diagnosis.retryable else "a restart would fail again")
    print(f"{diagnosis.failure}  ({diagnosis.title}, {diagnosis.confidence:.0%} sure; {restart})")
    if diagnosis.explanation:
        print(f"  {diagnosis.explanation}")
    if diagnosis.cause is not None:
        print(f"  cause    line {diagnosis.cause.line}: {diagnosis.cause.text}")
    if diagnosis.place:
        print(f"  at       {diagnosis.place}")
    follows = "last   " if diagnosis.failure == "unknown" else "cascade"
    for other in diagnosis.cascade:
        print(f"  {follows}  line {other.line}: {other.text}")
    for remedy in diagnosis.remedies:
        print(f"  remedy   {remedy}")
    return ExitCode.DONE


def _end(args: argparse.Namespace) -> "EndedAttempt | None":
    """What the run of ``--run`` knows of its end."""
    if args.run is None:
        return None
    from trainwatch.core.app.runs.ended_attempt import ended_attempt
    from trainwatch.core.app.runs.known_runs import find_run

    return ended_attempt(find_run(args.run))


def _facts(args: argparse.Namespace) -> dict[str, object]:
    """The facts that were given as options."""
    given = {
        "oom_kills": args.oom_kills,
        "disk_free_bytes": args.disk_free,
        "disk_free_inodes": args.inodes_free,
        "swap_used": None if args.swap_used is None else args.swap_used / 100,
        "checkpoint": args.checkpoint,
        "earlier": tuple(args.earlier) or None,
        "stack": None if args.stacks is None else "".join(text_blocks(args.stacks)),
    }
    return {name: value for name, value in given.items() if value is not None}


def _kept(blocks: Iterator[str], tail: list[str]) -> Iterator[str]:
    """The blocks, with the last two of them kept in ``tail``."""
    for block in blocks:
        tail[:] = [*tail[-1:], block]
        yield block
