"""Makes ``model/``: a Stable Diffusion of a few thousand random weights, in the folders that diffusers reads."""

import torch
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel

torch.manual_seed(0)
AutoencoderKL(
    block_out_channels=(8, 16), in_channels=3, out_channels=3, latent_channels=4, norm_num_groups=4, sample_size=16,
    down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
    up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
).save_pretrained("model/vae")  # fmt: skip
UNet2DConditionModel(
    sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
    cross_attention_dim=16, attention_head_dim=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
).save_pretrained("model/unet")  # fmt: skip
config = CLIPTextConfig(
    vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
    max_position_embeddings=16,
)  # fmt: skip
CLIPTextModel(config).save_pretrained("model/text_encoder")
DDPMScheduler(num_train_timesteps=1000).save_pretrained("model/scheduler")
