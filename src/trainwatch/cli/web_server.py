"""Serves the screen to browsers: textual-serve runs one screen for each, and a gate of ours stands before all of it.

textual-serve has no authentication, so none of it listens on a port: an application that refuses every request without
the token starts its screens. A browser gives cookies to every port of a host, and another user may listen on one: the
cookie is for a secret path only, and is not the token.
"""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import textual_serve
from aiohttp import WSMessage, WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from .web_page import FOCUS, page
from .web_token import derived, is_token

MOST_SCREENS = 8
"""Each open page is a process of about 60 MB."""
CLOSE_S = 3.0
"""How long a screen has to end after its page, and to take a key; then it is killed. Seconds."""
WIDEST, HIGHEST = 1000, 400
"""Cells of a screen: a larger one takes gigabytes."""
HEARTBEAT_S = 15.0
MESSAGE_BYTES = 1 << 20
COOKIE_S = 30 * 24 * 3600
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "font-src 'self' data:; connect-src 'self' ws: wss:; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    ),
}
COOKIE = "trainwatch"
OPEN = "/open/"
"""Before the token in the address."""
REFUSED = "trainwatch: open the address with its token, as `trainwatch serve` printed it.\n"
_HOST = re.compile(r"[\w.:\[\]-]+")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """``command``: what runs the screen. ``host`` and ``port`` 0: any free one. ``title``: of the page."""

    command: tuple[str, ...]
    host: str
    port: int
    token: str
    title: str


def application(serving: Serving) -> web.Application:
    """The gate and what is behind it."""
    gate = Gate(serving)

    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await gate.check(request, handler)

    app = web.Application(middlewares=[web.middleware(check)])
    app.add_routes(
        [
            each
            for folder in ("/", gate.folder)
            for each in (
                web.get(folder, gate.page),
                web.get(f"{folder}focus.js", _focus),
                web.get(f"{folder}ws", gate.screen),
                web.static(f"{folder}static", Path(textual_serve.__file__).parent / "static"),
            )
        ]
    )
    app.on_response_prepare.append(_add_headers)
    return app


class Gate:
    """Lets requests with the token through, and those with its cookie below ``folder``."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self.folder = f"/s/{derived(serving.token, 'path')}/"
        self._session = derived(serving.token, "cookie")
        self._screens = 0

    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The token comes with the address once, then as a cookie; programs send it as a bearer."""
        if not _HOST.fullmatch(request.host):
            return web.Response(status=400, text="A Host header with other characters than those of an address.\n")
        if request.path.startswith(OPEN):
            given = request.path.removeprefix(OPEN)
            if not is_token(given, self._serving.token):
                return web.Response(status=401, text=REFUSED)
            answer = web.Response(status=303, headers={"Location": self.folder})  # out of the address and the history
            answer.set_cookie(
                COOKIE,
                self._session,
                path=self.folder,
                max_age=COOKIE_S,
                httponly=True,
                samesite="Strict",
                secure=_scheme(request) == "https",
            )
            return answer
        kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
        by_cookie = request.path.startswith(self.folder) and is_token(request.cookies.get(COOKIE, ""), self._session)
        if not by_cookie and not (kind == "Bearer" and is_token(bearer, self._serving.token)):
            return web.Response(status=401, text=REFUSED)
        return await handler(request)

    async def page(self, request: web.Request) -> web.StreamResponse:
        secure = "s" if _scheme(request) == "https" else ""
        text = page(self._serving.title, f"ws{secure}://{request.host}{request.path}ws")
        return web.Response(text=text, content_type="text/html")

    async def screen(self, request: web.Request) -> web.StreamResponse:
        """A screen of its own for this page. Pages of other sites cannot open one."""
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            return web.Response(status=403, text="This page belongs to another site.\n")
        if self._screens >= MOST_SCREENS:
            return web.Response(status=503, text=f"{MOST_SCREENS} screens are open already: close one.\n")
        self._screens += 1
        try:
            return await _show_screen(request, self._serving.command)
        finally:
            self._screens -= 1


async def _show_screen(request: web.Request, command: Sequence[str]) -> web.StreamResponse:
    socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MESSAGE_BYTES)
    await socket.prepare(request)

    async def close() -> None:
        await socket.close()

    screen = Screen(
        f"exec {shlex.join(command)}",
        write_bytes=socket.send_bytes,
        write_str=socket.send_str,
        close=close,
        download_manager=DownloadManager(),
    )
    try:
        await screen.start(*bounded(request.query.get("width"), request.query.get("height")))
        async for message in socket:
            async with asyncio.timeout(CLOSE_S):
                await screen.take(message, socket)
    except (TimeoutError, ConnectionResetError):
        await socket.close()
    finally:
        await screen.end()
    return socket


class Screen(AppService):
    """The screen of one page: of a bounded size, and ended with it."""

    async def take(self, message: WSMessage, socket: web.WebSocketResponse) -> None:
        """Take a message of the page; what is none is left out."""
        try:
            said = message.json() if message.type is WSMsgType.TEXT else None
        except (ValueError, RecursionError):
            said = None
        match said:
            case ["stdin", str(keys)]:
                await self.send_bytes(keys.encode("utf-8", "replace"))
            case ["resize", {"width": width, "height": height}]:
                await self.set_terminal_size(*bounded(width, height))
            case ["ping", data]:
                await socket.send_json(["pong", data])
            case ["blur" | "focus" as kind, *_]:
                await self.send_meta({"type": kind})
            case _:
                pass

    async def end(self) -> None:
        """Ask it to end, and kill it if it has not after CLOSE_S."""
        process = self._process
        if process is None:
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.stop()
                await process.wait()
        except (TimeoutError, ConnectionError):
            pass
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def bounded(width: Any, height: Any) -> tuple[int, int]:
    """Columns and rows as a page gives them; 80 and 24 for what is no number."""
    return _bounded(width, 80, WIDEST), _bounded(height, 24, HIGHEST)


def _bounded(value: Any, usual: int, most: int) -> int:
    try:
        return min(max(int(value), 1), most)
    except (TypeError, ValueError, OverflowError):
        return usual


async def serve(serving: Serving, listening: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. ``listening`` is called with the address and its token. Raises OSError."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    runner = web.AppRunner(application(serving), access_log=None, shutdown_timeout=CLOSE_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, serving.host, serving.port).start()
        port = runner.addresses[0][1]
        listening(f"http://{_bracketed(serving.host)}:{port}{OPEN}{quote(serving.token)}")
        await ended.wait()
    finally:
        await runner.cleanup()


def screen_command(words: Sequence[str]) -> tuple[str, ...]:
    """What runs the screen with these options, in this environment."""
    return (sys.executable, "-m", "trainwatch", *words)


def use_browser_environment() -> None:
    """The screens inherit this environment: it describes the terminal in the page, not the one of the server."""
    os.environ["TERM"] = "xterm-256color"
    for name in ("TMUX", "STY", "COLUMNS", "LINES", "NO_COLOR", "TRAINWATCH_IMAGES"):
        os.environ.pop(name, None)
    if "utf" not in (os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "").lower():
        os.environ["LC_ALL"] = "C.UTF-8"


async def _focus(_: web.Request) -> web.StreamResponse:
    return web.Response(text=FOCUS, content_type="text/javascript")


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _scheme(request: web.Request) -> str:
    """What the browser uses; a proxy with TLS in front says so."""
    scheme: str = request.headers.get("X-Forwarded-Proto", request.scheme)
    return scheme


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
