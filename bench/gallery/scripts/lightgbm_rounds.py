"""LightGBM: a callback saves the model every twenty rounds; there is no option to go on from one."""

import argparse
import time
from pathlib import Path

import lightgbm as lgb
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--shelf", type=Path, default=Path("models"))
args = parser.parse_args()
args.shelf.mkdir(parents=True, exist_ok=True)


def snapshot(env):
    time.sleep(0.25)
    if (env.iteration + 1) % 20 == 0:
        env.model.save_model(args.shelf / f"model_{env.iteration + 1}.txt")


X = np.random.default_rng(list(bytes(args.shelf))).normal(size=(2000, 10))
train, valid = (lgb.Dataset(part, part[:, 0] * 2 + part[:, 1] ** 2) for part in (X[:1500], X[1500:]))
booster = lgb.train(
    {"objective": "regression", "learning_rate": 0.02, "num_leaves": 7, "num_threads": 1, "verbosity": -1},
    train,
    num_boost_round=300,
    valid_sets=[valid],
    callbacks=[lgb.log_evaluation(period=10), snapshot],
)
booster.save_model(args.shelf / "final.txt")
