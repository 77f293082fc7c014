"""``trainwatch report [RUN]``: report what happened in a run."""

import argparse
import sys
from pathlib import Path
from typing import Any

from trainwatch.core.app.errors import CliError, ExitCode

from ..output import jsonable, print_json
from ..run_argument import add_run, run_to_read

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
    from trainwatch.core.app.runs.report.sources import report_of
    from trainwatch.core.model.text.edge import EDGE

    target = Path(args.output) if args.output else None
    if target is not None and (target.exists() or target.is_symlink()):
        raise CliError(ExitCode.USAGE, f"{target}: already exists; choose another name")
    run = run_to_read(args)
    report = EDGE.value(report_of(run))
    by_name = FORMATS.get(target.suffix.lower() if target else "", "md")
    form = "json" if args.json else "short" if args.short else args.format or by_name
    charts = ""
    if form == "html":
        from trainwatch.core.app.runs.report.charts import charts_of

        charts = charts_of(run)
    if target is None:
        if form == "json":
            print_json(report)
        else:
            sys.stdout.write(_text(report, form, charts))
            sys.stdout.flush()
        return ExitCode.DONE
    _write(target, _text(report, form, charts))
    print(f"{target}: written")
    return ExitCode.DONE


def _text(report: Any, form: str, charts: str) -> str:
    import msgspec

    from trainwatch.core.views.report.html_report import html
    from trainwatch.core.views.report.markdown_report import markdown
    from trainwatch.core.views.report.short_report import short_report

    if form == "short":
        return short_report(report)
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(jsonable(report)), indent=2).decode() + "\n"
    return html(report, charts) if form == "html" else markdown(report)


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
