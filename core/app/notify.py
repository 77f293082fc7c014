"""A notice that is sent on request, to see that it arrives."""

from typing import Any

from ..act.notify import send_notice
from ..model.run import RunSpec
from .errors import CliError, ExitCode
from .plan.launch_plan import plan_project
from .runs.known_runs import find_run


def send_test_notice(name: str | None) -> dict[str, Any]:
    """Send it as the project's run would, else as the run of this name. Raises CliError.

    Returns ``ok``, ``detail`` (who was notified, or why not) and ``output`` of the user's command.
    """
    spec = _spec(name)
    if not spec.settings.notify.urls and not spec.settings.notify.command:
        raise CliError(
            ExitCode.USAGE,
            f"{spec.name} notifies nobody: add to {spec.project or 'a trainwatch.toml'}: "
            '[notify] urls = ["ntfy://ntfy.sh/TOPIC"]',
        )
    ok, detail, output = send_notice(
        spec, "finish", f"trainwatch: a test from {spec.name}", "This is a test. Nothing happened to the run."
    )
    return {"ok": ok, "detail": detail, "output": output}


def _spec(name: str | None) -> RunSpec:
    plan = plan_project(name)
    return find_run(name).load_spec() if plan is None else plan.spec
