"""Step and epoch from names, and which names are checkpoints."""

import pytest

from trainwatch.core.model.checkpoint_files import (
    is_part,
    is_temporary,
    read_name,
    series_of,
)


@pytest.mark.parametrize(
    ("name", "step", "epoch"),
    [
        ("luca-000004.safetensors", None, 4),
        ("luca.safetensors", None, None),
        ("luca-step00000500.safetensors", 500, None),
        ("luca-000004-state", None, 4),
        ("luca-step00000500-state", 500, None),
        ("luca-state", None, None),
        ("checkpoint-500", 500, None),
        ("checkpoint-epoch-118", None, 118),
        ("checkpoint-epoch-3", None, 3),
        ("checkpoint_500.pt", 500, None),
        ("epoch=3-step=1000.ckpt", 1000, 3),
        ("last.ckpt", None, None),
        ("global_step500", 500, None),
        ("epoch_3", None, 3),
        ("model_epoch_12.pt", None, 12),
        ("model-step-2000.pth", 2000, None),
        ("iter_1000.pth", 1000, None),
        ("mylora_000000500.safetensors", 500, None),
        ("lora-2024-06-01_10-00-00-save-1500-3-20.safetensors", 1500, 3),
        ("model_500.pt", 500, None),
        ("0050000.pt", 50000, None),
        ("1500.safetensors", 1500, None),
        ("20240131.pt", None, None),
        ("12.pt", None, None),
        ("model-00001-of-00003.safetensors", None, None),
        ("sd-v1-5.safetensors", None, None),
        ("sdxl-20240131.safetensors", None, None),
        ("model-7b.safetensors", None, None),
        ("step-99999999999999999999", None, None),
    ],
)
def test_step_and_epoch_are_read_from_names(name: str, step: int | None, epoch: int | None) -> None:
    found = read_name(name)

    assert (found.step, found.epoch) == (step, epoch)


@pytest.mark.parametrize(
    "name",
    [
        "optimizer.pt",
        "optimizer.bin",
        "optimizer_state-1.safetensors",
        "optimizer_0.bin",
        "scheduler.pt",
        "scaler.pt",
        "rng_state.pth",
        "rng_state_3.pth",
        "random_states_0.pkl",
        "training_args.bin",
        "sampler.bin",
        "recipe_state.pt",
        "cached_latents_0001.safetensors",
        "cache-text_encoder.pt",
        "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
    ],
)
def test_parts_are_not_checkpoints_by_themselves(name: str) -> None:
    assert is_part(name)


@pytest.mark.parametrize(
    "name",
    [
        "model.pt",
        "optimus-000001.safetensors",
        "schedule_free-500.pt",
        "rngnet.pt",
        "cached.pt",
        "optim_a-1.safetensors",
    ],
)
def test_names_that_begin_like_parts_are_checkpoints(name: str) -> None:
    assert not is_part(name)


@pytest.mark.parametrize(
    "name",
    ["x.safetensors.tmp", "tmp-checkpoint-500", ".x.pt", "x.pt.incomplete", "x.partial", "x.pt.tmp.123", "x.pt~"],
)
def test_temporary_names_are_recognised(name: str) -> None:
    assert is_temporary(name)


@pytest.mark.parametrize(
    ("names", "series"),
    [
        (("luca-000004.safetensors", "luca.safetensors", "luca-step00000500.safetensors"), "luca"),
        (("luca-try2-000001.safetensors", "luca-try12.safetensors"), "luca"),
        (("luca-000004-state", "luca-000006-state"), "luca-state"),
        (
            ("checkpoint-500", "checkpoint-epoch-118", "epoch=3-step=1000.ckpt", "iter_900.pth", "epoch3.pt"),
            "checkpoint",
        ),
        (("flux-1-000002.safetensors",), "flux-1"),
        (("anna2-000002.safetensors",), "anna2"),
        (("x-save-100-2-50.safetensors",), "x"),
        (("model.safetensors.index.json", "model-00001-of-00003.safetensors", "model.safetensors"), "model"),
        (("best.pt",), "best"),
    ],
)
def test_series_of_names(names: tuple[str, ...], series: str) -> None:
    assert {series_of(name) for name in names} == {series}
