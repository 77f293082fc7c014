"""The trace in memory and on the disk: what is thinned, and what is kept whole."""

import random
from itertools import pairwise
from pathlib import Path

from tests.builders import judge
from tests.scenarios.cases import begun, in_trouble, new
from trainwatch.core.model.json_line import encode_line
from trainwatch.core.model.observation import GpuSample, LogChunk, Observation, Start
from trainwatch.core.replay import Replay
from trainwatch.core.store.trace import NEAR_S, RECENT_BYTES, THIN_S, Thinning, TraceReading, TraceWriter, trace_lines


def read(path: Path) -> list[Observation]:
    return list(TraceReading(trace_lines(path))) if path.exists() else []


def watched(writer: TraceWriter, seconds: range) -> None:
    for second in seconds:
        writer.write(GpuSample(t=float(second)))
        writer.write(LogChunk(t=float(second), text=f"step {second}\n"))
        writer.flush_if_due(float(second))


def test_half_an_hour_before_and_after_an_incident_is_whole_and_quiet_hours_are_thinned(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    writer = TraceWriter(path, recent=True)
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


def test_a_flood_leaves_the_memory_early_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    writer = TraceWriter(path, recent=True)
    dice = random.Random(1)
    texts = [dice.randbytes(100_000).hex() for _ in range(50)]
    for second, text in enumerate(texts):
        writer.write(LogChunk(t=float(second), text=text))
    seen = [o.text for o in read(path) if isinstance(o, LogChunk)]
    assert seen == texts[: len(seen)]
    assert sum(map(len, texts[len(seen) :])) / 2 <= RECENT_BYTES + 300_000
    writer.close()
    assert [o.text for o in read(path) if isinstance(o, LogChunk)] == texts


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
