"""``trainwatch metrics``: the newest values of all runs for Prometheus."""

import argparse
from pathlib import Path

from trainwatch.core.app.errors import ExitCode

from ..output import warn

HELP = "the newest values of all runs, for Prometheus"
DESCRIPTION = (
    "Prints the newest values of all runs of this user in the Prometheus text format: steps, loss, checkpoints, "
    "incidents, troubles, GPUs, host; runs that are over for a day are left out. --textfile writes them for the "
    "textfile collector of node_exporter, in one rename; call it from a timer. For an endpoint that Prometheus reads "
    "itself, set [metrics] prometheus in trainwatch.toml."
)
EXAMPLE = "--textfile /var/lib/node_exporter/trainwatch.prom"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--textfile", metavar="PATH", help="write to this file (*.prom) instead; replaces an older one")


def act(args: argparse.Namespace) -> int:
    from trainwatch.core.app.metrics_out.prometheus_page import prometheus_page, write_textfile

    if args.textfile is not None:
        write_textfile(Path(args.textfile), warn)
        return ExitCode.DONE
    print(prometheus_page(warn), end="")
    return ExitCode.DONE
