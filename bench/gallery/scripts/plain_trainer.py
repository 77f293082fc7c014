"""A usual training script of one's own: argparse, a line every few steps, torch.save, an option to resume."""

import argparse
import os

import torch
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="checkpoints", help="where to save")
    parser.add_argument("--max-steps", type=int, default=48)
    parser.add_argument("--save-interval", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--resume", type=str, default="", help="path of a checkpoint to go on from")
    return parser.parse_args()


def batches(loader, start):
    """Batch after batch, epoch after epoch, from batch ``start`` on."""
    epoch, skip = divmod(start, len(loader))
    while True:
        for index, batch in enumerate(loader):
            if index >= skip:
                yield epoch, batch
        epoch, skip = epoch + 1, 0


def main():
    args = get_args()
    os.makedirs(args.out, exist_ok=True)
    torch.manual_seed(1)
    inputs = torch.randn(96, 8, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(inputs, inputs[:, :4].argmax(1))
    loader = DataLoader(data, 8, num_workers=args.workers, persistent_workers=args.workers > 0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    start = 0
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
        print(f"resumed from {args.resume} at step {start}", flush=True)

    for step, (epoch, (x, y)) in enumerate(batches(loader, start), start + 1):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2 == 0:
            print(f"step {step}/{args.max_steps} epoch {epoch} loss {loss.item():.4f}", flush=True)
        if step % args.save_interval == 0 or step == args.max_steps:
            path = os.path.join(args.out, f"step_{step:06d}.pt")
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
            print(f"saved {path}", flush=True)
        if step == args.max_steps:
            break
    print("training finished", flush=True)


if __name__ == "__main__":
    main()
