"""What a run's first attempt would hand to a scheduler."""

import os

from ...act.engines import engine_of
from ...store.run_directory import RunDirectory
from ..runs.known_runs import home
from .launch_plan import LaunchPlan
from .save_request import save_request


def job_script(plan: LaunchPlan) -> str | None:
    """The batch script; None if the attempts are not jobs, or the launch cannot be derived."""
    if plan.derived is None:
        return None
    folder = RunDirectory(home() / "runs" / plan.spec.id).attempt(1)
    engine = engine_of(plan.spec, base_env=os.environ, save=save_request(plan.spec, plan.preset))
    return engine.shown(plan.derived.argv, folder, 1)
