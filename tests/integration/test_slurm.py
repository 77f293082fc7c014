"""Runs whose attempts are jobs, on a real cluster of two nodes that this test brings up on 127.0.0.1.

It needs Slurm's daemons and root, and installs nothing: ``./trainwatch.sh slurm`` installs them and runs these tests.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import HASTY, TRAINER, World, until
from tests.fakes.left_processes import MARK
from tests.fakes.slurm_cluster import NEEDS_CLUSTER, cluster
from tests.fakes.slurm_world import jobs, started_from, submitted, world, write
from tests.tiers import SECOND_TIER
from trainwatch.core.model.decision import StartAttempt

pytestmark = [SECOND_TIER, *NEEDS_CLUSTER]


__all__ = ["cluster", "world"]  # pytest finds the fixtures here


def test_a_crash_is_explained_and_the_next_job_resumes(world: World) -> None:
    write(world, "--steps", "60", "--crash-at", "45", "--step-time", "0.05")
    assert world.headless().ends() == 0
    story = world.story()
    assert [incident.class_ for incident in story.incidents] == ["cuda_unknown_error"]
    assert started_from(world) == [None, 40]
    assert len(submitted(world)) == 2
    assert not (world.out / "twice.txt").exists()
    assert story.state == "finished"


OUT_OF_MEMORY = f"""
if [ -z "$PYTORCH_CUDA_ALLOC_CONF" ]; then
  {sys.executable} {TRAINER} --output-dir "$1" --steps 60 --crash-at 45 --step-time 0.05 2> /dev/null
  echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.00 GiB free." >&2
  exit 1
fi
exec {sys.executable} {TRAINER} --output-dir "$1" --resume "$2" --steps 60 --step-time 0.05
"""


def test_after_a_crash_with_a_remedy_another_job_is_submitted_with_the_changed_settings(world: World) -> None:
    write(world, run={"command": ["bash", str(world.project / "out_of_memory.sh"), "{output_dir}", "{resume}"]})
    (world.project / "out_of_memory.sh").write_text(OUT_OF_MEMORY)
    assert world.headless().ends() == 0
    assert [incident.class_ for incident in world.story().incidents] == ["cuda_oom"]
    assert len(submitted(world)) == 2
    changed = [change.key for change in world.decisions(StartAttempt)[1].changes]
    assert changed == ["PYTORCH_CUDA_ALLOC_CONF"]
    assert world.story().state == "finished"


TOO_MUCH_AT = f"""
{sys.executable} {TRAINER} "$@" --steps 90 --crash-at 45 --crash-at 65 2> /dev/null && exit
echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.00 GiB free." >&2
exit 1
"""


def test_after_a_remedy_that_does_not_help_another_job_is_submitted_with_the_next_profile(world: World) -> None:
    (world.project / "profiles").mkdir()
    for name, step_s in (("calm", "0.06"), ("hot", "0.05")):
        text = f'title = "{name}"\nflags = ["--step-time", "{step_s}"]\n'
        (world.project / "profiles" / f"{name}.toml").write_text(text)
    script = str(world.project / "out_of_memory.sh")
    write(
        world,
        run={"command": ["bash", script, "--output-dir", "{output_dir}", "--resume", "{resume}"]},
        profiles={"use": "hot", "ladder": ["calm", "hot"]},
        remedies={"apply": "all"},
    )
    (world.project / "out_of_memory.sh").write_text(TOO_MUCH_AT)
    assert world.headless().ends() == 0
    assert [incident.class_ for incident in world.story().incidents] == ["cuda_oom", "cuda_oom"]
    assert [attempt.profile for attempt in world.story().attempts] == ["hot", "hot", "calm"]
    assert [[change.key for change in each.changes] for each in world.decisions(StartAttempt)[1:2]] == [
        ["PYTORCH_CUDA_ALLOC_CONF"]
    ]
    assert started_from(world) == [None, 40, 60]
    assert len(set(submitted(world))) == 3
    assert world.story().state == "finished"


def test_a_request_that_no_partition_meets_is_told_and_waits_for_a_person(world: World) -> None:
    write(world, "--steps", "60", slurm={"nodes": 5, "gpus": 0})
    world.headless()
    until(lambda: world.story().incidents, "the incident")
    story = world.story()
    assert [incident.class_ for incident in story.incidents] == ["unschedulable"]
    assert "slurm.nodes" in story.incidents[0].reason
    assert world.story().state == "queued"
    assert len(submitted(world)) == 1
    assert str(world.status()["job"]["reason"]) in {"PartitionConfig", "PartitionNodeLimit"}
    assert world.do("kill", "--yes").code == 0
    until(lambda: not jobs(world), "the job has ended")


def test_a_hang_is_seen_on_the_node_with_its_stack_and_the_next_job_resumes(world: World) -> None:
    write(world, "--steps", "60", "--hang-at", "45", "--step-time", "0.05", **HASTY)
    assert world.headless().ends() == 0
    hang = next(incident for incident in world.story().incidents if incident.kind == "hang")
    stacks = list(world.run.incident(hang.id).glob("n?/stacks-*.txt"))
    assert any("e2e_trainer.py" in path.read_text() for path in stacks)
    assert started_from(world) == [None, 40]
    assert len(submitted(world)) == 2
    assert world.steps(2)[0] > 40


def test_a_preempted_job_goes_on_in_another_one_that_waits_in_the_queue(world: World) -> None:
    write(world, "--steps", "80", "--hold-at", "45", "--step-time", "0.05", slurm={"gpus": 2})
    watcher = world.headless()
    world.at_step(45)
    holder = ["sbatch", "-p", "high", "-N2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 600"]
    blocking = subprocess.run(holder, env=world.env, capture_output=True, text=True, check=True).stdout.split()[-1]
    story = world.in_state("queued")
    assert [incident.title for incident in story.incidents] == ["its job was preempted"]
    assert story.budget_used == 0
    (world.out / "go").touch()
    subprocess.run(["scancel", blocking], env=world.env, check=True)
    assert watcher.ends() == 0
    first, second = started_from(world)
    assert first is None
    assert second is not None
    assert second >= 40  # it saves once more when it is told to end


def test_a_job_that_a_person_cancels_stays_ended(world: World) -> None:
    write(world, "--steps", "80", "--hold-at", "45", "--step-time", "0.05")
    world.headless()
    world.at_step(45)
    subprocess.run(["scancel", *jobs(world)], env=world.env, check=True)
    story = world.in_state("stopped")
    assert [incident.title for incident in story.incidents] == ["its job was cancelled"]
    assert len(world.decisions(StartAttempt)) == 1
    assert jobs(world) == []


def test_stop_and_kill_end_the_job_too(world: World) -> None:
    write(world, "--steps", "400", "--step-time", "0.05")
    world.headless()
    world.at_step(25)
    assert world.do("stop").code == 0
    world.in_state("stopped")
    until(lambda: not jobs(world), "the job has ended")
    assert world.do("resume").code == 0
    until(lambda: 2 in [attempt.number for attempt in world.story().attempts], "attempt 2")
    until(lambda: jobs(world, "%T") == ["RUNNING"], "its job runs")
    assert world.do("kill", "--yes").code == 0
    until(lambda: not jobs(world), "the job has ended")


@pytest.mark.parametrize("way", ["heartbeat", "USR1", "file"])
def test_a_training_on_a_node_saves_when_a_person_asks_and_before_a_stop(world: World, way: str) -> None:
    told: dict[str, dict[str, Any]] = {"USR1": {"save_signal": "USR1"}, "file": {"save_file": "out/save_now"}}
    write(
        world, "--steps", "100000", "--save-every", "100000", "--save-on", way, "--step-time", "0.05",
        run=told.get(way),
    )  # fmt: skip
    world.headless()
    world.at_step(25)
    until(lambda: world.asks("save").code == 0, "it is known how the training is asked")
    first = until(lambda: saved(world), "a checkpoint that a person asked for")
    world.at_step(first[0] + 25)
    assert world.do("stop").code == 0
    story = world.in_state("stopped")
    assert len(saved(world)) > 1, world.log(1)[-2000:]
    assert story.incidents == ()
    until(lambda: not jobs(world), "the job has ended")
    assert world.do("resume").code == 0
    until(lambda: len(world.decisions(StartAttempt)) == 2, "attempt 2")
    assert started_from(world)[1] == saved(world)[-1]
    assert world.asks("kill", "--yes").code == 0


def saved(world: World) -> list[int]:
    """Steps at which the first attempt saved because it was asked to."""
    return [int(step) for step in re.findall(r"saved at step (\d+), as asked", world.log(1))]


def test_a_supervisor_that_was_killed_is_replaced_and_the_job_goes_on(world: World) -> None:
    write(world, "--steps", "80", "--hold-at", "45", "--step-time", "0.05")
    first = world.headless()
    world.at_step(45)
    os.kill(first.pid, signal.SIGKILL)
    first.process.wait()
    second = world.headless()
    until(lambda: "adopts attempt 1" in second.said, "it takes the attempt over")
    (world.out / "go").touch()
    assert second.ends() == 0
    assert len(submitted(world)) == 1
    assert world.steps(1)[-1] == 80


def test_a_job_whose_follower_died_is_followed_again_and_not_submitted_twice(world: World) -> None:
    write(world, "--steps", "80", "--hold-at", "45", "--step-time", "0.05")
    watcher = world.headless()
    world.at_step(45)
    os.kill(world.attempt(1).trainer.pid, signal.SIGKILL)
    until(lambda: "no other is submitted" in world.log(2), "the second attempt follows the job")
    (world.out / "go").touch()
    assert watcher.ends() == 0
    assert len(submitted(world)) == 1
    assert not (world.out / "twice.txt").exists()


def test_a_dry_run_shows_the_script_and_submits_nothing(world: World) -> None:
    write(world, "--steps", "80", slurm={"time": "2:00:00", "partition": "main"})
    shown = world.asks("run", "--dry-run")
    assert shown.code == 0
    assert "#SBATCH --partition=main" in shown.out
    assert "#SBATCH --time=2:00:00" in shown.out
    assert jobs(world) == []


def test_before_the_time_limit_it_saves_and_the_next_job_goes_on(world: World) -> None:
    write(
        world, "--steps", "100000", "--save-every", "100000", "--save-on", "USR1", "--step-time", "0.2",
        slurm={"time": "2"}, run={"save_signal": "USR1"},
    )  # fmt: skip
    world.headless()
    world.at_step(1)
    until(lambda: len(world.story().attempts) > 1, "the second attempt", 200.0)
    assert re.search(r"node n\d: SIGUSR1 was sent to \d+", world.log(1)), world.log(1)[-3000:]
    second = world.decisions(StartAttempt)[1]
    assert second.resume_step is not None
    assert second.resume_step > 0
    until(lambda: world.steps(2), "it makes steps")
    assert world.steps(2)[0] > second.resume_step
    assert world.story().budget_used == 0
    assert world.asks("kill", "--yes").code == 0


def test_a_time_limit_that_comes_without_a_save_is_followed_by_another_job(world: World) -> None:
    write(
        world, "--steps", "100000", "--save-every", "40", "--hold-at", "45", "--step-time", "0.05", slurm={"time": "1"}
    )
    world.headless()
    world.at_step(45)
    until(lambda: len(submitted(world)) > 1, "the next job", 200.0)
    judged = [incident for incident in world.story().incidents if incident.kind != "quiet"]  # it is held at a step
    assert [incident.title for incident in judged] == ["its job reached the time limit"]
    assert (started_from(world)[1] or 0) >= 40
    assert world.story().budget_used == 0
    assert world.asks("kill", "--yes").code == 0


def test_a_node_that_dies_costs_no_restart(world: World, cluster: dict[str, str]) -> None:
    write(world, "--steps", "100000", "--save-every", "20", "--step-time", "0.05")
    world.headless()
    world.at_step(45)
    (node,) = jobs(world, "%N")
    root = Path(cluster["SLURM_CONF"]).parents[1]
    pid_file = root / f"slurmd-{node}.pid"
    daemon = int(pid_file.read_text())
    of_job = set(job_processes(jobs(world)[0], cluster["SLURM_CONF"]))
    try:
        for pid in (daemon, *of_job):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: len(submitted(world)) > 1, "the next job", 240.0)
        assert [incident.title for incident in world.story().incidents] == ["a node of its job failed"]
        assert world.story().budget_used == 0
        assert (started_from(world)[1] or 0) >= 40
        until(lambda: jobs(world, "%T") == ["RUNNING"], "it runs on the other node")
        assert jobs(world, "%N") != [node]
        assert world.asks("kill", "--yes").code == 0
    finally:
        of_cluster = {name: value for name, value in world.env.items() if name != MARK}  # which ends it, not this test
        subprocess.run(["slurmd", "-N", node], env=of_cluster, check=True)
        back = until(
            lambda: pid_file.exists() and (read := pid_file.read_text().strip()) not in {"", str(daemon)} and read,
            "slurmd is back",  # the killed one has left its file
        )
        with (root / "pids").open("a") as file:
            file.write(f"{back}\n")
        until(lambda: "down" not in state_of(world, node), "the node is back", 60.0)


def state_of(world: World, node: str) -> str:
    asked = ["sinfo", "-h", "-N", "-n", node, "-o", "%t"]
    return subprocess.run(asked, env=world.env, capture_output=True, text=True, check=True).stdout


def job_processes(job: str, conf: str) -> Iterator[int]:
    """What runs in a job on this machine, its step daemons included."""
    for entry in Path("/proc").iterdir():
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        of_job = f"SLURM_JOB_ID={job}".encode() in variables and f"SLURM_CONF={conf}".encode() in variables
        if entry.name.isdecimal() and (of_job or (b"slurmstepd: [" + job.encode() + b".") in words):
            yield int(entry.name)
