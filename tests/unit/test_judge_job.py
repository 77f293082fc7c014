"""A run whose attempts are jobs of a scheduler: the queue, ends that are nobody's fault, a job that never starts."""

import pytest

from tests.builders import World
from tests.unit.test_judge_recovery import judge_of_everything, running, save
from trainwatch.core.model.decision import StartAttempt, StopAttempt
from trainwatch.core.model.fact import BudgetChanged
from trainwatch.core.model.observation import Exit, JobSeen, LogChunk, Start
from trainwatch.core.model.run import JobCause


def job(world: World, phase: str, reason: str = "", state: str = "") -> World:
    return world.see(JobSeen(t=world.t, job="7", phase=phase, reason=reason, state=state))  # type: ignore[arg-type]


def launched() -> World:
    return World(judge_of_everything()).begin()


def test_time_in_the_queue_does_not_count() -> None:
    world = job(launched(), "queued", "Resources", "PENDING")
    assert world.word == "queued"
    world.wait(86400.0, every_s=600.0)
    assert world.word == "queued"
    job(world, "running")
    assert world.word == "starting"
    world.see(LogChunk(t=world.t, text="step 1/100 loss 0.5\nstep 2/100 loss 0.4\n"))
    assert world.word == "running"
    assert "stop_attempt" not in world.decisions


OOM = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 9, in <module>\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB\n"
)


@pytest.mark.parametrize("before", ["", "step 1/100 loss 0.5\nstep 2/100 loss 0.4\n"])
def test_a_job_that_begins_and_dies_between_two_looks_at_the_queue_is_diagnosed(before: str) -> None:
    world = job(launched(), "queued", "Resources", "PENDING").wait(60.0)
    world.see(LogChunk(t=world.t, text=before), LogChunk(t=world.t, text=OOM), Exit(t=world.t + 1.0, code=1))
    assert [each.class_ for each in world.incidents] == ["cuda_oom"]
    assert world.incidents[0].step == (2 if before else None)


def test_lines_before_the_job_is_seen_to_run_do_not_begin_hang_detection_and_the_run_goes_on_after_them() -> None:
    world = job(launched(), "queued", "Resources", "PENDING")
    world.see(LogChunk(t=world.t, text="".join(f"step {n}/100 loss 0.5\n" for n in range(1, 30))))
    assert world.word == "queued"
    assert world.step == 29
    world.wait(86400.0, every_s=600.0)
    assert world.decisions == launched().decisions
    assert world.incidents == []
    job(world, "running").see(LogChunk(t=world.t, text="step 30/100 loss 0.5\n"))
    assert (world.word, world.step) == ("running", 30)


def test_no_answer_is_no_end_and_leaves_the_state() -> None:
    world = job(running(judge_of_everything()), "unknown")
    assert world.word == "running"
    job(job(world, "queued"), "unknown")
    assert world.word == "queued"


@pytest.mark.parametrize("cause", ["preempted", "time_limit", "node"])
def test_what_the_site_ends_goes_on_in_another_job_and_costs_no_restart(cause: JobCause) -> None:
    world = save(running(judge_of_everything()))
    world.see(Exit(t=world.t + 1.0, code=143, job=cause))
    world.wait(700.0, every_s=5.0)
    assert [start.attempt for start in world.of(StartAttempt)] == [1, 2]
    assert [fact.used for fact in world.of(BudgetChanged) if fact.used] == []
    assert world.incidents[-1].title in {
        "its job was preempted",
        "its job reached the time limit",
        "a node of its job failed",
    }


def test_a_time_limit_in_which_nothing_is_saved_is_charged() -> None:
    world = running(judge_of_everything())
    world.see(Exit(t=world.t + 1.0, code=143, job="time_limit"))
    world.wait(30.0)
    assert world.word != "given_up"
    assert [fact.used for fact in world.of(BudgetChanged)][-1:] == [1]


def test_a_job_that_a_person_cancelled_stays_ended() -> None:
    world = save(running(judge_of_everything()))
    world.see(Exit(t=world.t + 1.0, code=143, job="cancelled"))
    world.wait(700.0, every_s=5.0)
    assert world.word == "stopped"
    assert len(world.of(StartAttempt)) == 1


def test_what_its_own_command_did_is_judged_as_on_this_machine() -> None:
    world = save(running(judge_of_everything()))
    world.see(LogChunk(t=world.t, text="\nRuntimeError: CUDA error: unknown error\n"))
    world.see(Exit(t=world.t + 1.0, code=1, job="error"))
    world.wait(30.0)
    assert world.incidents[-1].class_ == "cuda_unknown_error"
    assert len(world.of(StartAttempt)) == 2


def test_a_job_that_can_never_start_is_told_once_and_ends_nothing() -> None:
    world = job(launched(), "queued", "PartitionNodeLimit", "PENDING")
    job(world.wait(60.0), "queued", "PartitionNodeLimit", "PENDING")
    assert [each.class_ for each in world.incidents] == ["unschedulable"]
    assert world.word == "queued"
    job(world, "queued", "Resources", "PENDING")
    assert not world.incidents[0].open


def test_a_restored_run_in_the_queue_is_watched_again() -> None:
    world = job(launched(), "queued")
    world.see(Start(t=world.t, attempt=1, pid=5001, adopted=True))
    assert world.word in {"starting", "queued"}


@pytest.mark.parametrize(
    "reason", ["PartitionNodeLimit", "launch_failed_requeued_held", "(BadConstraints)", "JobHeldUser"]
)
def test_a_reason_that_never_ends_is_told_with_what_to_change(reason: str) -> None:
    world = job(launched(), "queued", reason, "PENDING")
    (incident,) = world.incidents
    assert incident.class_ == "unschedulable"
    assert "slurm." in incident.reason or "scontrol release" in incident.reason


def near_limit(world: World, left_s: float = 120.0) -> World:
    return world.see(JobSeen(t=world.t, job="7", phase="running", nodes="n1", left_s=left_s, asked=True))


def test_a_checkpoint_that_came_before_the_time_limit_ends_the_attempt_for_the_next_job() -> None:
    world = near_limit(save(running(judge_of_everything())).wait(10.0))
    assert world.of(StopAttempt) == []
    save(world.wait(5.0), path="out/step-60", step=60)
    (stop,) = world.of(StopAttempt)
    assert "time limit" in stop.reason
    assert [fact.used for fact in world.of(BudgetChanged) if fact.used] == []


def test_at_the_limit_what_is_saved_was_not_asked_for_and_slurm_ends_the_job() -> None:
    world = near_limit(save(running(judge_of_everything())).wait(10.0), left_s=50.0).wait(60.0)
    save(world, path="out/step-60", step=60)
    assert world.of(StopAttempt) == []


def gpu_fails(world: World, **seen: str) -> World:
    world.see(JobSeen(t=world.t, job="7", phase="running", **seen))  # type: ignore[arg-type]
    world.see(LogChunk(t=world.t, text="\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n"))
    world.see(Exit(t=world.t + 1.0, code=1, job="error"))
    return world.wait(700.0, every_s=5.0)


@pytest.mark.parametrize(
    ("seen", "excluded"),
    [
        ({"nodes": "n1"}, ("n1",)),
        ({"nodes": "n[1-2]", "failed_node": "n2"}, ("n2",)),
        ({"nodes": "n[1-2]"}, ()),
    ],
)
def test_the_node_of_a_faulty_gpu_is_left_out_if_it_is_known(seen: dict[str, str], excluded: tuple[str, ...]) -> None:
    world = gpu_fails(save(running(judge_of_everything())), **seen)
    assert world.incidents[-1].class_ == "gpu_lost"
    assert [start.exclude for start in world.of(StartAttempt)] == [(), excluded]
