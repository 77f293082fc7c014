"""accelerate and diffusers: a loop of one's own, unconditional images with a bar for each epoch, a LoRA for text.

None of the three writes a file that names its last step; the weights that they export at their end prove it.
"""

from pathlib import Path

from ..row import Row, Truth
from .hf import PACKAGES

STEPS = 48
LAUNCH = (
    "accelerate", "launch", "--num_processes", "1", "--num_machines", "1", "--mixed_precision", "no",
    "--dynamo_backend", "no", "--cpu",
)  # fmt: skip
RANKS = (
    "accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no",
    "--dynamo_backend", "no",
)  # fmt: skip
"""``--multi_gpu`` is what starts two ranks; the script's ``Accelerator(cpu=True)`` makes them gloo."""


def whole_bar(folder: Path, export: str) -> Truth:
    """A bar over the whole run."""
    done = Truth(step=STEPS, total_steps=STEPS, run_step=STEPS, run_total_steps=STEPS)
    return done if (folder / export).exists() else Truth()


def bar_of_an_epoch(folder: Path) -> Truth:
    """Four bars of 12 batches, ``Epoch 0`` to ``Epoch 3``."""
    done = Truth(step=12, total_steps=12, epoch=3.0, run_step=STEPS, run_total_steps=STEPS)
    return done if (folder / "out" / "model_index.json").exists() else Truth()


ROWS = (
    Row(
        name="accelerate",
        title="accelerate launch",
        environment="hf",
        packages=PACKAGES,
        version_of="accelerate",
        preset="accelerate",
        files={"train.py": "@accelerate_loop.py"},
        command=(*LAUNCH, "train.py", "--output_dir", "results", "--per_device_batch_size", "8"),
        output_dir="results",
        checkpoints="results/step_*",
        torn="results/step_*/model.safetensors",
        final="results/final.pt",
        steps=STEPS,
        save_every=10,
        launcher=True,
        exact=False,  # the order of the data after a resume in an epoch is drawn anew
        truth=lambda folder: whole_bar(folder, "results/final.pt"),
    ),
    Row(
        name="accelerate-ranks",
        title="accelerate launch, 2 × gloo",
        environment="hf",
        packages=PACKAGES,
        version_of="accelerate",
        preset="accelerate",
        files={"train.py": "@accelerate_loop.py"},
        command=(*RANKS, "train.py", "--output_dir", "results"),
        env={"ACCELERATE_USE_CPU": "true"},
        output_dir="results",
        checkpoints="results/step_*",
        torn="results/step_*/model.safetensors",
        final="results/final.pt",
        steps=STEPS,
        save_every=10,
        ranks=2,
        launcher=True,
        exact=False,
        truth=lambda folder: whole_bar(folder, "results/final.pt"),
    ),
    Row(
        name="diffusers",
        title="diffusers, unconditional",
        environment="hf",
        packages=PACKAGES,
        version_of="diffusers",
        preset="diffusers",
        files={"train_unconditional.py": "@diffusers_unconditional.py"},
        command=(*LAUNCH, "train_unconditional.py", "--output_dir", "out", "--dataloader_num_workers", "2"),
        output_dir="out",
        checkpoints="out/checkpoint-*",
        torn="out/checkpoint-*/model.safetensors",
        final="out/unet/diffusion_pytorch_model.safetensors",
        steps=STEPS,
        save_every=10,
        launcher=True,
        workers=True,
        exact=False,
        truth=bar_of_an_epoch,
    ),
    Row(
        name="diffusers-lora",
        title="diffusers, text-to-image LoRA",
        environment="hf",
        packages=PACKAGES,
        version_of="diffusers",
        preset="diffusers",
        files={"train_text_to_image_lora.py": "@diffusers_lora.py", "make.py": "@tiny_stable_diffusion.py"},
        prepare=("python", "make.py"),
        command=(
            *LAUNCH,
            "train_text_to_image_lora.py",
            "--pretrained_model_name_or_path",
            "model",
            "--output_dir",
            "out",
            "--checkpointing_steps",
            "10",
            "--max_train_steps",
            str(STEPS),
            "--dataloader_num_workers",
            "2",
        ),
        output_dir="out",
        checkpoints="out/checkpoint-*",
        torn="out/checkpoint-*/model.safetensors",
        final="out/pytorch_lora_weights.safetensors",
        steps=STEPS,
        save_every=10,
        launcher=True,
        workers=True,
        exact=False,
        truth=lambda folder: whole_bar(folder, "out/pytorch_lora_weights.safetensors"),
    ),
)
