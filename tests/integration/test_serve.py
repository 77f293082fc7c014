"""The screen in a browser: nothing without the token, and the same screens with it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.fakes.e2e_world import World, until
from tests.tiers import SECOND_TIER

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

from trainwatch.cli.web import TokenServer  # noqa: E402

TOKEN = "a-token-of-this-test"


def asked(requests: Callable[[Any, str], Awaitable[None]]) -> None:
    """Let ``requests`` ask a gate that listens on a free port of loopback."""

    async def ask() -> None:
        from aiohttp import web

        runner = web.AppRunner(await TokenServer(("false",), TOKEN, "luca <1>").application(), shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            jar = aiohttp.CookieJar(unsafe=True)
            async with aiohttp.ClientSession(cookie_jar=jar) as client:
                await requests(client, f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()

    asyncio.run(asyncio.wait_for(ask(), 30))


def test_without_the_token_nothing_is_served() -> None:
    async def requests(client: Any, base: str) -> None:
        for path in (
            "/",
            "/ws",
            "/static/js/textual.js",
            "/static/",
            "/nothing",
            "/open/",
            "/open/x",
            f"/open/{TOKEN}x",
        ):
            async with client.get(base + path, allow_redirects=False) as answer:
                assert answer.status == 401, path
                assert TOKEN not in await answer.text()
        async with client.get(base, cookies={"trainwatch": "é"}) as answer:
            assert answer.status == 401

    asked(requests)


def test_with_the_token_the_page_opens_and_the_token_leaves_the_address() -> None:
    async def requests(client: Any, base: str) -> None:
        async with client.get(f"{base}/open/{TOKEN}") as answer:
            assert answer.status == 200
            folder = answer.url.path
            assert folder.startswith("/s/")
            text = await answer.text()
        assert "luca &lt;1&gt;" in text
        assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text, "as wide as a phone"
        assert f"{base.replace('http', 'ws')}{folder}ws" in text
        assert "https://" not in text, "nothing is asked of the internet"
        assert TOKEN not in text
        cookie = next(iter(client.cookie_jar))
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
        assert cookie["path"] == folder, "no other port of this host gets it"
        assert TOKEN not in cookie.value
        async with client.get(base, cookies={cookie.key: cookie.value}) as answer:
            assert answer.status == 401, "the cookie counts below its path only"
        for path in ("static/js/textual.js", "focus.js"):
            async with client.get(f"{base}{folder}{path}") as answer:
                assert answer.status == 200
                assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        async with client.get(f"{base}{folder}ws", headers={"Origin": "http://127.0.0.1:1"}) as answer:
            assert answer.status == 403, "a page of another site"
        async with client.get(base, headers={"Host": "a<b"}) as answer:
            assert answer.status == 400

    asked(requests)


async def screen_says(socket: Any, *words: str) -> str:
    """All that was drawn until the words were there."""
    seen = ""
    while not all(word in seen for word in words):
        message = await socket.receive(timeout=20)
        assert message.type in {aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT}, (message, seen[-500:])
        seen += message.data.decode("utf-8", "replace") if isinstance(message.data, bytes) else ""
    return seen


@pytest.fixture
def served(world: World) -> Iterator[tuple[World, str, psutil.Process]]:
    """A real run, and `trainwatch serve --read-only` on it."""
    world.write("--steps", "5000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    command = [sys.executable, "-m", "trainwatch", "serve", "--read-only", "--port", "0"]
    env = {**os.environ, **world.env}
    with subprocess.Popen(command, cwd=world.project, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield world, server.stdout.readline().strip(), psutil.Process(server.pid)
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) == 0


@SECOND_TIER
def test_a_read_only_screen_of_a_real_run_refuses_keys_that_act(served: tuple[World, str, psutil.Process]) -> None:
    world, address, server = served
    parts = urlsplit(address)
    assert parts.hostname == "127.0.0.1"

    async def look() -> None:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            async with client.get(address) as answer:
                assert answer.status == 200
                folder = answer.url.path
            async with client.ws_connect(
                f"ws://{parts.netloc}{folder}ws?width=99999999&height=30"
            ) as socket:  # drawn with 1000 columns
                drawn = await screen_says(socket, "Training", "leave")
                assert "kill" not in drawn
                await socket.send_json(["stdin", "K"])
                await socket.send_json(["stdin", "x"])
                await socket.send_json(["stdin", "3"])
                after = await screen_says(socket, "incidents")
                assert "would be lost" not in after
                assert "Cancel" not in after
                assert server.children(recursive=True)

    asyncio.run(look())
    assert world.status()["state"] == "running"
    until(lambda: not server.children(recursive=True) or None, "the screen to end with its page")
