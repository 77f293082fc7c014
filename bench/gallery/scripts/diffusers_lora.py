"""Text-to-image LoRA with diffusers, peft and accelerate, as its training examples do it, on tiny random models."""

import argparse
import logging
import os

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import ProjectConfiguration, set_seed
from diffusers import AutoencoderKL, DDPMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from diffusers.utils import convert_state_dict_to_diffusers
from peft import LoraConfig
from peft.utils import get_peft_model_state_dict
from tqdm.auto import tqdm
from transformers import CLIPTextModel

logger = get_logger(__name__, log_level="INFO")


def parse_args():
    parser = argparse.ArgumentParser(description="LoRA for a text-to-image model.")
    parser.add_argument("--pretrained_model_name_or_path", type=str, required=True)
    parser.add_argument("--output_dir", type=str, default="sd-model-finetuned-lora")
    parser.add_argument("--train_batch_size", type=int, default=4)
    parser.add_argument("--max_train_steps", type=int, default=48)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--rank", type=int, default=2)
    parser.add_argument("--dataloader_num_workers", type=int, default=0)
    parser.add_argument("--checkpointing_steps", type=int, default=10)
    parser.add_argument("--resume_from_checkpoint", type=str, default=None, help='A checkpoint, or "latest".')
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, 16, 16, generator=generator) * 2 - 1, torch.randint(0, 60, (8,), generator=generator)


def save_lora(accelerator, unet, folder):
    layers = convert_state_dict_to_diffusers(get_peft_model_state_dict(accelerator.unwrap_model(unet)))
    StableDiffusionPipeline.save_lora_weights(folder, unet_lora_layers=layers, safe_serialization=True)


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True, project_config=ProjectConfiguration(project_dir=args.output_dir))
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", level=logging.INFO)
    set_seed(args.seed)
    os.makedirs(args.output_dir, exist_ok=True)
    source = args.pretrained_model_name_or_path
    noise_scheduler = DDPMScheduler.from_pretrained(source, subfolder="scheduler")
    text_encoder = CLIPTextModel.from_pretrained(source, subfolder="text_encoder")
    vae = AutoencoderKL.from_pretrained(source, subfolder="vae")
    unet = UNet2DConditionModel.from_pretrained(source, subfolder="unet")
    for part in (text_encoder, vae, unet):
        part.requires_grad_(False)
    unet.add_adapter(LoraConfig(r=args.rank, lora_alpha=args.rank, target_modules=["to_k", "to_q", "to_v", "to_out.0"]))
    trained = [parameter for parameter in unet.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.learning_rate)
    loader = torch.utils.data.DataLoader(
        Pictures(), shuffle=True, batch_size=args.train_batch_size, num_workers=args.dataloader_num_workers
    )
    unet, optimizer, loader = accelerator.prepare(unet, optimizer, loader)
    num_train_epochs = -(-args.max_train_steps // len(loader))
    logger.info("***** Running training *****")
    logger.info(f"  Num examples = {len(Pictures())}")
    logger.info(f"  Num Epochs = {num_train_epochs}")
    logger.info(f"  Instantaneous batch size per device = {args.train_batch_size}")
    logger.info(f"  Total optimization steps = {args.max_train_steps}")
    global_step, first_epoch = 0, 0
    if args.resume_from_checkpoint:
        path = os.path.basename(args.resume_from_checkpoint)
        if path == "latest":
            saved = [name for name in os.listdir(args.output_dir) if name.startswith("checkpoint")]
            saved = sorted(saved, key=lambda name: int(name.split("-")[1]))
            path = saved[-1] if saved else None
        if path is None:
            accelerator.print(
                f"Checkpoint '{args.resume_from_checkpoint}' does not exist. Starting a new training run."
            )
        else:
            accelerator.print(f"Resuming from checkpoint {path}")
            accelerator.load_state(os.path.join(args.output_dir, path))
            global_step = int(path.split("-")[1])
            first_epoch = global_step // len(loader)
    progress_bar = tqdm(
        range(args.max_train_steps), initial=global_step, desc="Steps", disable=not accelerator.is_local_main_process
    )
    for _epoch in range(first_epoch, num_train_epochs):
        unet.train()
        train_loss = 0.0
        for pixels, words in loader:
            latents = vae.encode(pixels).latent_dist.sample() * vae.config.scaling_factor
            noise = torch.randn_like(latents)
            timesteps = torch.randint(0, noise_scheduler.config.num_train_timesteps, (len(latents),))
            noisy = noise_scheduler.add_noise(latents, noise, timesteps)
            hidden = text_encoder(words, return_dict=False)[0]
            predicted = unet(noisy, timesteps, hidden, return_dict=False)[0]
            loss = torch.nn.functional.mse_loss(predicted.float(), noise.float())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            global_step += 1
            accelerator.log({"train_loss": train_loss}, step=global_step)
            if global_step % args.checkpointing_steps == 0 and accelerator.is_main_process:
                save_path = os.path.join(args.output_dir, f"checkpoint-{global_step}")
                accelerator.save_state(save_path)
                save_lora(accelerator, unet, save_path)
                logger.info(f"Saved state to {save_path}")
            progress_bar.set_postfix(step_loss=loss.detach().item(), lr=args.learning_rate)
            if global_step >= args.max_train_steps:
                break
    accelerator.wait_for_everyone()
    save_lora(accelerator, unet, args.output_dir)
    accelerator.end_training()


if __name__ == "__main__":
    main()
