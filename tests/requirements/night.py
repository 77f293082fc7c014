"""One night that several cases look at: an SDXL run of the guide, supervised for real, with a GPU that gets hot."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.e2e_world import World, until, world_at
from tests.fakes.nvml.driver import FakeNvml

from .user import Said, types

TRAINER = Path(__file__).with_name("sdxl_trainer.py")
CONFIG = """pretrained_model_name_or_path = "sdxl_base_1.0.safetensors"
output_dir = "out"
output_name = "luca"
max_train_epochs = 12
vae_batch_size = 2
"""
CARD = "gpus = 1\n[gpu 0]\nmem_total = 16376\nmem_used = {used}\nutil_gpu = 97\ntemp = {temp}\npower = 290\npower_limit = 320\n"


class Night(NamedTuple):
    """The project, and what ``status --json`` said half way, before and after the GPU got hot."""

    world: World
    cool: Said
    hot: Said


def spend(root: Path, library: Path) -> Iterator[Night]:
    """Run it to its end; everything is cleared away afterwards."""
    with world_at(root) as world:
        yield _spent(world, root, library)


def _spent(world: World, root: Path, library: Path) -> Night:
    """The environment and the folder of this process are its own again when this returns."""
    with pytest.MonkeyPatch.context() as patch:
        driver = FakeNvml(library, root / "nvml.state")
        driver.show(CARD.format(used=15500, temp=66))
        world.env |= {"LD_LIBRARY_PATH": str(library), "FAKE_NVML_STATE": str(driver.state)}
        world.env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # else that is the first remedy
        (world.project / "sdxl_base_1.0.safetensors").touch()
        (world.project / "sdxl.toml").write_text(CONFIG)
        world.write(
            command=[sys.executable, str(TRAINER), "--config_file", "{config}"],
            config="sdxl.toml",
            preset="kohya",
        )
        watcher = world.headless()
        patch.chdir(world.project)
        for name in ("TRAINWATCH_HOME", "LD_LIBRARY_PATH", "FAKE_NVML_STATE"):
            patch.setenv(name, world.env[name])

        def status(temp: float, step: int) -> Said | None:
            said = types("status", "--json")
            seen = json.loads(said.out) if said.code == 0 else {}
            gpus = seen.get("gpus") or [{}]
            there = gpus[0].get("temp") == temp and (seen["progress"]["step"] or 0) >= step
            return said if there and any(h["metric"] == "gpu0.vram" for h in seen["health"]) else None

        until(lambda: world.runs() and world.steps(2)[-1:] == [120], "half way of attempt 2")
        cool = until(lambda: status(66, 120), "half way")
        driver.show(CARD.format(used=15500, temp=85))
        hot = until(lambda: status(85, 120), "a hot GPU")
        (world.project / "go").touch()
        assert watcher.ends() == 0, watcher.said
        return Night(world, cool, hot)
