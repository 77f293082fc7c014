"""What comes as a checkout: nanoGPT, facebookresearch/DiT and kohya sd-scripts."""

import re
from pathlib import Path

from ..row import Row, Truth
from .vision import newest_log

NANO = """\
out_dir = 'out-tiny'
eval_interval = 10
eval_iters = 2
log_interval = 1
dataset = 'tiny'
gradient_accumulation_steps = 1
batch_size = 4
block_size = 16
n_layer = 1
n_head = 2
n_embd = 16
dropout = 0.0
learning_rate = 1e-3
max_iters = 50
lr_decay_iters = 50
min_lr = 1e-4
warmup_iters = 5
device = 'cpu'
compile = False
"""
TOKENS = """\
import os
import pickle
import numpy as np
os.makedirs("data/tiny")
pickle.dump({"vocab_size": 50}, open("data/tiny/meta.pkl", "wb"))
for part, number in (("train", 20000), ("val", 4000)):
    (np.cumsum(np.random.default_rng(0).integers(0, 3, number)) % 50).astype(np.uint16).tofile(f"data/tiny/{part}.bin")
"""
DIT = (
    "--model DiT-S/8 --data-path data --image-size 256 --num-classes 3 --epochs 4 --global-batch-size 4"
    " --num-workers 2 --log-every 2 --ckpt-every 10"
)
KOHYA = """\
pretrained_model_name_or_path = "sd"
tokenizer_cache_dir = "tokenizers"
train_data_dir = "pictures"
output_dir = "out"
output_name = "thing"
resolution = "64,64"
caption_extension = ".txt"
network_module = "networks.lora"
network_dim = 2
network_train_unet_only = true
train_batch_size = 2
max_train_steps = 48
learning_rate = 1e-3
optimizer_type = "AdamW"
save_every_n_steps = 12
save_state = true
save_model_as = "safetensors"
mixed_precision = "no"
max_data_loader_n_workers = 2
persistent_data_loader_workers = true
seed = 1
"""


def nano_of(folder: Path) -> Truth:
    """The log alone; iteration 50 is the 51st."""
    step, loss = re.findall(r"iter (\d+): loss ([\d.]+)", newest_log(folder).read_text())[-1]
    return Truth(step=int(step), loss=float(loss), run_step=int(step))


def dit_of(folder: Path) -> Truth:
    """``log.txt`` of the experiment; it names no total."""
    newest = max(folder.glob("results/*/log.txt"), key=lambda path: path.stat().st_mtime)
    log = newest.read_text()
    step, loss = re.findall(r"\(step=(\d+)\) Train Loss: ([\d.]+)", log)[-1]
    epoch = int(re.findall(r"Beginning epoch (\d+)", log)[-1])
    return Truth(step=int(step), epoch=epoch, loss=float(loss), run_step=int(step))


def kohya_of(folder: Path) -> Truth:
    """The bar alone: its loss is the mean of the last epoch."""
    log = newest_log(folder).read_text()
    step, total, loss = re.findall(r"steps: +\d+%\S* (\d+)/(\d+) \[.*?avr_loss=([\d.]+)", log)[-1]
    return Truth(
        step=int(step), total_steps=int(total), epoch=4, total_epochs=4, loss=float(loss), run_step=int(step),
        run_total_steps=int(total),
    )  # fmt: skip


ROWS = (
    Row(
        name="kohya", title="kohya sd-scripts", environment="kohya", checkout="sd-scripts",
        packages=(
            "accelerate==1.6.0", "transformers==4.54.1", "diffusers==0.32.1", "ftfy==6.3.1", "opencv-python-headless",
            "einops==0.7.0", "toml==0.10.2", "voluptuous==0.15.2", "huggingface-hub==0.34.3", "imagesize==1.4.1",
            "rich==14.1.0", "safetensors==0.4.5",
        ),
        files={"luca.toml": KOHYA, "tiny_sd.py": "@tiny_sd.py"},
        prepare=("bash", "-c", "python tiny_sd.py && rm tiny_sd.py"),
        command=(
            "accelerate", "launch", "--num_cpu_threads_per_process", "1", "{checkout}/train_network.py",
            "--config_file", "luca.toml",
        ),
        env={"GALLERY_STAND_IN": "stand_in_sd", "ACCELERATE_USE_CPU": "true"}, preset="kohya", output_dir="out",
        checkpoints="out/*-state", torn="out/*-state/model.safetensors", final="out/thing*.safetensors", steps=48,
        save_every=12, launcher=True, workers=True, truth=kohya_of, exact=False,
    ),
    Row(
        total_unsaid=True,
        name="nanogpt", title="nanoGPT", environment="torch", packages=(), checkout="nanoGPT",
        files={"config/tiny.py": NANO, "tokens.py": TOKENS},
        prepare=("bash", "-c", "cp {checkout}/*.py . && python tokens.py && rm tokens.py"),
        command=("python", "train.py", "config/tiny.py"), preset="nanogpt", output_dir="out-tiny",
        checkpoints="out-tiny/ckpt.pt", torn="out-tiny/ckpt.pt", final="out-tiny/ckpt.pt", steps=51, save_every=10,
        truth=nano_of, exact=False, cannot={"torn": "nanoGPT has one ckpt.pt and writes it over in place"},
    ),
    Row(
        total_unsaid=True,
        name="dit", title="facebookresearch/DiT", environment="dit", packages=("diffusers", "timm", "transformers"),
        checkout="DiT", files={"images.py": "@images.py", "tiny_vae.py": "@tiny_vae.py"},
        prepare=("bash", "-c", "python images.py data 3 16 256 && python tiny_vae.py && rm images.py tiny_vae.py"),
        command=("torchrun", "--nnodes=1", "--nproc_per_node=1", "{checkout}/train.py", *DIT.split()),
        env={"GALLERY_STAND_IN": "stand_in_cuda", "HF_HOME": "hub"}, preset="dit-facebook",
        output_dir="results/000-DiT-S-8/checkpoints", checkpoints="results/*/checkpoints/*.pt",
        torn="results/*/checkpoints/*.pt", final="results/*/checkpoints/0000040.pt", steps=48, save_every=10,
        log_every=2, launcher=True, workers=True, truth=dit_of, resumes=False,
    ),
)  # fmt: skip
