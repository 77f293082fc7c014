"""``trainwatch report [RUN]``: report what happened in a run."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import CliError, ExitCode

from ..output import jsonable, print_json
from ..run_argument import add_run, run_to_read

if TYPE_CHECKING:
    from trainwatch.core.app.runs.known_runs import RunDirectory

FORMATS = {".md": "md", ".markdown": "md", ".txt": "md", ".html": "html", ".htm": "html", ".json": "json"}

HELP = "what happened, what it cost, what waits for you; without secrets"
DESCRIPTION = (
    "Reports a run: attempts, incidents with cause and evidence, checkpoints, changes, and what needs a "
    "decision, with the facts about this machine that a bug report needs. Secrets are removed."
)
EXAMPLE = "-o night.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("-o", "--output", metavar="F", help="file to write; must not exist (default: standard output)")
    parser.add_argument("--format", choices=("md", "html", "json"), help="default: by the file's ending, else md")
    parser.add_argument("--short", action="store_true", help="a few lines: what happened, what it cost, what needs you")
    parser.add_argument("--json", action="store_true", help="the same as --format json")


def act(args: argparse.Namespace) -> int:
    """2 if the file exists."""
    target = Path(args.output) if args.output else None
    if target is not None and (target.exists() or target.is_symlink()):
        raise CliError(ExitCode.USAGE, f"{target}: already exists; choose another name")
    run = run_to_read(args)
    by_name = FORMATS.get(target.suffix.lower() if target else "", "md")
    form = "json" if args.json else "short" if args.short else args.format or by_name
    if target is None:
        if form == "json":
            from trainwatch.core.app.runs.report.whole_report import report_of

            print_json(report_of(run))
        else:
            getattr(sys.stdout, "write_redacted", sys.stdout.write)(_text(run, form))  # it has no secrets any more
            sys.stdout.flush()
        return ExitCode.DONE
    _write(target, _text(run, form))
    print(f"{target}: written")
    return ExitCode.DONE


def _text(run: "RunDirectory", form: str) -> str:
    """The report without secrets."""
    if form == "short":
        from trainwatch.core.app.runs.report.sources import short_report_of

        return short_report_of(run)
    from trainwatch.core.app.runs.report.whole_report import report_of
    from trainwatch.core.model.text.edge import EDGE

    if form == "json":
        import msgspec

        report = jsonable(report_of(run))
        return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
    report = EDGE.value(report_of(run))
    if form == "html":
        from trainwatch.core.app.runs.report.charts import charts_of
        from trainwatch.core.views.report.html_report import html

        return html(report, charts_of(run))
    from trainwatch.core.views.report.markdown_report import markdown

    return markdown(report)


def _write(target: Path, text: str) -> None:
    """Never overwrites a file, also one that was made in the meantime."""
    try:
        with target.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError:
        raise CliError(ExitCode.USAGE, f"{target}: already exists; choose another name") from None
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.FAILED
        raise CliError(code, f"{target}: {error.strerror or error}") from None
