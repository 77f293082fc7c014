"""A Hydra application: a dated folder for each start, settings in conf/, a logger in place of print."""

import logging
from pathlib import Path

import hydra
import torch
from omegaconf import DictConfig, OmegaConf

log = logging.getLogger(__name__)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, cfg.model.width), torch.nn.Tanh(), torch.nn.Linear(cfg.model.width, 1)
        )
        self.optim = torch.optim.SGD(self.net.parameters(), lr=cfg.optim.lr, momentum=0.9)
        self.global_step = 0

    def maybe_restore(self):
        path = self.cfg.trainer.resume_from
        if path is not None:
            ckpt = torch.load(hydra.utils.to_absolute_path(path))
            self.net.load_state_dict(ckpt["net"])
            self.optim.load_state_dict(ckpt["optim"])
            self.global_step = ckpt["global_step"]
            log.info("restored %s (global step %d)", path, self.global_step)

    def save(self):
        Path("ckpts").mkdir(exist_ok=True)
        target = Path("ckpts") / f"model-{self.global_step}.pt"
        torch.save(
            {"net": self.net.state_dict(), "optim": self.optim.state_dict(), "global_step": self.global_step}, target
        )
        log.info("wrote %s", target)

    def run(self):
        self.maybe_restore()
        gen = torch.Generator().manual_seed(self.cfg.seed)
        while self.global_step < self.cfg.trainer.max_steps:
            x = torch.randn(16, 8, generator=gen)
            loss = (self.net(x).squeeze(-1) - x.sum(-1)).pow(2).mean()
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            self.global_step += 1
            if self.global_step % self.cfg.trainer.log_every == 0:
                log.info("global_step=%d loss=%.4f", self.global_step, loss.item())
            if self.global_step % self.cfg.trainer.save_every == 0:
                self.save()


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg: DictConfig):
    log.info("config:\n%s", OmegaConf.to_yaml(cfg))
    Trainer(cfg).run()


if __name__ == "__main__":
    main()
