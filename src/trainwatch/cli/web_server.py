"""Serves the screen to browsers: textual-serve runs one screen for each, and a gate of ours stands before all of it.

textual-serve has no authentication, so none of it listens on a port: its handlers are called by an application that
refuses every request without the token.
"""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from aiohttp import web
from textual_serve.server import Server

from .web_page import FOCUS, page
from .web_token import is_token

MOST_SCREENS = 8
"""Each open page is a process of about 60 MB."""
CLOSE_S = 3.0
"""How long the screens have to close when the server ends, seconds."""
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
    # By public names of textual-serve: the WebSocket and the files of its page.
    behind = Server(f"exec {shlex.join(serving.command)}", host=serving.host, port=serving.port, title=serving.title)
    gate = Gate(serving, behind)

    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await gate.check(request, handler)

    app = web.Application(middlewares=[web.middleware(check)])
    app.add_routes(
        [
            web.get("/", gate.page),
            web.get("/focus.js", _focus),
            web.get("/ws", gate.screen),
            web.static("/static", behind.statics_path),
        ]
    )
    app.on_response_prepare.append(_add_headers)
    return app


class Gate:
    """Lets requests with the token through."""

    def __init__(self, serving: Serving, behind: Any) -> None:
        self._serving, self._behind = serving, behind
        self._cookie = "trainwatch_token"
        self._screens = 0

    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The token comes with the address once, then as a cookie; programs send it as a bearer."""
        if not _HOST.fullmatch(request.host):
            return web.Response(status=400, text="A Host header with other characters than those of an address.\n")
        if request.path.startswith(OPEN):
            given = request.path.removeprefix(OPEN)
            if not is_token(given, self._serving.token):
                return web.Response(status=401, text=REFUSED)
            answer = web.Response(status=303, headers={"Location": "/"})  # out of the address and the history
            answer.set_cookie(
                self._cookie,
                given,
                max_age=COOKIE_S,
                httponly=True,
                samesite="Strict",
                secure=_scheme(request) == "https",
            )
            return answer
        kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
        shown = bearer if kind == "Bearer" else request.cookies.get(self._cookie, "")
        if not is_token(shown, self._serving.token):
            return web.Response(status=401, text=REFUSED)
        return await handler(request)

    async def page(self, request: web.Request) -> web.StreamResponse:
        secure = "s" if _scheme(request) == "https" else ""
        text = page(self._serving.title, f"ws{secure}://{request.host}/ws")
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
            answer: web.StreamResponse = await self._behind.handle_websocket(request)
        finally:
            self._screens -= 1
        return answer


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
