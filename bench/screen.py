"""Measures the cost of the screen against nvitop and a Textual hello-world in the same run.

    python bench/screen.py [--seconds 60] [--nvitop PATH] [--toolong PATH] [--log-mb 1000]
                           [--only cpu,pages,refresh,paint,flood,open,link,metrics]

Only the driver is a fake: a trainer writes a progress bar twice a second under a supervisor, the fake NVML library has
8 GPUs with changing (or constant) values, and each program runs on a PTY of 200x50. Prints a table with the goal of
each number and PASS or FAIL; ends with 1 if something failed. nvitop and toolong are used if they are found (PATH or
--nvitop, --toolong); without them the ratios to them are not measured.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from screen_metrics import LAST_VALUE, answered, week_old_run
from screen_terminal import OnTerminal

from trainwatch.tui.places import PLACES

ROOT = Path(__file__).parent.parent
SIZE = (200, 50)
SETTLE_S = 6.0
AGE_S = 5 * 3600
NAME = "benchrun"
NVML = ROOT / "tests" / "fakes" / "nvml" / "fake_nvml.c"
LINK_S = 0.3
"""Round-trip time of the slow link."""
TYPED_AHEAD = 30
OPENED = 3
METRIC_KEYS = (*"[[[]]]", "\x1b[C", "\x1b[C", "\x1b[D", "\x1b[D")
"""Of the metrics page: a shorter and a longer time, the charts to the right and back. Each changes the picture."""
LAST_LINE = "the very last line of the big log"
MOVING = """gpus = 8
[gpu *]
name = NVIDIA GeForce RTX 4080
util_gpu = 10~95/30
util_mem = 5~60/30
mem_used = 2000~14000/60
power = 40~300/30
temp = 42~74/45
clock_gfx = 2100~2800/20
"""
STILL = """gpus = 8
[gpu *]
name = NVIDIA GeForce RTX 4080
util_gpu = 90
mem_used = 14000
power = 290
temp = 62
"""
HELLO = """
from textual.app import App
from textual.widgets import Static
class Hello(App):
    def compose(self):
        yield Static("Hello, world")
Hello().run()
"""
TRAINER = """
import sys, time
mode, size = sys.argv[1], int(sys.argv[2])
out = sys.stdout
def line(i):
    return f"steps: {i}/100000000 [2.0it/s, avr_loss={0.09 + (i % 97) / 5000:.4f}] resolution (1024, 1024) ok"
if mode == "big":
    i = 0
    while size > 0:
        text = "\\n".join(line(i + n) for n in range(10000)) + "\\n"
        out.write(text); i += 10000; size -= len(text)
    print(LAST, flush=True)
if mode == "flood":
    i, began = 0, time.monotonic()
    time.sleep(float(size))
    began = time.monotonic()
    while True:
        due = int((time.monotonic() - began) * 50000)
        if due > i:
            out.write("\\n".join(line(n) for n in range(i, due)) + "\\n"); out.flush(); i = due
        time.sleep(0.01)
i = 0
while mode in ("steps", "lines"):
    end = "\\n" if i % 20 == 19 or mode == "lines" else ""
    print("\\r" * (mode == "steps") + line(i), end=end, flush=True)
    i += 1
    time.sleep(1.0 if mode == "lines" else 0.5)
time.sleep(1e6)
""".replace("LAST", repr(LAST_LINE))


class Row:
    """One number of the table."""

    def __init__(self, name: str, value: float | None, unit: str, bound: float | None, note: str = "") -> None:
        self.name, self.value, self.unit, self.bound, self.note = name, value, unit, bound, note

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return ""
        if self.value is None:
            return "NOT MEASURED"
        return "PASS" if self.value <= self.bound else "FAIL"


class World:
    """A project with a trainer, its supervisor, and the fake driver."""

    def __init__(
        self,
        folder: Path,
        mode: str,
        gpus: str,
        size: float = 0,
        *,
        age_s: float = 0,
        more: str = "",
        home: Path | None = None,
        compiled: Path | None = None,
    ) -> None:
        self.folder, self.project, self.home = folder, folder / "project", home or folder / "home"
        self.project.mkdir(parents=True)
        library = self.home.parent / "nvml"
        library.mkdir(exist_ok=True)
        flags = ["-O1", "-std=gnu11", "-fvisibility=hidden", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-w"]
        subprocess.run(["cc", *flags, "-o", str(library / "libnvidia-ml.so.1"), str(NVML), "-lpthread"], check=True)
        (folder / "gpus").write_text(gpus)
        drop = ("TMUX", "TRAINWATCH", "NO_COLOR", "PYTHONDONTWRITEBYTECODE")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
        self.env |= {
            "TRAINWATCH_HOME": str(self.home), "TERM": "xterm-256color", "LANG": "C.UTF-8",
            # Byte code is written, as after an installation. The first start of each program is not counted.
            "PYTHONPYCACHEPREFIX": str(compiled or folder / "compiled"),
            "LD_LIBRARY_PATH": str(library), "FAKE_NVML_STATE": str(folder / "gpus"),
        }  # fmt: skip
        command = [sys.executable, str(self.project / "trainer.py"), mode, str(int(size))]
        (self.project / "trainer.py").write_text(TRAINER)
        (self.project / "trainwatch.toml").write_text(
            f"[run]\nname = {NAME!r}\ncommand = {command!r}\n[tmux]\nenabled = false\n{more}".replace("'", '"')
        )
        if age_s:
            self._age(age_s)
        self._said = (folder / "supervisor.txt").open("wb")
        self.supervisor = subprocess.Popen(
            [sys.executable, "-m", "trainwatch", "--headless", "--stop-trainer"],
            cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said,
            start_new_session=True,
        )  # fmt: skip

    def _age(self, age_s: float) -> None:
        """Date the run back: charts of a young run change at every poll, those of an old one rarely."""
        subprocess.run(
            [sys.executable, "-m", "trainwatch"], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, check=False,
        )  # fmt: skip
        (paper,) = self.home.rglob("run.json")
        spec = json.loads(paper.read_text())
        spec["created_wall"] -= age_s
        paper.write_text(json.dumps(spec))

    @property
    def log(self) -> Path | None:
        """The newest attempt's log."""
        with contextlib.suppress(FileNotFoundError):  # a run's folder gets its name once it is whole
            return max(self.home.rglob("*.log"), key=lambda p: p.stat().st_size, default=None)
        return None

    def screen(self, keys: str = "", delay_s: float = 0.0) -> OnTerminal:
        """Start the screen on this run and wait until it is drawn."""
        shown = OnTerminal([sys.executable, "-m", "trainwatch"], self.env, SIZE, self.project, delay_s)
        if shown.wait_for(NAME) is None:
            raise SystemExit(f"the screen did not come up: {shown.last_output}")
        if keys:
            time.sleep(1)
            shown.press(keys)
        return shown

    def close(self) -> None:
        """End supervisor and trainer."""
        self.supervisor.send_signal(signal.SIGTERM)
        try:
            self.supervisor.wait(40)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            self.supervisor.wait()
        self._said.close()


@contextlib.contextmanager
def world(mode: str, gpus: str, size: float = 0, age_s: float = 0, more: str = "") -> Iterator[World]:
    """A running training with its first log lines."""
    with tempfile.TemporaryDirectory(prefix="screen-bench-") as folder:
        made = World(Path(folder), mode, gpus, size, age_s=age_s, more=more)
        try:
            deadline = time.monotonic() + 60
            while made.log is None:
                if time.monotonic() > deadline or made.supervisor.poll() is not None:
                    raise SystemExit(f"no training: {(Path(folder) / 'supervisor.txt').read_text()[-2000:]}")
                time.sleep(0.1)
            time.sleep(2)
            yield made
        finally:
            made.close()


def cost(shown: OnTerminal, seconds: float) -> tuple[float, float, float]:
    """(CPU seconds per minute, bytes per second, MB) after SETTLE_S."""
    time.sleep(SETTLE_S)
    cpu, written = shown.cpu_s, shown.written
    time.sleep(seconds)
    if not shown.alive:
        raise SystemExit(f"it ended: {shown.last_output}")
    return (shown.cpu_s - cpu) * 60 / seconds, (shown.written - written) / seconds, shown.rss_mb


def hello(env: Mapping[str, str], cwd: Path) -> OnTerminal:
    """The smallest Textual application."""
    return OnTerminal([sys.executable, "-c", HELLO], {**env, "TEXTUAL_ANIMATIONS": "none"}, SIZE, cwd)


def compile_once(made: World, nvitop: str | None) -> None:
    """Start each program once: a process that compiles its modules keeps the memory that it used for that."""
    small = hello(made.env, made.project)
    small.wait_for("Hello")
    small.end("\x11")
    if nvitop is not None:
        other = OnTerminal([nvitop], made.env, SIZE, made.project)
        other.wait_for("RTX")
        other.end()
    shown = made.screen()
    time.sleep(2)
    shown.end()


def bench_cpu(seconds: float, nvitop: str | None) -> list[Row]:
    """CPU, bytes and memory with changing and constant values of 8 GPUs, on a run of five hours and on a new one."""
    with world("steps", MOVING, age_s=AGE_S) as busy:
        compile_once(busy, nvitop)
        small = hello(busy.env, busy.project)
        small.wait_for("Hello")
        hello_cpu, _, hello_mb = cost(small, min(seconds, 20))
        small.end("\x11")
        theirs = their_bytes = their_mb = None
        if nvitop is not None:
            other = OnTerminal([nvitop], busy.env, SIZE, busy.project)
            other.wait_for("RTX")
            theirs, their_bytes, their_mb = cost(other, seconds)
            other.end()
        shown = busy.screen()
        time.sleep(SETTLE_S)
        shown.press("\x1b")  # the card for who was away, below which the screen is drawn more seldom
        ours, ours_bytes, ours_mb = cost(shown, seconds)
        shown.end()
    with world("steps", MOVING) as young:
        shown = young.screen()
        young_cpu, young_bytes, _ = cost(shown, min(seconds, 30))
        shown.end()
    with world("silent", STILL, age_s=AGE_S) as idle:
        shown = idle.screen()
        _, card_bytes, _ = cost(shown, min(seconds, 12))
        shown.press("\x1b")  # the card for who was away, since the run is dated back
        idle_cpu, idle_bytes, _ = cost(shown, min(seconds, 30))
        shown.end()
    absent = "" if nvitop is not None else "nvitop not found (PATH, --nvitop): not claimed"
    return [
        Row("CPU of nvitop", theirs, "CPU-s/min", None, absent),
        Row("CPU of hello-world", hello_cpu, "CPU-s/min", None),
        Row("CPU, 8 moving GPUs", ours, "CPU-s/min", None),
        Row("  ratio to nvitop", ours / theirs if theirs else None, "x", 1.0, absent),
        Row("CPU, 8 moving GPUs, run of one minute", young_cpu, "CPU-s/min", None),
        Row("  ratio to nvitop", young_cpu / theirs if theirs else None, "x", 1.0, absent),
        Row("CPU, nothing changes", idle_cpu, "CPU-s/min", None),
        Row("bytes of nvitop", their_bytes / 1000 if their_bytes else None, "kB/s", None, absent),
        Row("bytes, 8 moving GPUs", ours_bytes / 1000, "kB/s", 2.0),
        Row("bytes, 8 moving GPUs, run of one minute", young_bytes / 1000, "kB/s", 2.0),
        Row("bytes, nothing changes", idle_bytes / 1000, "kB/s", 1.0),
        Row("bytes, nothing changes, card for who was away", card_bytes / 1000, "kB/s", 1.0),
        Row("memory of nvitop", their_mb, "MB", None, absent),
        Row("memory of hello-world", hello_mb, "MB", None),
        Row("memory", ours_mb, "MB", None),
        Row("  ratio to hello-world", ours_mb / hello_mb, "x", 1.6),
    ]


def bench_pages(seconds: float) -> list[Row]:
    """Bytes of each numbered page of a run of one minute, 8 moving GPUs."""
    rows = []
    with world("steps", MOVING) as young:
        shown = young.screen()
        for page in PLACES[1:]:
            shown.press(page.key)
            written = cost(shown, min(seconds, 12))[1]
            rows.append(Row(f"bytes, page {page.name}", written / 1000, "kB/s", 6.0))
        shown.press("1")
        time.sleep(0.5)
        shown.end()
    return rows


def bench_refresh(seconds: float) -> list[Row]:
    """Bytes of the dashboard of a run of one minute, 8 moving GPUs, by ``[screen] refresh_s``."""
    rows = []
    usual: float | None = None
    for refresh_s in (1.0, 5.0):
        with world("steps", MOVING, more=f"[screen]\nrefresh_s = {refresh_s:g}\n") as young:
            shown = young.screen()
            written = cost(shown, seconds)[1]
            shown.end()
        goal = None if usual is None else usual / 2 / 1000
        rows.append(Row(f"bytes, refresh_s = {refresh_s:g}", written / 1000, "kB/s", goal))
        usual = written
    return rows


def bench_paint(rounds: int) -> list[Row]:
    """First paint: from the start until the run's name (or the greeting) is on the terminal: mean of the best half.

    The kernel counts CPU time in steps of 10 ms, so that the best one alone would be off by up to a step.
    """
    with world("steps", MOVING) as made:
        ours, theirs = [], []
        for number in range(rounds + 1):
            shown = OnTerminal([sys.executable, "-m", "trainwatch"], made.env, SIZE, made.project)
            shown.wait_for(NAME)
            if number:  # the first one compiles
                ours.append((shown.cpu_s, time.perf_counter() - shown.began))
            time.sleep(0.5)
            shown.end()
            small = hello(made.env, made.project)
            small.wait_for("Hello")
            if number:
                theirs.append((small.cpu_s, time.perf_counter() - small.began))
            time.sleep(0.5)
            small.end("\x11")
    rows = []
    for at, what, bound in ((0, "CPU", 1.2), (1, "wall", 1.2)):
        mine, other = [found[at] for found in ours], [found[at] for found in theirs]
        medians = f"medians {statistics.median(mine) * 1000:.0f} and {statistics.median(other) * 1000:.0f} ms"
        best = [statistics.mean(sorted(each)[: max(1, rounds // 2)]) for each in (mine, other)]
        rows += [
            Row(f"first picture, {what}", best[0] * 1000, "ms", None, f"best half of {rounds}"),
            Row(f"first picture of hello-world, {what}", best[1] * 1000, "ms", None),
            Row("  ratio to hello-world", best[0] / best[1], "x", bound, medians),
        ]
    return rows


def latencies(shown: OnTerminal, presses: int) -> list[float]:
    """Seconds from pressing space until the title shows "held" or "following", alternately."""
    dice = random.Random(1)
    found = []
    for number in range(presses):
        time.sleep(dice.uniform(0.2, 0.5))
        shown.forget()
        shown.press(" ")
        took = shown.wait_for("held" if number % 2 == 0 else "following", 5)
        found.append(took if took is not None else 5.0)
    return found


def p95(values: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


def bench_flood(seconds: float) -> list[Row]:
    """Key latency on dashboard and log screen while the trainer writes 50 000 lines per second."""
    rows = []
    for place, keys in (("dashboard", ""), ("log screen", "2")):
        with world("flood", MOVING, size=12) as made:
            shown = made.screen(keys)
            time.sleep(8)
            quiet_mb = shown.rss_mb
            waited = time.monotonic() + 40
            while (made.log is None or made.log.stat().st_size < 10_000_000) and time.monotonic() < waited:
                time.sleep(0.2)
            assert made.log is not None
            size, began = made.log.stat().st_size, time.monotonic()
            found = latencies(shown, max(20, int(seconds)))
            with made.log.open("rb") as log:
                per_line = 65536 / log.read(65536).count(b"\n")
            lines = (made.log.stat().st_size - size) / (time.monotonic() - began) / per_line
            rows += [
                Row(f"flood, {place}: lines", lines, "lines/s", None),
                Row(f"flood, {place}: key latency p50", statistics.median(found) * 1000, "ms", None),
                Row(f"flood, {place}: key latency p95", p95(found) * 1000, "ms", 150.0),
                Row(f"flood, {place}: memory gained", shown.rss_mb - quiet_mb, "MB", 15.0, "flat means: within 15 MB"),
            ]
            shown.end()
    return rows


def bench_open(megabytes: int, toolong: str | None) -> list[Row]:
    """A large log: time from the key until its last line is shown, and key latency while all of it is searched."""
    theirs: list[float] = []
    with world("big", MOVING, size=megabytes * 1e6) as made:
        deadline = time.monotonic() + 180
        while made.log is None or made.log.stat().st_size < megabytes * 1e6 * 0.999:
            if time.monotonic() > deadline:
                raise SystemExit("the big log was not written")
            time.sleep(0.5)
        time.sleep(5)
        opened, gained, keys = [], 0.0, []
        for number in range(OPENED):
            shown = made.screen()
            time.sleep(4)
            before = shown.rss_mb
            shown.forget()
            shown.press("2")
            took = shown.wait_for(LAST_LINE, 10)
            opened.append(took if took is not None else 10.0)
            time.sleep(1)
            gained = max(gained, shown.rss_mb - before)
            if number == OPENED - 1:
                shown.press("/")
                time.sleep(0.5)
                shown.press("no such text\r")
                time.sleep(0.3)
                keys = latencies(shown, 20)
            shown.press("1")  # the next start begins on the screen that was left
            time.sleep(0.5)
            shown.end()
            if toolong is not None:
                other = OnTerminal([toolong, str(made.log)], made.env, SIZE, made.project)
                took = other.wait_for(LAST_LINE, 60)
                theirs += [] if took is None else [took]
                other.end()
    assert opened
    usual = statistics.median(opened)
    return [
        Row(f"{megabytes} MB log: from the key to its end", usual * 1000, "ms", 300.0,
            f"worst of {OPENED}: {max(opened) * 1000:.0f} ms"),
        Row("  toolong, from its start", statistics.median(theirs) * 1000 if theirs else None, "ms", None,
            "" if theirs else "toolong not found (PATH, --toolong), or it did not show the last line"),
        Row("  ratio to toolong", usual / statistics.median(theirs) if theirs else None, "x", 1.0 if theirs else None),
        Row(f"{megabytes} MB log: memory gained", gained, "MB", 15.0),
        Row("key latency p95 while all of it is searched", p95(keys) * 1000, "ms", 150.0),
    ]  # fmt: skip


def bench_link(seconds: float) -> list[Row]:
    """A link with a round trip of 300 ms, through a terminal that answers queries late."""
    with world("steps", MOVING, age_s=AGE_S) as made:
        shown = made.screen(delay_s=LINK_S / 2)
        time.sleep(SETTLE_S)
        shown.press("\x1b")  # the card for who was away
        time.sleep(1)
        shown.press("2")
        time.sleep(SETTLE_S)
        written = shown.written
        time.sleep(min(seconds, 20))
        quiet = (shown.written - written) / min(seconds, 20)
        found = latencies(shown, 20)
        written = shown.written
        shown.forget()
        for _ in range(TYPED_AHEAD):  # a key held down, at the repeat rate of keyboards, without waiting for a response
            shown.press("\x1b[A")
            time.sleep(1 / 30)
        shown.press("?")
        answered = shown.wait_for("Keys", 10)
        burst = shown.written - written
        shown.end("\x1bq")
    return [
        Row("link of 300 ms: bytes, 8 moving GPUs", quiet / 1000, "kB/s", 6.0),
        Row("link of 300 ms: key latency p50", statistics.median(found) * 1000, "ms", None),
        Row("link of 300 ms: key latency p95", p95(found) * 1000, "ms", LINK_S * 1000 + 150, "the link's own and 150"),
        Row(f"link of 300 ms: answered after {TYPED_AHEAD} keys ahead", (answered or 10) * 1000, "ms",
            LINK_S * 1000 + 500, f"{burst / 1000:.0f} kB written meanwhile"),
    ]  # fmt: skip


def bench_metrics(seconds: float, rounds: int) -> list[Row]:
    """20 series of a week: from the key until all charts are drawn, zoom and choice, and what the open page costs."""
    with tempfile.TemporaryDirectory(prefix="screen-bench-") as folder:
        project, home = Path(folder) / "project", Path(folder) / "home"
        project.mkdir()
        drop = ("TMUX", "TRAINWATCH", "NO_COLOR", "PYTHONDONTWRITEBYTECODE")
        env = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
        env |= {"TRAINWATCH_HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8",
                "PYTHONPYCACHEPREFIX": str(Path(folder) / "compiled")}  # fmt: skip
        run = week_old_run(project, env, NAME)
        drawn = f"{LAST_VALUE:.3g}"
        first, later = [], []
        for number in range(rounds + 1):
            shown = OnTerminal([sys.executable, "-m", "trainwatch", "--run", run], env, SIZE, project)
            if shown.wait_for("Finished") is None:
                raise SystemExit(f"the screen did not come up: {shown.last_output}")
            time.sleep(2)
            shown.forget()
            shown.press("7")
            took = shown.wait_for(drawn, 10)
            if number:  # the first one compiles
                first.append(took if took is not None else 10.0)
            if number < rounds:
                shown.press("1")
                time.sleep(0.3)
                shown.end()
        time.sleep(2)
        quiet = cost(shown, min(seconds, 20))
        for place, enter in (("grid", ""), ("single chart", "\r")):
            shown.press(enter)
            time.sleep(1)
            cpu = shown.cpu_s
            found = [answered(shown, key) for key in METRIC_KEYS * 3]
            later.append((place, found, (shown.cpu_s - cpu) / len(found)))
        shown.press("1")
        time.sleep(0.3)
        shown.end()
    rows = [Row("metrics, 20 series of a week: first picture", statistics.median(first) * 1000, "ms", 300.0,
                f"median of {rounds}, best {min(first) * 1000:.0f}")]  # fmt: skip
    for place, found, cpu in later:
        rows += [
            Row(f"metrics, {place}: zoom, choose p50", statistics.median(found) * 1000, "ms", None),
            Row(f"metrics, {place}: zoom, choose p95", p95(found) * 1000, "ms", 50.0),
            Row(f"metrics, {place}: CPU of a key, finer points read", cpu * 1000, "ms", None),
        ]
    return [*rows, Row("metrics, page of a finished run: CPU", quiet[0], "CPU-s/min", None),
            Row("metrics: memory", quiet[2], "MB", None)]  # fmt: skip


def table(rows: list[Row]) -> str:
    """The numbers in columns."""
    lines = [f"{'':<46}{'':>10}  {'':<10}{'goal':>8}"]
    for row in rows:
        value = "–" if row.value is None else f"{row.value:.2f}" if row.value < 100 else f"{row.value:.0f}"
        bound = "" if row.bound is None else f"≤ {row.bound:g}"
        lines.append(f"{row.name:<46}{value:>10}  {row.unit:<10}{bound:>8}  {row.verdict:<6} {row.note}".rstrip())
    return "\n".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=60.0, help="of measuring CPU and bytes")
    options.add_argument("--nvitop", default=shutil.which("nvitop"), help="path of nvitop (default: as found on PATH)")
    options.add_argument("--toolong", default=shutil.which("tl"), help="path of toolong's tl (as found on PATH)")
    options.add_argument("--only", default="cpu,pages,refresh,paint,flood,open,link,metrics", help="parts, by commas")
    options.add_argument("--log-mb", type=int, default=1000, help="size of the big log")
    options.add_argument("--rounds", type=int, default=7, help="of first paint")
    chosen = options.parse_args()
    parts: dict[str, Callable[[], list[Row]]] = {
        "cpu": lambda: bench_cpu(chosen.seconds, chosen.nvitop),
        "pages": lambda: bench_pages(chosen.seconds),
        "refresh": lambda: bench_refresh(chosen.seconds),
        "paint": lambda: bench_paint(chosen.rounds),
        "flood": lambda: bench_flood(chosen.seconds),
        "open": lambda: bench_open(chosen.log_mb, chosen.toolong),
        "link": lambda: bench_link(chosen.seconds),
        "metrics": lambda: bench_metrics(chosen.seconds, chosen.rounds),
    }
    failed = False
    for name in chosen.only.split(","):  # each as it comes: what is measured stays if a later one fails
        rows = parts[name]()
        print(f"{name}\n{table(rows)}\n", flush=True)
        failed |= any(row.verdict == "FAIL" for row in rows)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
