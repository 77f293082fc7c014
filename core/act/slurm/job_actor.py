"""The actor of a run whose attempts are jobs of Slurm: what reaches the training goes through Slurm's commands."""

import msgspec

from ...model.decision import CaptureStacks, EndLeftovers, LookForLoop, PauseAttempt, StopAttempt
from ..actor import RunActor
from ..attempt_launcher import Performed
from .attempt_job import end_job, let_run_again
from .job_evidence import examine_job

NO_PAUSE = "a job of Slurm is not paused: only an operator of the cluster can do that"


class JobActor(RunActor):
    """As ``RunActor``. The process of the attempt on this machine only follows the job."""

    def _capture(self, decision: CaptureStacks) -> Performed:
        if self._target is None or self._target.number != decision.attempt:
            return False, f"attempt {decision.attempt} has ended; there are no processes to examine", {}
        folder = self._incident_folder(decision.incident or 0)
        try:
            report = examine_job(self._target, folder, self._spec)
        except OSError as error:
            return False, f"{folder}: {error.strerror or error}", {}
        detail = f"{report.sentence}; {len(report.files)} files of evidence in {folder}"
        return True, detail, {"folder": str(folder), **msgspec.to_builtins(report, str_keys=True)}

    def _look_for_loop(self, _decision: LookForLoop) -> Performed:
        return False, "its processes are on other machines", {}

    def _stop(self, decision: StopAttempt | EndLeftovers) -> Performed:
        """End the job, too. Not with leftovers: if its follower died, the job may train on, and is followed again."""
        target = self._target
        if target is None or isinstance(decision, EndLeftovers):
            return super()._stop(decision)
        let_run_again(target.directory)
        if decision.mode == "kill":
            end_job(target.directory)
        ended, detail, data = super()._stop(decision)
        wrong = end_job(target.directory)
        return (False, f"{detail}; {wrong}", {**data, "gone": False}) if wrong else (ended, detail, data)

    def _pause(self, _decision: PauseAttempt) -> Performed:
        return False, NO_PAUSE, {}
