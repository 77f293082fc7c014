"""Makes ``run`` and ``project`` of tests/fixtures/release anew: ``python -m tests.fakes.release_fixture``.

With the trainwatch of this checkout. For use until 0.1.0 is released; never after.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.fakes.e2e_world import TRAINER, World, until, world_at

RELEASE = Path(__file__).parents[1] / "fixtures" / "release"
"""What 0.1.0 leaves behind."""
LEFT_OUT = ("ballast", "history.sqlite*", "incidents", "judge-*.json", "trace.jsonl.gz", "*.bin", ".trainwatch.lock")
"""What is large, of this machine, or does without: a state of the judge is named by a checksum that paths are part of."""
PLAIN = {"HOME": "/home/ann", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1"}


def die_at_step_50(world: World) -> None:
    """A crash at step 30, a resume from step 20; at step 50 supervisor, runner and trainer are killed."""
    world.env = {
        name: text for name, text in world.env.items() if name.startswith(("TRAINWATCH", "TMUX", "XDG_"))
    } | PLAIN
    world.write("--steps", "120", "--hold-at", "50", "--crash-at", "30")
    watcher = world.headless()
    world.at_step(50, 2)
    world.in_state("running")  # a busy machine makes steps before its start is written down
    watcher.murder()
    target = world.attempt(2)
    assert target.runner is not None
    for pid in (target.runner.pid, world.lives()[-1]):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not world.alive(2), "the trainer is gone")


def keep(world: World) -> None:
    """Copy the run's folder and the project, with the names of another machine."""
    places = {
        os.fsencode(TRAINER): b"/home/ann/e2e_trainer.py",
        os.fsencode(world.project.parent): b"/home/ann",
        os.fsencode(world.short): b"/run/user/1000",
        os.fsencode(sys.executable): b"/usr/bin/python3",
        os.fsencode(os.uname().nodename): b"desktop",
    }
    for name, source in (("run", world.run.path), ("project", world.project)):
        target = RELEASE / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for path in target.rglob("*"):
            if path.is_file() and path.suffix != ".safetensors":
                data = path.read_bytes()
                for old, new in places.items():
                    data = data.replace(old, new)
                path.write_bytes(data)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, world_at(Path(folder)) as here:
        die_at_step_50(here)
        keep(here)
