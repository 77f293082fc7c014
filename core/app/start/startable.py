"""Before a run is made: could its command be started at all? Later a launch that fails is the judge's business."""

import shlex
from pathlib import Path

from ...act.config.derive import DeriveError
from ...act.launch.spawn import why_not
from ...config.project import load_project
from ...model.run import RunSpec
from ..errors import CliError, ExitCode
from .framework import plan_first_launch


def require_startable(spec: RunSpec) -> None:
    """End the verb with exit code 2 and one line when the first launch could not work."""
    try:
        plan = plan_first_launch(spec)
    except DeriveError as error:
        raise CliError(ExitCode.USAGE, f"{_where(spec)}{error}") from None
    reason = why_not(list(plan.argv), dict(plan.env), spec.cwd)
    if reason is not None:
        raise CliError(ExitCode.USAGE, f"{_where(spec)}{reason}; nothing was started: {shlex.join(plan.argv)[:200]}")
    from .launch_check import look

    held = look(spec)[0].held
    if held is not None:
        raise CliError(ExitCode.FAILED, f"{held}; nothing was started")


def _where(spec: RunSpec) -> str:
    if spec.project is None:
        return ""
    origins = load_project(Path(spec.project)).provenance
    origin = origins.get(f"runs.{spec.name}.command") or origins.get("run.command")
    return f"{origin}: " if origin is not None else ""
