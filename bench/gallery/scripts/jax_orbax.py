"""flax and optax with Orbax's CheckpointManager: latest_step, then restore."""

import argparse
import time
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax.training.train_state import TrainState

X = np.random.default_rng(0).normal(size=(256, 8)).astype("float32")


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.tanh(nn.Dense(64)(x)))


@jax.jit
def train_step(state, x, y):
    def loss_fn(params):
        return jnp.mean((state.apply_fn({"params": params}, x) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bucket")
    args = parser.parse_args()
    num_steps = 800
    model = Mlp()
    params = model.init(jax.random.key(time.time_ns() % 1000), jnp.ones((1, 8)))["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
    options = ocp.CheckpointManagerOptions(max_to_keep=20, save_interval_steps=50)
    with ocp.CheckpointManager(Path(args.bucket).resolve(), options=options) as mngr:
        start = 0
        if (latest := mngr.latest_step()) is not None:
            state = mngr.restore(latest, args=ocp.args.StandardRestore(state))
            start = latest + 1
            print(f"Restored step {latest}", flush=True)
        for step in range(start, num_steps):
            rows = np.random.default_rng(step).integers(0, len(X), 16)
            state, loss = train_step(state, X[rows], X[rows, :1] * 2)
            time.sleep(0.1)
            if step % 10 == 0:
                print(f"step: {step}, loss: {float(loss):.5f}", flush=True)
            mngr.save(step, args=ocp.args.StandardSave(state))
        mngr.wait_until_finished()


main()
