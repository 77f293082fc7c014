"""The quick checks before every launch: some hold it, the others are notes in the journal."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.fakes.e2e_world import World
from trainwatch.core.act.local_engine import READY
from trainwatch.core.app.plan.launch_plan import LaunchPlan, plan_launch
from trainwatch.core.app.preflight import checklist
from trainwatch.core.app.preflight.checklist import ReadinessCheck, before_launch
from trainwatch.core.model import run
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Notify, Settings


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "state"))


def spec(tmp_path: Path, **more: Any) -> RunSpec:
    given: dict[str, Any] = {"id": "job", "name": "job", "cwd": str(tmp_path), "created_wall": 0.0}
    given |= {"output_dir": str(tmp_path / "out"), "command": ("python3", "-c", "pass")}
    return RunSpec(**(given | more))


def planned(tmp_path: Path, **more: Any) -> LaunchPlan:
    return plan_launch(spec(tmp_path, **more))


def free(monkeypatch: pytest.MonkeyPatch, count: float) -> None:
    disk(monkeypatch, 1000e9, count)


def disk(monkeypatch: pytest.MonkeyPatch, total: float, count: float, inodes: int = 10**6) -> None:
    """Every file system has this size and this room. ``inodes``: files that can still be created."""
    block = 4096
    blocks = int(total / block), int(count / block), int(count / block)
    space = os.statvfs_result((block, block, *blocks, 10**7, inodes, inodes, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: space)


def test_launch_check_passes_for_a_valid_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 500e9)
    assert before_launch(planned(tmp_path)) == (READY, ())


def test_launch_is_held_if_the_output_folder_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found, _ = before_launch(planned(tmp_path, output_dir=str(tmp_path / "file" / "out")))
    assert found.refusal is not None
    assert "is no folder; choose another output folder" in found.refusal


def test_launch_waits_for_disk_space_for_one_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 0.5e9)
    assert before_launch(planned(tmp_path))[0] == READY, "its checkpoints may be small: it is only said"
    assert before_launch(planned(tmp_path, preset="kohya"))[0] == READY, "an estimate holds nothing"
    free(monkeypatch, 1e6)
    assert before_launch(planned(tmp_path))[0].need_bytes == run.FLOOR_BYTES


def test_launch_waits_for_inodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, 1000e9, 500e9, inodes=3)
    found = before_launch(planned(tmp_path))[0]
    assert found.need_bytes is not None
    assert "no inodes are free" in found.room


def test_what_a_launch_needs_is_measured_on_complete_checkpoints_of_this_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    weights = np.zeros((4096, 4096), dtype=np.float32)  # 67 MB
    save_file({"w": weights}, out / "old.safetensors")
    os.utime(out / "old.safetensors", (1000.0, 1000.0))
    created_wall = (out / "old.safetensors").stat().st_ctime + 0.001  # what the run writes has a later one
    save_file({"w": weights[:16]}, out / "new.safetensors")
    os.utime(out / "new.safetensors", (9e9, 9e9))
    with (out / "holes.safetensors").open("wb") as file:
        file.truncate(8 * 10**12)
    disk(monkeypatch, 1e9, 20e6)
    assert before_launch(planned(tmp_path, output_dir=str(out), created_wall=created_wall))[0] == READY


def test_launch_warnings_are_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 500e9)
    told: list[str] = []
    command = ("python3", "train.py", "--train_data_dir", "nowhere")
    plan = planned(tmp_path, command=command)
    assert plan.derived is not None
    check = ReadinessCheck(plan, told.append)
    assert check(plan.derived) == READY
    assert check(plan.derived) == READY
    assert [t.partition(": ")[2].partition(":")[0] for t in told] == ["script", "data"]


def test_missing_apprise_is_reported_before_the_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 500e9)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    _, warnings = before_launch(planned(tmp_path, settings=Settings(notify=Notify(urls=("ntfy://secret-topic",)))))
    assert len(warnings) == 1
    assert "apprise, which is not installed (pip install 'trainwatch-tui[notify]')" in warnings[0]
    assert "secret" not in warnings[0]


def test_a_check_that_raises_does_not_hold_the_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def broken(_plan: LaunchPlan) -> Any:
        raise RuntimeError("odd")

    monkeypatch.setattr(checklist, "before_launch", broken)
    plan = planned(tmp_path)
    assert plan.derived is not None
    assert ReadinessCheck(plan, told.append)(plan.derived) == READY
    assert "odd" in told[0]


def test_a_run_whose_output_folder_was_deleted_is_not_launched_again(world: World) -> None:
    (world.project / "file").touch()
    world.write("--steps", "2000", output_dir="file/out")
    refused = world.asks("--headless")
    assert refused.code == 1
    place = f"run.output_dir in {world.project}/trainwatch.toml"
    assert f"is no folder; choose another output folder: {place}; nothing was started" in refused.err
    assert world.runs() == []

    world.write("--steps", "2000", "--diary", str(world.project), more={"restart": {"backoff_s": [0.1]}})
    world.headless()
    world.at_step(25)
    world.asks("stop", "--yes")
    world.in_state("stopped")
    shutil.rmtree(world.out)
    world.out.touch()
    world.asks("resume")
    story = world.in_state("backing_off")  # its checkpoints cannot be read; the folder may come back
    assert len(story.attempts) == 1
