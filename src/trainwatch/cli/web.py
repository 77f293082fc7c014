"""``trainwatch serve``: the screen in a browser, by textual-serve on loopback, with a token before all of it.

textual-serve runs one screen for each page and has no authentication: a middleware refuses every request without the
token, and its routes are below a secret path. A browser gives cookies to every port of a host, and another user may
listen on one: the cookie is for that path only, and is not the token.
"""

import asyncio
import hmac
import html
import os
import re
import secrets
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote, urlsplit

from aiohttp import web
from textual_serve.server import Server

HOST = "127.0.0.1"
CLOSE_S = 3.0
"""How long a screen has to end after its page. Seconds."""
WIDEST, HIGHEST = 1000, 400
"""Cells of a screen: a larger one takes gigabytes."""
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
TOKEN_BYTES = 24
DERIVED = 32
_HOST = re.compile(r"[\w.:\[\]-]+")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/css/xterm.css">
<script src="static/js/textual.js"></script>
<script src="focus.js"></script>
<style>
html, body {{ height: 100%; margin: 0; background: #12161b; color: #c6ccd4; font-family: monospace; }}
.textual-terminal {{ height: 100vh; }}
.note {{ position: absolute; inset: 0; display: flex; align-items: center; justify-content: center; z-index: 10;
  background: #12161b; }}
.note a {{ color: #7cc4d4; }}
body.-first-byte .waiting, .ended, #start {{ display: none; }}
body.-closed .ended {{ display: flex; }}
</style>
</head>
<body>
<div class="note waiting intro-dialog"><div>Opening the screen …</div><span id="start"></span></div>
<div class="note ended closed-dialog"><div>The screen was closed. The training continues. <a href=".">Open it again</a>
</div></div>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="{size}"></div>
</body>
</html>
"""
FOCUS = """addEventListener("load", () => {
  const timer = setInterval(() => {
    const keys = document.querySelector(".xterm-helper-textarea");
    if (keys) { keys.focus(); clearInterval(timer); }
  }, 50);
});
"""
"""Keys reach the screen without a click."""
FONT_PX = 15

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TokenServer(Server):
    """Screens and page files of textual-serve behind a token. ``command``: of a screen. ``folder``: the secret path."""

    def __init__(self, command: Sequence[str], token: str, title: str) -> None:
        super().__init__(f"exec {shlex.join(command)}", title=title)
        self.folder = f"/s/{derived(token, 'path')}"
        self._token = token
        self._session = derived(token, "cookie")

    async def application(self) -> web.Application:
        """The page, its files and its screen below ``folder``, and the token before everything."""
        inside = web.Application()
        inside.add_routes(
            [
                web.get("/", self.handle_index),
                web.get("/ws", self.handle_websocket),
                web.get("/focus.js", _focus),
                web.static("/static", self.statics_path),
            ]
        )

        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._check(request, handler)

        outside = web.Application(middlewares=[web.middleware(check)])
        outside.add_subapp(self.folder, inside)
        outside.on_response_prepare.append(_add_headers)
        return outside

    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The token comes with the address once, then as a cookie below ``folder``. Other sites can open nothing."""
        if not _HOST.fullmatch(request.host):
            return web.Response(status=400, text="A Host header with other characters than those of an address.\n")
        if request.path.startswith(OPEN) and is_token(request.path.removeprefix(OPEN), self._token):
            answer = web.Response(status=303, headers={"Location": f"{self.folder}/"})  # out of the history
            answer.set_cookie(
                COOKIE,
                self._session,
                path=f"{self.folder}/",
                max_age=COOKIE_S,
                httponly=True,
                samesite="Strict",
                secure=_scheme(request) == "https",
            )
            return answer
        inside = request.path.startswith(f"{self.folder}/")
        if not inside or not is_token(request.cookies.get(COOKIE, ""), self._session):
            return web.Response(status=401, text=REFUSED)
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            return web.Response(status=403, text="This page belongs to another site.\n")
        return await handler(request)

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page. textual-serve's own asks a server on the internet for a font, and has one address only."""
        secure = "s" if _scheme(request) == "https" else ""
        socket = f"ws{secure}://{request.host}{request.path}ws"
        text = PAGE.format(title=html.escape(self.title), socket=html.escape(socket), size=FONT_PX)
        return web.Response(text=text, content_type="text/html")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A screen for this page, of a size that fits into memory."""
        size = {
            key: min(int(said), most)
            for key, most in (("width", WIDEST), ("height", HIGHEST))
            if (said := request.query.get(key, "")).isdecimal()
        }
        return await super().handle_websocket(request.clone(rel_url=request.rel_url.update_query(size)))


async def serve(server: TokenServer, port: int, token: str) -> None:
    """Serve until SIGINT or SIGTERM; port 0: any free one. Prints the address. Raises OSError."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    runner = web.AppRunner(await server.application(), access_log=None, shutdown_timeout=CLOSE_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        print(f"http://{HOST}:{runner.addresses[0][1]}{OPEN}{quote(token)}", flush=True)
        print("Ctrl-C ends it; training and supervisor continue.", file=sys.stderr, flush=True)
        await ended.wait()
    finally:
        await runner.cleanup()


def serve_screens(words: Sequence[str], port: int, title: str) -> None:
    """Serve screens with these options until Ctrl-C; prints the address. Raises OSError if the port is taken."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    server = TokenServer((sys.executable, "-m", "trainwatch", *words), token, title)
    # The screens inherit this environment: it describes the terminal in the page, not the one of the server.
    os.environ["TERM"] = "xterm-256color"
    for name in ("TMUX", "STY", "COLUMNS", "LINES", "NO_COLOR"):
        os.environ.pop(name, None)
    if "utf" not in (os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "").lower():
        os.environ["LC_ALL"] = "C.UTF-8"
    asyncio.run(serve(server, port, token))


async def _focus(_: web.Request) -> web.StreamResponse:
    return web.Response(text=FOCUS, content_type="text/javascript")


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _scheme(request: web.Request) -> str:
    """What the browser uses; a proxy with TLS in front says so."""
    scheme: str = request.headers.get("X-Forwarded-Proto", request.scheme)
    return scheme


def derived(token: str, use: str) -> str:
    """What only who knows the token can compute, for one use; the same after a restart with the same token."""
    return hmac.new(token.encode(), use.encode(), "sha256").hexdigest()[:DERIVED]


def is_token(given: str, token: str) -> bool:
    """Compared in the same time wherever they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
