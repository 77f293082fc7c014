"""The files and folders of a trainer's source: where it saves the state of a training, which settings it reads."""

import ast
import os
import re
from collections.abc import Iterator

from ..model.checkpoint_files import is_other_file, is_temporary
from ..model.checkpoint_suffixes import has_checkpoint_suffix
from . import words
from .project import Site, called, constant, dotted, resolved, root_of
from .values import UNKNOWN, KnownValues

_NO_STATE = re.compile(
    r"image|fig|plot|sample|audio|video|json|yaml|config|csv|log|html|text|mkdir|makedirs", re.IGNORECASE
)
"""Names of calls that save something else than the state of a training."""


def saves(values: KnownValues) -> Iterator[tuple[str, Site]]:
    """The paths to which the state of a training is saved, with their unknown parts, and the calls that save."""
    for name, sites in values.calls.items():
        if not words.SAVES.search(name) or words.LOADS.search(name) or _NO_STATE.search(name):
            continue
        for site in sites:
            call = site.node
            assert isinstance(call, ast.Call)
            given = () if words.TRACKERS.search(dotted(call.func)) else call.args
            for value in (*given, *(each.value for each in call.keywords if given)):
                path = values.path(value, site.scope)
                last_part = "" if path is None else path.rpartition("/")[2]
                if path and (is_temporary(last_part) or not is_other_file(last_part)):
                    yield path, site


def saved_below(values: KnownValues, *, told_only: bool) -> tuple[str, str] | None:
    """The one folder that the state of a training is saved to, and the place that says so; None if it is not sure.

    What a library is told decides; ``told_only``: nothing else, because it saves elsewhere without. Else all that is
    saved must go below one known folder, and some of it again and again: what is saved once may be anything.
    """
    if "chdir" in values.calls or any("hydra" in module.aliases for module in values.project.modules):
        return None
    told: dict[str, str] = {}
    saved: dict[str, str] = {}
    again, looped = False, called_in_loops(values)
    looped |= {name for name, of in values.scopes.functions.items() if of[0].owner and not values.callers(of[0])}
    for site in (site for sites in values.calls.values() for site in sites):
        call = site.node
        assert isinstance(call, ast.Call)
        name, full = called(call), resolved(site.scope.module, call.func)
        if values.is_own(site) or words.TRACKERS.search(full) or full.startswith(words.CONFIG_LIBRARIES):
            continue
        by_library = root_of(call.func) in site.scope.module.aliases
        named = [k.value for k in call.keywords if k.arg in words.FOLDERS and by_library]
        named += call.args[:1] if words.SAVERS.search(name) else []
        by_state = words.SAVES_STATE.search(name) and not words.LOADS.search(name) and not _NO_STATE.search(name)
        if not (named or by_state) or values.happens(site) is False:
            continue
        given = named or [*call.args, *(each.value for each in call.keywords)]
        texts = [text for text in (values.of(each, site.scope) for each in given) if isinstance(text, str) and text]
        paths = [text for text in texts if "/" in text or has_checkpoint_suffix(text) or named]
        last_part = paths[-1].rpartition("/")[2] if paths else ""
        if not texts or (is_other_file(last_part) and not is_temporary(last_part)):
            continue
        (told if named else saved).setdefault(_folder(paths[0]) if len(paths) == 1 else ".", site.place)
        again |= bool(site.loops) or site.scope.name in looped
    found = {each: place for each, place in told.items() if each != "."} or (saved if again and not told_only else {})
    outer = [each for each in found if not any(each.startswith(f"{other}/") for other in found)]
    return (outer[0], found[outer[0]]) if len(outer) == 1 and outer[0].strip("./~") else None


def _folder(path: str) -> str:
    """The folder that a path is, or is in; ``.`` if it is not known, or may be another one in each launch."""
    known, cut, rest = path.replace("{", UNKNOWN).partition(UNKNOWN)
    if not cut and not has_checkpoint_suffix(known):
        return os.path.normpath(known)
    folder, _, begun = known.rpartition("/")
    part, slash, _ = f"{begun}{rest}".partition("/")
    numbered = not slash or words.STEPS.search(part) or words.CHECKPOINT.search(part)
    return os.path.normpath(folder or ("/" if known.startswith("/") else ".")) if numbered else "."


def called_in_loops(values: KnownValues) -> set[str]:
    """The names of the functions that are called in a loop, also by others."""
    calls = {name: filter(values.is_own, values.calls.get(name, ())) for name in values.scopes.functions}
    sites = {name: [*of, *values.handed.get(name, ())] for name, of in calls.items()}
    found = {name for name, of in sites.items() if any(site.loops for site in of)}
    while more := {name for name, of in sites.items() for site in of if site.scope.name in found} - found:
        found |= more
    return found


def opened(values: KnownValues) -> tuple[str, ...]:
    """The files of settings that it reads and does not write, by their paths, as far as these are known."""
    found: dict[str, bool] = {}
    for site in (site for name in ("open", "read_text", "read_bytes", "load") for site in values.calls.get(name, ())):
        call = site.node
        assert isinstance(call, ast.Call)
        by_path = isinstance(call.func, ast.Attribute) and root_of(call.func) not in site.scope.module.aliases
        given = [call.func.value, *call.args] if by_path and isinstance(call.func, ast.Attribute) else call.args
        path = values.path(given[0], site.scope) if given else None
        if path and UNKNOWN not in path and path.endswith(words.SETTINGS_FILES) and values.happens(site) is not False:
            mode = constant(given[1]) if len(given) > 1 else "r"
            found[path] = found.get(path, True) and str(mode).startswith("r")
    return tuple(path for path, is_read in found.items() if is_read)
