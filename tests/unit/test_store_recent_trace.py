"""The trace in memory and on the disk: what is thinned, what is kept whole, and what a kill leaves."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.builders import judge
from tests.scenarios.cases import begun, in_trouble, new
from trainwatch.core.app.runs.forgetting import forget
from trainwatch.core.model.observation import Exit, GpuSample, LogChunk, Observation, Start
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.text.json_line import encode_line
from trainwatch.core.replay import Replay
from trainwatch.core.store.recent_trace import (
    NEAR_S,
    THIN_S,
    RecentTrace,
    Thinning,
    recent_pieces,
    recent_trace_folder,
)
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.store.trace import TraceWriter
from trainwatch.core.store.trace_reading import TraceReading, trace_lines


def read(path: Path) -> list[Observation]:
    return list(TraceReading(trace_lines(path))) if path.exists() else []


def watched(writer: TraceWriter, seconds: range) -> None:
    for second in seconds:
        writer.write(GpuSample(t=float(second)))
        writer.write(LogChunk(t=float(second), text=f"step {second}\n"))
        writer.flush_if_due(float(second))


def test_half_an_hour_before_and_after_an_incident_is_whole_and_quiet_hours_are_thinned(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    writer = TraceWriter(path, recent=RecentTrace(tmp_path / "memory"))
    writer.write(Start(t=0.0, attempt=1, pid=1))
    watched(writer, range(1, 8_000))
    writer.incident(7_999.0)
    watched(writer, range(8_000, 12_000))
    writer.close()
    seen = read(path)
    assert [o.t for o in seen] == sorted(o.t for o in seen)
    samples = {o.t for o in seen if isinstance(o, GpuSample)}
    assert samples >= set(range(1, int(NEAR_S) - 60)), "after the start"
    assert samples >= set(range(8_000 - int(NEAR_S) + 60, 8_000 + int(NEAR_S) - 60)), "around the incident"
    quiet = sorted(t for t in samples if 2_000 <= t < 6_000)
    assert max(b - a for a, b in pairwise(quiet)) <= THIN_S + 1
    assert len(quiet) <= 4_000 / THIN_S + 2
    assert sum(isinstance(o, LogChunk) for o in seen) == 11_999, "every line of the log"
    assert not (tmp_path / "memory").exists()


def test_what_a_killed_supervisor_left_in_memory_is_read_and_then_written_by_the_next(tmp_path: Path) -> None:
    path, memory = tmp_path / "trace.jsonl.gz", tmp_path / "memory"
    killed = TraceWriter(path, recent=RecentTrace(memory))
    watched(killed, range(1, 301))
    assert read(path) == []
    assert len(list(recent_pieces(memory))) == 5
    following = TraceWriter(path, recent=RecentTrace(memory))
    assert [o.t for o in read(path) if isinstance(o, GpuSample)][-1] == 300.0
    assert list(recent_pieces(memory)) == []
    following.write(Exit(t=400.0, code=1))
    assert isinstance(read(path)[-1], Exit)


def test_forgetting_a_run_removes_what_a_killed_supervisor_left_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    spec = RunSpec(id="run-1", name="run", command=("x",), cwd=str(tmp_path), created_wall=0.0)
    run = RunDirectory.create(tmp_path / "home", spec)
    folder = recent_trace_folder(run.trace)
    assert folder is not None
    RecentTrace(folder).add(b"piece", 1.0)
    assert list(recent_pieces(folder)) == [b"piece"]
    forget(run)
    assert not folder.exists()
    assert not run.path.exists()


def test_a_flood_leaves_the_memory_early_and_whole(tmp_path: Path) -> None:
    path, memory = tmp_path / "trace.jsonl.gz", tmp_path / "memory"
    recent = RecentTrace(memory)
    writer = TraceWriter(path, recent=recent)
    for number in range(40):
        recent.add(bytes(100_000), float(number))
    watched(writer, range(100, 161))
    assert sum(each.stat().st_size for each in memory.iterdir()) <= 2 << 20
    writer.close()


def test_without_memory_the_trace_is_written_each_minute(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("in the way")
    writer = TraceWriter(tmp_path / "trace.jsonl.gz", recent=RecentTrace(tmp_path / "memory"))
    watched(writer, range(1, 62))
    assert len(read(tmp_path / "trace.jsonl.gz")) == 120


def test_a_thinned_trace_replays_to_the_same_verdicts() -> None:
    story = in_trouble(begun(new(104, 1.0, 2), steps=2200)).dead(400)
    thinning = Thinning()
    quiet = [o for o in story.observations if o.t < story.trouble_t - NEAR_S]
    kept = [o for o in quiet if list(thinning.lines([encode_line(o)]))]
    assert len(kept) < len(quiet) / 2

    def verdicts(observations: list[Observation]) -> list[tuple[str, str | None, int]]:
        fold = Replay(judge(story.settings))
        fold.feed_all(observations)
        return [(i["kind"], i["class"], round(i["t"])) for i in fold.result()["incidents"]]

    whole = verdicts(list(story.observations))
    assert "hang" in {kind for kind, *_ in whole}
    assert verdicts([*kept, *(o for o in story.observations if o.t >= story.trouble_t - NEAR_S)]) == whole
