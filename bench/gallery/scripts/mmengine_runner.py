"""mmengine's Runner, with the options of the train.py that its model libraries share."""

import argparse
import time

import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, index):
        time.sleep(0.025)
        point = torch.randn(8)
        return point, point[:1] * 2


class Regressor(BaseModel):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))

    def forward(self, points, targets, mode):
        predicted = self.layers(points)
        return {"loss": torch.nn.functional.mse_loss(predicted, targets)} if mode == "loss" else predicted


def parse_args():
    parser = argparse.ArgumentParser(description="Train a regressor")
    parser.add_argument("--work-dir", help="the dir to save logs and models")
    parser.add_argument(
        "--resume",
        nargs="?",
        type=str,
        const="auto",
        help="If specify checkpoint path, resume from it, while if not specify, try to auto resume from the latest "
        "checkpoint in the work directory.",
    )
    return parser.parse_args()


def main():
    args = parse_args()
    resume, load_from = args.resume is not None, None if args.resume == "auto" else args.resume
    runner = Runner(
        model=Regressor(),
        work_dir=args.work_dir,
        train_dataloader=DataLoader(Points(), batch_size=4, shuffle=True),
        train_cfg={"by_epoch": True, "max_epochs": 26},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.02}},
        default_hooks={
            "checkpoint": {"type": "CheckpointHook", "interval": 1},
            "logger": {"type": "LoggerHook", "interval": 5},
        },
        resume=resume,
        load_from=load_from,
    )
    runner.train()


if __name__ == "__main__":
    main()
