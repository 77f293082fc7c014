"""The page that holds the screen. textual-serve's own page asks a server on the internet for a font."""

import html

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


def page(title: str, socket: str) -> str:
    """The page. ``socket``: address of the WebSocket of the screen."""
    return PAGE.format(title=html.escape(title), socket=html.escape(socket), size=FONT_PX)
