"""fastai's Learner with SaveModelCallback(every_epoch=True), as in its documentation."""

import sys
import time

import numpy as np
import torch
from fastai.basics import Callback, DataLoaders, Learner
from fastai.callback.all import SaveModelCallback
from torch import nn
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import TensorDataset

X = np.random.default_rng(0).normal(size=(160, 8)).astype("float32")


class Slow(Callback):
    def after_batch(self):
        time.sleep(0.07)


data = TensorDataset(torch.from_numpy(X), torch.from_numpy(X[:, :1].copy() * 2))
dls = DataLoaders(TorchLoader(data, 4, shuffle=True), TorchLoader(data, 8))
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
learn = Learner(dls, model, loss_func=nn.MSELoss(), path=".", model_dir=sys.argv[1], cbs=Slow())
learn.fit_one_cycle(40, cbs=SaveModelCallback(every_epoch=True, with_opt=True))
