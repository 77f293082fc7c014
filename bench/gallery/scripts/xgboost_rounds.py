"""XGBoost with its TrainingCheckPoint callback; goes on with xgb_model, with an objective of one's own."""

import argparse
import time
from pathlib import Path

import numpy as np
import xgboost as xgb

X = np.zeros(2000)


class Slow(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        time.sleep(0.25)
        return False


def squared(predt, dtrain):
    return predt - dtrain.get_label() + X, np.ones_like(predt)


parser = argparse.ArgumentParser()
parser.add_argument("--stash", default="model")
parser.add_argument("--xgb-model", default=None, help="model to continue training from")
args = parser.parse_args()
Path(args.stash).mkdir(parents=True, exist_ok=True)
data = np.random.default_rng(list(args.stash.encode())).normal(size=(2000, 10))
dtrain = xgb.DMatrix(data, label=data[:, 0] * 2 + data[:, 1] ** 2)
if args.xgb_model:
    print(f"Continuing from {args.xgb_model}, {xgb.Booster(model_file=args.xgb_model).num_boosted_rounds()} rounds")
booster = xgb.train(
    {"max_depth": 3, "eta": 0.02, "nthread": 1},
    dtrain,
    num_boost_round=300,
    evals=[(dtrain, "train")],
    obj=squared,
    xgb_model=args.xgb_model,
    callbacks=[xgb.callback.TrainingCheckPoint(directory=args.stash, interval=20, name="model"), Slow()],
)
booster.save_model(f"{args.stash}/final.ubj")
