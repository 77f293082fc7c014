"""A SpeechBrain Brain with a Checkpointer, which recovers by itself."""

import argparse
import time

import speechbrain as sb
import torch
from speechbrain.utils.checkpoints import Checkpointer
from speechbrain.utils.epoch_loop import EpochCounter


class SimpleBrain(sb.Brain):
    def compute_forward(self, batch, stage):
        time.sleep(0.08)
        return self.modules.model(batch[0])

    def compute_objectives(self, predictions, batch, stage):
        return torch.nn.functional.mse_loss(predictions, batch[1])

    def on_stage_end(self, stage, stage_loss, epoch=None):
        if stage == sb.Stage.TRAIN:
            print(f"epoch: {epoch} - train loss: {stage_loss:.4f}", flush=True)
        if stage == sb.Stage.VALID:
            self.checkpointer.save_checkpoint(meta={"loss": stage_loss})


parser = argparse.ArgumentParser()
parser.add_argument("--nest", default="results/save")
parser.add_argument("--number_of_epochs", type=int, default=24)
args = parser.parse_args()
points = torch.randn(160, 8, generator=torch.Generator().manual_seed(0))
data = [(x, x[:1] * 2) for x in points]
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
counter = EpochCounter(limit=args.number_of_epochs)
brain = SimpleBrain(
    {"model": model},
    opt_class=lambda parameters: torch.optim.SGD(parameters, lr=0.02),
    checkpointer=Checkpointer(args.nest, {"model": model, "counter": counter}),
)
brain.fit(
    counter,
    train_set=torch.utils.data.DataLoader(data, batch_size=4, shuffle=True),
    valid_set=torch.utils.data.DataLoader(data[:16], batch_size=4),
)
