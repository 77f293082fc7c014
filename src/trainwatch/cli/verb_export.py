"""``trainwatch export [RUN] --trace F``: write a run's recorded observations as a trace."""

import argparse
import sys
from pathlib import Path

import msgspec

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import RUN_HELP, find_run
from trainwatch.core.model.observation import KernelLine, LogChunk, Meta, Observation, Start
from trainwatch.core.model.text.redact import Redaction
from trainwatch.core.store.json_line import encode_line
from trainwatch.core.store.trace_reading import TraceReading

SECTION = "examine"
HELP = "write a run's recorded observations as a trace"
DESCRIPTION = (
    "Writes the observations of the sensors (bounded), for `trainwatch replay` or a bug report. Tokens, "
    "passwords and values of secret variables are removed from its texts."
)
EXAMPLE = "--trace night.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help=RUN_HELP)
    parser.add_argument("--trace", required=True, metavar="F", help="file to write; must not exist")


def act(args: argparse.Namespace) -> int:
    """Copy the trace; never overwrites."""
    run = find_run(args.run, newest=True)
    target = Path(args.trace)
    if not run.trace.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{run.id} has recorded nothing yet")
    if target.exists():
        raise CliError(ExitCode.USAGE, f"{target}: already exists; choose another name")
    redacted = Redaction(run.load_spec().env)
    try:
        with run.trace.open("rb") as source, target.open("xb") as copy:
            reading = TraceReading(source)
            for seen in reading:
                copy.write(encode_line(_shareable(seen, redacted)))
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.FAILED
        raise CliError(code, f"{target}: {error.strerror or error}") from None
    if reading.skipped:
        print(f"trainwatch: unreadable lines left out: {reading.skipped}; {reading.problem}", file=sys.stderr)
    print(f"{target}: written")
    return ExitCode.DONE


def _shareable(seen: Observation, redacted: Redaction) -> Observation:
    """The same without what must not be told to others."""
    match seen:
        case LogChunk() | KernelLine():
            return msgspec.structs.replace(seen, text=redacted.text(seen.text))
        case Meta():
            return msgspec.structs.replace(seen, command=redacted.words(seen.command))
        case Start():
            return msgspec.structs.replace(seen, changes=tuple(c for c in seen.changes if c.where != "env"))
        case _:
            return seen
