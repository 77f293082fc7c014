"""The dashboard: what it shows, at every size."""

import msgspec
import pytest

from tests.fakes.feed import (
    SCENES,
    FakeFeed,
    FakeLog,
    crashed,
    empty,
    finished,
    given_up,
    healthy,
    hung,
    progress,
    readings,
    unwatched,
)
from tests.tiers import SECOND_TIER, second
from tests.tui.conftest import look, showing
from tests.unit.test_views_header import NAN, incident, replace, stepped, told, with_incidents
from trainwatch.core.model.fact import ProgressMade
from trainwatch.core.model.observation import GpuReading, GpuSample
from trainwatch.core.model.story import Situation
from trainwatch.core.views.incident_list import incident_view
from trainwatch.core.views.timeline import timeline_view
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.screens.dashboard import Dashboard

SIZES = [(80, 24), (120, 40), (200, 50), (45, 30)]
FIRST = frozenset({"empty", "healthy", "busy", "hung"})


def board(app: TrainwatchApp) -> Dashboard:
    assert app.dashboard is not None
    return app.dashboard


def head(app: TrainwatchApp) -> str:
    return "\n".join(board(app).head.plain_lines())


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (empty(), "Not started yet: [Enter] start it"),
        (healthy(), "Training · step 7,300 of 10,260 · 2.50 s/step · done about 06:35"),
        (hung(), "Seems to hang: no step for 96 s (usually 2.50 s/step)"),
        (crashed(), "Crashed 00:57: CUDA out of memory · restarting in 0:14 from step 2,160"),
        (given_up(), "Given up · CUDA out of memory · [e] see why · [r] resume"),
        (finished(), "Finished 06:44 · 10,260 steps in 7 h 24 m · 13 checkpoints complete"),
        (unwatched(), "No supervisor is running: [S] start one"),
    ],
)
async def test_header_shows_state_progress_and_time_left(now: Situation, said: str) -> None:
    async with showing(now) as (app, _):
        assert said in head(app)


@pytest.mark.parametrize("scene", [s if s in FIRST else second(s) for s in SCENES])
async def test_dashboard_fits_every_terminal_size(scene: str) -> None:
    async with showing(SCENES[scene]()) as (app, pilot):
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            look(app)
            await pilot.pause()
            covered: set[tuple[int, int]] = set()
            for pane in board(app).panes.values():
                if not pane.display:
                    continue
                region = pane.region
                assert region.right <= width
                assert region.bottom <= height
                cells = {(x, y) for x in range(region.x, region.right) for y in range(region.y, region.bottom)}
                assert not covered & cells, f"{pane.id} overlaps"
                covered |= cells
                assert all(len(line) <= region.width for line in pane.plain_lines())
            assert len(covered) == width * height, "part of the screen is unused"
            assert board(app).head.plain_lines()[0].strip()
            assert "leave" in board(app).key_bar.plain_lines()[0]


@SECOND_TIER
async def test_dashboard_is_redrawn_after_a_resize() -> None:
    async with showing(healthy(), (200, 50)) as (app, pilot):
        assert board(app).checkpoints.display
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert not board(app).checkpoints.display
        assert board(app).gpu.region.right <= 80
        await pilot.resize_terminal(200, 50)
        await pilot.pause()
        assert board(app).checkpoints.display


async def test_gpu_values_carry_level_and_history() -> None:
    async with showing(healthy()) as (app, _):
        rows = board(app).gpu.plain_lines()
        assert rows[0].startswith("util    98 % ●   90 "), "the scale of the sparkline begins at 90 %"
        assert len(set(rows[0].rpartition(" ")[2])) >= 3, "it shows change, not a block"
        assert rows[2].startswith("temp   62 °C ●")


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
        assert "0 %" not in util


async def test_without_a_gpu_the_pane_shows_a_message() -> None:
    now = healthy()
    sample = GpuSample(t=now.now_t, trouble="No NVIDIA GPU seen: driver not loaded")
    async with showing(msgspec.structs.replace(now, gpu=sample)) as (app, _):
        assert "No NVIDIA GPU seen: driver not loaded" in " ".join(board(app).gpu.plain_lines())


async def test_a_simulated_gpu_is_labelled() -> None:
    now = healthy()
    async with showing(msgspec.structs.replace(now, gpu=readings(now.now_t, simulated=True))) as (app, _):
        assert "SIMULATED" in str(board(app).gpu.border_subtitle)


async def test_a_gpu_that_does_not_answer_is_shown_with_the_age_of_its_values() -> None:
    now = healthy()
    async with showing(msgspec.structs.replace(now, gpu=readings(now.now_t - 40))) as (app, _):
        assert "40 s old" in str(board(app).gpu.border_subtitle)


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


async def test_timeline_shows_events_in_order() -> None:
    async with showing(healthy(), (120, 40)) as (app, _):
        track = board(app).timeline.plain_lines()[1]
        assert track.index("◆") < track.index("✖") < track.index("↻") < track.index("┃") < track.index("◇")
        assert "⚑" in track.rstrip()[-3:]
        assert "checkpoint 45 min ago · step 6,148 · 870 MB · complete" in str(board(app).timeline.border_title)


async def test_incident_pane_shows_the_incident_in_four_lines() -> None:
    async with showing(healthy(), (120, 40)) as (app, _):
        text = "\n".join(board(app).incidents.plain_lines())
        assert "crash  CUDA out of memory" in text
        assert "recovered 00:58:29, 41 s" in text
        for part in ("seen   exit code 1", "cause  VRAM was 99.4 %", "vae_batch_size 2 → 1", "cost   180 steps again"):
            assert part in text


async def test_an_open_incident_highlights_only_one_pane_border() -> None:
    async with showing(hung()) as (app, _):
        marked = [pane.id for pane in board(app).panes.values() if pane.has_class("-danger")]
        assert marked == ["incidents"]


async def test_only_changed_cells_of_the_dashboard_are_repainted() -> None:
    now = healthy()
    async with showing(now) as (app, pilot):
        before = {name: pane.paints for name, pane in board(app).panes.items()}
        look(app)
        await pilot.pause()
        assert {name: pane.paints for name, pane in board(app).panes.items()} == before
        feed = board(app).run.feed
        assert isinstance(feed, FakeFeed)
        assert now.gpu is not None
        warmer = msgspec.structs.replace(now.gpu.gpus[0], temp_c=63.0)
        feed.now = msgspec.structs.replace(now, gpu=msgspec.structs.replace(now.gpu, gpus=(warmer,)))
        look(app)
        await pilot.pause()
        after = {name: pane.paints for name, pane in board(app).panes.items()}
        assert {name for name in after if after[name] != before[name]} == {"gpu"}
        assert after["gpu"] == before["gpu"] + 1


async def test_a_log_cannot_draw_outside_its_pane() -> None:
    evil = FakeLog(["\x1b[2J\x1b[31mred", "tab\there", "bell\x07", "宽" * 100, "x" * 5000], bar="")
    async with showing(healthy(), log=evil) as (app, _):
        for line in board(app).log_pane.plain_lines():
            assert "\x1b" not in line
            assert "\x07" not in line


async def test_every_symbol_has_an_ascii_form_without_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")
    async with showing(hung(), (120, 40)) as (app, _):
        for name in ("head", "gpu", "memory", "timeline", "incidents", "checkpoints"):
            text = "\n".join(board(app).panes[name].plain_lines())
            drawn = {c for c in text if ord(c) > 127} - set("·°→…–")
            assert not drawn, (name, drawn)
        assert board(app).gpu.styles.border.top[0] == "ascii"


@pytest.mark.parametrize("theme", ["trainwatch-light", "ansi-dark", second("textual-dark"), second("nord")])
async def test_every_theme_defines_all_colour_roles(theme: str) -> None:
    async with showing(hung(), (120, 40)) as (app, pilot):
        app.theme = theme
        await pilot.pause()
        assert "Seems to hang" in head(app)
        look(app)
        await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), second((120, 40)), second((200, 50))])
async def test_a_silence_that_has_not_ended_is_hatched_up_to_now(size: tuple[int, int]) -> None:
    async with showing(stepped(1800.0), size=size) as (app, pilot):
        await pilot.pause()
        text = "\n".join(board(app).timeline.plain_lines())
        assert "╱╱" in text
        assert "loss" in text


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
        rows = ["".join(text for _, text in line) for line in pane._headline(board(app).view.incidents[0], 41, spare=1)]
    assert len(rows) == 2
    assert rows[1].strip().startswith("answers on the bus")


async def test_a_narrow_pane_gives_its_room_to_the_title_of_an_incident() -> None:
    async with showing(with_trouble(LONG), size=(45, 30)) as (app, _):
        first = board(app).incidents.plain_lines()[0]
    assert "health" not in first
    assert "GPU 5 lost: it no lo" in first


async def test_the_scale_of_vram_is_in_the_unit_of_its_value() -> None:
    async with showing(healthy()) as (app, pilot):
        look(app)
        await pilot.pause()
        row = next(line for line in board(app).gpu.plain_lines() if line.startswith("vram"))
        value, scale = int(row.split()[1]), int(row.split()[4])
    assert scale > 50, "not GiB beside per cent"
    assert scale <= value


async def test_an_incident_of_no_length_has_none() -> None:
    closed = replace(incident(9, "crash", "oom", "exit code 1"), open=False, closed_t=100.0, t=99.9, ending="given up")
    view = incident_view(closed, healthy())
    assert view.status.startswith("given up ")
    assert "0 s" not in view.status


async def test_an_average_that_was_nan_before_the_loss_is_no_second_trouble() -> None:
    average = replace(NAN, id=6, t=NAN.t - 9, step=92, reason="the average loss is not a number", average=True)
    async with showing(with_incidents(healthy(), average, NAN)) as (app, _):
        assert "Loss is NaN since step 92 · " in head(app)
        assert "(+" not in head(app)


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


async def test_the_pane_of_memory_processor_and_disk_is_that_of_the_machine() -> None:
    async with showing(healthy(), size=(120, 40)) as (app, _):
        assert str(board(app).memory.border_title).strip() == "machine"
        assert "disk" in "\n".join(board(app).memory.plain_lines())
