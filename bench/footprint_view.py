"""What a log view in tmux costs that no terminal shows. Used by bench/footprint.py."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTLE_S = 5.0
REDRAWS = """
import sys, time
i = 0
while True:
    i += 1
    sys.stdout.write(f"\\rsteps: {i}/100000000 [2.0it/s, avr_loss=0.0912]")
    sys.stdout.flush()
    time.sleep(0.005)
"""
"""A bar of 200 redraws a second."""


def hidden_view(seconds: float) -> dict[str, float]:
    """CPU seconds a minute of tmux's server and the view in it: while nobody is attached, and while somebody is."""
    with tempfile.TemporaryDirectory(prefix="view-") as folder:
        log = Path(folder, "train.log")
        tmux = ["tmux", "-S", str(Path(folder, "socket")), "-f", "/dev/null"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
        with log.open("wb") as output:
            trainer = subprocess.Popen([sys.executable, "-c", REDRAWS], stdout=output, cwd=folder)
        try:
            view = [sys.executable, "-P", "-m", "trainwatch.core.act.view.log_follower", str(log), "bench", "--pane"]
            subprocess.run([*tmux, "new-session", "-d", "-x", "200", "-y", "50", *view], env=env, check=True)
            server = int(subprocess.check_output([*tmux, "display-message", "-p", "#{pid}"], env=env))
            hidden = _cost(server, seconds)
            with subprocess.Popen(
                [*tmux, "-C", "attach-session"], env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            ) as client:
                shown = _cost(server, seconds)
                client.communicate(timeout=10)
        finally:
            subprocess.run([*tmux, "kill-server"], env=env, check=False, capture_output=True)
            trainer.kill()
            trainer.wait()
    return {"nobody attached": hidden, "attached": shown}


def _cost(server: int, seconds: float) -> float:
    time.sleep(SETTLE_S)
    before = _cpu_s(server)
    time.sleep(seconds)
    return (_cpu_s(server) - before) * 60 / seconds


def _cpu_s(root: int) -> float:
    """CPU seconds of a process and what is below it."""
    found = int(Path(f"/proc/{root}/schedstat").read_text().split()[0]) / 1e9
    below = Path(f"/proc/{root}/task/{root}/children").read_text().split()
    return found + sum(_cpu_s(int(pid)) for pid in below)
