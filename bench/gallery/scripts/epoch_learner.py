"""A learner with callbacks in the manner of fastai: a table of epochs, models/NAME.pth, --load NAME."""

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def begin_epoch(self, learn): ...
    def after_epoch(self, learn): ...


class SaveEach(Callback):
    def __init__(self, fname="bestmodel"):
        self.fname = fname

    def after_epoch(self, learn):
        learn.save(f"{self.fname}_{learn.epoch}")


class Recorder(Callback):
    def begin_epoch(self, learn):
        self.start = time.time()

    def after_epoch(self, learn):
        took = time.time() - self.start
        print(
            f"{learn.epoch:<10}{learn.train_loss:<12.6f}{learn.valid_loss:<12.6f}{learn.accuracy:<10.6f}{int(took // 60):02d}:{int(took % 60):02d}",
            flush=True,
        )


class Learner:
    def __init__(self, dls, model, lr, path=Path("."), model_dir="models", cbs=()):
        self.dls, self.model, self.path, self.model_dir, self.cbs = dls, model, Path(path), model_dir, list(cbs)
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.epoch, self.start_epoch = 0, 0

    def save(self, name):
        file = self.path / self.model_dir / f"{name}.pth"
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "epoch": self.epoch}, file)
        return file

    def load(self, name):
        state = torch.load(self.path / self.model_dir / f"{name}.pth")
        self.model.load_state_dict(state["model"])
        self.opt.load_state_dict(state["opt"])
        self.start_epoch = state["epoch"] + 1
        return self

    def fit(self, n_epoch):
        print(f"{'epoch':<10}{'train_loss':<12}{'valid_loss':<12}{'accuracy':<10}time")
        for self.epoch in range(self.start_epoch, n_epoch):
            for cb in self.cbs:
                cb.begin_epoch(self)
            total = 0.0
            for xb, yb in self.dls[0]:
                loss = nn.functional.cross_entropy(self.model(xb), yb)
                loss.backward()
                self.opt.step()
                self.opt.zero_grad()
                total += loss.item()
            self.train_loss = total / len(self.dls[0])
            with torch.no_grad():
                xb, yb = self.dls[1]
                out = self.model(xb)
                self.valid_loss = nn.functional.cross_entropy(out, yb).item()
                self.accuracy = (out.argmax(1) == yb).float().mean().item()
            for cb in self.cbs:
                cb.after_epoch(self)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--load", default=None, help="name of a saved model in models/ (without .pth) to continue with")
    a = p.parse_args()
    torch.manual_seed(3)
    x = torch.randn(96, 8)
    y = x[:, :4].argmax(1)
    dls = DataLoader(TensorDataset(x, y), 8), (x, y)
    learn = Learner(
        dls, nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)), a.lr, cbs=[SaveEach("tabular"), Recorder()]
    )
    if a.load:
        learn.load(a.load)
    learn.fit(a.epochs)
