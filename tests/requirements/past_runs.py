"""Two runs that several cases look at when they are over, supervised for real: made once, also for parallel workers."""

import fcntl
import json
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.e2e_world import World, until, world_at
from tests.fakes.nvml.driver import FakeNvml

from .user import Said, types

HERE = Path(__file__).parent
SDXL_TRAINER = HERE / "sdxl_trainer.py"
GUIDE_TRAINER = HERE.parent / "fakes" / "guide_trainer.py"
CONFIG = """pretrained_model_name_or_path = "sdxl_base_1.0.safetensors"
output_dir = "out"
output_name = "luca"
max_train_epochs = 12
vae_batch_size = 2
"""
CARD = """driver = 570.133.07
gpus = 1
[gpu 0]
name = NVIDIA GeForce RTX 4080
mem_total = 16376
mem_used = {used}
util_gpu = {util}
temp = {temp}
power = 290
power_limit = 320
"""
POLL_S = 0.1


class PastRun(NamedTuple):
    """``said``: what commands printed while it ran, by name."""

    project: Path
    home: Path
    said: dict[str, Said]

    def log(self, attempt: int) -> str:
        """What the trainer printed."""
        (folder,) = (self.home / "runs").glob(f"*/attempts/{attempt:04d}")
        return (folder / "train.log").read_text(errors="replace")


Make = Callable[[World, pytest.MonkeyPatch, FakeNvml], dict[str, Said]]


def past_run(name: str, make: Make, factory: pytest.TempPathFactory, library: Path) -> PastRun:
    """The run of this name; made by the first worker that asks for it. If it could not be made, all fail with why."""
    base = factory.getbasetemp()
    base = base.parent if base.name.startswith("popen-") else base
    root, told, failed = (base / f"past-{name}{end}" for end in ("", ".json", ".failed"))
    with (base / f"past-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if failed.exists():
            pytest.fail(f"the run {name} could not be made:\n{failed.read_text()}")
        if not told.exists():
            try:
                said = _made(root, make, library)
            except BaseException:  # the failure of a test is none that Exception covers
                failed.write_text(traceback.format_exc())
                raise
            told.write_text(json.dumps(said))
    said = {key: Said(*value) for key, value in json.loads(told.read_text()).items()}
    return PastRun(root / "project", root / "home", said)


def _made(root: Path, make: Make, library: Path) -> dict[str, Said]:
    root.mkdir()
    with world_at(root) as world, pytest.MonkeyPatch.context() as patch:
        driver = FakeNvml(library, root / "nvml.state")
        world.env |= {"LD_LIBRARY_PATH": str(library), "FAKE_NVML_STATE": str(driver.state)}
        patch.chdir(world.project)
        for variable in ("TRAINWATCH_HOME", "LD_LIBRARY_PATH", "FAKE_NVML_STATE"):
            patch.setenv(variable, world.env[variable])
        return make(world, patch, driver)


def spend_night(world: World, _patch: pytest.MonkeyPatch, driver: FakeNvml) -> dict[str, Said]:
    """An SDXL run of the guide that runs out of memory once; the GPU gets hot half way. ``status`` of then."""
    driver.show(CARD.format(util=97, used=15500, temp=66))
    world.env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # else that is the first remedy
    (world.project / "sdxl_base_1.0.safetensors").touch()
    (world.project / "sdxl.toml").write_text(CONFIG)
    world.write(
        command=[sys.executable, str(SDXL_TRAINER), "--config_file", "{config}"], config="sdxl.toml", preset="kohya"
    )
    watcher = world.headless()

    def status(temp: float, step: int) -> Said | None:
        time.sleep(POLL_S)
        said = types("status", "--json")
        seen = json.loads(said.out) if said.code == 0 else {}
        gpus = seen.get("gpus") or [{}]
        there = gpus[0].get("temp") == temp and (seen["progress"]["step"] or 0) >= step
        return said if there and any(h["metric"] == "gpu0.vram" for h in seen["health"]) else None

    until(lambda: world.runs() and world.steps(2)[-1:] == [120], "half way of attempt 2")
    cool = until(lambda: status(66, 120), "half way")
    driver.show(CARD.format(util=97, used=15500, temp=85))
    hot = until(lambda: status(85, 120), "a hot GPU")
    (world.project / "go").touch()
    assert watcher.ends() == 0, watcher.said
    return {"cool": cool, "hot": hot}


def crash_once(world: World, _patch: pytest.MonkeyPatch, driver: FakeNvml) -> dict[str, Said]:
    """The trainer of the guides dies of a CUDA unknown error at step 15, and is restarted."""
    driver.show(CARD.format(util=0, used=600, temp=45))
    shutil.copy(GUIDE_TRAINER, world.project / "train.py")
    world.write(
        name="luca", command=[sys.executable, "train.py", "--resume", "{resume}", "--crash_at", "15", "--step_time", "0.05"],
        output_dir="outputs", more={"notify": {"command": ["sh", "-c", "cat >> notices.jsonl"]}},
    )  # fmt: skip
    done = world.do("--headless", "--interval", "1", "--max-restarts", "3")
    return {"headless": Said("trainwatch --headless --interval 1 --max-restarts 3", done.code, done.out, done.err)}
