"""Flags of absl; the folder comes from the environment, and each start looks for its newest checkpoint there."""

import glob
import os
import re

import torch
from absl import app, flags, logging

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_train_steps", 60, "Steps to train.")
flags.DEFINE_integer("checkpoint_every", 15, "Steps between checkpoints.")
flags.DEFINE_float("learning_rate", 1e-2, "Learning rate.")
flags.DEFINE_string("experiment", "baseline", "Name of the experiment.")


def workdir():
    return os.path.join(os.environ["EXPERIMENT_DIR"], FLAGS.experiment)


def latest_checkpoint(folder):
    found = glob.glob(os.path.join(folder, "ckpt_*.pt"))
    return max(found, key=lambda p: int(re.search(r"ckpt_(\d+)", p).group(1)), default=None)


def train_and_evaluate():
    os.makedirs(workdir(), exist_ok=True)
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    opt = torch.optim.Adam(model.parameters(), lr=FLAGS.learning_rate)
    step = 0
    newest = latest_checkpoint(workdir())
    if newest:
        state = torch.load(newest)
        model.load_state_dict(state["params"])
        opt.load_state_dict(state["opt_state"])
        step = state["step"]
        logging.info("Restored checkpoint %s at step %d.", newest, step)
    while step < FLAGS.num_train_steps:
        x = torch.randn(16, 8)
        loss = (model(x).squeeze() - x.mean(1)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 5 == 0:
            logging.info("[%d] train_loss=%f, steps_per_sec=%.2f", step, loss.item(), 4.0)
        if step % FLAGS.checkpoint_every == 0:
            torch.save(
                {"params": model.state_dict(), "opt_state": opt.state_dict(), "step": step},
                os.path.join(workdir(), f"ckpt_{step}.pt"),
            )


def main(argv):
    del argv
    train_and_evaluate()


if __name__ == "__main__":
    app.run(main)
