"""What torchrun does by itself: restarts of its workers, and agents that wait without workers."""

from tests.builders import World
from trainwatch.core.judge.hang.pauses import stopped, with_processes
from trainwatch.core.model.fact import Note
from trainwatch.core.model.observation import Agent, LogChunk, ProcessSample, Rank, RankEnded


def workers(*pids: int, state: str = "S") -> tuple[Rank, ...]:
    return tuple(Rank(rank=n, pid=pid, state=state) for n, pid in enumerate(pids))


def agents(*counts: int, restarts: int = 3) -> tuple[Agent, ...]:
    return tuple(Agent(pid=50 + n, workers=count, max_restarts=restarts) for n, count in enumerate(counts))


def sample(t: float, ranks: tuple[Rank, ...], of: tuple[Agent, ...]) -> ProcessSample:
    return ProcessSample(t=t, cpu_cores=0.0, procs=4, states={"S": 4}, ranks=ranks, agents=of)


def notes(world: World) -> list[str]:
    return [entry.text for _, entry in world.entries if isinstance(entry, Note)]


def trained(of: tuple[Agent, ...], until: int) -> World:
    world = World().begin()
    for n in range(1, until):
        world.see(sample(world.t + 1.0, workers(10, 11), of))
        world.see(LogChunk(t=world.t, text=f"step {n}/900 loss 0.5\n"))
    return world


def test_a_restart_by_torchrun_is_told_and_steps_go_back() -> None:
    world = trained(agents(1, 1), 30)
    world.see(sample(world.t + 1.0, workers(20, 21), agents(1, 1)))
    world.see(LogChunk(t=world.t + 1.0, text="step 21/900 loss 0.5\nstep 22/900 loss 0.5\n"))
    told = notes(world)
    assert any(note.startswith("torchrun starts its workers again by itself, up to 3 times") for note in told)
    assert "torchrun started its workers again after step 29 (restart 1 by itself, none of trainwatch): " in " ".join(
        told
    )
    assert any(note.startswith("the workers go on at step ") for note in told)
    assert world.state.attempts == 1
    assert world.state.attempt.step == 22
    assert not world.incidents


def test_a_late_line_of_ended_workers_does_not_shorten_the_start_of_the_new_ones() -> None:
    world = trained(agents(1, 1), 60)
    world.see(sample(world.t + 1.0, workers(20, 21), agents(1, 1)))
    world.see(LogChunk(t=world.t, text="step 59/900 loss 0.5\nstep 60/900 loss 0.5\n"))
    for _ in range(300):
        world.see(sample(world.t + 1.0, workers(20, 21), agents(1, 1)))
    assert world.incidents == []
    for _ in range(1200):
        world.see(sample(world.t + 1.0, workers(20, 21), agents(1, 1)))
    assert "hang" in {each.kind for each in world.incidents}


def test_an_agent_without_workers_is_a_hang_of_its_own_kind() -> None:
    world = trained(agents(1, 1), 40)
    for _ in range(400):
        world.see(ProcessSample(t=world.t + 1.0, cpu_cores=0.0, procs=1, states={"S": 1}, agents=agents(0)))
    (hang,) = [each for each in world.incidents if each.kind == "hang"]
    assert hang.class_ == "waiting"
    assert "lives without a worker" in hang.reason
    assert "behind" not in hang.reason


def joining(*counts: int, join_s: float = 600.0) -> tuple[Agent, ...]:
    return tuple(Agent(pid=50 + n, workers=count, join_s=join_s, node=f"n{n + 1}") for n, count in enumerate(counts))


def hangs(world: World, of: tuple[Agent, ...], seconds: int) -> list[str]:
    for _ in range(seconds):
        world.see(ProcessSample(t=world.t + 1.0, cpu_cores=0.0, procs=2, states={"S": 2}, agents=of))
    return [str(each.class_) for each in world.incidents if each.kind == "hang"]


def test_agents_that_wait_for_each_other_after_a_restart_have_the_time_that_torchrun_gives_them() -> None:
    world = trained(joining(1, 1), 40)
    assert hangs(world, joining(0, 0), 640) == []
    assert any("2 agents of torchrun live without a worker" in each.reason for each in world.incidents)
    assert hangs(world, joining(0, 0), 60) == ["waiting"]


def test_nodes_that_come_later_are_no_hang_before_the_first_worker() -> None:
    world = World().begin()
    assert hangs(world, joining(0, join_s=1800.0), 1800) == []
    assert hangs(world, joining(0, 0, join_s=1800.0), 100) == ["waiting"]


def test_an_agent_that_ended_does_not_come_back() -> None:
    world = trained(joining(1, 1), 40)
    assert hangs(world, joining(0), 200) == ["waiting"]


def test_what_a_rank_left_is_evidence_if_the_log_does_not_show_it() -> None:
    world = World().begin()
    world.see(LogChunk(t=1.0, text="step 1/900 loss 0.5\n"))
    text = 'Traceback (most recent call last):\n  File "train.py", line 7, in main\nValueError: bad sample\n'
    world.see(RankEnded(t=2.0, rank=3, pid=77, text=text))
    assert "rank 3 (pid 77) ended: ValueError: bad sample" in notes(world)
    assert any("bad sample" in each.text and each.source == "3" for each in world.state.log.diagnosis.findings)
    before = world.state.log.diagnosis.findings
    world.see(RankEnded(t=3.0, rank=3, pid=77, text=text))
    assert world.state.log.diagnosis.findings == before


def test_a_stopped_rank_that_is_killed_shows_another_state_for_a_moment() -> None:
    found = with_processes((), (Rank(rank=0, pid=1, state="S"), Rank(rank=1, pid=2, state="S")), 1.0)
    for t, state in ((2.0, "T"), (3.0, "R")):
        found = with_processes(found, (Rank(rank=0, pid=1, state="S"), Rank(rank=1, pid=2, state=state)), t)
    assert stopped(found) == ""
    assert stopped(with_processes(found, (), 4.0)).startswith("rank 1 (pid 2) was stopped (state T)")
    assert stopped(with_processes(found, (), 40.0)) == ""
