"""CatBoost with save_snapshot, which goes on from the snapshot by itself."""

import argparse
import time

import numpy as np
from catboost import CatBoostRegressor


class Slow:
    def after_iteration(self, info):
        time.sleep(0.1)
        return True


parser = argparse.ArgumentParser()
parser.add_argument("--where", default="catboost_info")
args = parser.parse_args()
X = np.random.default_rng(list(args.where.encode())).normal(size=(2000, 10))
y = X[:, 0] * 2 + X[:, 1] ** 2
model = CatBoostRegressor(
    iterations=800,
    learning_rate=0.03,
    depth=4,
    thread_count=1,
    train_dir=args.where,
    save_snapshot=True,
    snapshot_interval=4,
    verbose=10,
)
model.fit(X, y, callbacks=[Slow()])
model.save_model(f"{args.where}/model.cbm")
