"""kill -9 of whoever writes, at any moment: what was promised is there, and the next one goes on."""

import signal
import subprocess
import sys
from pathlib import Path

from trainwatch.core.model.fact import Note
from trainwatch.core.model.observation import LogChunk
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter, read_journal
from trainwatch.core.store.trace import TraceReading, trace_lines

WRITE = """
import sys
from pathlib import Path
from trainwatch.core.model.fact import Note
from trainwatch.core.model.observation import GpuReading, GpuSample, LogChunk
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.trace import TraceWriter
home = Path(sys.argv[1])
journal, history = JournalWriter(home / "journal"), HistoryWriter(home / "history")
trace = TraceWriter(home / "trace", limit_bytes=20_000)
number = 0
while True:
    number += 1
    journal.append_all(number, 0, [Note(text=str(number))])
    history.add(GpuSample(t=number, gpus=(GpuReading(index=0, util_pct=50.0),)))
    history.commit()
    trace.write(LogChunk(t=number, text="x" * 500))
    trace.flush()
    print(number, flush=True)
"""


def test_acknowledged_journal_records_survive_kill_9(tmp_path: Path) -> None:
    for round_number, promised_at_least in enumerate((1, 60, 150), 1):
        home = tmp_path / str(round_number)
        home.mkdir()
        process = subprocess.Popen([sys.executable, "-c", WRITE, str(home)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        promised = 0
        while promised < promised_at_least:
            promised = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        more = process.communicate()[0].split()
        promised = int(more[-1]) if more else promised

        records = list(read_journal(home / "journal"))
        assert [r.seq for r in records] == list(range(1, len(records) + 1))
        assert promised <= len(records) <= promised + 1
        with JournalWriter(home / "journal") as writer:
            assert writer.append_all(0, 0, [Note(text="on")])[0].seq == len(records) + 1

        with HistoryReader(home / "history") as reader:
            latest = reader.latest().gpu
            assert latest is not None
            assert latest.t >= promised
            assert len(reader.series("gpu0.util", 0, promised + 1, promised + 1)) == promised
        continued = HistoryWriter(home / "history")
        continued.add(latest)
        continued.commit()
        assert continued.trouble is None
        continued.close()

        chunks = [o.t for o in TraceReading(trace_lines(home / "trace")) if isinstance(o, LogChunk)]
        assert chunks == list(range(int(chunks[0]), int(chunks[-1]) + 1))
        assert chunks[-1] >= promised
