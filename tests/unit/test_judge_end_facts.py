"""What was so when an attempt ended: the live diagnosis counts it, the journal keeps it, ``diagnose --run`` reads it."""

import json
from pathlib import Path

import pytest

from tests.builders import World
from tests.fakes.feed import WALL0, created, started
from tests.shipped import CATALOGUE
from trainwatch.cli import main
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.recovery import attempts
from trainwatch.core.judge.resume.checkpoint_index import KnownCheckpoint
from trainwatch.core.judge.state import StepBuilder
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.fact import AttemptEnded, AttemptStarted
from trainwatch.core.model.observation import Exit, HostSample, KernelLine, LogChunk
from trainwatch.core.model.run import EndFacts, Incident, RunSpec
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.run_directory import RunDirectory

XID = "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', GPU has fallen off the bus."


def begun() -> World:
    world = World(Judge(Knowledge(catalogue=CATALOGUE))).begin()
    return world.see(LogChunk(t=world.t + 1.0, text="step 3/900 loss 2.0\n"))


def end_facts(world: World) -> EndFacts:
    return attempts.end_facts(StepBuilder(world.judge.knowledge, world.state))


def host(world: World, seconds: float = 1.0, **values: object) -> World:
    return world.see(HostSample(t=world.t + seconds, **values))  # type: ignore[arg-type]


def crash(world: World) -> Incident:
    return next(each for each in world.incidents if each.kind == "crash")


def killed(world: World) -> World:
    return world.see(Exit(t=world.t + 1.0, signal=9))


def test_full_swap_explains_a_kill_live() -> None:
    world = killed(host(begun(), swap_used_bytes=9.9e9, swap_total_bytes=1e10))
    assert crash(world).class_ == "host_oom"
    assert "Swap was full (99%)" in crash(world).explanation
    assert crash(killed(host(begun(), swap_used_bytes=1e9, swap_total_bytes=1e10))).class_ == "unknown"
    assert crash(killed(host(begun(), swap_used_bytes=0.0, swap_total_bytes=0.0))).class_ == "unknown"


def test_disk_that_was_full_a_moment_before_the_end_counts() -> None:
    world = host(host(begun(), disk_free_bytes=2e6), disk_free_bytes=4e10)  # the file that did not fit was deleted
    world.see(LogChunk(t=world.t, text="OSError: [Errno 28] No space left on device\n"))
    world.see(Exit(t=world.t + 1.0, code=1))
    assert crash(world).class_ == "disk_full"
    assert "2.00 MB left" in crash(world).explanation
    later = host(host(begun(), disk_free_bytes=2e6), 61.0, disk_free_bytes=4e10)
    assert end_facts(later).disk_free_bytes == 4e10


def test_kills_of_two_counters_are_not_compared() -> None:
    world = host(begun(), oom_kills=0, oom_counter="/cg/job")
    assert end_facts(host(world, oom_kills=2, oom_counter="/cg/job")).oom_kills == 2
    assert end_facts(host(world, oom_kills=17, oom_counter="machine")).oom_kills is None
    assert end_facts(host(world, oom_kills=18, oom_counter="machine")).oom_kills == 1
    assert end_facts(host(world)).oom_kills is None


def test_journal_keeps_what_was_so_at_the_end() -> None:
    world = host(begun(), disk_free_bytes=3e9, disk_free_inodes=7.0, swap_used_bytes=5e9, swap_total_bytes=1e10)
    world.see(KernelLine(t=world.t, text=XID))
    facts = killed(world).of(AttemptEnded)[0].facts
    assert facts is not None
    assert (facts.disk_free_bytes, facts.disk_free_inodes, facts.swap_used) == (3e9, 7.0, 0.5)
    assert XID in facts.kernel[0]


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        (KnownCheckpoint(path="out/a", t=1.0, damage=("torn", "one shard is missing")), "torn"),
        (KnownCheckpoint(path="out/a", t=1.0, complete=True), "complete"),
        (KnownCheckpoint(path="out/a", t=1.0, complete=True, bad="it is NaN"), None),
        (KnownCheckpoint(path="out/b", t=1.0, complete=True), None),
    ],
)
def test_verdict_on_the_checkpoint_that_was_resumed_from_counts(known: KnownCheckpoint, verdict: str | None) -> None:
    world = begun().change("attempt", resume_from="out/a").change("saved.checkpoints", known=(known,))
    assert end_facts(world).checkpoint == verdict


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text("step 3/900 loss 2.0\n", encoding="utf-8")
    spec = RunSpec(id="job-1", name="job", command=("true",), cwd=str(tmp_path), created_wall=WALL0)
    return RunDirectory.create(tmp_path / "home", spec)


def diagnosed(run: RunDirectory, facts: EndFacts | None, capsys: pytest.CaptureFixture[str], **ended: object) -> str:
    log = run.load_spec().cwd + "/train.log"
    end = AttemptEnded(attempt=1, how="crashed", facts=facts, **ended)  # type: ignore[arg-type]
    with JournalWriter(run.journal) as journal:
        journal.append_all(0.0, WALL0, (*created(), AttemptStarted(attempt=1, pid=1, log=log), *started(1)[:1]))
        journal.append_all(9.0, WALL0 + 9.0, (end,))
    capsys.readouterr()
    assert main(["diagnose", "--run", "job", "--json"]) == 0
    found: dict[str, str] = json.loads(capsys.readouterr().out)
    return found["failure"]


@pytest.mark.parametrize(
    ("facts", "ended", "failure"),
    [
        (EndFacts(oom_kills=1), {"signal": "SIGKILL"}, "host_oom"),
        (EndFacts(swap_used=0.99), {"signal": 9}, "host_oom"),
        (EndFacts(disk_free_bytes=1e6), {"code": 1}, "disk_full"),
        (EndFacts(disk_free_inodes=0.0), {"code": 1}, "disk_full"),
        (EndFacts(checkpoint="torn"), {"code": 1}, "checkpoint_corrupt"),
        (EndFacts(kernel=(XID,)), {"code": 1}, "gpu_lost"),
        (EndFacts(), {"code": 1}, "unknown"),
        (None, {"code": 1}, "unknown"),
    ],
)
def test_run_is_diagnosed_with_what_the_journal_keeps(
    run: RunDirectory,
    facts: EndFacts | None,
    ended: dict[str, object],
    failure: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert diagnosed(run, facts, capsys, **ended) == failure


def test_run_without_kept_facts_is_diagnosed_with_its_last_sample(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    history = HistoryWriter(run.history)
    history.add(HostSample(t=8.0, swap_used_bytes=9.9e9, swap_total_bytes=1e10))
    history.commit()
    history.close()
    assert diagnosed(run, None, capsys, signal=9) == "host_oom"
