"""``trainwatch profiles [list · show NAME · diff A B]``: bundles of training settings."""

import argparse
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import ExitCode

from ..output import print_json
from .definition_text import add_part, add_parts, named, print_list, print_one

if TYPE_CHECKING:
    from trainwatch.core.model.shipped.profile import Profile

HELP = "bundles of training settings"
DESCRIPTION = "Shows profiles: bundles of training settings, shipped and your own."
EXAMPLE = "show balanced"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parts = add_parts(parser, "profiles", "profiles", "balanced")
    diff = add_part(parts, "diff", "how two profiles differ", "profiles diff balanced aggressive")
    diff.add_argument("a", help="name of a profile")
    diff.add_argument("b", help="name of another one")


def act(args: argparse.Namespace) -> int:
    """3 if there is none of that name."""
    from trainwatch.core.app.plan.definitions import profiles_here

    known = profiles_here()
    match args.part:
        case "show":
            return print_one(named(known, args.name, "profile"), as_json=args.json)
        case "diff":
            return _diff(named(known, args.a, "profile"), named(known, args.b, "profile"), as_json=args.json)
        case _:
            return print_list(known, args.verb, as_json=args.json)


def _diff(a: "Profile", b: "Profile", *, as_json: bool) -> int:
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
