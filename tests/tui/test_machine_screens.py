"""The GPU page (key 8) and the host page (key 9): at every size, by key, with and without GPUs."""

from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from tests.fakes.feed import FakePicker, healthy
from tests.fakes.screen_jobs import FakeDetails, machine_details, rich_run
from tests.tiers import SECOND_TIER, second
from tests.tui.conftest import look, until
from trainwatch.core.model.observation import GpuSample
from trainwatch.core.model.story import Situation
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.dialogs.dialog import Ask
from trainwatch.tui.screens.dashboard import Dashboard
from trainwatch.tui.screens.machine import GpuScreen, HostScreen

FIRST_SIZES = [(40, 10), (80, 24)]
SIZES = [
    *FIRST_SIZES,
    *(pytest.param(size, marks=SECOND_TIER) for size in ((45, 30), (120, 40), (200, 50), (300, 100))),
]


def app_of(now: Situation, **doors: Any) -> TrainwatchApp:
    return TrainwatchApp(rich_run(now, **doors), picker=FakePicker(now), interval_s=0, read_only=False)


async def opened(app: TrainwatchApp, pilot: Pilot[None], key: str) -> Any:
    """The page, with the details of one look."""
    await pilot.pause()
    look(app)
    await pilot.press(key)
    screen: Any = app.screen
    assert isinstance(screen, GpuScreen | HostScreen)
    if app.dashboard is not None:
        await until(pilot, lambda: screen.state.details.host is not None, "details")
    look(app)
    await pilot.pause()
    return screen


def said(screen: Any, *names: str) -> str:
    return "\n".join("\n".join(screen.panes[n].plain_lines()) for n in names or screen.panes if screen.panes[n].display)


def shown(screen: Any) -> list[str]:
    return [name for name in screen.order if screen.panes[name].display]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(
    ("key", "gpus"), [("8", 1), pytest.param("8", 8, marks=SECOND_TIER), ("8", 16), ("9", 1)], ids=str
)
async def test_every_pane_of_the_gpu_and_host_pages_is_reached_at_every_size(
    key: str, gpus: int, size: tuple[int, int]
) -> None:
    app = app_of(healthy(gpus))
    async with app.run_test(size=size) as pilot:
        screen = await opened(app, pilot, key)
        seen = set(shown(screen))
        for _ in screen.reachable() if key == "8" else screen.order:
            await pilot.press("tab")
            await pilot.pause()
            assert screen.state.focused in shown(screen)
            assert said(screen, screen.state.focused).strip()
            seen |= set(shown(screen))
        assert seen == set(screen.order[1:] if (key, gpus) == ("8", 1) else screen.order)


async def test_one_gpu_has_curves_with_axes_facts_and_processes() -> None:
    app = app_of(healthy())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, "8")
        text = said(screen, "gauges")
        assert any("⠀" < char <= "⣿" for char in text)
        for part in ("14.2 of 14.9 GiB", "291 W of 320 W", "100 % ┤", "15 GiB ┤", "320 W ┤", "fan  59 %"):
            assert part in text
        assert "0 uncorrected, 3 corrected" in said(screen, "facts")
        rows = said(screen, "processes").splitlines()
        assert rows[0].split()[:4] == ["GPU", "pid", "whose", "user"]
        assert "4202" in rows[1]
        assert "own" in rows[1]
        assert "14.2 GiB" in rows[1]
        assert "other" in rows[2]
        assert "14.9 GB" not in said(screen)


async def test_arrows_choose_a_gpu_and_its_charts_follow() -> None:
    app = app_of(healthy(gpus=8))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, "8")
        assert str(screen.gauges.border_title).startswith("GPU 0 ")
        await pilot.press("down")
        await pilot.press("down")
        await pilot.pause()
        assert str(screen.gauges.border_title).startswith("GPU 2 ")
        await pilot.press("left")
        await pilot.pause()
        assert str(screen.gauges.border_title).startswith("GPU 1 ")
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("8")
        await pilot.pause()
        again: Any = app.screen
        assert str(again.gauges.border_title).startswith("GPU 1 "), "the page is as it was left"


async def test_the_cursor_stays_on_its_process_when_the_order_changes() -> None:
    app = app_of(healthy())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, "9")
        screen.processes.move(1)
        chosen = screen.rows[screen.processes.cursor].pid
        details = screen.state.details
        tree = msgspec.structs.replace(details.tree, processes=details.tree.processes[::-1])
        screen.take_details(msgspec.structs.replace(details, tree=tree))
        screen.draw()
        assert screen.rows[0].pid == chosen
        assert screen.processes.cursor == 0
        await pilot.press("y")
        assert app.clipboard.startswith(f"{chosen} ")


async def test_processes_are_sorted_filtered_and_copied() -> None:
    app = app_of(healthy())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, "8")
        assert [row.pid for row in screen.rows] == [4202, 812]
        await pilot.press("o")
        assert [row.pid for row in screen.rows] == [4202]
        assert str(screen.processes.border_title) == "own processes · 1 · by memory"
        await pilot.press("s")
        await pilot.pause()
        assert "by GPU time" in str(screen.processes.border_title)
        await pilot.press("y")
        assert app.clipboard.startswith("4202 python train_network.py")


@pytest.mark.parametrize(
    ("key", "sought", "pids"), [second("8", "XORG", [812]), ("8", "^mira$", [4202]), second("9", "4207", [4207])]
)
async def test_processes_are_filtered_by_command_user_or_pid(key: str, sought: str, pids: list[int]) -> None:
    app = app_of(healthy())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, key)
        everything = [row.pid for row in screen.rows]
        assert len(everything) == 2
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press(
            *(("circumflex_accent" if c == "^" else "dollar_sign" if c == "$" else c) for c in sought), "enter"
        )
        await until(pilot, lambda: app.screen is screen)
        await pilot.pause()
        assert [row.pid for row in screen.rows] == pids
        listed = screen.panes["processes" if key == "8" else "tree"]
        assert f"with “{sought}”" in str(listed.border_title)
        screen.state.filter = "no such"
        screen.draw()
        assert "No process with “no such”" in said(screen, listed.id)
        await pilot.press("escape")
        assert [row.pid for row in screen.rows] == everything
        assert app.screen is screen


async def test_enter_on_the_gpu_pane_and_on_the_memory_pane_opens_the_pages_and_z_stays_zoom() -> None:
    app = app_of(healthy())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        look(app)
        dashboard = app.dashboard
        assert dashboard is not None
        for pane, page in (("gpu", GpuScreen), ("memory", HostScreen)):
            dashboard.focus_pane(pane)
            await pilot.press("z")
            await pilot.pause()
            assert isinstance(app.screen, Dashboard)
            assert dashboard.remembered.whole
            await pilot.press("z")
            await pilot.press("enter")
            await until(pilot, lambda page=page: isinstance(app.screen, page), f"the page of {pane}")  # type: ignore[misc]
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, Dashboard))


async def test_without_a_gpu_the_page_says_why_and_offers_no_dead_key() -> None:
    now = msgspec.structs.replace(
        healthy(), gpu=GpuSample(t=healthy().now_t, trouble="No NVIDIA GPU seen: no driver is installed")
    )
    app = app_of(now)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(app, pilot, "8")
        assert "No NVIDIA GPU seen: no driver is installed" in said(screen, "gauges")
        assert shown(screen) == ["gauges"]
        assert [key.key for key in screen.offered()] == ["question_mark", "escape"]
        for key in ("down", "left", "tab", "z", "s", "o", "y", "left_square_bracket"):
            await pilot.press(key)
        await pilot.pause()
        assert app.is_running


async def test_in_a_container_it_is_unknown_which_processes_are_own() -> None:
    now = healthy()
    details = machine_details(now)
    assert details.gpus is not None
    foreign = tuple(msgspec.structs.replace(p, own=None, user=None, command=None) for p in details.gpus.processes or ())
    app = app_of(
        now,
        details=FakeDetails(
            msgspec.structs.replace(details, gpus=msgspec.structs.replace(details.gpus, processes=foreign))
        ),
    )
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, "8")
        assert "–" in said(screen, "processes").splitlines()[1]
        await pilot.press("o")
        await pilot.pause()
        assert "Not known" in said(screen, "processes")


async def test_the_host_page_shows_devices_and_the_tree() -> None:
    app = app_of(healthy())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, "9")
        found = said(screen, "facts")
        assert "4, the busiest 96 %" in found
        assert "120 MB/s read" in found
        tree = said(screen, "tree").splitlines()
        assert "blocked" in tree[2]
        await pilot.press("s")
        await pilot.press("s")
        await pilot.pause()
        assert "by RAM" in str(screen.processes.border_title)
        assert "backup" not in said(screen, "tree")
        await pilot.press("o")
        await pilot.pause()
        assert [row.pid for row in screen.rows] == [77, 4202, 4207]


async def test_details_are_asked_for_only_while_a_page_is_open() -> None:
    details = FakeDetails(machine_details(healthy()))
    app = app_of(healthy(), details=details)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        look(app)
        assert details.looks == 0
        await opened(app, pilot, "8")
        before = details.looks
        assert before
        await pilot.press("escape")
        look(app)
        await pilot.pause()
        assert details.looks == before


def with_gpu(now: Situation, **changes: dict[str, Any]) -> Situation:
    """``gpu5={"temp_c": 99.0}``: other values of the GPU 5."""
    assert now.gpu is not None
    gpus = [msgspec.structs.replace(gpu, **changes.get(f"gpu{gpu.index}", {})) for gpu in now.gpu.gpus]
    return msgspec.structs.replace(now, gpu=msgspec.structs.replace(now.gpu, gpus=tuple(gpus)))


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({}, 0),
        ({"gpu5": {"temp_c": 99.0, "own": True}}, 5),
        ({"gpu3": {"trouble": "does not answer", "own": False}}, 3),
        ({"gpu2": {"temp_c": 99.0, "own": False}, "gpu5": {"temp_c": 84.0, "own": True}}, 5),
        ({"gpu5": {"temp_c": 84.0, "own": True}, "gpu6": {"trouble": "does not answer", "own": None}}, 6),
    ],
)
async def test_the_page_of_gpus_opens_on_the_worst_one(changes: dict[str, Any], first: int) -> None:
    app = app_of(with_gpu(healthy(gpus=8), **changes))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, "8")
        assert str(screen.gauges.border_title).startswith(f"GPU {first} ")
        assert screen.table.cursor == first


async def test_a_fact_that_is_longer_than_its_row_goes_on_in_the_next_one() -> None:
    app = app_of(healthy())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot, "9")
        facts = " ".join(said(screen, "facts").split())
    assert "nvme0n1 120 MB/s read, 2.00 MB/s written, busy 40 %" in facts
