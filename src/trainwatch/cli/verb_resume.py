"""``trainwatch resume [RUN]``: continue after a stop, an interruption or a give-up."""

import argparse

from .operation import add_operation, add_remedies, operate

SECTION = "control"
HELP = "continue after a stop, an interruption or a give-up"
DESCRIPTION = HELP
EXAMPLE = "--from outputs/name-000004.safetensors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fresh", action="store_true", help="from the beginning, whatever checkpoints there are")
    parser.add_argument("--from", dest="checkpoint", metavar="CHECKPOINT", help="file or directory to resume from")
    parser.add_argument(
        "--incident", type=int, metavar="N", help="only if incident N still waits for an answer ([restart] act)"
    )
    add_remedies(parser)
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(
        args,
        starts_supervisor=True,
        fresh=args.fresh,
        incident=args.incident,
        checkpoint=args.checkpoint,
        remedies=tuple(args.remedies),
        without_remedies=args.without_remedies,
    )
