"""The verbs that examine logs and past runs."""

import argparse
import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from trainwatch.core.app.errors import CliError, ExitCode

from .output import print_json, put, warn
from .verb import JSON, RUN, Verbs, arg, flag, run_to_read

if TYPE_CHECKING:
    from trainwatch.core.app.logs import LogMetrics
    from trainwatch.core.app.runs.known_runs import RunDirectory


VERBS = Verbs()


FORMATS = {".md": "md", ".markdown": "md", ".txt": "md", ".html": "html", ".htm": "html", ".json": "json"}


@VERBS(
    "report",
    "what happened, what it cost, what waits for you; without secrets",
    "Reports a run: attempts, incidents with cause and evidence, checkpoints, changes, and what needs a "
    "decision, with the facts about this machine that a bug report needs. Secrets are removed.",
    "-o night.html",
    RUN,
    arg("-o", "--output", metavar="F", help="file to write; must not exist (default: standard output)"),
    arg("--format", choices=("md", "html", "json"), help="default: by the file's ending, else md"),
    flag("--short", "a few lines: what happened, what it cost, what needs you"),
    flag("--json", "the same as --format json"),
)
def report_verb(args: argparse.Namespace) -> int:
    """2 if the file exists."""
    target = Path(args.output) if args.output else None
    run = run_to_read(args)
    by_name = FORMATS.get(target.suffix.lower() if target else "", "md")
    form = "json" if args.json else "short" if args.short else args.format or by_name
    if target is None:
        if form == "json":
            from trainwatch.core.app.runs.report import report_of

            print_json(report_of(run))
        else:
            getattr(sys.stdout, "write_redacted", sys.stdout.write)(_text(run, form))  # it has no secrets any more
            sys.stdout.flush()
        return ExitCode.DONE
    from trainwatch.core.app.export import writing

    with writing(target), target.open("x", encoding="utf-8", errors="replace") as file:  # also one made meanwhile stays
        file.write(_text(run, form))
    print(f"{target}: written")
    return ExitCode.DONE


def _text(run: "RunDirectory", form: str) -> str:
    """The report without secrets."""
    if form == "short":
        from trainwatch.core.app.runs.report import short_report_of

        return short_report_of(run)
    from trainwatch.core.app.runs.report import report_of
    from trainwatch.core.model.redact import EDGE

    report = EDGE.value(report_of(run))
    if form == "json":
        import msgspec

        from trainwatch.core.model.json_line import encode_line

        return msgspec.json.format(encode_line(report), indent=2).decode() + "\n"
    if form == "html":
        from trainwatch.core.app.runs.report import charts_of
        from trainwatch.core.views.report_pages import html

        return html(report, charts_of(run))
    from trainwatch.core.views.report_pages import markdown

    return markdown(report)


@VERBS(
    "diagnose",
    "why a run failed, from its log",
    "Reads a log once and reports the failure class, the first cause and its consequences. The options add what else "
    "is known of the end; --run takes all of that from a run. Patterns for messages that trainwatch does not recognise "
    "can be set in trainwatch.toml ([diagnose] patterns).",
    "outputs/train.log --exit-code 1 --json",
    arg("log", nargs="?", help="the log, or - for standard input"),
    arg("--run", metavar="RUN", help="the newest attempt of this run, with all that is known of its end"),
    arg("--exit-code", type=int, help="exit code of the trainer (negative or 128+N: a signal)"),
    arg("--oom-kills", type=int, metavar="N", help="processes that the kernel killed for memory"),
    arg("--disk-free", type=float, metavar="BYTES", help="room on the disk of the output"),
    arg("--kernel-log", metavar="FILE", help="lines of the kernel log from that time (dmesg)"),
    arg(
        "--checkpoint",
        choices=("complete", "torn", "corrupt", "nonfinite"),
        help="verdict on the checkpoint that it resumed from (trainwatch checkpoints verify)",
    ),
    JSON,
)
def diagnose_verb(args: argparse.Namespace) -> int:
    """0 whenever there is an answer (``unknown`` included)."""
    from trainwatch.core.app.logs import diagnose_log

    end = None
    if args.run is not None:
        from trainwatch.core.app.runs.ended_attempt import ended_attempt
        from trainwatch.core.app.runs.known_runs import find_run

        end = ended_attempt(find_run(args.run))
    if args.log is not None:
        name = args.log
    elif end is not None:
        name = str(end.log)
    else:
        raise CliError(ExitCode.USAGE, "which log? give its path, - for standard input, or --run RUN")
    code = args.exit_code if args.exit_code is not None or end is None else end.code
    kernel = "" if args.kernel_log is None else "".join(text_blocks(args.kernel_log))
    given = {"oom_kills": args.oom_kills, "disk_free_bytes": args.disk_free, "checkpoint": args.checkpoint}
    facts = {name: value for name, value in given.items() if value is not None}
    diagnosis = diagnose_log(text_blocks(name), code, warn, end=end, facts=facts, kernel=kernel)
    restart = f"; {diagnosis.retry_reason}" if diagnosis.retry_reason else ""
    lines = [f"{diagnosis.failure}  ({diagnosis.title}, {diagnosis.confidence:.0%} sure{restart})"]
    lines += [f"  {diagnosis.explanation}"] if diagnosis.explanation else []
    if diagnosis.cause is not None:
        lines.append(f"  cause    line {diagnosis.cause.line}: {diagnosis.cause.text}")
    lines += [f"  at       {diagnosis.place}"] if diagnosis.place else []
    follows = "last   " if diagnosis.failure == "unknown" else "cascade"
    lines += [f"  {follows}  line {other.line}: {other.text}" for other in diagnosis.cascade]
    return put(args, diagnosis, *lines, *(f"  remedy   {remedy}" for remedy in diagnosis.remedies))


@VERBS(
    "progress",
    "the progress that a log shows",
    "Reads a log once and reports the progress of the training after its last line. Patterns for lines that it does "
    "not recognise can be set in trainwatch.toml ([progress] shapes).",
    "outputs/train.log --json",
    arg("log", help="the log, or - for standard input"),
    flag("--all", "also the newest value of every number that it prints by name"),
    JSON,
)
def progress_verb(args: argparse.Namespace) -> int:
    """Print the progress; unknown values are null (JSON) or left out (text)."""
    import msgspec

    from trainwatch.core.app.logs import metrics_in_log, progress_in_log

    metrics: LogMetrics | None = None
    if args.all:
        progress, metrics = metrics_in_log(text_blocks(args.log), warn)
    else:
        progress = progress_in_log(text_blocks(args.log), warn)
    shown = msgspec.structs.asdict(progress)
    also = {} if metrics is None else {"metrics": metrics.values, "metrics_left_out": metrics.left_out}
    lines = [f"{name:14} {value}" for name, value in shown.items() if value is not None]
    if metrics is not None:
        width = max((len(name) for name in metrics.values), default=0)
        lines += ["", "metrics" if metrics.values else "no metrics: no training line with a name and a number"]
        for name, number in metrics.values.items():
            lines.append(f"  {name:{width}}  {'NaN or infinite' if number is None else f'{number:.6g}'}")
        lines += [f"  {metrics.left_out} more names are left out"] if metrics.left_out else []
    return put(args, {**shown, **also}, *lines)


BLOCK_BYTES = 1 << 20
"""Large enough that the fast scan dominates, small enough to stay below 80 MB of memory."""
GZIP_MAGIC = b"\x1f\x8b"
HINT = "give the path of the file itself, or - for standard input"


def text_blocks(name: str) -> Iterator[str]:
    """Decoded blocks of a log; bytes that are not UTF-8 become U+FFFD, characters are not split."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with byte_lines(name, what="log") as file:
        while block := file.read(BLOCK_BYTES):
            yield decoder.decode(block)
    if rest := decoder.decode(b"", final=True):
        yield rest


@contextmanager
def byte_lines(name: str, *, what: str) -> Iterator[BinaryIO]:
    """The file ``name``, decompressed if it is a gzip file, or standard input for ``-``. Raises CliError.

    Exit code 3 if it does not exist, 2 if it cannot be read.
    """
    if name == "-":
        if sys.stdin is None:
            raise CliError(ExitCode.USAGE, f"-: standard input is closed; give the {what}'s path")
        yield sys.stdin.buffer
        return
    try:
        file = open(name, "rb")  # noqa: SIM115, PTH123  # only opening may raise here; Path("") would be the folder
    except FileNotFoundError:
        raise CliError(ExitCode.NOT_FOUND, f"{name or '(empty)'}: no such {what}; {HINT}") from None
    except IsADirectoryError:
        raise CliError(ExitCode.USAGE, f"{name}: is a directory; {HINT}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CliError(ExitCode.USAGE, f"{name}: cannot be read: {why}; check its permissions (ls -l)") from None
    with file:
        if file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
            import gzip

            with io.BufferedReader(gzip.GzipFile(fileobj=file)) as inflated:
                yield inflated
        else:
            yield file


@VERBS(
    "replay",
    "feed a recorded trace to the judge",
    "Shows what trainwatch would have detected and decided, with other settings if you like.",
    "night.jsonl --set hang.deadline_factor=4 --json",
    arg("trace", help="a trace (JSON lines, also compressed), from `trainwatch export --trace`, or -"),
    arg("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, such as hang.min_s=60"),
    JSON,
)
def replay_verb(args: argparse.Namespace) -> int:
    """0 whenever the trace could be read."""
    from trainwatch.core.app.export import replay_trace

    with byte_lines(args.trace, what="trace") as lines:
        result = replay_trace(args.trace, lines, args.set)
    if unreadable := result.get("unreadable_lines"):
        warn(f"unreadable lines skipped: {unreadable}; the first is {args.trace}:{result['first_unreadable']}")
    return put(
        args,
        result,
        *(f"{i['t']:>10.1f} s  {i['kind']:8} {i['class']:20} {i['reason']}" for i in result["incidents"]),
        *(f"{d['t']:>10.1f} s  -> {d['decision']:17} {d['reason']}" for d in result["decisions"]),
        f"{result['observations']} observations, at the end: {result['final_state']}",
    )


@VERBS(
    "export",
    "write what was observed of a run as a trace",
    "Writes the observations of the sensors (bounded), for `trainwatch replay` or a bug report. "
    "Tokens, passwords and values of secret variables are removed from texts.",
    "--trace night.jsonl",
    RUN,
    arg("--trace", metavar="F", required=True, help="file to write the observations to; must not exist"),
)
def export_verb(args: argparse.Namespace) -> int:
    from trainwatch.core.app.export import export_trace

    target = Path(args.trace)
    read = export_trace(args.run, target, warn)
    if read.skipped:
        warn(f"unreadable lines left out: {read.skipped}; {read.problem}")
    print(f"{target}: written")
    return ExitCode.DONE
