"""``trainwatch profiles`` and ``trainwatch presets``: what is shipped, and what this project adds."""

import argparse
from typing import Any

import msgspec

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import here
from trainwatch.core.model.profile import Preset, Profile

from .output import print_json


def add(subparsers: Any) -> None:
    """Register both."""
    for name, what in (
        ("profiles", "bundles of training settings"),
        ("presets", "what trainwatch knows about frameworks"),
    ):
        parser = subparsers.add_parser(
            name,
            help=what,
            description=f"Shows {what}, shipped and your own.",
            epilog=f"example: trainwatch {name} show " + ("balanced" if name == "profiles" else "kohya"),
        )
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.set_defaults(act=act, part="list")
        parts = parser.add_subparsers(title="parts", metavar="PART", dest="part")
        shared = argparse.ArgumentParser(add_help=False)
        shared.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object")
        parts.add_parser("list", parents=[shared], help="all of them")
        show = parts.add_parser("show", parents=[shared], help="one of them")
        show.add_argument("name")
        if name == "profiles":
            diff = parts.add_parser("diff", parents=[shared], help="what differs between two")
            diff.add_argument("a")
            diff.add_argument("b")


def act(args: argparse.Namespace) -> int:
    """Print; 3 when there is none of that name."""
    known = _known(args.verb)
    if args.part == "show":
        return _show(_named(known, args.name, args.verb), as_json=args.json)
    if args.part == "diff":
        return _diff(_named(known, args.a, args.verb), _named(known, args.b, args.verb), as_json=args.json)
    if args.json:
        print_json({args.verb: [msgspec.to_builtins(x) for x in known.values()]})
        return ExitCode.DONE
    for item in known.values():
        print(f"{item.name:18} {item.title}")
    return ExitCode.DONE


def _known(verb: str) -> dict[str, Any]:
    from trainwatch.core.config.problem import ConfigError
    from trainwatch.core.config.project import FILE_NAME, find_project
    from trainwatch.core.config.shipped import load_presets, load_profiles

    project = find_project(here())
    load = load_presets if verb == "presets" else load_profiles
    try:
        return dict(load(project or here() / FILE_NAME))
    except ConfigError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None


def _named(known: dict[str, Any], name: str, verb: str) -> Any:
    if name not in known:
        raise CliError(ExitCode.NOT_FOUND, f'no {verb[:-1]} "{name}"; there are: {", ".join(known)}')
    return known[name]


def _show(item: Profile | Preset, *, as_json: bool) -> int:
    if as_json:
        print_json(item)
        return ExitCode.DONE
    from tomlkit import dumps

    filled = {key: value for key, value in msgspec.to_builtins(item).items() if value not in (None, "", (), [], {})}
    print(dumps(_without_none(filled)), end="")  # as a file of one's own would say it
    return ExitCode.DONE


def _diff(a: Profile, b: Profile, *, as_json: bool) -> int:
    keys = sorted({*a.settings, *b.settings})
    changes = {
        key: {"a": a.settings.get(key), "b": b.settings.get(key)}
        for key in keys
        if a.settings.get(key) != b.settings.get(key)
    }
    if as_json:
        print_json({"a": a.name, "b": b.name, "changes": changes})
        return ExitCode.DONE
    for key, values in changes.items():
        print(f"{key:34} {a.name} {values['a']!r:12} {b.name} {values['b']!r}")
    if not changes:
        print(f"{a.name} and {b.name} set the same")
    return ExitCode.DONE


def _without_none(value: Any) -> Any:
    """TOML has no null."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return list(value) if isinstance(value, tuple) else value
