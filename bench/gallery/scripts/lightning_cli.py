"""A usual LightningCLI script: everything else stands in the YAML file."""

import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI
from torch.utils.data import DataLoader, TensorDataset


class Classifier(LightningModule):
    def __init__(self, width: int = 16, learning_rate: float = 0.01):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))

    def _loss(self, batch):
        inputs, labels = batch
        return torch.nn.functional.cross_entropy(self.layers(inputs), labels)

    def training_step(self, batch, _index):
        loss = self._loss(batch)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _index):
        self.log("val_loss", self._loss(batch), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.learning_rate)


class Data(LightningDataModule):
    def __init__(self, batch_size: int = 8, num_workers: int = 0):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage):
        generator = torch.Generator().manual_seed(0)
        inputs = torch.randn(96, 8, generator=generator)
        self.data = TensorDataset(inputs, inputs[:, :4].argmax(1))

    def _loader(self):
        workers = self.hparams.num_workers
        return DataLoader(self.data, self.hparams.batch_size, num_workers=workers, persistent_workers=workers > 0)

    def train_dataloader(self):
        return self._loader()

    def val_dataloader(self):
        return self._loader()


if __name__ == "__main__":
    LightningCLI(Classifier, Data)
