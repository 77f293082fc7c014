"""The page of ranks and nodes (key D): offered to distributed runs only, readable at every size, without colours too."""

from typing import Any

import msgspec
import pytest

from tests.fakes.feed import healthy
from tests.tiers import second
from tests.tui.conftest import look, until
from tests.tui.test_machine_screens import app_of, said
from trainwatch.core.model.observation import GpuReading, Node, Nodes, RankNow, RankTable
from trainwatch.core.model.run import JobHandle, JobRecord
from trainwatch.core.model.story import Situation
from trainwatch.core.views.ranks_page import rank_level, with_standing
from trainwatch.tui.screens.machine import RanksScreen


class Source:
    def __init__(self, table: RankTable) -> None:
        self.table = table

    def __call__(self) -> RankTable:
        return self.table


def gpu(at: int) -> GpuReading:
    return GpuReading(index=at, util_pct=97.0, mem_used_bytes=75e9, mem_total_bytes=80e9, temp_c=60.0, own=True)


def table(now: Situation, nodes: int = 8, gpus: int = 8) -> RankTable:
    """Rank 27 is stopped, node5 has not written for two minutes, a GPU of node2 is too hot."""
    rows = [
        RankNow(
            rank=rank, pid=4000 + rank, node=f"node{rank // gpus + 1}", state="T" if rank == 27 else "S", step=100,
            sec_per_step=1.0, last_line=f"step 100/900 of rank {rank}", last_line_age_s=60.0 if rank == 27 else 0.5,
        )
        for rank in range(nodes * gpus)
    ]  # fmt: skip
    found = []
    for node in range(nodes):
        readings = [gpu(at) for at in range(gpus)]
        if node == 1:
            readings[3] = msgspec.structs.replace(readings[3], temp_c=99.0)
        grew_t = now.now_t - (120.0 if node == 4 else 2.0)
        found.append(Node(node=f"node{node + 1}", n=9, grew_t=grew_t, gpus=tuple(readings)))
    written = Nodes(t=now.now_t, interval_s=10.0, nodes=tuple(found))
    return RankTable(t=now.now_t, ranks=with_standing(rows), nodes=written)


def distributed(**job: Any) -> Situation:
    now = healthy()
    values: dict[str, Any] = {"phase": "running", "state": "RUNNING", "nodes": "node[1-8]", "left_s": 3600.0}
    record = JobRecord(handle=JobHandle(cluster="c", id="4711"), wall=now.now_wall, **(values | job))
    return msgspec.structs.replace(now, job=record)


async def opened(pilot: Any, app: Any) -> Any:
    await pilot.pause()
    look(app)
    await pilot.press("D")
    screen: Any = app.screen
    assert isinstance(screen, RanksScreen)
    await until(pilot, lambda: screen.found.t is not None, "the table")
    await pilot.pause()
    return screen


@pytest.mark.parametrize("size", [(40, 12), second((80, 24)), second((120, 40)), (200, 50)], ids=str)
async def test_the_stopped_rank_the_silent_node_and_the_job_are_named(size: tuple[int, int]) -> None:
    now = distributed()
    app = app_of(now, ranks=Source(table(now)))
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot, app)
        assert str(screen.ranks.border_title).startswith("64 ranks · rank 27 stopped")
        if size == (40, 12):  # one list at a time, the nodes first
            assert "node1" in said(screen)
            return
        first = next(line for line in said(screen, "ranks").splitlines() if " 27 " in line)
        assert "✖" in first
        assert "stopped" in first
        assert "node5 silent" in str(screen.nodes.border_title)
        assert "job 4711 RUNNING on node[1-8]" in str(screen.nodes.border_subtitle)
        text = said(screen, "nodes")
        hot = next(line for line in text.splitlines() if "node2" in line)
        assert hot.count("✖") == 2  # the node, and its GPU
        assert next(line for line in text.splitlines() if "node5" in line).count("–") >= 8


async def test_signs_without_unicode_tell_the_levels_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")
    monkeypatch.setenv("NO_COLOR", "1")
    now = distributed()
    app = app_of(now, ranks=Source(table(now)))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app)
        hot = next(line for line in said(screen, "nodes").splitlines() if "node2" in line)
        assert hot.count("X") == 2
        assert hot.isascii()


async def test_it_is_offered_to_runs_with_ranks_or_a_job_only() -> None:
    app = app_of(healthy(), ranks=Source(RankTable()))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.press("D")
        await pilot.pause()
        assert not isinstance(app.screen, RanksScreen)


async def test_a_job_in_the_queue_has_its_reason_and_no_ranks() -> None:
    now = distributed(phase="queued", state="PENDING", reason="Resources", nodes="", left_s=None)
    app = app_of(now, ranks=Source(RankTable(t=now.now_t)))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app)
        assert "job 4711 PENDING (Resources)" in str(screen.nodes.border_subtitle)
        assert "waits in the queue" in said(screen)


async def test_the_head_has_the_time_left() -> None:
    now = distributed()
    app = app_of(now, ranks=Source(RankTable()))
    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.pause()
        look(app)
        await pilot.pause()
        assert app.dashboard is not None
        assert "job 4711, 1 h 00 m left" in "\n".join(app.dashboard.head.plain_lines())


def mixed(now: Situation) -> RankTable:
    """Four ranks that print into one file: nothing is known of each."""
    return RankTable(t=now.now_t, ranks=with_standing([RankNow(rank=r, pid=40 + r, state="S") for r in range(4)]))


async def test_ranks_of_which_nothing_is_known_are_not_said_to_be_well() -> None:
    now = distributed()
    app = app_of(now, ranks=Source(mixed(now)))
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await opened(pilot, app)
        assert {rank_level(row) for row in screen.view.ranks} == {"unknown"}
        assert str(screen.ranks.border_subtitle) == "lines of single ranks not known"
        await pilot.press("enter")
        await pilot.pause()
        facts = str(app.screen.query_one("#text").content)  # type: ignore[attr-defined]
    assert "not known" in facts.splitlines()[-1]
    assert "like the others" not in facts
