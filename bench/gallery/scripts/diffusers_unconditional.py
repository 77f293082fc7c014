"""Unconditional image generation with diffusers and accelerate, as its training examples do it: a bar for each epoch."""

import argparse
import logging
import os
import shutil

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import ProjectConfiguration
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from tqdm.auto import tqdm

logger = get_logger(__name__, log_level="INFO")


def parse_args():
    parser = argparse.ArgumentParser(description="Unconditional diffusion.")
    parser.add_argument("--output_dir", type=str, default="ddpm-model-64")
    parser.add_argument("--resolution", type=int, default=16)
    parser.add_argument("--train_batch_size", type=int, default=4)
    parser.add_argument("--num_epochs", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--dataloader_num_workers", type=int, default=0)
    parser.add_argument("--checkpointing_steps", type=int, default=10)
    parser.add_argument("--checkpoints_total_limit", type=int, default=None)
    parser.add_argument("--resume_from_checkpoint", type=str, default=None, help='A checkpoint, or "latest".')
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def checkpoints_of(folder):
    names = [name for name in os.listdir(folder) if name.startswith("checkpoint-")]
    return sorted(names, key=lambda name: int(name.split("-")[1]))


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True, project_config=ProjectConfiguration(project_dir=args.output_dir))
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", level=logging.INFO)
    torch.manual_seed(args.seed)
    os.makedirs(args.output_dir, exist_ok=True)
    model = UNet2DModel(
        sample_size=args.resolution, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16),
        norm_num_groups=4, down_block_types=("DownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    noise_scheduler = DDPMScheduler(num_train_timesteps=1000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    images = torch.rand(48, 3, args.resolution, args.resolution) * 2 - 1
    loader = torch.utils.data.DataLoader(
        images, batch_size=args.train_batch_size, shuffle=True, num_workers=args.dataloader_num_workers
    )
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    num_update_steps_per_epoch = len(loader)
    max_train_steps = args.num_epochs * num_update_steps_per_epoch
    logger.info("***** Running training *****")
    logger.info(f"  Num examples = {len(images)}")
    logger.info(f"  Num Epochs = {args.num_epochs}")
    logger.info(f"  Instantaneous batch size per device = {args.train_batch_size}")
    logger.info(f"  Total optimization steps = {max_train_steps}")
    global_step, first_epoch, resume_step = 0, 0, 0
    if args.resume_from_checkpoint:
        if args.resume_from_checkpoint != "latest":
            path = os.path.basename(args.resume_from_checkpoint)
        else:
            saved = checkpoints_of(args.output_dir)
            path = saved[-1] if saved else None
        if path is None:
            accelerator.print(
                f"Checkpoint '{args.resume_from_checkpoint}' does not exist. Starting a new training run."
            )
            args.resume_from_checkpoint = None
        else:
            accelerator.print(f"Resuming from checkpoint {path}")
            accelerator.load_state(os.path.join(args.output_dir, path))
            global_step = int(path.split("-")[1])
            first_epoch = global_step // num_update_steps_per_epoch
            resume_step = global_step % num_update_steps_per_epoch
    for epoch in range(first_epoch, args.num_epochs):
        model.train()
        progress_bar = tqdm(total=num_update_steps_per_epoch, disable=not accelerator.is_local_main_process)
        progress_bar.set_description(f"Epoch {epoch}")
        for step, clean in enumerate(loader):
            if args.resume_from_checkpoint and epoch == first_epoch and step < resume_step:
                progress_bar.update(1)
                continue
            noise = torch.randn_like(clean)
            timesteps = torch.randint(0, noise_scheduler.config.num_train_timesteps, (len(clean),))
            noisy = noise_scheduler.add_noise(clean, noise, timesteps)
            loss = torch.nn.functional.mse_loss(model(noisy, timesteps).sample, noise)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            global_step += 1
            if accelerator.is_main_process and global_step % args.checkpointing_steps == 0:
                if args.checkpoints_total_limit is not None:
                    for name in checkpoints_of(args.output_dir)[: -args.checkpoints_total_limit + 1 or None]:
                        shutil.rmtree(os.path.join(args.output_dir, name))
                save_path = os.path.join(args.output_dir, f"checkpoint-{global_step}")
                accelerator.save_state(save_path)
                logger.info(f"Saved state to {save_path}")
            progress_bar.set_postfix(loss=loss.detach().item(), lr=args.learning_rate, step=global_step)
        progress_bar.close()
    pipeline = DDPMPipeline(unet=accelerator.unwrap_model(model), scheduler=noise_scheduler)
    pipeline.save_pretrained(args.output_dir)
    accelerator.end_training()


if __name__ == "__main__":
    main()
