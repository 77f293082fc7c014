"""The same command and fault under ``until COMMAND; do :; done``: what people use without a supervisor."""

import subprocess
import time

from .place import Place
from .supervised import end_trainers

PATIENCE_S, START_S = 60.0, 300.0
"""A loop waits for ever if its trainer takes no step for this long after a hang; a new start may take longer."""
MOST_LIVES = 4


def until_loop(place: Place, limit_s: float) -> str:
    """What became of it, in a few words."""
    row = place.row
    with (place.root / "loop.log").open("wb") as log:
        loop = subprocess.Popen(
            ["bash", "-c", 'until setsid --wait "$@"; do :; done', "until", *place.words(row.command)],
            cwd=place.work, env=place.env(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        until, ended = time.monotonic() + limit_s, "not at the end after the limit"
        while loop.poll() is None:
            if time.monotonic() > until:
                break
            last = max((time_ for life in place.lives() for time_ in life.times[-1:]), default=time.time())
            fault = place.fault_time()
            if fault is not None and time.time() - max(last, fault) > (PATIENCE_S if place.fault.hangs else START_S):
                ended = "waits for ever"
                break
            if len(place.lives()) > MOST_LIVES:
                ended = "starts again and again"
                break
            time.sleep(0.5)
        if loop.poll() is None:
            loop.kill()
        loop.wait()
    end_trainers(place)
    if loop.returncode != 0:
        return ended
    lives = place.lives()
    twice = sum(len(life.times) for life in lives) - row.steps
    if twice < 0:
        return f"ends after {row.steps + twice} of {row.steps} steps"
    if len(lives) > 1 and len(lives[-1].times) >= row.steps:
        return "trains from the beginning again"
    return f"goes on, {twice} steps twice" if len(lives) > 1 else "ends"
