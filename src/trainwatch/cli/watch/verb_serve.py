"""``trainwatch serve``: the screen in a browser."""

import argparse
import sys
from pathlib import Path

from trainwatch.core.app.errors import CliError, ExitCode

from ..run_argument import RUN_HELP

HELP = "the screen in a browser, behind a token"
DESCRIPTION = (
    "Serves the screen to browsers of this machine and prints the address with its token. From elsewhere: "
    "ssh -L 8700:localhost:8700 HOST. Ctrl-C ends it; training and supervisor continue."
)
EXAMPLE = "--read-only"
PORT = 8700
MISSING = "the screen in a browser needs textual-serve: pip install 'trainwatch-tui[web]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help=RUN_HELP)
    parser.add_argument("--read-only", action="store_true", help="screens that can change nothing")
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"default: {PORT}; 0: any free one")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="keep the token in this file (default: a new one at each start)"
    )


def act(args: argparse.Namespace) -> int:
    """Serves until Ctrl-C; 1 if the port is taken."""
    import asyncio

    try:
        from .. import web_server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"aiohttp", "textual_serve"}:
            raise
        raise CliError(ExitCode.FAILED, MISSING) from None
    from trainwatch.core.app.runs.known_runs import find_run

    words = ["--run", find_run(args.run).id] if args.run else []
    words += ["--read-only"] if args.read_only else []
    token = web_server.token_in(args.token_file) if args.token_file is not None else web_server.new_token()
    title = f"trainwatch {args.run or ''}".strip()
    server = web_server.TokenServer(web_server.screen_command(words), token, title)
    web_server.use_browser_environment()
    try:
        asyncio.run(web_server.serve(server, args.port, token, _listening))
    except OSError as error:
        why = error.strerror or error
        raise CliError(ExitCode.FAILED, f"port {args.port}: {why}; choose another with --port") from None
    return ExitCode.DONE


def _listening(address: str) -> None:
    print(address, flush=True)
    print("Ctrl-C ends it; training and supervisor continue.", file=sys.stderr, flush=True)
