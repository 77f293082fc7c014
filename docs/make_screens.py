"""Draws docs/screens/*.svg, the dashboard in each state and size: python docs/make_screens.py."""

import asyncio
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "screens"
SIZES = ((80, 24), (120, 40), (200, 50))
SCENES = ("empty", "healthy", "busy", "hung", "finished")
PHONE = (45, 30)


async def draw(scene: str, size: tuple[int, int], path: Path) -> None:
    """One picture."""
    from tests.fakes.feed import SCENES as SITUATIONS
    from tests.fakes.feed import FakePicker, FakeReader, FakeStarter, open_run
    from trainwatch.tui.app import TrainwatchApp

    app = TrainwatchApp(
        open_run(SITUATIONS[scene]()), FakeReader(), starter=FakeStarter(), picker=FakePicker(), interval_s=0
    )
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert app.dashboard is not None
        app.dashboard.look()
        await pilot.pause()
        path.write_text(app.export_screenshot(title=f"trainwatch · {size[0]}×{size[1]}"))


async def draw_all() -> None:
    """All of them."""
    OUT.mkdir(exist_ok=True)
    for scene in SCENES:
        for size in (*SIZES, PHONE) if scene == "hung" else SIZES:
            path = OUT / f"{scene}-{size[0]}x{size[1]}.svg"
            await draw(scene, size, path)
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    sys.path.insert(0, str(ROOT))
    asyncio.run(draw_all())
