"""A tyro script with nested settings; a state is a folder of three files."""

import dataclasses
import pathlib

import torch
import tyro


@dataclasses.dataclass
class IOConfig:
    root: pathlib.Path = pathlib.Path("exp")
    """Where everything is written."""
    save_freq: int = 15
    load_dir: pathlib.Path | None = None
    """Load a training state from this folder."""


@dataclasses.dataclass
class Config:
    io: IOConfig = dataclasses.field(default_factory=IOConfig)
    max_iter: int = 60
    lr: float = 1e-3


def main(cfg: Config) -> None:
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 1)
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    first = 0
    if cfg.io.load_dir is not None:
        net.load_state_dict(torch.load(cfg.io.load_dir / "net.pt"))
        opt.load_state_dict(torch.load(cfg.io.load_dir / "opt.pt"))
        first = int((cfg.io.load_dir / "step.txt").read_text())
    for it in range(first, cfg.max_iter):
        x = torch.randn(16, 8)
        loss = (net(x).squeeze() - x.mean(1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"Iter {it + 1:05d} ({100 * (it + 1) / cfg.max_iter:.1f}%)  Train loss {loss.item():.5f}", flush=True)
        if (it + 1) % cfg.io.save_freq == 0:
            out = cfg.io.root / f"iter{it + 1:06d}"
            out.mkdir(parents=True, exist_ok=True)
            torch.save(net.state_dict(), out / "net.pt")
            torch.save(opt.state_dict(), out / "opt.pt")
            (out / "step.txt").write_text(str(it + 1))


if __name__ == "__main__":
    main(tyro.cli(Config))
