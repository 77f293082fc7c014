"""Other machines: ``[hosts.NAME]`` of the user's own file and of a project's trainwatch.toml."""

import re
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..model.run import Host
from .bounds import of_form
from .document import Document

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ONE_WORD = of_form(r"[^\s\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]*", 'must be one word for ssh ("user@box1"), not an option')


class HostTable(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of ``[hosts.NAME]``; see ``model.run.Host``."""

    ssh: Annotated[str, _ONE_WORD] = ""
    command: str = ""
    folder: str = ""


def hosts_in(path: Path, *, alone: bool) -> dict[str, Host]:
    """The hosts of a file; none if it does not exist. ``alone``: it must not have other keys.

    Raises ConfigError with all its problems.
    """
    if not path.exists():
        return {}
    document = Document.read(path)
    for key in document.data.keys() - {"hosts"} if alone else ():
        document.unknown_key((key,), ("hosts",))
    hosts = read_hosts(document, document.data.get("hosts", {}))
    document.finish()
    return hosts


def read_hosts(document: Document, value: Any) -> dict[str, Host]:
    """The valid hosts of a table ``hosts``. Problems are reported to the document."""
    hosts: dict[str, Host] = {}
    for name, entry in document.table(("hosts",), value).items():
        at = ("hosts", name)
        table = document.table(at, entry)
        good = document.struct_values(at, table, HostTable)
        if not _NAME.fullmatch(name):
            document.add(at, f'"{name}" is no name for a host: letters, digits, ".", "_" and "-"')
        elif name == "all":
            document.add(at, '"all" means all hosts after --on: another name')
        elif not table.get("ssh"):
            document.add(at, f'"{name}" needs "ssh": what `ssh` takes as destination, for example ssh = "user@{name}"')
        elif good.get("ssh"):
            hosts[name] = Host(name=name, **good)
    return hosts
