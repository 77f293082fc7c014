"""A headless Chromium that a test drives by its debugging protocol: a page, keys, a picture, what a web socket says."""

import asyncio
import base64
import itertools
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
    "--window-size=1280,800",
)  # fmt: skip
PATIENCE_S = 60.0


class Page:
    """The one page of the browser. ``heard``: what its web sockets have received, as text."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.heard = ""

    async def listen(self) -> None:
        """Take messages until the browser ends."""
        async for message in self._socket:
            found = message.json()
            if found.get("method") == "Network.webSocketFrameReceived":
                self.heard += _text(found["params"]["response"])
            waiting = self._replies.pop(found.get("id", 0), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(found.get("result", {}))

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command of the protocol, and its result."""
        number = next(self._numbers)
        self._replies[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        return await asyncio.wait_for(self._replies[number], PATIENCE_S)

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return (await self.call("Runtime.evaluate", expression=expression))["result"].get("value")

    async def press(self, key: str) -> None:
        """One key with a letter or digit on it."""
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def picture(self) -> bytes:
        """What the page shows, as PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])

    async def hears(self, *words: str) -> None:
        """Wait until the web sockets have said all of these, and forget what they said."""
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while not all(word in self.heard for word in words):
            assert asyncio.get_running_loop().time() < end, (words, self.heard[-2000:])
            await asyncio.sleep(0.05)
        self.heard = ""


def _text(frame: dict[str, Any]) -> str:
    data = str(frame["payloadData"])
    return base64.b64decode(data).decode("utf-8", "replace") if frame["opcode"] == 2 else data  # 2: binary


def _started(profile: Path) -> subprocess.Popen[bytes]:
    assert CHROMIUM is not None
    command = [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Page]:
    """Chromium with an empty profile in that folder."""
    import aiohttp

    process = _started(profile)
    try:
        said = profile / "DevToolsActivePort"
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while not said.exists() or "\n" not in said.read_text():
            assert asyncio.get_running_loop().time() < end, "Chromium opens no port"
            await asyncio.sleep(0.05)
        base = f"http://127.0.0.1:{said.read_text().split()[0]}"
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{base}/json/list") as answer:
                pages = [page for page in await answer.json() if page["type"] == "page"]
            async with client.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                listening = asyncio.create_task(page.listen())
                for domain in ("Page", "Network", "Runtime"):
                    await page.call(f"{domain}.enable")
                yield page
                listening.cancel()
    finally:
        process.terminate()
        process.wait(20)
