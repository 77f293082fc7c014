"""The whole slice, end to end: a real training that crashes once, hangs once and is brought back both times."""

import pytest

from tests.fakes.e2e_world import HASTY, World, strict_json
from tests.fakes.slowness import slowness
from tests.tiers import SECOND_TIER

STATUS_FIELDS = {
    "run", "state", "attempt", "pid", "runner_pid", "log", "uptime_s", "progress", "health", "gpus", "host",
    "checkpoints", "profile", "budget", "incidents", "ettr", "supervisor", "last_step_age_s",
}  # fmt: skip


@SECOND_TIER
@pytest.mark.timeout(400)
def test_demo_finishes_after_a_crash_and_a_hang(world: World) -> None:
    with slowness() as machine:
        done = world.do("demo", "--headless", "--json", "--fake-gpu", patience_s=280)

    assert done.code == 0, done.err
    assert done.err == ""
    lines = [strict_json(line) for line in done.out.splitlines()]
    result = lines[-1]
    assert result["finished"] is True
    assert result["attempts"] == 3
    assert [(i["kind"], i["class"]) for i in result["incidents"]] == [("crash", "cuda_unknown_error"), ("hang", "idle")]
    assert result["resumed_steps"] == [120, 240]
    assert result["lost_steps"] == 30
    assert result["detect_s"]["crash"] < 2.0 * machine.factor
    assert result["detect_s"]["hang"] <= 8.0 * machine.factor

    events = world.asks("events")
    assert events.code == 0
    for word in (
        "INCIDENT 1: crash cuda_unknown_error",
        "evidence: RuntimeError: CUDA error: unknown error (log line",
        "INCIDENT 2: quiet idle",
        "INCIDENT 3: hang idle",
        "wait_for_a_lock_that_is_never_released",
        "recovered: resumed from demo-step00000120.safetensors at step 120, 10 steps lost",
        "recovered: resumed from demo-step00000240.safetensors at step 240, 20 steps lost",
        "finished: the training is done",
    ):
        assert word in events.out
    assert all(strict_json(line)["seq"] for line in world.asks("events", "--json").out.splitlines())

    status = world.status()
    assert set(status) >= STATUS_FIELDS
    assert (status["state"], status["attempt"], status["pid"]) == ("finished", 3, None)
    assert (status["progress"]["step"], status["progress"]["total_steps"]) == (400, 400)
    assert status["supervisor"] == {"pid": None, "alive": False, "responsive": False, "age_s": None}
    assert status["budget"] == {"used": 0, "made": 0, "max": 3}
    assert status["gpus"][0]["index"] == 0
    assert status["checkpoints"]["newest"]["name"] == "demo.safetensors"
    assert status["checkpoints"]["newest"]["step"] == 400
    assert 0 < status["ettr"] <= 1

    (row,) = world.asks("runs", "--json").json["runs"]
    assert (row["run"], row["state"], row["attempt"], row["step"]) == ("demo", "finished", 3, 400)


def test_a_short_run_finishes_after_a_crash_and_a_hang(world: World) -> None:
    world.write(
        "--steps",
        "120",
        "--save-every",
        "20",
        "--crash-at",
        "50",
        "--hang-at",
        "90",
        "--deaf",
        more=HASTY | {"hang": HASTY["hang"] | {"min_s": 2}},
    )

    with slowness() as machine:
        watcher = world.headless()
        assert watcher.ends() == 0, watcher.said
    story = world.story()
    assert [(i.kind, i.class_) for i in story.incidents if i.kind != "quiet"] == [
        ("crash", "cuda_unknown_error"), ("hang", "idle"),
    ]  # fmt: skip
    crash, hang = (i for i in story.incidents if i.kind != "quiet")
    assert crash.detect_s is not None
    assert crash.detect_s < 2.0 * machine.factor
    assert hang.detect_s is not None
    assert hang.detect_s <= 2.0 * machine.factor
    assert [a.resume_step for a in story.attempts] == [None, 40, 80]
    assert (crash.lost_steps, hang.lost_steps) == (10, 10)
    assert [world.steps(n) for n in (1, 2, 3)] == [
        list(range(1, 51)), list(range(41, 91)), list(range(81, 121)),
    ]  # fmt: skip
    assert len(world.lives()) == 3
    assert story.checkpoints[-1].step == 120
    again = world.headless()
    assert again.ends() == 0
    assert "finished" in again.said
    assert len(world.lives()) == 3
