"""Every list of the screen and of the verbs: numbers are right-aligned, and one thing has one unit."""

import importlib
import pkgutil
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

import trainwatch.cli
import trainwatch.core.views
import trainwatch.tui
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.launch import LaunchOffer, QueueEntry, TrialResult
from trainwatch.core.model.machine_details import (
    GpuDetail,
    GpuDetails,
    GpuProcess,
    MachineDetails,
    TreeDetails,
    TreeProcess,
)
from trainwatch.core.model.observation import GpuReading, GpuSample, RankNow, RankTable
from trainwatch.core.model.preset import Profile
from trainwatch.core.model.story import RunCard, RunStory, Situation
from trainwatch.core.views.checkpoint_list import checkpoint_rows
from trainwatch.core.views.columns import Column, text_rows
from trainwatch.core.views.machine_page import gpu_page_view, host_page_view
from trainwatch.core.views.ranks_page import ranks_page_view
from trainwatch.core.views.screens.profiles import profiles_view
from trainwatch.core.views.screens.run_list import run_row
from trainwatch.tui.keys import Key
from trainwatch.tui.panes.rows_pane import row_cells
from trainwatch.tui.ui.cells import UNICODE

NOW = 1_700_000_000.0
GIB = 2.0**30


def tables() -> dict[str, tuple[Column[Any], ...]]:
    """Every tuple of columns that a module of the screen, the verbs or the views defines."""
    infos = [
        info
        for package in (trainwatch.core.views, trainwatch.tui, trainwatch.cli)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return {
        name: value
        for info in infos
        for name, value in vars(importlib.import_module(info.name)).items()
        if isinstance(value, tuple) and value and all(isinstance(each, Column) for each in value)
    }


TABLES = tables()


def checkpoint(step: int, size: float) -> Checkpoint:
    return Checkpoint(
        path=f"/o/checkpoint-{step}", name=f"checkpoint-{step}", kind="safetensors", step=step, epoch=step // 1000, size_bytes=int(size),
        mtime=NOW - step, verdict="complete",
    )  # fmt: skip


def card(name: str, step: int, pace: float) -> RunCard:
    return RunCard(
        id=name, name=name, state="running", watched=True, created_wall=NOW - step, step=step, total_steps=9 * step,
        sec_per_step=pace, eta_s=3.0 * step, loss=pace / 7, gpus=(0,), gpu_pct=9.0, ram_pct=41.0, attempts=2, cwd="/p",
    )  # fmt: skip


def machine() -> tuple[Situation, MachineDetails]:
    gpus = tuple(
        GpuReading(
            index=index, name="H200", util_pct=pct, mem_used_bytes=pct * GIB, mem_total_bytes=140 * GIB, temp_c=60 + pct,
            power_w=7 * pct, power_limit_w=700.0, clock_mhz=20 * pct, own=True,
        )
        for index, pct in ((0, 7.0), (11, 97.0))
    )  # fmt: skip
    processes = tuple(
        GpuProcess(
            gpu=0, pid=pid, own=True, user="a", kind="C", mem_bytes=pid * 1e6, sm_pct=pid / 100, mem_util_pct=3.0,
            cpu_pct=pid / 9, rss_bytes=pid * 2e6, age_s=pid * 7.0, command="python t.py",
        )
        for pid in (90, 4242)
    )  # fmt: skip
    tree = tuple(
        TreeProcess(
            pid=pid, depth=0, state="S", user="a", cpu_pct=pid / 9, rss_bytes=pid * 2e6, threads=pid, read=pid * 1e3,
            written=pid * 1e5, age_s=pid * 7.0, command="python t.py",
        )
        for pid in (90, 4242)
    )  # fmt: skip
    details = MachineDetails(
        gpus=GpuDetails(t=0.0, gpus=tuple(GpuDetail(index=index) for index in (0, 11)), processes=processes),
        tree=TreeDetails(t=0.0, processes=tree),
    )
    return Situation(gpu=GpuSample(t=0.0, gpus=gpus), now_wall=NOW), details


def ranks() -> RankTable:
    rows = tuple(
        RankNow(
            rank=rank,
            node="n1",
            pid=900 * (rank + 1),
            state="R",
            step=90 * rank,
            sec_per_step=pace,
            last_line_age_s=40.0 * rank,
        )
        for rank, pace in ((0, 2.5), (12, 0.2))
    )
    return RankTable(t=0.0, ranks=rows, nodes=None)


def rows_of(name: str) -> Sequence[Any]:
    now, details = machine()
    entry = QueueEntry(id=4, key="k", name="a", cwd="/p", added_wall=NOW, on=(0, 1), run="a-1")
    row = {"id": "a", "state": "running", "attempt": 2, "step": 90, "total_steps": 360, "cwd": "/p"}
    row["supervisor"] = {"alive": True, "responsive": True}
    checkpoints = [checkpoint(90, 8e8), checkpoint(12_000, 2.5e9)]
    made: dict[str, Sequence[Any]] = {
        "GPU_COLUMNS": gpu_page_view(now, details.gpus).cards,
        "PROCESS_COLUMNS": gpu_page_view(now, details.gpus).processes,
        "TREE_COLUMNS": host_page_view(now, details).rows,
        "RANK_COLUMNS": ranks_page_view(now, ranks()).ranks,
        "CHECKPOINT_COLUMNS": checkpoint_rows(checkpoints, {}, NOW, RunStory()),
        "RUN_COLUMNS": [run_row(card("a", 90, 2.5), NOW), run_row(card("b", 12_000, 0.12), NOW)],
        "RUNS": [row, row | {"step": 12_000, "total_steps": 90_000, "attempt": 12}],
        "CHECKPOINTS": [(each, "") for each in checkpoints],
        "QUEUE": [(entry, 1), (QueueEntry(id=12, key="l", name="long name", cwd="/p", added_wall=NOW), None)],
        "HOSTS": [{"name": "box1", "ssh": "a@box1", "version": "0.3", "trouble": None}] * 2,
        "TRIALS": [
            TrialResult(profile=profile, wall=NOW, s_per_step=pace, vram_peak_bytes=pace * 5e9, ram_peak_bytes=4e9)
            for profile, pace in (("safe", 2.5), ("balanced", 0.12))
        ],
        "RESUME_POINTS": checkpoint_rows(checkpoints, {}, NOW, RunStory()),
        "OFFER_COLUMNS": [LaunchOffer(name="a", command="x"), LaunchOffer(name="b", command="", run_id="b-1")],
        "LADDER_COLUMNS": profiles_view(Situation(), [Profile(name=name) for name in ("safe", "fast")], ()).rungs,
        "OTHER_RUNS": [(card("a", 90, 2.5), True), (card("b", 12_000, 0.12), False)],
    }  # fmt: skip
    return made[name]


_UNIT = r"(?:%|°C|W|cores|s/step|steps/s|s|ms|min|h|d|m|[kMGT]?B(?:/s)?|[MG]iB|MHz)"
_NUMBER = re.compile(
    r"(?:step |epoch |attempt )?[-+]?(?:\d[\d,.]*(?:e-?\d+)?|[Nn]a[Nn]|[Ii]nf)(?: of \d[\d,.]*|/\d[\d,.]*)?"
    rf"(?: {_UNIT}(?: \d+ {_UNIT})?)?(?: ago)?"
)


def is_number(text: str) -> bool:
    """True of ``2``, ``1,250 of 4,000``, ``15.4 GiB``, ``2.50 s/step``, ``18 min ago``, ``step 1,250``, ``NaN``."""
    return _NUMBER.fullmatch(text) is not None


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_column_of_numbers_is_right_aligned(name: str) -> None:
    rows = rows_of(name)
    assert len(rows) > 1, "nothing to compare"
    for column in TABLES[name]:
        texts = [text for row in rows if (text := column.text(row)) not in ("", "–")]
        if texts and all(is_number(text) for text in texts):
            assert column.right, f"{name}: {column.title or '(without a title)'}: {texts}"


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_number_is_never_cut(name: str) -> None:
    rows = rows_of(name)
    for column in TABLES[name]:
        for row in rows:
            text = column.text(row)
            if is_number(text) and column.share is None:
                spans = row_cells([column], row, rows, max(column.from_width, (column.below_width or 300) - 1), UNICODE)
                assert [shown.strip() for _, shown in spans] == [text], (name, column.title)


def test_the_speed_is_in_steps_per_second_only_above_one() -> None:
    (speed,) = (column for column in TABLES["RUN_COLUMNS"] if column.title == "speed")
    slow, fast = map(speed.text, rows_of("RUN_COLUMNS"))
    assert (slow, fast) == ("2.50 s/step", "8.33 steps/s")
    for other in ("RANK_COLUMNS", "TRIALS"):
        told = [[c.text(row) for row in rows_of(other)] for c in TABLES[other] if c.title == "speed"]
        assert [text.split(" ")[1] for text in told[0]] in (["s/step", "steps/s"], ["steps/s", "s/step"])


def test_memory_of_gpus_and_processes_is_in_gib_everywhere() -> None:
    for name in ("GPU_COLUMNS", "PROCESS_COLUMNS", "TREE_COLUMNS", "TRIALS"):
        for column in TABLES[name]:
            if column.title in ("memory", "RAM", "VRAM peak", "RAM peak"):
                for row in rows_of(name):
                    text = column.text(row)
                    assert text.endswith((" GiB", " MiB", " %")), (name, column.title, text)


def test_lines_of_a_verb_have_their_columns_below_each_other() -> None:
    columns: tuple[Column[tuple[str, str]], ...] = (
        Column(title="size", text=lambda r: r[0], right=True), Column(title="name", text=lambda r: r[1]),
    )  # fmt: skip
    assert text_rows(columns, [("9", "a"), ("1,250", "bb")], titles=True) == [" size  name", "    9  a", "1,250  bb"]
    assert text_rows(columns, []) == []


def test_a_footer_does_not_write_a_key_twice() -> None:
    """Before, the metrics page offered "x x axis"."""
    infos = pkgutil.walk_packages(trainwatch.tui.__path__, "trainwatch.tui.")
    found = {
        key
        for info in infos
        for value in vars(importlib.import_module(info.name)).values()
        if isinstance(value, tuple)
        for key in value
        if isinstance(key, Key)
    }
    assert len(found) > 100
    assert [
        (key.shown, key.label) for key in found if f"{key.shown} {key.label}".startswith(f"{key.shown} {key.shown} ")
    ] == []


def test_verbs_print_a_verdict_as_the_screen_has_it() -> None:
    kept = Checkpoint(
        path="/out/a.pt", name="a.pt", kind="unknown", step=None, epoch=None, mtime=NOW, size_bytes=9,
        verdict="opaque", reason="unknown format",
    )  # fmt: skip
    (line,) = text_rows(TABLES["CHECKPOINTS"], [(kept, "")])
    assert line.endswith("unverified: unknown format")


def test_forty_columns_have_room_for_the_state_and_the_verdict() -> None:
    """36 cells: the border and the blanks beside it are outside; signs before a row take four of them."""
    queued = msgspec.structs.replace(card("a-run-with-a-long-name", 90, 2.5), queued=2, step=100, total_steps=100)
    found = checkpoint_rows((rows_of("CHECKPOINTS")[0][0],), {}, NOW, RunStory())
    unverified = msgspec.structs.replace(found[0].judged, verdict="opaque", mtime=NOW - 86_400.0 * 200)
    rows: dict[str, Any] = {
        "RUN_COLUMNS": run_row(queued, NOW),
        "CHECKPOINT_COLUMNS": checkpoint_rows((unverified,), {}, NOW, RunStory())[0],
    }
    for name, row in rows.items():
        line = "".join(text for _, text in row_cells(TABLES[name], row, [row], 36, UNICODE))
        assert len(line) <= 36 - 4, (name, line)
        assert any(word in line for word in ("queued, place 2", "unverified")), line
