"""Draws docs/screens/*.svg, every screen in its states and sizes, and docs/screens.md: python docs/make_screens.py."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "screens"
GALLERY = ROOT / "docs" / "screens.md"
SIZES = ((80, 24), (120, 40), (200, 50))
SCENES = {
    "empty": "Before the first start",
    "healthy": "Training",
    "busy": "Training on eight GPUs",
    "hung": "A suspected hang",
    "finished": "Finished",
}
PLACES: dict[str, tuple[str, tuple[str, ...], Callable[[Any], bool]]] = {
    "incidents": ("Incidents (key 3)", ("3",), lambda s: not s.evidence.display or s.evidence_spreads is not None),
    "stacks": ("Two stack dumps of a stuck process (s on an incident)", ("3", "s"), lambda s: bool(s.pages)),
    "checkpoints": ("Checkpoints (key 4)", ("4", "down", "s"), lambda s: s.state.report is not None),
    "samples": ("Sample images (key i)", ("i",), lambda s: s.fits),
    "profiles": ("Profiles (key 5)", ("5", "down"), lambda s: bool(s.changes) and bool(s.trials)),
    "runs": ("Runs (key 6)", ("6",), lambda s: bool(s.cards)),
    "metrics": ("Metrics (key 7)", ("7",), lambda s: s.data.is_read and bool(s.charts[0].curves)),
    "launch": ("Starting a run (key l)", ("l",), lambda s: s.inquiry.checked),
}
SAVED = {
    "away": "Somebody comes back (or key m)",
    "card": "The card of an incident (key e)",
    "comparison": "Two runs compared (d on the list of runs)",
}
"""Saved from real runs of a small trainer that crashed and hung; not drawn here."""
SAVED_SIZES = ((80, 24), (120, 40))
PLACE_SIZES = ((80, 24), (200, 50))
PHONE = (45, 30)
PHONE_PLACES = frozenset({"metrics", "incidents", "checkpoints", "profiles", "samples", "launch", "runs"})


async def draw(
    situation: Any, size: tuple[int, int], path: Path, keys: tuple[str, ...], drawn: Callable[..., bool]
) -> None:
    """One picture, after ``keys`` and once ``drawn`` is true of the screen in front."""
    from tests.fakes.feed import FakePicker, FakeStarter
    from tests.fakes.launcher import FakeLauncher
    from tests.fakes.pictures import PaintedFolder
    from tests.fakes.screen_jobs import rich_run
    from tests.fakes.trials import MEASURED, FakeTrials
    from trainwatch.tui.app import TrainwatchApp

    with tempfile.TemporaryDirectory() as folder:
        samples = PaintedFolder(Path(folder), situation.now_wall)
        trials = FakeTrials(results={MEASURED.profile: MEASURED})
        app = TrainwatchApp(
            rich_run(situation, samples=samples, trials=trials), starter=FakeStarter(),
            picker=FakePicker(), launcher=FakeLauncher(), interval_s=0,
        )  # fmt: skip
        await take_picture(app, size, path, keys, drawn)


async def take_picture(
    app: Any, size: tuple[int, int], path: Path, keys: tuple[str, ...], drawn: Callable[..., bool]
) -> None:
    """Press, wait, save."""
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert app.dashboard is not None
        app.dashboard.look()
        for key in keys:
            await pilot.press(key)
        deadline = time.monotonic() + 20
        while not drawn(app.screen):
            assert time.monotonic() < deadline, path
            await pilot.pause(0.02)
        await pilot.pause()
        path.write_text(app.export_screenshot(title=f"trainwatch · {size[0]}×{size[1]}"))
    sys.stdout.write(f"{path.relative_to(ROOT)}\n")


async def draw_all() -> None:
    """All of them, and the page that shows them."""
    from real_machine import draw_machine

    from tests.fakes.feed import SCENES as SITUATIONS
    from tests.fakes.screen_jobs import troubled

    OUT.mkdir(exist_ok=True)
    page = ["# The screens", "", "Drawn by `python docs/make_screens.py`; numbers are columns × rows.", ""]
    for scene, title in SCENES.items():
        sizes = (*SIZES, PHONE) if scene == "hung" else SIZES
        for size in sizes:
            await draw(SITUATIONS[scene](), size, OUT / f"{scene}-{size[0]}x{size[1]}.svg", (), lambda _: True)
        page += section(f"Dashboard: {title}", scene, sizes)
    for place, (title, keys, drawn) in PLACES.items():
        sizes = (*PLACE_SIZES, PHONE) if place in PHONE_PLACES else PLACE_SIZES
        for size in sizes:
            await draw(troubled(), size, OUT / f"{place}-{size[0]}x{size[1]}.svg", keys, drawn)
        page += section(title, place, sizes)
    page += await draw_machine(OUT, section)
    for name, title in SAVED.items():
        page += section(title, name, SAVED_SIZES)
    GALLERY.write_text("\n".join(page).rstrip() + "\n")


def section(title: str, name: str, sizes: tuple[tuple[int, int], ...]) -> list[str]:
    """A heading and its pictures."""
    pictures = [f"![{title}, {w}×{h}](screens/{name}-{w}x{h}.svg)" for w, h in sizes]
    return [f"## {title}", "", *(line for picture in pictures for line in (picture, ""))]


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    sys.path.insert(0, str(ROOT))
    asyncio.run(draw_all())
