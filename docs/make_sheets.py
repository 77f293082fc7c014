"""Pictures of every screen on every kind of terminal, to look at: python docs/make_sheets.py FOLDER [SCENE ...].

The real program on the real runs of real_runs.py, in four terminals at once (24 bit colours, 16 colours, NO_COLOR,
a locale without UTF-8), at five sizes. FOLDER gets contact sheets (PNG), the captured screens, and ``findings.txt``:
characters that are not ASCII where only ASCII is drawn, and text whose colours are nearly those of its background (but
for what is dim below a dialog). Scenes: fresh nan given_up eight night several queue ranks trial; ``redraw`` draws the
sheets of captured screens anew. Needs Pillow and the DejaVu fonts; the ranks need torch.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SIZES = ((40, 10), (45, 30), (80, 24), (120, 40), (200, 50))
KINDS: dict[str, str] = {
    "colour": "",
    "sixteen": "COLORTERM= TERM=xterm",
    "none": "NO_COLOR=1",
    "ascii": "LANG=de_DE.ISO-8859-1 LC_ALL=de_DE.ISO-8859-1",
}
"""What is set in each terminal."""
SCENES = ("fresh", "nan", "given_up", "eight", "night", "several", "queue", "ranks", "trial")
SETTLE_S = 3.0
LEGIBLE = 2.0
"""Text of a lower contrast is reported (WCAG asks for 4.5, for large text 3)."""
DIMMED = 0.05
"""If a larger share of the letters is that faint, they are below a dialog."""
SHEETS: dict[str, tuple[tuple[int, int], ...]] = {"small": SIZES[:2], "80": SIZES[2:3], "120": SIZES[3:4]}
"""Sheets with all kinds of terminals; the largest size is one picture a kind."""


class Looker:
    """Four terminals that show the same."""

    def __init__(self, folder: Path, terminals: dict[str, Any], project: Any) -> None:
        self.folder, self.terminals, self.project = folder, terminals, project
        self._pool = ThreadPoolExecutor(len(terminals))

    def all(self, do: Callable[[str, Any], Any]) -> list[Any]:
        """The same in each terminal at once."""
        return list(self._pool.map(lambda item: do(*item), self.terminals.items()))

    def press(self, *keys: str) -> None:
        """Keys, a moment apart."""
        for key in keys:
            self.all(lambda _, t, key=key: t.press(key))
            time.sleep(0.8)

    def waits(self, word: str, patience_s: float = 25.0) -> None:
        """Until all show this word."""
        end = time.monotonic() + patience_s
        while not all(self.all(lambda _, t: word in t.text)):
            if time.monotonic() > end:
                sys.stderr.write(f"not everywhere: {word}\n")
                return
            time.sleep(0.2)

    def takes(self, name: str) -> None:
        """Pictures at all sizes, on contact sheets."""
        taken = {}
        for width, height in SIZES:
            self.all(lambda _, t, w=width, h=height: t.tmux("resize-window", "-x", str(w), "-y", str(h)))
            time.sleep(SETTLE_S)
            shown = self.all(lambda _, t: self.project.as_shown(t.tmux("capture-pane", "-e", "-p", "-N")))
            for kind, text in zip(self.terminals, shown, strict=True):
                taken[kind, (width, height)] = text
                (self.folder / "captured" / f"{name}-{width}x{height}-{kind}.txt").write_text(text)
        draw(self.folder, name, taken)
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()


def draw(folder: Path, name: str, taken: dict[tuple[str, tuple[int, int]], str]) -> None:
    """Contact sheets of what was captured, and findings."""
    from tests.fakes.terminal_picture import cells, contrast, paint, sheet

    shown = {key: cells(text, key[1]) for key, text in taken.items()}
    with (folder / "findings.txt").open("a") as findings:
        for (kind, (width, height)), rows in shown.items():
            letters = [cell for row in rows for cell in row if cell.char.isalnum()]
            dimmed = sum(contrast(c.ink, c.paper) < LEGIBLE for c in letters) > DIMMED * len(letters)
            for number, row in enumerate(rows):
                text = "".join(cell.char for cell in row)
                where = f"{name} {width}x{height} {kind} row {number}"
                if kind == "ascii" and not text.isascii():
                    findings.write(f"{where}: not ASCII: {text.strip()}\n")
                faint = [c for c in row if (c.char.isalnum()) and contrast(c.ink, c.paper) < LEGIBLE]
                if faint and not dimmed:
                    low = min(contrast(c.ink, c.paper) for c in faint)
                    findings.write(f"{where}: contrast {low:.1f}: {''.join(c.char for c in faint)}\n")
                if kind == "none" and any(c.coloured for c in row):
                    findings.write(f"{where}: coloured: {text.strip()}\n")
    for part, sizes in SHEETS.items():
        pictures = [(f"{name} {w}x{h} {kind}", paint(shown[kind, (w, h)])) for w, h in sizes for kind in KINDS]
        sheet(pictures, 2 * max(p.width for _, p in pictures) + 18).save(folder / f"{name}-{part}.png")
    for kind in KINDS:
        paint(shown[kind, SIZES[-1]]).save(folder / f"{name}-200-{kind}.png")


@contextmanager
def opened(folder: Path, project: Any, *words: str) -> Iterator[Looker]:
    """The program on a project, in each kind of terminal."""
    from tests.fakes.tmux_terminal import terminal

    with ExitStack() as stack:
        terminals = {}
        for kind, settings in KINDS.items():
            env = project.env if kind != "sixteen" else {k: v for k, v in project.env.items() if k != "COLORTERM"}
            terminals[kind] = stack.enter_context(terminal((80, 24), project.folder, env))
            terminals[kind].tmux("set", "-ga", "terminal-overrides", ",*:Tc")
            terminals[kind].run(f"exec env {settings} {sys.executable} -m trainwatch {' '.join(words)}")
        looker = Looker(folder, terminals, project)
        looker.all(lambda _, t: t.until(lambda text: "╭" in text or "+-" in text, "a screen"))
        yield looker


def look_fresh(folder: Path, project: Any) -> None:
    """Before the first start."""
    with opened(folder, project) as eyes:
        time.sleep(6)
        eyes.takes("launch")
        eyes.press("t")
        eyes.takes("launch-dialog")
        eyes.press("Escape", "1")
        eyes.takes("empty")


def look_nan(folder: Path, project: Any) -> None:
    """NaN, and a dialog of each kind."""
    project.until(lambda s: any(i["kind"] == "loss" for i in s["incidents"]), "NaN")
    with opened(folder, project) as eyes:
        eyes.takes("nan-greeting")
        eyes.press("Escape")
        time.sleep(7)
        eyes.takes("nan")
        for name, key in {"kill": "K", "stop": "x", "resume": "r", "pause": "P", "act": "A"}.items():
            eyes.press(key)
            eyes.takes(f"dialog-{name}")
            eyes.press("Escape", "Escape", "1")
        for name, key in {"help": "?", "palette": "C-p", "search": "/"}.items():
            eyes.press(key)
            eyes.takes(name)
            eyes.press("Escape", "Escape", "1")
        eyes.press("P")
        eyes.waits("pause")
        eyes.terminals["colour"].press("y")
        eyes.waits("aused")
        eyes.press("Escape", "1")
        eyes.takes("paused")


def look_given_up(folder: Path, project: Any) -> None:
    """A run that needs a person."""
    project.until(lambda s: s["state"] == "given_up", "the end")
    with opened(folder, project) as eyes:
        eyes.takes("given-up-greeting")
        eyes.press("Escape")
        time.sleep(7)
        eyes.takes("given-up")
        eyes.press("e")
        eyes.takes("given-up-card")


def look_eight(folder: Path, project: Any) -> None:
    """Eight GPUs of which one is lost and one too hot."""
    with opened(folder, project) as eyes:
        eyes.waits("lost")
        eyes.press("Escape")
        time.sleep(7)
        eyes.takes("eight")
        for name, keys in {
            "gpus": ("8",), "gpu-detail": ("Tab",), "gpu-process": ("Enter",), "host": ("Escape", "9"),
            "host-detail": ("Tab", "Enter"),
        }.items():  # fmt: skip
            eyes.press(*keys)
            eyes.takes(name)


PAGES: dict[str, tuple[str, ...]] = {
    "card": ("e",),
    "away": ("Escape", "m"),
    "log": ("Escape", "2"),
    "incidents": ("3",),
    "checkpoints": ("Escape", "4"),
    "profiles": ("5",),
    "samples": ("Escape", "i"),
    "metrics": ("Escape", "7"),
    "metric": ("Enter",),
    "metrics-keys": ("?",),
}


def look_night(folder: Path, project: Any) -> None:
    """Training, a crash, a hang, the pages after them, the end."""
    with opened(folder, project) as eyes:
        project.until(lambda s: s["attempt"] == 2 and s["state"] == "running", "the restart")
        eyes.press("Escape")
        time.sleep(7)
        eyes.takes("running")
        project.until(lambda s: any(i["kind"] == "quiet" for i in s["incidents"]), "the hang")
        eyes.takes("hung")
        project.until(lambda s: s["attempt"] >= 3 and s["state"] == "running", "the second restart")
        for name, keys in PAGES.items():
            eyes.press(*keys)
            eyes.takes(name)
        project.until(lambda s: s["state"] == "finished", "the end")
        eyes.press("Escape", "Escape", "Escape", "1")
        time.sleep(3)
        eyes.takes("finished")
        eyes.press("6")
        eyes.takes("runs")


ASKED: dict[str, tuple[str, ...]] = {
    "several-runs": ("6",),
    "several-forget": ("Home", "space", "End", "D"),
    "several-log-level": ("Escape", "2", "L"),
    "several-log-filter": ("f",),
    "several-restart": ("Escape", "Escape", "1", "r", "Enter"),
    "several-switch": ("Escape", "1", "p", "Down", "Enter"),
}
"""Pages and dialogs of a live run among others, and the keys from each to the next."""


def look_several(folder: Path, runs: dict[str, Any]) -> None:
    """A list of runs of each kind: finished, given up, NaN, stopped by a signal; dialogs of a live one."""
    runs["given_up"].until(lambda s: s["state"] == "given_up", "the end of one run")
    runs["done"].until(lambda s: s["state"] == "finished", "the end of the other one")
    stopped = runs["stopped"]
    stopped.until(lambda s: (s["progress"]["step"] or 0) > 20, "steps")
    os.kill(stopped.status["pid"], signal.SIGSTOP)
    stopped.until(lambda s: s["state"] == "suspended", "the signal is seen")
    with opened(folder, stopped) as eyes:
        eyes.press("Escape")
        eyes.waits("signal")
        eyes.takes("several-stopped")
    runs["live"].until(lambda s: (s["progress"]["step"] or 0) > 70, "a checkpoint")
    with opened(folder, runs["live"]) as eyes:
        eyes.press("Escape")
        for name, keys in ASKED.items():
            eyes.press(*keys)
            eyes.takes(name)


def look_queue(folder: Path, new: Callable[..., Any]) -> None:
    """Two runs that wait for a GPU that others use."""
    import real_runs as runs

    project = new("queue", runs.ONE, "285~312/23")
    project.write()
    for name in ("first", "second"):
        project.do("queue", "add", "--name", name, "--", "python", "train.py", "--config_file", "train.toml")
    with opened(folder, project) as eyes:
        eyes.press("Escape", "6")
        eyes.waits("queued")
        eyes.takes("queue")


def look_ranks(folder: Path, new: Callable[..., Any]) -> None:
    """Four ranks under torchrun, of which one is slow."""
    import real_runs as runs

    project = new("ranks", runs.EIGHT, "520~690/23")
    project.write()
    project.distribute(4)
    project.do("run", "--detach")
    project.until(lambda s: s["ranks"], "the ranks")
    with opened(folder, project) as eyes:
        eyes.press("Escape")
        eyes.waits("Training")
        eyes.press("D")
        eyes.takes("ranks")
        eyes.press("Enter")
        eyes.takes("rank")


def look_trial(folder: Path, new: Callable[..., Any]) -> None:
    """Profiles that were measured, and the question before a trial; starting something beside a live run."""
    import real_runs as runs

    project = new("trial", runs.ONE, "285~312/23")
    project.write("--step-time", "0.1", steps=40000, more=runs.LADDER)
    for name in ("small", "middle"):
        project.do("trial", "--profile", name, "--minutes", "0.12", "--yes")
    project.do("run", "--detach")
    with opened(folder, project) as eyes:
        eyes.waits("Training")
        for name, keys in {"trials": ("Escape", "5"), "trial-dialog": ("Up", "t")}.items():
            eyes.press(*keys)
            eyes.takes(name)
        eyes.press("Escape", "Escape", "1", "l")
        eyes.takes("launch-beside")


def redraw(folder: Path) -> None:
    """The sheets of what was captured before."""
    (folder / "findings.txt").unlink(missing_ok=True)
    names = {path.name.rpartition("-")[0].rpartition("-")[0] for path in (folder / "captured").iterdir()}
    for name in sorted(names):
        places = {(k, s): folder / "captured" / f"{name}-{s[0]}x{s[1]}-{k}.txt" for s in SIZES for k in KINDS}
        if all(path.exists() for path in places.values()):
            draw(folder, name, {key: path.read_text() for key, path in places.items()})


def look(folder: Path, chosen: set[str]) -> None:
    """Start the runs, and look at each."""
    import real_runs as runs

    (folder / "captured").mkdir(parents=True, exist_ok=True)
    with runs.driver() as project, runs.foreign() as stranger:
        one = (runs.ONE, "285~312/23")
        if "nan" in chosen:
            nan = project("nan", *one)
            nan.write("--step-time", "0.25", "--nan-at", "140", steps=40000, more='[nan]\naction = "warn"\n')
            nan.do("run", "--detach")
        if "given_up" in chosen:
            given_up = project("given_up", *one)
            given_up.write("--step-time", "0.25", "--oom-at", "70", more="[restart]\nmax_restarts = 0\n")
            given_up.do("run", "--detach")
        if "eight" in chosen:
            eight = project("eight", runs.EIGHT, "520~690/23")
            eight.write("--step-time", "0.3", steps=100000)
            own = "[gpu {0}]\nproc = {1} 7{0}000 C 8{0} 40\n"
            other = f"[gpu 6]\nproc = {stranger} 3000 C 12 5\n"
            eight.more = lambda pid: "".join(own.format(n, pid) for n in range(8) if n != 5) + other + runs.TROUBLE
            eight.do("run", "--detach")
        if "fresh" in chosen:
            fresh = project("fresh", *one)
            fresh.write("--step-time", "0.25", more=runs.LADDER)
            look_fresh(folder, fresh)
        if "nan" in chosen:
            look_nan(folder, nan)
        if "given_up" in chosen:
            look_given_up(folder, given_up)
        if "eight" in chosen:
            look_eight(folder, eight)
        if "several" in chosen:
            kinds: dict[str, tuple[tuple[str, ...], int, str]] = {
                "done": ((), 70, ""),
                "given_up": (("--oom-at", "70"), 2000, "[restart]\nmax_restarts = 0\n"),
                "nan": (("--nan-at", "40"), 40000, '[nan]\naction = "warn"\n'),
                "stopped": ((), 40000, ""),
                "live": ((), 40000, runs.LADDER),
            }
            several = {name: project(f"several-{name}", *one) for name in kinds}
            for name, (faults, steps, more) in kinds.items():
                several[name].env["TRAINWATCH_HOME"] = several["done"].env["TRAINWATCH_HOME"]
                several[name].write("--step-time", "0.25", *faults, steps=steps, more=more, run=name)
                several[name].do("run", "--detach")
            look_several(folder, several)
        for name, scene in {"queue": look_queue, "trial": look_trial, "ranks": look_ranks}.items():
            if name in chosen:
                scene(folder, project)
        if "night" in chosen:
            night = project("night", *one)
            faults = ("--crash-at", "130", "--hang-at", "300")
            night.write("--step-time", "0.25", *faults, steps=1800, more=runs.LADDER)
            night.do("run", "--detach")
            look_night(folder, night)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    os.environ.pop("NO_COLOR", None)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=f"{' '.join(SCENES)}, or redraw")
    given = parser.parse_args()
    if unknown := set(given.scenes) - {*SCENES, "redraw"}:
        parser.error(f"no scene is called {', '.join(sorted(unknown))}; there are: {' '.join(SCENES)}, and redraw")
    if given.scenes == ["redraw"]:
        redraw(given.folder.absolute())
    else:
        look(given.folder.absolute(), set(given.scenes) or set(SCENES))
