"""``trainwatch hosts``: the other machines, whether they answer, and a copy of trainwatch for one that has none."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from trainwatch import __version__
from trainwatch.core.app.errors import CliError, ExitCode

from ..operation import confirm
from ..output import print_json, printable

if TYPE_CHECKING:
    from trainwatch.core.model.host import Host

HELP = "other machines: which answer, and put trainwatch there"
DESCRIPTION = (
    "Lists the machines of [hosts.NAME] and asks each for its trainwatch. `install NAME` puts a copy of this one into "
    "a folder of its own there (asks; needs Python 3.11 there), `remove NAME` takes that folder away again. "
    "`trainwatch --on NAME VERB` runs a verb there, `trainwatch --on NAME` opens the screen "
    "there, `trainwatch runs --on all` lists the runs of all."
)
EXAMPLE = "install box1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("part", nargs="?", choices=("list", "install", "remove"), default="list", help="default: list")
    parser.add_argument("name", nargs="?", help="the host")
    parser.add_argument("--json", action="store_true", help='one JSON object: {"hosts": […]}')
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def act(args: argparse.Namespace) -> int:
    """1 if a host that was named on the command line does not answer."""
    from trainwatch.core.app.hosts.known_hosts import all_hosts, host_named

    may_ask = sys.stdin.isatty() and sys.stderr.isatty()
    if args.part == "list":
        hosts = all_hosts() if args.name is None else {args.name: host_named(args.name)}
        return _list(hosts, may_ask=may_ask and args.name is not None, as_json=args.json, named=args.name is not None)
    if args.name is None:
        raise CliError(ExitCode.USAGE, f"which host? trainwatch hosts {args.part} NAME")
    host = host_named(args.name)
    from trainwatch.core.app.hosts.own_copy import put_there, remove_there, shown_folder, why_not

    question = why_not(host, may_ask=may_ask) if args.part == "install" else f"remove {shown_folder()} on {host.name}"
    if not args.yes:
        if not sys.stdin.isatty():
            raise CliError(ExitCode.USAGE, f"{question}: there is no terminal to ask on; add --yes if that is meant")
        confirm(f"{question}?")
    print(put_there(host, may_ask=may_ask) if args.part == "install" else remove_there(host, may_ask=may_ask))
    return ExitCode.DONE


def _list(hosts: "dict[str, Host]", *, may_ask: bool, as_json: bool, named: bool) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from trainwatch.core.app.hosts.known_hosts import NONE_KNOWN
    from trainwatch.core.views.columns import text_rows
    from trainwatch.core.views.printed_lists import HOSTS

    with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as threads:
        rows = list(threads.map(lambda host: _row(host, may_ask=may_ask), hosts.values()))
    if as_json:
        print_json({"hosts": rows, "version": __version__})
    elif not rows:
        print(NONE_KNOWN)
    else:
        other = [row | {"trouble": row["trouble"] or _differs(row["version"])} for row in rows]
        for line in text_rows(HOSTS, other):
            print(printable(line))
    return ExitCode.FAILED if named and rows[0]["trouble"] else ExitCode.DONE


def _differs(version: str | None) -> str:
    return "" if version == __version__ else f"this machine has {__version__}"


def _row(host: "Host", *, may_ask: bool) -> dict[str, Any]:
    from trainwatch.core.app.hosts.run_there import look, missing_there

    told = {"name": host.name, "ssh": host.ssh, "reached": False, "version": None, "path": None, "trouble": None}
    try:
        found = look(host, may_ask=may_ask)
    except CliError as error:
        return told | {"trouble": str(error).removeprefix(f"{host.name}: ")}
    trouble = None if found.version else missing_there(host).removeprefix(f"{host.name}: ")
    return told | {"reached": True, "version": found.version or None, "path": found.path or None, "trouble": trouble}
