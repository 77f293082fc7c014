"""The metrics page on a run of a week, for ``bench/screen.py --only metrics``: a real run, dated back."""

import json
import math
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from screen_terminal import OnTerminal

from trainwatch.core.store.history_schema import COLUMNS, RECENT, TIERS, migrate, recent_path, table

DAYS = 7
END_S = DAYS * 86_400
NAMES = 8
LAST_VALUE = 7.654321
"""The newest value of the last chart on the first page: when it is on the terminal, all of them are drawn."""
KEPT: dict[str, tuple[str, ...]] = {
    "progress": ("step", "loss", "lr", "sec_per_step"),
    "gpu": ("util", "vram", "temp", "power"),
    "host": ("ram_used", "disk_free"),
    "process": ("cpu", "rss"),
}
"""Columns with values; with the names of the trainer 20 series."""
SCALES = {"vram": 15e9, "ram_used": 12e9, "disk_free": 2e11, "rss": 4e9, "util": 95.0, "temp": 62.0, "power": 290.0}
QUIET_S = 0.05
"""A picture is complete when nothing more is written for so long."""
TRAINER = "import time\nfor i in range(1, 6):\n    print(f'step {i}/5 loss {1 / i:.3f}', flush=True); time.sleep(0.5)\n"


def week_old_run(project: Path, env: Mapping[str, str], name: str) -> str:
    """Make a finished run of a week with a history of 20 series. Returns its id."""
    (project / "week.py").write_text(TRAINER)
    home = Path(env["TRAINWATCH_HOME"])
    command = [sys.executable, "-m", "trainwatch", "run", "--detach", "--name", name, "--", sys.executable, "week.py"]
    subprocess.run(command, cwd=project, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, check=True)
    deadline = time.monotonic() + 60
    while not any('"supervisor_ended"' in p.read_text() for p in home.rglob("journal.jsonl")):
        if time.monotonic() > deadline:
            raise SystemExit("the run of the metrics page did not end")
        time.sleep(0.2)
    (journal,) = home.rglob("journal.jsonl")
    folder = journal.parent
    lines, running = [], False
    for line in journal.read_text().splitlines():
        record = json.loads(line)
        shift = END_S if running else 0
        record["t"] += shift
        record["wall"] += shift - END_S
        running = running or record.get("fact", {}).get("fact") == "attempt_started"
        lines.append(json.dumps(record))
    journal.write_text("\n".join(lines) + "\n")
    spec = json.loads((folder / "run.json").read_text())
    spec["created_wall"] -= END_S
    (folder / "run.json").write_text(json.dumps(spec))
    for left in (*folder.glob("history*"), *folder.glob("judge-*"), *folder.glob("run-copy*")):
        left.unlink()
    write_history(folder / "history.sqlite")
    return folder.name


def write_history(path: Path) -> None:
    """Rows as the writer has them after a week: each second of the last hour, 10 s of the last day, 60 s, 600 s."""
    dice = random.Random(1)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"ATTACH ? AS {RECENT}", (str(recent_path(path)),))
    connection.execute("BEGIN")
    migrate(connection)
    connection.executemany("INSERT INTO metric_names VALUES (?, ?)", [(n, f"metric_{n}") for n in range(NAMES)])
    for tier in TIERS:
        since = 0 if tier.keep_s is None else max(0, (END_S - tier.keep_s) // 600 * 600)
        for source, columns in COLUMNS.items():
            rows = range(NAMES) if source == "metric" else (0,)
            names = [c for c, _ in columns]
            values = [
                (t, row, *_values(source, names, t, row, dice, mean_only=tier.span_s == 1))
                for t in range(since, END_S, tier.span_s)
                for row in rows
            ]
            marks = ", ".join("?" * (2 + 3 * len(names)))
            place = RECENT if tier == TIERS[0] else "main"
            connection.executemany(f"INSERT INTO {place}.{table(source, tier)} VALUES ({marks})", values)
    connection.execute("COMMIT")
    connection.close()


def _values(
    source: str, names: list[str], t: int, row: int, dice: random.Random, *, mean_only: bool
) -> list[float | None]:
    found: list[float | None] = []
    for column in names:
        if source != "metric" and column not in KEPT[source]:
            found += [None, None, None]
            continue
        wave = 1 + 0.1 * math.sin(t / 9000 + row) + 0.05 * dice.random()
        mean = t / 2.5 if column == "step" else SCALES.get(column, 1.0) * wave
        if source == "metric" and row == NAMES - 1 and t >= END_S - 86_400:  # some columns of all charts
            mean = LAST_VALUE
        found += [mean, None, None] if mean_only else [mean, mean * 0.97, mean * 1.03]
    return found


def answered(shown: OnTerminal, key: str) -> float:
    """Seconds from a key until the picture that it leads to is complete."""
    time.sleep(0.3)
    before = shown.written
    began = time.perf_counter()
    shown.press(key)
    while shown.written == before:
        if time.perf_counter() - began > 5:
            return 5.0
        time.sleep(0.001)
    while time.perf_counter() - shown.last_at < QUIET_S:
        time.sleep(0.001)
    return shown.last_at - began
