"""Make a tiny autoencoder with random weights in the hub's cache folder (HF_HOME), named as train.py of DiT names it."""

import os
from pathlib import Path

import torch
from diffusers import AutoencoderKL

torch.manual_seed(0)
vae = AutoencoderKL(
    block_out_channels=(8, 8, 8, 8), norm_num_groups=4, layers_per_block=1, latent_channels=4,
    down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
)  # fmt: skip
model = Path(os.environ["HF_HOME"]) / "hub" / "models--stabilityai--sd-vae-ft-ema"
(model / "refs").mkdir(parents=True)
(model / "refs" / "main").write_text("0" * 40)
vae.save_pretrained(model / "snapshots" / ("0" * 40))
