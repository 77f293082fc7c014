"""A site that lets no job run twice: its controller refuses to requeue, by its defaults and by a plugin.

Each attempt is then a job of its own. Needs Slurm's daemons and root, and installs nothing (``./trainwatch.sh slurm``).
"""

import pytest

from tests.fakes.e2e_world import HASTY, World, until
from tests.fakes.slurm_cluster import NEEDS_CLUSTER, strict_cluster
from tests.fakes.slurm_world import jobs, started_from, submitted, world, write
from tests.tiers import SECOND_TIER

pytestmark = [SECOND_TIER, *NEEDS_CLUSTER]


__all__ = ["strict_cluster", "world"]  # pytest finds the fixtures here


@pytest.fixture
def cluster(strict_cluster: dict[str, str]) -> dict[str, str]:
    return strict_cluster


def test_after_a_hang_another_job_is_submitted_and_resumes(world: World) -> None:
    write(world, "--steps", "60", "--hang-at", "45", "--step-time", "0.05", **HASTY)
    assert world.headless().ends() == 0
    assert "hang" in [incident.kind for incident in world.story().incidents]
    first, second = submitted(world)
    assert f"job {first} cannot run once more" in world.log(2)
    assert second != first
    assert started_from(world) == [None, 40]
    assert world.steps(2)[0] > 40
    assert not (world.out / "twice.txt").exists()
    assert world.story().state == "finished"


def test_before_the_time_limit_it_saves_and_the_next_job_goes_on(world: World) -> None:
    write(
        world, "--steps", "100000", "--save-every", "100000", "--save-on", "heartbeat", "--step-time", "0.2",
        slurm={"time": "2"},
    )  # fmt: skip
    world.headless()
    world.at_step(1)
    until(lambda: len(submitted(world)) > 1, "the next job", 200.0)
    until(lambda: world.steps(2), "it makes steps")
    saved = started_from(world)[1]
    assert saved is not None
    assert saved > 0
    assert world.steps(2)[0] > saved
    assert world.story().budget_used == 0
    assert not (world.out / "twice.txt").exists()
    assert world.asks("kill", "--yes").code == 0
    until(lambda: not jobs(world), "the job has ended")
