"""The shipped profiles and presets hold exactly what the guides say."""

import re
from importlib.resources import files
from typing import Any

import pytest

from trainwatch.core.act.config.edits import read_yaml
from trainwatch.core.config.shipped import load_presets, load_profiles

CONFIGS = files("trainwatch.configs")
PROFILES, PRESETS = load_profiles(), load_presets()
COMMON = {
    "train_batch_size": 1,
    "cache_latents": True,
    "cache_latents_to_disk": False,
    "max_train_epochs": 12,
    "save_every_n_epochs": 2,
    "save_last_n_epochs": 3,
}
COLUMNS = (
    "gradient_accumulation_steps",
    "vae_batch_size",
    "max_data_loader_n_workers",
    "persistent_data_loader_workers",
    "lowram",
    "gradient_checkpointing",
)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("conservative", (4, 1, 1, False, True, False)),
        ("balanced", (6, 2, 2, True, False, False)),
        ("aggressive", (8, 4, 4, True, False, True)),
    ],
)
def test_sdxl_profiles(name: str, row: tuple[Any, ...]) -> None:
    assert PROFILES[name].settings == dict(zip(COLUMNS, row, strict=True)) | COMMON
    assert set(PROFILES[name].expect) == {"ram", "vram", "speed", "stability"}


def test_dit_example_config() -> None:
    config = read_yaml((CONFIGS / "examples" / "dit_train_config.yaml").read_text("utf-8"), "f")
    wanted = {
        "batch_size": 4,
        "gradient_accumulation_steps": 4,
        "num_epochs": 50,
        "learning_rate": 1e-4,
        "mixed_precision": "fp16",
        "max_grad_norm": 1.0,
        "use_ema": True,
        "ema_decay": 0.9999,
        "lr_scheduler": "cosine",
        "warmup_steps": 500,
        "save_steps": 500,
    }
    assert wanted.items() <= config["training"].items()


def test_presets_know_how_to_resume() -> None:
    kohya, dit, hf = PRESETS["kohya"], PRESETS["dit"], PRESETS["hf"]
    assert kohya.resume == "weights"
    assert kohya.resume_file is not None
    assert kohya.resume_file.key == "network_weights"
    for preset, words in ((kohya, "--resume"), (dit, "--resume"), (hf, "--resume_from_checkpoint")):
        assert preset.resume_directory is not None
        assert preset.resume_directory.args == (words, "{path}")
    assert PRESETS["generic"].resume_file is None


@pytest.mark.parametrize(
    ("command", "preset"),
    [
        ("accelerate launch --num_cpu_threads_per_process 2 ./sdxl_train_network.py --config_file c.toml", "kohya"),
        ("accelerate launch train_network.py --config_file /a/c.toml", "kohya"),
        ("python flux_train_network.py --dataset_config d.toml", "kohya"),
        ("python src/scripts/train.py --config configs/train_config.yaml", "dit"),
        ("./run_train.sh --config c.yaml", "dit"),
        ("python run_clm.py --model_name_or_path gpt2", "hf"),
        ("torchrun x.py --per_device_train_batch_size 4", "hf"),
        ("/usr/bin/python /x/char_trainer.py --output-dir out", "demo"),
        ("python train.py --lr 1", None),
        ("make all", None),
    ],
)
def test_commands_are_recognised(command: str, preset: str | None) -> None:
    found = {p.name for p in PRESETS.values() if any(re.search(pattern, command) for pattern in p.detect_command)}
    assert found == ({preset} if preset else set())


def test_columns_are_set_without_lines() -> None:
    """With both, tqdm cuts its bar at the width, and the loss behind it is lost."""
    for preset in PRESETS.values():
        assert "LINES" not in preset.environment
