"""Measures the size of a long run's metric history, and the time to write and read it.

    python bench/history.py [DAYS] [GPUS]

Writes a sample for every second of the run (default 7 days, 8 GPUs) and prints megabytes, microseconds per second of
the run, and milliseconds for a chart over the whole run.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

from host_values import host_sample

from trainwatch.core.model.observation import GpuReading, GpuSample, ProcessSample
from trainwatch.core.model.progress import Progress
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.latest import ProgressPoint

COMMIT_EVERY_S = 30
"""Larger batches than in a live run, to save time; the file is the same."""


def feed(writer: HistoryWriter, t: int, gpus: int, dice: random.Random) -> None:
    """One second of a busy machine, in which every value changes."""
    readings = (
        GpuReading(
            index=index,
            util_pct=float(dice.randrange(80, 100)),
            mem_used_bytes=15.2e9 + dice.randrange(10**9),
            mem_total_bytes=80e9,
            temp_c=float(dice.randrange(60, 75)),
            power_w=dice.uniform(300, 400),
            clock_mhz=float(dice.randrange(1500, 1900, 15)),
            clock_mem_mhz=float(dice.choice((2619, 3201))),
            fan_pct=float(dice.randrange(40, 60)),
            pcie_received=dice.uniform(1e9, 8e9),
            pcie_sent=dice.uniform(1e8, 2e9),
        )
        for index in range(gpus)
    )
    writer.add(GpuSample(t=t, gpus=tuple(readings)))
    ram = 12e9 + dice.randrange(10**9)
    writer.add(host_sample(t, ram, 1e9, dice))
    writer.add(
        ProcessSample(
            t=t, cpu_cores=dice.uniform(1, 9), rss_bytes=ram, read_bytes=t * 1e6, write_bytes=t * 1e5, procs=9
        )
    )
    progress = Progress(
        step=t // 2, epoch=t / 1e4, loss=dice.random(), lr=1e-4 * dice.random(), sec_per_step=2 + dice.random()
    )
    writer.add(ProgressPoint(t=t, progress=progress))


def main(days: float = 7, gpus: int = 8) -> None:
    dice = random.Random(1)
    end = int(days * 86_400)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.sqlite"
        writer = HistoryWriter(path)
        began = time.perf_counter()
        for t in range(end):
            feed(writer, t, gpus, dice)
            if t % COMMIT_EVERY_S == 0:
                writer.commit()
        writer.close()
        written = time.perf_counter() - began
        reader = HistoryReader(path)
        began = time.perf_counter()
        points = len(reader.series(f"gpu{gpus - 1}.power", 0, end, 500))
        chart = time.perf_counter() - began
        reader.close()
        print(f"{days:g} days, {gpus} GPUs: {path.stat().st_size / 1e6:.1f} MB")
        print(f"written in {written / end * 1e6:.0f} us per second of the run")
        print(f"{points} points of the whole run in {chart * 1e3:.0f} ms")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((float, int), sys.argv[1:], strict=False)))
