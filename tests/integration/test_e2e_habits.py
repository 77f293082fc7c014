"""What one run of a command learns, the next one begins with: through the state folder, the trace and a replay."""

import sys

from tests.fakes.e2e_world import TRAINER, World
from trainwatch.core.model.observation import Learned
from trainwatch.core.store.trace import TraceReading, trace_lines


def test_a_second_run_of_a_command_starts_with_learned_habits(world: World) -> None:
    trainer = [sys.executable, str(TRAINER), "--output-dir"]
    words = ["run", "--headless", "--output-dir"]
    first = world.begin(*words, "out/1", "--name", "one", "--", *trainer, "out/1", "--steps", "30")
    assert first.ends() == 0, first.said
    second = world.begin(*words, "out/2", "--name", "two", "--", *trainer, "out/2", "--steps", "30")
    assert second.ends() == 0, second.said

    assert "1 earlier run of this command taught: the first step comes after" in second.said
    assert "earlier run" not in first.said
    (told,) = [
        [seen for seen in TraceReading(trace_lines(run.trace)) if isinstance(seen, Learned)]
        for run in world.runs()
        if run.id.startswith("two")
    ]
    assert [seen.habits.runs for seen in told] == [1]
    assert told[0].habits.start.times == 1
    (kept,) = (world.home / "habits").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    (again,) = [run for run in world.runs() if run.id.startswith("two")]
    assert world.asks("replay", str(again.trace), "--json").json["incidents"] == []
