"""Which ranks are apart from the others, and which only look so because they were looked at earlier."""

from trainwatch.core.app.runs.run_usage import rank_table
from trainwatch.core.model.observation import Node, NodeProcesses, Nodes, ProcessSample, Rank, RankNow
from trainwatch.core.model.story import Situation
from trainwatch.core.views.ranks_page import rank_level, ranks_page_view, with_standing


def row(rank: int, **more: object) -> RankNow:
    values: dict[str, object] = {"step": 100, "sec_per_step": 1.0, "last_line_age_s": 0.5, "state": "S"}
    return RankNow(rank=rank, **(values | more))  # type: ignore[arg-type]


def standings(*rows: RankNow) -> list[str | None]:
    return [each.standing for each in with_standing(rows)]


def test_a_rank_that_was_stopped_is_silent_is_behind_or_is_slow_is_named() -> None:
    assert standings(row(0), row(1, state="T", last_line_age_s=60.0), row(2)) == [None, "stopped", None]
    assert standings(row(0), row(1, last_line_age_s=42.0), row(2)) == [None, "silent", None]
    assert standings(row(0), row(1, step=80), row(2)) == [None, "behind", None]
    assert standings(row(0), row(1, sec_per_step=1.5), row(2)) == [None, "slowest", None]


def test_ranks_of_a_node_that_was_looked_at_earlier_are_not_behind() -> None:
    earlier = {"step": 91, "last_line_age_s": 9.5, "seen_age_s": 9.0}
    assert standings(row(0), row(1), row(2, **earlier), row(3, **earlier)) == [None] * 4


def test_a_slow_step_is_no_silence_and_the_next_line_may_come_within_two() -> None:
    slow = {"sec_per_step": 30.0}
    rows = (row(0, **slow), row(1, **slow, last_line_age_s=55.0), row(2, **slow, step=99))
    assert standings(*rows) == [None] * 3


def test_nothing_is_said_of_all_of_one_alone_or_without_values() -> None:
    assert standings(row(0, last_line_age_s=500.0), row(1, last_line_age_s=500.0)) == [None, None]
    assert standings(row(0, state="T")) == [None]
    unknown = {"step": None, "sec_per_step": None, "last_line_age_s": None}
    assert standings(row(0, **unknown), row(1, **unknown), row(2)) == [None] * 3


def test_a_node_that_writes_no_more_keeps_no_other_from_the_table() -> None:
    def node(name: str, grew_t: float, rank: int) -> Node:
        told = Rank(rank=rank, pid=7, state="S", node=name, line=f"step {rank}/9", line_age_s=1.0)
        return Node(node=name, n=3, grew_t=grew_t, process=NodeProcesses(procs=1, ranks=(told,)))

    nodes = Nodes(t=500.0, interval_s=10.0, nodes=(node("n1", 499.0, 0), node("n2", 100.0, 1)))
    table = rank_table(ProcessSample(t=100.0), None, nodes)
    assert table.t == 500.0
    assert [(each.rank, each.node, each.seen_age_s, each.last_line_age_s) for each in table.ranks] == [
        (0, "n1", 1.0, 2.0),
        (1, "n2", 400.0, 401.0),
    ]
    view = ranks_page_view(Situation(now_t=501.0, supervisor_alive=True), table)
    assert [(each.rank, rank_level(each)) for each in view.ranks] == [(0, "safe"), (1, "unknown")]
    assert [each.level for each in view.nodes] == ["unknown", "warning"]
    assert view.nodes[1].note == "silent for 6 min"
