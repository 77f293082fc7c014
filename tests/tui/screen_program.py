"""The screen on a fake run, as a program of its own, for tests on real terminals: python screen_program.py SCENE."""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fakes.feed import SCENES, FakePicker, open_run
from trainwatch.tui.app import TrainwatchApp


class Visit(FakePicker):
    """Attaches to a program that says so and waits for Enter."""

    def command(self, run_id: str) -> Sequence[str]:
        return ["sh", "-c", f"echo VISITING {run_id}; read answer"]


if __name__ == "__main__":
    TrainwatchApp(
        open_run(SCENES[sys.argv[1]]()),
        picker=Visit(),
        interval_s=0.2,
    ).run()
