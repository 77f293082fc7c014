"""Draws docs/screens/*.svg and docs/screens.md: python docs/make_screens.py (about five minutes).

Every picture is of the real program in a real terminal (tmux) on a real training with real faults; nothing of
trainwatch is replaced. Only the NVIDIA driver is a fake, and the pages say so: see real_runs.py.
"""

import io
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "screens"
GALLERY = ROOT / "docs" / "screens.md"
PHONE, SMALL, MIDDLE, LARGE = (45, 30), (80, 24), (120, 40), (200, 50)
TITLES: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {
    "healthy": ("Dashboard: training", (MIDDLE,)),
    "busy": ("Dashboard: training on eight GPUs; one is lost, one too hot", (LARGE,)),
    "hung": ("Dashboard: a suspected hang, with the next action and when it follows", (MIDDLE, PHONE)),
    "finished": ("Dashboard: finished, after a crash and a hang", (MIDDLE,)),
    "incidents": ("Incidents (key 3)", (SMALL,)),
    "checkpoints": ("Checkpoints (key 4)", (SMALL,)),
    "runs": ("Runs (key 6)", (SMALL,)),
    "metrics": ("Metrics (key 7)", (LARGE,)),
    "launch": ("Starting a run (key l)", (SMALL,)),
    "away": ("Somebody comes back (or key m)", (SMALL,)),
}
ABOUT = """# The screens

Drawn by `python docs/make_screens.py`: the real program in a real terminal, on real trainings of a small network with
real faults (a crash, a hang, NaN). **The values of the GPUs are simulated**: the machine that draws them has none, and
the NVIDIA driver's library is a fake, busy while the trainer's log grows and idle while it hangs. Numbers are columns ×
rows.
"""
PATIENCE_S = 20.0
MESSAGE_S = 7.0
"""A message stands in the footer for so long."""
SETTLE_S = 2.5
"""For what a page reads each second."""


HANG_AT = 300
LOST = 5
"""The GPU that is lost, of eight."""
PAGES: dict[str, tuple[str, ...]] = {
    "incidents": ("3",),
    "checkpoints": ("4", "s"),
    "metrics": ("7",),
}
"""Keys from each page to the next."""


def save(text: str, name: str, size: tuple[int, int]) -> None:
    """Save what a terminal shows (with its escape sequences) as SVG."""
    from rich.console import Console
    from rich.text import Text

    width, height = size
    console = Console(
        width=width, height=height, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    rows = text.split("\n")[:height]
    console.print(Text.from_ansi("\n".join(rows)), no_wrap=True, crop=True, overflow="crop")
    path = OUT / f"{name}-{width}x{height}.svg"
    svg = console.export_svg(title=f"trainwatch · {width}×{height}", unique_id=f"{name}-{width}x{height}")
    if "/work" in svg or str(Path.home()) + "/" in svg:
        sys.stderr.write(f"{path.name}: shows a folder of this machine\n")
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")
    sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    sys.stdout.flush()


class Person:
    """Somebody at a terminal who opens pages and takes pictures of them."""

    def __init__(self, terminal: Any, project: Any) -> None:
        self.terminal, self.project = terminal, project
        terminal.tmux("set", "-ga", "terminal-overrides", ",*:Tc")
        terminal.trainwatch()
        terminal.see("╭")

    def press(self, *keys: str) -> None:
        """Keys, a moment apart."""
        for key in keys:
            self.terminal.press(key)
            time.sleep(0.7)

    def greeted(self) -> None:
        """Close the card of somebody who comes back, and wait until the footer shows the keys again."""
        self.press("Escape")
        time.sleep(MESSAGE_S)

    def waits(self, seen: str, name: str) -> None:
        """Until the screen shows this pattern; a picture without it is taken, too, and named."""
        end = time.monotonic() + PATIENCE_S
        while not re.search(seen, self.terminal.text):
            if time.monotonic() > end:
                sys.stderr.write(f"{name}: does not show {seen}\n")
                return
            time.sleep(0.1)

    def takes(self, name: str, *, seen: str = "") -> None:
        """A picture at each size, once the screen shows ``seen`` (a pattern)."""
        terminal = self.terminal
        for width, height in TITLES[name][1]:
            terminal.tmux("resize-window", "-x", str(width), "-y", str(height))
            time.sleep(SETTLE_S)
            if seen:
                self.waits(seen, name)
            save(self.project.as_shown(terminal.tmux("capture-pane", "-e", "-p", "-N")), name, (width, height))


@contextmanager
def opened(project: Any) -> Iterator[Person]:
    """The program on a project."""
    from tests.fakes.tmux_terminal import terminal

    with terminal(SMALL, project.folder, project.env) as glass:
        yield Person(glass, project)


def draw_fresh(project: Any) -> None:
    """A project whose run was never started, with profiles."""
    with opened(project) as person:
        person.takes("launch", seen=r"checks · (?!.* to come)")


def draw_eight(project: Any) -> None:
    """Eight GPUs of which one is lost and one too hot."""
    with opened(project) as person:
        person.greeted()
        person.takes("busy", seen="lost")


def draw_night(project: Any) -> None:
    """Training, a crash, a hang, and what a person looks at after them."""
    with opened(project) as person:
        project.until(lambda s: s["attempt"] == 2 and s["state"] == "running", "the restart")
        person.greeted()
        person.takes("healthy", seen="Training")
        project.until(lambda s: (s["progress"]["step"] or 0) >= HANG_AT - 5, "the hang")
        project.until(lambda s: any(i["kind"] == "quiet" for i in s["incidents"]), "the suspicion")
        person.takes("hung", seen=r"restarted\s+in")
        project.until(lambda s: s["attempt"] == 3 and s["state"] == "running", "the second restart")
        person.press("m")
        person.takes("away")
        person.press("Escape")
        for name, keys in PAGES.items():
            person.press(*keys)
            person.takes(name)


def draw_end(project: Any) -> None:
    """The finished run, and another one in the list."""
    project.until(lambda s: s["state"] == "finished", "the end")
    with opened(project) as person:
        person.greeted()
        person.takes("finished", seen="Finished")
        person.press("6")
        person.takes("runs", seen="wide")


def draw_all() -> None:
    """All pictures, and the page that shows them."""
    from real_runs import EIGHT, LADDER, ONE, TROUBLE, driver, foreign

    for picture in OUT.glob("*.svg"):
        picture.unlink()
    with driver() as project, foreign() as stranger:
        eight = project("eight", EIGHT, "520~690/23")
        eight.write("--step-time", "0.3", steps=100000)
        own = "[gpu {0}]\nproc = {1} 7{0}000 C 8{0} 40\n"
        other = f"[gpu 6]\nproc = {stranger} 3000 C 12 5\n"
        eight.more = lambda pid: "".join(own.format(n, pid) for n in range(8) if n != LOST) + other + TROUBLE
        eight.do("run", "--detach")
        night = project("night", ONE, "285~312/23")
        faults = ("--crash-at", "130", "--hang-at", str(HANG_AT))
        night.write("--step-time", "0.25", *faults, steps=700, more=LADDER)
        for name in ("small", "middle"):
            night.do("trial", "--profile", name, "--minutes", "0.12", "--yes")
        night.do("run", "--detach")
        fresh = project("fresh", ONE, "285~312/23")
        fresh.write("--step-time", "0.25", more=LADDER)
        draw_fresh(fresh)
        draw_night(night)
        draw_eight(eight)
        wide = project("wide", ONE, "285~312/23")
        wide.env["TRAINWATCH_HOME"] = night.env["TRAINWATCH_HOME"]
        wide.write("--step-time", "0.1", steps=500, run="wide")
        wide.do("run", "--detach")
        draw_end(night)
    page = [ABOUT]
    for name, (title, sizes) in TITLES.items():
        page += [f"## {title}", ""]
        for width, height in sizes:
            page += [f"![{title}, {width}×{height}](screens/{name}-{width}x{height}.svg)", ""]
    GALLERY.write_text("\n".join(page).rstrip() + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    draw_all()
