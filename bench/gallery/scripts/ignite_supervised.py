"""ignite's supervised trainer with its Checkpoint handler; --resume_from as in its CIFAR10 example."""

import argparse
import time

import numpy as np
import torch
from ignite.engine import Events, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, global_step_from_engine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

X = np.random.default_rng(0).normal(size=(160, 8)).astype("float32")


def run(args):
    target = torch.from_numpy(X[:, :1].copy() * 2)
    loader = DataLoader(TensorDataset(torch.from_numpy(X), target), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    trainer = create_supervised_trainer(model, optimizer, nn.MSELoss())

    @trainer.on(Events.ITERATION_COMPLETED)
    def log_training_loss(engine):
        time.sleep(0.08)
        if engine.state.iteration % 5 == 0:
            where = (engine.state.iteration - 1) % len(loader) + 1
            print(
                f"Epoch[{engine.state.epoch}] Iteration[{where}/{len(loader)}] Loss: {engine.state.output:.4f}",
                flush=True,
            )

    to_save = {"trainer": trainer, "model": model, "optimizer": optimizer}
    saver = DiskSaver(args.place, create_dir=True, require_empty=False)
    handler = Checkpoint(to_save, saver, n_saved=None, global_step_transform=global_step_from_engine(trainer))
    trainer.add_event_handler(Events.EPOCH_COMPLETED, handler)
    if args.resume_from:
        Checkpoint.load_objects(to_load=to_save, checkpoint=torch.load(args.resume_from, map_location="cpu"))
        print(f"Resumed from {args.resume_from}, epoch {trainer.state.epoch}", flush=True)
    trainer.run(loader, max_epochs=args.num_epochs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--place", default="checkpoints")
    parser.add_argument("--num_epochs", type=int, default=24)
    parser.add_argument("--resume_from", default=None, help="path to the checkpoint to resume from")
    run(parser.parse_args())
