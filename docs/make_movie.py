"""Draws docs/screens/demo.gif, and its end as a PNG beside it: python docs/make_movie.py (about two minutes).

A person watches `trainwatch demo --fake-gpu` in a real terminal (tmux): it trains, crashes, hangs, is restarted and
finishes; they open the card of the hang. Shown ``SPEED`` times as fast. Needs Pillow and the DejaVu fonts.
"""

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "screens"
SIZE = (104, 32)
PERIOD_S = 0.25
SPEED = 3.0
LAST_S = 3.0
"""How long the last picture stands, and a card that is read, in seconds of the film."""
COLOURS = 64
LONGEST_S = 240.0
SCRIPT: tuple[tuple[str, str, str], ...] = (
    ("last recovered", "e", ""),
    ("What you can do", "Escape", ""),
    ("Finished", "", "finished"),
)
"""What the screen shows, the key that is pressed then or a while after a card, the name of the picture of it."""


def frames(person: Any) -> Iterator[tuple[float, str, str]]:
    """(real seconds, the screen with its escape sequences, the name of a picture of it), whenever it changes."""
    began, before, script = time.monotonic(), "", list(SCRIPT)
    read_until, ends = 0.0, float("inf")
    while (now := time.monotonic() - began) < min(ends, LONGEST_S):
        name, text = "", person.text
        if script and script[0][0] in text and now >= read_until:
            _, key, name = script.pop(0)
            read_until = now + LAST_S * SPEED if key == "e" else now
            if key:
                person.press(key)
            ends = ends if script else now + PERIOD_S
        shown = person.tmux("capture-pane", "-e", "-p", "-N")
        if shown != before or name:
            yield now, shown, name
            before = shown
        time.sleep(PERIOD_S)


def film(out: Path) -> None:
    """Record it, and write the files."""
    from PIL.Image import Quantize
    from real_runs import as_shown, new_place

    from tests.fakes.terminal_picture import cells, paint
    from tests.fakes.tmux_terminal import terminal

    place = new_place()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "TRAINWATCH", "NO_COLOR"))}
    env |= {"TRAINWATCH_HOME": str(place / "home"), "COLORTERM": "truecolor", "TMUX_TMPDIR": str(place)}
    try:
        with terminal(SIZE, place, env) as person:
            person.tmux("set", "-ga", "terminal-overrides", ",*:Tc")
            person.trainwatch("demo", "--fake-gpu")
            person.see("Training")
            taken = list(frames(person))
    finally:
        # The demo has a tmux session of its own.
        subprocess.run(["tmux", "kill-server"], env=env, capture_output=True, check=False)  # noqa: S607
        shutil.rmtree(place, ignore_errors=True)
    images = []
    for _, shown, name in taken:
        image = paint(cells(as_shown(shown, place), SIZE))
        images.append(image.quantize(COLOURS, Quantize.FASTOCTREE))  # the usual method makes green grey
        if name:
            image.save(out / f"demo-{name}.png", optimize=True)
    times = [t for t, _, _ in taken]
    lasting = [(b - a) / SPEED for a, b in itertools.pairwise(times)] + [LAST_S]
    target = out / "demo.gif"
    images[0].save(
        target, save_all=True, append_images=images[1:], duration=[max(20, round(1000 * s)) for s in lasting],
        loop=0, optimize=False,
    )  # fmt: skip
    sys.stdout.write(f"{target}: {len(images)} pictures, {sum(lasting):.0f} s, {target.stat().st_size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--to", type=Path, default=OUT, help="the folder of the pictures")
    film(parser.parse_args().to.absolute())
