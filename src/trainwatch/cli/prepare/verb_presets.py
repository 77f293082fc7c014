"""``trainwatch presets [list · show NAME]``: what trainwatch knows about frameworks."""

import argparse

from .definition_text import add_parts, named, print_list, print_one

HELP = "what trainwatch knows about frameworks"
DESCRIPTION = "Shows presets: what trainwatch knows about frameworks, shipped and your own."
EXAMPLE = "show kohya"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_parts(parser, "presets", "presets", "kohya")


def act(args: argparse.Namespace) -> int:
    """3 if there is none of that name."""
    from trainwatch.core.app.plan.definitions import presets_here

    known = presets_here()
    if args.part == "show":
        return print_one(named(known, args.name, "preset"), as_json=args.json)
    return print_list(known, args.verb, as_json=args.json)
