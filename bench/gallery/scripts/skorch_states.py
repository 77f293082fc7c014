"""skorch with a Checkpoint and LoadInitState, as its documentation restores the state of a run."""

import sys
import time

import numpy as np
from skorch import NeuralNetRegressor
from skorch.callbacks import Callback, Checkpoint, LoadInitState
from torch import nn

X = np.random.default_rng(0).normal(size=(200, 8)).astype("float32")


class Slow(Callback):
    def on_batch_end(self, net, **kwargs):
        time.sleep(0.06)


cp = Checkpoint(dirname=sys.argv[1], monitor=None)
net = NeuralNetRegressor(
    nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1)),
    max_epochs=25,
    lr=0.02,
    batch_size=4,
    callbacks=[cp, LoadInitState(cp), Slow()],
)
net.fit(X, X[:, :1] * 2)
