"""The screen in a real browser, on a real run: it is drawn, it takes keys, and the token stands in no address."""

import asyncio
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.browser import CHROMIUM, browser
from tests.fakes.e2e_world import World
from tests.tiers import SECOND_TIER

pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")
Image = pytest.importorskip("PIL.Image")

pytestmark = [SECOND_TIER, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")]


def drawn(picture: bytes) -> int:
    """Pixels that are lighter than the background: letters, lines and bars."""
    image = Image.open(io.BytesIO(picture)).convert("L")
    return sum(count for level, count in enumerate(image.histogram()) if level > 60)


def test_screen_in_a_browser_is_drawn_and_takes_keys(world: World, tmp_path: Path) -> None:
    world.write("--steps", "5000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    command = [sys.executable, "-m", "trainwatch", "serve", "--read-only", "--port", "0"]
    env = {**os.environ, **world.env}
    server = subprocess.Popen(command, cwd=world.project, env=env, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = server.stdout.readline().strip()

    async def person() -> None:
        async with browser(tmp_path / "profile") as page:
            await page.call("Page.navigate", url=address)
            await page.hears("Training", "checkpoints", "attempt 1")
            await asyncio.sleep(1.0)  # the browser draws what it heard
            dashboard = await page.picture()
            assert drawn(dashboard) > 10_000
            assert await page.evaluate("document.querySelector('.xterm-text-layer').width") > 1000
            assert address.rpartition("/")[2] not in await page.evaluate("location.href")
            await page.press("7")
            await page.hears("metrics", "zoom")
            await asyncio.sleep(1.0)
            metrics = await page.picture()
            assert drawn(metrics) > 5_000
            assert metrics != dashboard

    try:
        asyncio.run(person())
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
        server.stdout.close()
