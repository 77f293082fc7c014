"""The dashboard: what it shows, at every size."""

import msgspec
import pytest

from tests.fakes.feed import SCENES, FakeLog, healthy, hung, progress
from tests.tiers import second
from tests.tui.conftest import board, fills, look, showing
from tests.unit.test_views_header import NAN, incident, replace, stepped, told, with_incidents
from trainwatch.core.model.fact import ProgressMade
from trainwatch.core.model.observation import GpuReading, GpuSample
from trainwatch.core.model.story import Situation
from trainwatch.core.views.timeline import timeline_view
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.panes.dashboard_panes import headline

SIZES = [(80, 24), (120, 40), (200, 50), (45, 30)]
FIRST = frozenset({"empty", "healthy", "busy", "hung"})


def head(app: TrainwatchApp) -> str:
    return "\n".join(board(app).head.plain_lines())


@pytest.mark.parametrize("scene", [s if s in FIRST else second(s) for s in SCENES])
async def test_dashboard_fits_every_terminal_size(scene: str) -> None:
    async with showing(SCENES[scene]()) as (app, pilot):
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            look(app)
            await pilot.pause()
            fills(board(app).panes, width, height)
            assert board(app).head.plain_lines()[0].strip()
            assert "leave" in board(app).key_bar.plain_lines()[0]


async def test_a_level_is_shown_by_colour_glyph_and_word() -> None:
    now = healthy()
    hot = GpuReading(index=0, util_pct=97, mem_used_bytes=15e9, mem_total_bytes=16e9, temp_c=91, power_w=300)
    now = msgspec.structs.replace(now, gpu=GpuSample(t=now.now_t, gpus=(hot,)))
    async with showing(now) as (app, _):
        assert "91 °C ✖ danger" in board(app).gpu.plain_lines()[2]
        styles = {style for style, text in board(app).gpu._lines[2] if "✖" in text}
        assert styles == {"danger"}


async def test_unknown_values_are_never_shown_as_zero() -> None:
    now = healthy()
    blind = GpuReading(index=0, mem_used_bytes=15e9, mem_total_bytes=16e9)
    now = msgspec.structs.replace(now, gpu=GpuSample(t=now.now_t, gpus=(blind,)))
    async with showing(now) as (app, _):
        util = board(app).gpu.plain_lines()[0]
        assert util.startswith("util       – –")
        assert "%" not in util


async def test_a_lost_gpu_keeps_its_row() -> None:
    now = healthy(gpus=8)
    assert now.gpu is not None
    lost = GpuReading(index=3, trouble="lost: no answer for 12 s", name="NVIDIA GeForce RTX 4080")
    gpus = tuple(lost if g.index == 3 else g for g in now.gpu.gpus)
    now = msgspec.structs.replace(now, gpu=msgspec.structs.replace(now.gpu, gpus=gpus))
    for size in SIZES:
        async with showing(now, size) as (app, _):
            rows = board(app).gpu.plain_lines()
            assert any(row.lstrip().startswith("3 ✖ lost: no answer") for row in rows), size


async def test_an_open_incident_highlights_only_one_pane_border() -> None:
    async with showing(hung()) as (app, _):
        marked = [pane.id for pane in board(app).panes.values() if pane.has_class("-danger")]
        assert marked == ["incidents"]


async def test_a_log_cannot_draw_outside_its_pane() -> None:
    evil = FakeLog(["\x1b[2J\x1b[31mred", "tab\there", "bell\x07", "宽" * 100, "x" * 5000], bar="")
    async with showing(healthy(), log=evil) as (app, _):
        for line in board(app).log_pane.plain_lines():
            assert "\x1b" not in line
            assert "\x07" not in line


@pytest.mark.parametrize("theme", ["trainwatch-light", "ansi-dark", second("textual-dark"), second("nord")])
async def test_every_theme_defines_all_colour_roles(theme: str) -> None:
    async with showing(hung(), (120, 40)) as (app, pilot):
        app.theme = theme
        await pilot.pause()
        assert "Seems to hang" in head(app)
        look(app)
        await pilot.pause()


LONG = "GPU 5 lost: it no longer answers on the bus; reboot to get it back, and look at its slot and its power"


def with_trouble(reason: str) -> Situation:
    lost = incident(9, "health", "gpu5.lost", reason, severity="danger")
    return with_incidents(healthy(), lost, replace(lost, id=8, t=lost.t - 5, reason="GPU 3 too hot: 88 °C (limit 85)"))


@pytest.mark.parametrize("size", [(120, 40), second((200, 50))])
async def test_a_long_title_of_an_incident_is_wrapped_where_there_is_room(size: tuple[int, int]) -> None:
    async with showing(with_trouble(LONG), size=size) as (app, _):
        rows = board(app).incidents.plain_lines()
    assert not any("…" in row for row in rows)
    assert " ".join(" ".join(rows).replace(" open ", " ").split()).count("its slot and its power") == 1


async def test_a_title_takes_the_rows_that_are_free_and_shows_where_it_is_cut() -> None:
    one = with_incidents(healthy(), incident(9, "health", "gpu5.lost", f"{LONG}; {LONG}", severity="danger"))
    async with showing(one, size=(45, 30)) as (app, _):
        pane = board(app).incidents
        rows = [
            "".join(text for _, text in line)
            for line in headline(board(app).view.incidents[0], 41, pane.glyphs, spare=1)
        ]
    assert len(rows) == 2
    assert rows[1].strip().startswith("answers on the bus")


async def test_an_average_that_is_nan_is_not_shown_as_unknown() -> None:
    average = replace(NAN, reason="the average loss is not a number", average=True)
    now = told(with_incidents(healthy(), average), ProgressMade(attempt=2, progress=progress(7304, None)))
    assert timeline_view(now).loss == "NaN"
    assert timeline_view(told(healthy(), ProgressMade(attempt=2, progress=progress(7304, None)))).loss == "–"


@pytest.mark.parametrize("size", [(120, 40), second((200, 50))])
async def test_no_phase_is_drawn_behind_a_silence_that_goes_on(size: tuple[int, int]) -> None:
    async with showing(stepped(1800.0), size=size) as (app, pilot):
        await pilot.pause()
        row = next(line for line in board(app).timeline.plain_lines() if line.startswith("phase"))
    assert row.rstrip().endswith("╱")


@pytest.mark.parametrize("size", [(120, 40), second((200, 50))])
async def test_the_checkpoint_of_a_resume_is_shown_however_many_newer_ones_there_are(size: tuple[int, int]) -> None:
    async with showing(healthy(), size=size) as (app, _):
        pane = board(app).checkpoints
        good = next(v for v in pane.views if v.resume)
        bad = replace(good, judged=replace(good.judged, verdict="nonfinite", step=9_999), resume=False)
        pane.show((*(bad,) * 40, good, good))
        rows = pane.plain_lines()
    assert 2 < len(rows) < 40
    assert good.step in rows[-1]
    assert all("9,999" in row for row in rows[:-1])
