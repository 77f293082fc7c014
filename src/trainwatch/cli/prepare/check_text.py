"""The results of checks, as lines or as one JSON object."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, printable

if TYPE_CHECKING:
    from trainwatch.core.app.preflight.check import Check

MARKS = {"pass": "ok  ", "warn": "warn", "fail": "FAIL"}


def show_checks(checks: Sequence["Check"], *, as_json: bool) -> int:
    """Print the results. The exit code is 1 if a check failed."""
    failed = any(c.result == "fail" for c in checks)
    if as_json:
        print_json({"passed": not failed, "checks": checks})
        return ExitCode.FAILED if failed else ExitCode.DONE
    for check in checks:
        first, *more = check.found.splitlines() or [""]
        print(f"{MARKS[check.result]}  {check.name:14} {printable(first)}")
        for line in more:
            print(f"{'':21}{printable(line)}")
        if check.remedy and check.result != "pass":
            print(f"{'':21}-> {printable(check.remedy)}")
    return ExitCode.FAILED if failed else ExitCode.DONE
