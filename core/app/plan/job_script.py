"""The batch script of a run's first attempt, as it would be submitted."""

from ...act.slurm.attempt_job import script_of
from ...store.run_directory import RunDirectory
from ..runs.known_runs import home
from .launch_plan import LaunchPlan
from .save_request import save_request


def job_script(plan: LaunchPlan) -> str | None:
    """The text; None if the attempts are not jobs, or the launch cannot be derived."""
    if plan.spec.engine != "slurm" or plan.derived is None:
        return None
    folder = RunDirectory(home() / "runs" / plan.spec.id).attempt(1)
    return script_of(plan.spec, save_request(plan.spec, plan.preset), plan.derived.argv, folder, 1)
