"""A usual loop of one's own around accelerate.Accelerator: states in ``step_N``, resumed by --resume_from_checkpoint."""

import argparse
import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from tqdm.auto import tqdm


def parse_args():
    parser = argparse.ArgumentParser(description="Train a small classifier.")
    parser.add_argument("--output_dir", type=str, default="results")
    parser.add_argument("--num_train_epochs", type=int, default=4)
    parser.add_argument("--per_device_batch_size", type=int, default=4)
    parser.add_argument("--checkpointing_steps", type=int, default=10)
    parser.add_argument("--resume_from_checkpoint", type=str, default=None, help="Folder of a saved state.")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True)
    set_seed(args.seed)
    data = torch.utils.data.TensorDataset(torch.randn(96, 8), torch.randint(0, 3, (96,)))
    loader = torch.utils.data.DataLoader(data, batch_size=args.per_device_batch_size, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    max_train_steps = args.num_train_epochs * len(loader)
    completed_steps, starting_epoch = 0, 0
    if args.resume_from_checkpoint:
        accelerator.print(f"Resumed from checkpoint: {args.resume_from_checkpoint}")
        accelerator.load_state(args.resume_from_checkpoint)
        completed_steps = int(os.path.basename(args.resume_from_checkpoint.rstrip("/")).replace("step_", ""))
        starting_epoch = completed_steps // len(loader)
    progress_bar = tqdm(range(max_train_steps), disable=not accelerator.is_local_main_process)
    progress_bar.update(completed_steps)
    for epoch in range(starting_epoch, args.num_train_epochs):
        model.train()
        batches = loader
        if epoch == starting_epoch and completed_steps % len(loader):
            batches = accelerator.skip_first_batches(loader, completed_steps % len(loader))
        for inputs, labels in batches:
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            progress_bar.set_postfix(loss=loss.item())
            completed_steps += 1
            if completed_steps % args.checkpointing_steps == 0:
                accelerator.save_state(os.path.join(args.output_dir, f"step_{completed_steps}"))
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(model).state_dict(), os.path.join(args.output_dir, "final.pt"))
    accelerator.end_training()


if __name__ == "__main__":
    main()
