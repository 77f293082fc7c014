"""Make a tiny Stable Diffusion pipeline with random weights, its CLIP tokenizer, and captioned pictures.

``sd/`` is the pipeline in the form of diffusers, ``tokenizers/openai_clip-vit-large-patch14`` the tokenizer where
sd-scripts looks for it, ``pictures/2_thing/`` the data set.
"""

import json
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from PIL import Image
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

CHANNELS = (32, 32, 32, 32)

torch.manual_seed(0)
letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
words = ["<|startoftext|>", "<|endoftext|>", *letters, *(letter + "</w>" for letter in letters)]
folder = Path("tokenizers/openai_clip-vit-large-patch14")
folder.mkdir(parents=True)
(folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
(folder / "merges.txt").write_text("#version: 0.2\n")
tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77)
tokenizer.save_pretrained(folder)
text = CLIPTextConfig(
    vocab_size=len(words), hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
    bos_token_id=0, eos_token_id=1, pad_token_id=1,
)  # fmt: skip
unet = UNet2DConditionModel(
    sample_size=8, block_out_channels=CHANNELS, layers_per_block=2, cross_attention_dim=16, attention_head_dim=8
)
vae = AutoencoderKL(
    block_out_channels=(8, 8, 8, 8), norm_num_groups=4, layers_per_block=1, latent_channels=4,
    down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
)  # fmt: skip
pipeline = StableDiffusionPipeline(
    vae, CLIPTextModel(text), tokenizer, unet, DDIMScheduler(), None, None, requires_safety_checker=False
)
pipeline.save_pretrained("sd")

pictures = Path("pictures/2_thing")
pictures.mkdir(parents=True)
random = np.random.default_rng(0)
for number in range(12):
    Image.fromarray(random.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(pictures / f"{number:02d}.png")
    (pictures / f"{number:02d}.txt").write_text("a thing")
