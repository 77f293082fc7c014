"""What the checks say about a launch, for whoever starts it: as ``check`` says it, in lines."""

from typing import IO, TYPE_CHECKING

from .output import printable

if TYPE_CHECKING:
    from trainwatch.core.app.plan.launch_plan import LaunchPlan
    from trainwatch.core.app.preflight.check import Check

RESULT_WORDS = {"pass": "ok", "warn": "warn", "fail": "FAIL"}


def check_line(check: "Check") -> str:
    """``vram need: warn: profile balanced usually takes … -> use a smaller profile``."""
    if check.result == "pass":
        return printable(f"{check.name}: {check.found}")
    remedy = f" -> {check.remedy}" if check.remedy else ""
    return printable(f"{check.name}: {RESULT_WORDS[check.result]}: {check.found}{remedy}")


def tell_checks(plan: "LaunchPlan | None", out: IO[str]) -> None:
    """Print what the checks say about the launch of a new run. An error in a check does not prevent a launch."""
    from trainwatch.core.app.preflight.checklist import told_at_launch

    if plan is None:
        return
    try:
        lines = [check_line(check) for check in told_at_launch(plan)]
    except Exception as error:
        lines = [f"checks: could not be made: {error!r}"]
    for line in lines:
        print(f"trainwatch: {line}", file=out, flush=True)
