"""The job of an attempt nears its time limit: its script asked for a checkpoint; when that came, the next job goes on.

What would be trained after that save would be lost with the limit. If no save comes, the job runs to its limit. Nothing
is ended if the training will be over before the limit.
"""

import msgspec

from ....model.observation import JobSeen
from ...findings import eta
from ...job_facts import JobFacts
from ...run_states import RestartPlan, Running, Saving
from ...step_builder import StepBuilder
from .. import restart_stages, save_first

REASON = "its job is near the time limit, and the checkpoint that was asked for is complete"


def note_job(builder: StepBuilder, seen: JobSeen) -> None:
    """Keep what an answer about the job says. One that did not come says nothing."""
    before = builder.state.job if builder.state.job.id == seen.job else JobFacts(id=seen.job)
    if seen.phase == "queued":
        before = JobFacts(id=seen.job)  # it runs once more
    limit_t = before.limit_t if seen.left_s is None else builder.t + seen.left_s
    asked_t = None if not seen.asked else builder.t if before.asked_t is None else before.asked_t
    builder.set(
        job=JobFacts(
            id=seen.job,
            nodes=seen.nodes or before.nodes,
            limit_t=limit_t,
            asked_t=asked_t,
            failed_node=seen.failed_node or before.failed_node,
        )
    )


def check(builder: StepBuilder) -> None:
    """End the attempt for the next job, if the checkpoint that was asked for is complete."""
    state = builder.state
    asked_t, limit_t = state.job.asked_t, state.job.limit_t
    if asked_t is None or not isinstance(state.machine, Running):
        return
    if limit_t is not None and builder.t >= limit_t:
        return  # Slurm ends it now; what it saves at the signal for that was not asked for
    left_s = eta.eta_s(state.pace, state.progress)
    if left_s is not None and limit_t is not None and builder.t + left_s < limit_t:
        return
    if save_first.came(state, Saving(asked_t=asked_t, until_t=asked_t)):
        builder.set(job=msgspec.structs.replace(state.job, asked_t=None))
        restart_stages.stop(builder, "restart", RestartPlan(reason=f"{REASON}: the next job goes on"))
