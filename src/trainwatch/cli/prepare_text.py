"""Checks and definitions as text or JSON."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode

from .output import print_json, printable
from .verb import add_part, add_parts

if TYPE_CHECKING:
    from trainwatch.core.app.preflight.check import Check
    from trainwatch.core.model.preset import Preset, Profile


MARKS = {"pass": "ok  ", "warn": "warn", "fail": "FAIL"}


def show_checks(checks: Sequence["Check"], *, as_json: bool) -> int:
    """Print the results. The exit code is 1 if a check failed."""
    failed = any(c.result == "fail" for c in checks)
    if as_json:
        print_json({"passed": not failed, "checks": checks})
        return ExitCode.FAILED if failed else ExitCode.DONE
    for check in checks:
        first, *more = check.found.splitlines() or [""]
        print(f"{MARKS[check.result]}  {check.name:14} {printable(first)}")
        for line in more:
            print(f"{'':21}{printable(line)}")
        if check.remedy and check.result != "pass":
            print(f"{'':21}-> {printable(check.remedy)}")
    return ExitCode.FAILED if failed else ExitCode.DONE


def add_list_and_show(parser: argparse.ArgumentParser, verb: str, example: str) -> Any:
    """Add ``list`` and ``show NAME``; without a part the verb lists. Returns what ``add_part`` adds others to.

    ``example``: a name.
    """
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parts = add_parts(parser, required=False)
    parser.set_defaults(part="list")
    add_part(parts, "list", f"all {verb}", f"{verb} list")
    show = add_part(parts, "show", f"one of the {verb}, as a TOML file would define it", f"{verb} show {example}")
    show.add_argument("name", help="which one (see list)")
    return parts


def print_list(known: "Mapping[str, Profile | Preset]", verb: str, *, as_json: bool) -> int:
    if as_json:
        import msgspec

        print_json({verb: [msgspec.to_builtins(item) for item in known.values()]})
        return ExitCode.DONE
    for item in known.values():
        print(f"{item.name:18} {item.title}")
    return ExitCode.DONE


def print_one(item: "Profile | Preset", *, as_json: bool) -> int:
    """As the TOML file that would define it."""
    if as_json:
        print_json(item)
        return ExitCode.DONE
    import msgspec
    from tomlkit import dumps

    filled = {key: value for key, value in msgspec.to_builtins(item).items() if value not in (None, "", (), [], {})}
    print(dumps(_without_none(filled)), end="")
    return ExitCode.DONE


def named(known: Mapping[str, Any], name: str, what: str) -> Any:
    """The definition of that name; ends the verb with exit code 3 if there is none."""
    if name not in known:
        raise CliError(ExitCode.NOT_FOUND, f'no {what} "{name}"; there are: {", ".join(known)}')
    return known[name]


def _without_none(value: Any) -> Any:
    """The value without keys that are None, which TOML cannot express."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return list(value) if isinstance(value, tuple) else value
