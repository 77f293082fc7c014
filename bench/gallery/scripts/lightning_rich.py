"""A usual Lightning script with argparse and rich's progress bar."""

import argparse

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, RichProgressBar
from torch.utils.data import DataLoader, TensorDataset


class Regressor(L.LightningModule):
    def __init__(self, learning_rate):
        super().__init__()
        self.learning_rate = learning_rate
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch, _index):
        inputs, targets = batch
        loss = torch.nn.functional.mse_loss(self.layers(inputs), targets)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--ckpt-path", default=None, help="checkpoint to resume from")
    args = parser.parse_args()

    L.seed_everything(1)
    inputs = torch.randn(96, 8, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=2, persistent_workers=True)
    saving = ModelCheckpoint(every_n_train_steps=6, save_top_k=-1, save_last=True)
    trainer = L.Trainer(
        max_epochs=args.epochs, accelerator="cpu", log_every_n_steps=1, callbacks=[saving, RichProgressBar()]
    )
    trainer.fit(Regressor(args.lr), loader, ckpt_path=args.ckpt_path)


if __name__ == "__main__":
    main()
