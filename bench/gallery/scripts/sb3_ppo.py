"""Stable-Baselines3: PPO with a CheckpointCallback; --trained-agent as in RL Zoo."""

import argparse
import time

import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback

X = np.zeros(4, dtype="float32")


class Walk(gym.Env):
    """Keep a point near the origin."""

    observation_space = gym.spaces.Box(-10, 10, (4,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (4,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = self.np_random.normal(size=4).astype("float32"), 0
        return self.at + X, {}

    def step(self, action):
        time.sleep(0.008)
        self.at = np.clip(self.at + 0.1 * action, -10, 10).astype("float32")
        self.t += 1
        return self.at + X, -float(np.abs(self.at).sum()), False, self.t >= 50, {}


parser = argparse.ArgumentParser()
parser.add_argument("-f", "--log-folder", default="logs")
parser.add_argument("-n", "--n-timesteps", type=int, default=8192)
parser.add_argument("-i", "--trained-agent", default="", help="Path to a pretrained agent to continue training")
args = parser.parse_args()
env = Walk()
if args.trained_agent:
    model = PPO.load(args.trained_agent, env=env)
    print(f"Loaded pretrained agent {args.trained_agent} at {model.num_timesteps}", flush=True)
else:
    model = PPO("MlpPolicy", env, n_steps=128, batch_size=64, verbose=1)
callback = CheckpointCallback(save_freq=512, save_path=args.log_folder, name_prefix="rl_model")
model.learn(args.n_timesteps - model.num_timesteps, callback=callback, reset_num_timesteps=False)
model.save(f"{args.log_folder}/final")
