"""What a script needs to start, what it refuses with a text of its own, and what a start deletes."""

import ast
import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..model.checkpoint_suffixes import has_checkpoint_suffix
from ..model.preset import Change, Imported, OwnEnd
from . import words
from .launch_target import Target
from .options import Option
from .places import called_in_loops, saves
from .project import Module, Project, Scope, Site, called, dotted, keyword, module_files, own_name, resolved, root_of
from .shell_text import Variables, assigned, commands_of, commands_run
from .values import (
    DEEPEST_CALLS,
    SAME_PATH,
    UNKNOWN,
    UNKNOWN_PART,
    KnownValues,
    all_names,
    beginnings,
    set_options,
    value_given,
    word_given,
)


def needed_imports(project: Project, target: Target) -> tuple[Imported, ...]:
    """The packages that a script cannot start without, each once; imports of the project itself are followed.

    Of a name only the first part is told. An import inside a function, a test or a ``try`` is not needed to start.
    """
    modules = {module.path: module for module in project.modules}
    found: dict[str, Imported] = {}
    waiting, seen = list(project.modules[:1]), set[Path]()
    while waiting:
        module = waiting.pop(0)
        if module.path in seen:
            continue
        seen.add(module.path)
        roots = (module.path.parent, *target.roots)
        for name, line in _at_load(module):
            own = [path for root in roots for path in module_files(name, (root,)) if path in modules]
            waiting += [modules[path] for path in own]
            top = name.partition(".")[0]
            if not own and not any((root / top).is_dir() or (root / f"{top}.py").is_file() for root in roots):
                found.setdefault(top, Imported(top, f"{module.shown}:{line}"))
    return tuple(found.values())


def _at_load(module: Module) -> Iterator[tuple[str, int]]:
    for node in module.tree.body:
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and node.module != "__future__":
            yield node.module, node.lineno


_STARTS = frozenset({"system", "popen", "run", "call", "check_call", "check_output", "getoutput", "Popen", "main"})
_INSTALLS = re.compile(r"\b(pip3?|uv|conda|mamba|apt(-get)?|poetry)\b.*\b(install|add|sync)\b|ensurepip", re.DOTALL)
_PATHS = re.compile(r"sys\.path\b|addsitedir|sys\.modules|sys\.meta_path|pkgutil\.extend_path")


def finds_modules_itself(project: Project) -> bool:
    """Whether it changes where Python looks for modules, or runs an installer; a message that names one is none."""
    return any(
        _PATHS.search(module.text)
        or any(called(call) in _STARTS and _INSTALLS.search(ast.unparse(call)) for call in module.calls)
        for module in project.modules
    )


def goes_on_without(project: Project, name: str) -> str | None:
    """The place (``train.py:41``) of a test whether the value ``name`` exists; None if none asks, or if one ends it.

    ``name``: the variable or attribute that holds the path (``args.resume`` is ``resume``). A test of a file below the
    path says nothing of what is loaded from it outside that test.
    """
    places, whole, inside, ends = list[str](), False, set[int](), False
    for module in project.modules:
        for node in module.nodes:
            if isinstance(node, ast.If | ast.IfExp) and (looks := _looks_for(node.test, name)):
                places.append(f"{module.shown}:{node.lineno}")
                whole |= any(own_name(each) == name for each in looks)
                inside |= {id(each) for each in ast.walk(node)}
                ends |= isinstance(node, ast.If) and any(map(_ends, ast.walk(node)))
    calls = (call for module in project.modules for call in module.calls if id(call) not in inside)
    loaded = not whole and any(words.LOADS.search(called(call)) and _names(call, name) for call in calls)
    return places[0] if places and not (ends or loaded) else None


def _looks_for(test: ast.expr, name: str) -> list[ast.expr]:
    """What a test asks for that has the value ``name`` in it, without a ``Path(…)`` or ``str(…)`` around it."""
    looks = (call for call in ast.walk(test) if isinstance(call, ast.Call) and called(call) in words.LOOKS)
    asked = [call.args[0] if call.args else getattr(call.func, "value", call.func) for call in looks]
    bare = (
        each.args[0] if isinstance(each, ast.Call) and called(each) in SAME_PATH and each.args else each
        for each in asked
    )
    return [each for each in bare if _names(each, name)]


def _names(node: ast.expr, name: str) -> bool:
    return any(own_name(each) == name for each in ast.walk(node))


_LEAVES = frozenset({"exit", "_exit", "error", "fail", "abort", "die", "quit"})
"""Calls that end the trainer."""


def _ends(node: ast.AST) -> bool:
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and called(node) in _LEAVES)


def own_ends(project: Project) -> tuple[OwnEnd, ...]:
    """The texts with which the project ends itself: ``sys.exit("no recipe")``, ``raise SystemExit(f"no {name}")``.

    None of an ``except``: what happened there is told by an exception, and the text is only its name.
    """
    found = (end for module in project.modules if "xit" in module.text for end in _own_ends(module, module.tree, ""))
    return tuple(dict.fromkeys(found))[:MOST_ENDS]


MOST_ENDS = 100
LONGEST_CODE = 400
_EXITS = frozenset({"sys.exit", "exit", "quit", "SystemExit"})
_FILLED = {"%": re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]"), "format": re.compile(r"\{[^{}]*\}")}
"""Placeholders of ``"no %s" % name`` and of ``"no {}".format(name)``."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def _own_ends(module: Module, node: ast.AST, code: str) -> Iterator[OwnEnd]:
    """``code``: the function, the tests and the statement around the node."""
    match node:
        case ast.ExceptHandler():
            return
        case ast.If(test=test) | ast.While(test=test):
            code = f"{code} {ast.unparse(test)}"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            code = name
        case ast.Expr() | ast.Raise():
            code = f"{code} {ast.unparse(node)}"
        case ast.Call(args=[text]) if resolved(module, node.func) in _EXITS:
            # its last line as what is written out of it, before, between and after what is filled in
            parts = tuple(re.split("\0+", _template(text).rstrip().rpartition("\n")[2]))
            if len(_WORD.findall(" ".join(parts))) > 1:
                yield OwnEnd(parts, code[:LONGEST_CODE], f"{module.shown}:{node.lineno}")
    for child in ast.iter_child_nodes(node):
        yield from _own_ends(module, child, code)


def _template(text: ast.expr) -> str:
    match text:
        case ast.Constant(value=str() as written):
            return written.replace("\0", "")
        case ast.JoinedStr(values=values):
            return "".join(_template(each) for each in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left) + _template(right)
        case ast.BinOp(left=ast.Constant(value=str() as written), op=ast.Mod()):
            return _FILLED["%"].sub("\0", written)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as written), attr="format")):
            return _FILLED["format"].sub("\0", written)
    return "\0"


_FOLDERS = frozenset({"rmtree", "remove_tree", "DeleteRecursively", "delete_recursively", "rm_tree"})
"""Calls that remove a folder with what is in it."""
_FILES = frozenset({"remove", "unlink", "rmdir", "send2trash"})
"""Calls that remove one file: in a loop over a folder they empty it."""
_MOVES = frozenset({"rename", "renames", "move", "replace"})
_LISTS = frozenset({"listdir", "scandir", "glob", "iglob", "rglob", "iterdir", "walk"})
_LISTS_ALL = frozenset({"listdir", "scandir", "iterdir"})
_MAKES = frozenset({"makedirs", "mkdir"})
"""Calls that fail if the folder is there, unless ``exist_ok`` is given."""
_RUNS = frozenset({"system", "run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput"})
WEAK = re.compile(
    r"-{0,2}([\w-]*[_-])?(over_?write|force|clean|fresh|reset|wipe|purge|delete|erase|from[-_]scratch|exist[-_]ok)([_-][\w-]*)?",
    re.IGNORECASE,
)
"""Options that may delete or write over something, by their names alone: never more than a possibility."""


KEEP = {"--overwrite_output_dir": "", "exist_ok": r"\byolo\b|ultralytics"}
"""Those that delete nothing, by their command. Source: transformers/training_args.py, ultralytics/cfg/default.yaml."""
EMPTY = {"--force": r"\ballennlp\b.*\btrain\b", "--overwrite-output": r"\bsockeye\b.*\btrain\b"}
"""Those that delete the output folder. Source: allennlp/commands/train.py, sockeye/arguments.py."""


class Deletion(NamedTuple):
    """``place``: the line; ``what``: the folder as far as it is known; ``sure``: the tests around it are understood.

    ``options``: destinations of the options without which it would not happen; ``because``: the command of a shell and
    its condition. ``folder``: the absolute path if it is known. ``does``: deletes, or moves to another place.
    """

    place: str
    what: str
    sure: bool
    options: tuple[str, ...] = ()
    because: str = ""
    folder: str = ""
    does: str = "deletes"


class StartDeletes(msgspec.Struct, frozen=True, kw_only=True):
    """``as_given``: what a start of the command deletes. ``dropped``: what a start that resumes does without.

    Of a flag ``before`` is the word behind it; None = it is not given, its default deletes. ``left``: what a start
    would still delete then. ``words``: the options behind it as they are written.
    ``lists``: where it takes every file of the folder that it saves to for one of its own. ``refuses``: what ends it.
    """

    as_given: tuple[Deletion, ...] = ()
    dropped: tuple[Change, ...] = ()
    left: tuple[Deletion, ...] = ()
    words: dict[str, str] = {}
    lists: str = ""
    refuses: str = ""


def start_deletes(
    values: KnownValues,
    declared: tuple[Option, ...],
    args: tuple[str, ...],
    environment: Mapping[str, str],
    *,
    config: Mapping[str, Any],
    output: str | None,
    cwd: str,
) -> StartDeletes:
    """What a start that resumes deletes. ``args``: its words with the option that resumes it.

    ``config``: settings of its config by their last key. ``output``: the output folder if it is known, absolute.
    """
    if values.calls.keys().isdisjoint(_FOLDERS | _FILES | _RUNS | _MOVES | _LISTS_ALL | _MAKES | words.LOOKS):
        return StartDeletes()
    short, options = beginnings(declared, args), set_options(declared, args, environment)
    given = {o.dest for o in declared if o.library != "config" and value_given(o, args, environment, short) is not None}
    both = {key for key in given & config.keys() if options[key] != config[key]}  # which one counts is not known
    options = {**options, **config, **{key: UNKNOWN + key + UNKNOWN for key in both}}
    reader = _Reader(values.given(declared, options), output, cwd)
    as_given = reader.deletions()
    refused = reader.refusals()
    dropped: list[Change] = []
    for name in dict.fromkeys(name for found in as_given for name in found.options):
        before, was = reader.values.options, {(d.place, d.what): d.sure for d in as_given if name in d.options}
        place = next(found.place for found in as_given if name in found.options)
        for change, value in _without(name, declared, args, before[name], config):
            reader.values.options = {**before, name: value}
            found = reader.deletions()
            helps = not any(
                name in d.options or (not d.options and d.sure >= was.get((d.place, d.what), 2)) for d in found
            )  # `if resume != "true"` deletes without it all the more
            if helps and not reader.refusals().keys() - refused.keys():
                dropped.append(msgspec.structs.replace(change, why=f"with it {place} deletes what was saved"))
                break
            reader.values.options = before
    left = reader.deletions() if dropped else as_given
    asked = {name for each in as_given for name in each.options}
    written = {o.dest: o.name for o in reversed(declared) if o.dest in asked}
    return StartDeletes(
        as_given=as_given,
        dropped=tuple(dropped),
        left=left,
        words=written,
        lists=reader.lists(),
        refuses=next((said for said in refused.values() if UNKNOWN not in said), ""),
    )


def _without(
    name: str, declared: Sequence[Option], args: Sequence[str], value: Any, config: Mapping[str, Any]
) -> Iterator[tuple[Change, Any]]:
    options = [each for each in declared if each.dest == name]
    if name in config:
        key = next((each.name for each in options if each.library == "config"), name)
        if value is True:
            yield Change(where="config", key=key, before=True, after=False), False
        return
    option = next((each for each in options if each.kind in {"option", "override"}), None)
    if option is None:
        return
    given = word_given(all_names(option, beginnings(declared, args)), args, flag=option.takes == "flag")
    word, before = (option.name, None) if given is None else (given[0], given[1] or "")
    flag = Change(where="flag", key=word, before=before)
    if given is not None and option.default != value:
        yield flag, option.default
    if value is True and option.negated not in {"", option.name}:
        yield msgspec.structs.replace(flag, after=option.negated), False
    elif value is True and option.takes == "truth" and not option.any_text:
        joined = option.joined or option.kind == "override" or f"{word}={before}" in args
        yield msgspec.structs.replace(flag, after=f"{option.name}{'=' if joined else ' '}false"), False


class _Reader:
    """All places of one project that delete or refuse. ``values.options`` may be changed between two questions."""

    def __init__(self, values: KnownValues, output: str | None, cwd: str) -> None:
        self.values = values
        self._cwd = cwd
        self._output = output
        self._looped = called_in_loops(values)
        self._saves = tuple(saves(values))
        values.saved = {path for path, _ in self._saves}
        calls = (site for name in _LEAVES for site in self.values.calls.get(name, ()))
        tries = (n for each in values.project.modules for n in each.nodes if isinstance(n, ast.Try | ast.With))
        caught = {id(each) for node in tries for each in ast.walk(node)}  # its error may end nothing
        makes = (
            site
            for name in _MAKES
            for site in values.calls.get(name, ())
            if caught.isdisjoint(id(each.node) for each in (site, *values.callers(site.scope)))
        )
        ends = (site for site in (*values.raises, *calls, *makes) if site.scope.name not in self._looped)
        self._ends = [site for site in ends if not site.loops]

    # --- what is removed ---

    def _is_output(self, folder: str) -> bool:
        if not folder.strip("./" + UNKNOWN):
            return False
        if self._output is not None and UNKNOWN not in folder:
            place = self._place_of(folder)
            if self._output == place or self._output.startswith(f"{place}/"):
                return True
        return any(f"{path}/".startswith(f"{folder}/") or _matches(folder, path) for path in self.values.saved)

    def _is_over(self, site: Site, folder: str) -> bool:
        """Whether all that the folder holds was saved before, in the same function or in one that it has called."""
        chain = [site]
        while (call := self.values.only.get(id(chain[-1].scope.node))) is not None and len(chain) < DEEPEST_CALLS:
            chain.append(call)
        own = [saved for path, saved in self._saves if f"{path}/".startswith(f"{folder}/")]
        return any(own and all(self._is_before(saved, each) for saved in own) for each in chain)

    def _is_before(self, one: Site, other: Site, depth: int = 0) -> bool:
        if one.scope is other.scope:
            return bool(one.loops or depth) and _line(one) < _line(other) and not other.loops
        calls = self.values.callers(one.scope) if depth < DEEPEST_CALLS else ()
        return bool(calls) and all(self._is_before(call, other, depth + 1) for call in calls)

    def _removals(self) -> Iterator[tuple[Site, str]]:
        """The places, and what they remove, while ``values.only`` is what it is removed by."""
        for name in sorted(_FOLDERS | _FILES | _RUNS | _MOVES):
            for site in self.values.calls.get(name, ()):
                for way in self.values.ways(site) if site.scope.name not in self._looped else ():
                    self.values.only = way
                    removed = [each for each in self._removed(site, name) if self._is_output(each)]
                    yield from ((site, each) for each in removed if not self._is_over(site, each))
                    self.values.only = {}

    def _removed(self, site: Site, name: str) -> Iterator[str]:
        call = site.node
        assert isinstance(call, ast.Call)
        if name in _RUNS:
            yield from () if site.loops else self._by_shell(call, site.scope)
            return
        listed = next((folder for each in site.loops if (folder := self._listed(each, site.scope)) is not None), None)
        walks = bool(site.loops) and isinstance(site.loops[0], ast.Call) and called(site.loops[0]) == "walk"
        if len(site.loops) > 1 + walks or (site.loops and listed is None):
            return
        if listed is not None:
            yield listed
        elif name in _MOVES:
            by_module = root_of(call.func) in site.scope.module.aliases
            base = call.func.value if isinstance(call.func, ast.Attribute) else None
            of = call.args[0] if by_module and len(call.args) == 2 else base if len(call.args) == 1 else None
            path = None if of is None else self.values.path(of, site.scope)
            if path is not None and path not in self.values.saved:  # else a file that was saved under another name
                yield path
        elif name in _FOLDERS or name in {"remove", "unlink"}:
            of = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
            path = None if of is None else self.values.path(of, site.scope)
            if path is not None:
                yield path

    def _listed(self, node: ast.expr, scope: Scope) -> str | None:
        """The folder of which a loop takes all entries: not of one over the oldest of them."""
        node = self.values.written(node, scope)
        while isinstance(node, ast.Call) and called(node) in {"list", "sorted"} and node.args:
            node = self.values.written(node.args[0], scope)
        if not isinstance(node, ast.Call) or called(node) not in _LISTS:
            return None
        of = node.func.value if isinstance(node.func, ast.Attribute) else None
        by_method = of is not None and dotted(of) not in {"os", "glob", "os.path"}
        named = [of, *(node.args if "glob" in called(node) else ())] if by_method and of is not None else node.args[:1]
        parts = [self.values.path(each, scope) for each in named]
        if not parts or None in parts:
            return None
        folder, star, rest = os.path.join(*map(str, parts)).partition("*")  # noqa: PTH118  no path yet
        own = [path for path in self.values.saved if path.startswith(folder)] if star else []
        if own and not any(fnmatch.fnmatch(f"x{path.removeprefix(folder)}", f"x*{rest}") for path in own):
            return None  # other files than those that it saves
        return folder.rpartition("/")[0] if star else folder

    def _by_shell(self, call: ast.Call, scope: Scope) -> Iterator[str]:
        """What ``rm -r`` removes in a command that is run."""
        first = call.args[0] if call.args else None
        if isinstance(first, ast.List):
            given = [str(self.values.of(each, scope)) for each in first.elts]
        else:
            text = str("" if first is None else self.values.of(first, scope))
            parts = iter(UNKNOWN_PART.findall(text))
            for command in commands_of(UNKNOWN_PART.sub("\x01", text)):
                yield from removed_by([re.sub("\x01", lambda _: next(parts), word) for word in command.words])
            return
        yield from removed_by(given)

    def lists(self) -> str:
        """The place that lists the folder it saves to, without a condition on the names; "" if none does."""
        filtered = {id(node) for module in self.values.project.modules for node in _filtered(module)}
        sites = (site for name in sorted(_LISTS_ALL) for site in self.values.calls.get(name, ()))
        for site in (site for site in sites if id(site.node) not in filtered):
            assert isinstance(site.node, ast.Call)
            for way in self.values.ways(site):
                self.values.only = way
                folder = self._listed(site.node, site.scope)
                self.values.only = {}
                if folder and self._is_output(os.path.normpath(folder)) and self.values.happens(site) is not False:
                    return site.place
        return ""

    # --- whether it happens ---

    def deletions(self) -> tuple[Deletion, ...]:
        found: dict[tuple[str, str], Deletion] = {}
        for site, folder in self._removals():
            self.values.there, self.values.asked = folder, set()
            happens = self.values.happens(site)
            assert isinstance(site.node, ast.Call)
            options = tuple(name for name in sorted(self.values.asked) if self.values.options.get(name))
            if happens is not False:
                shown = "".join(f"{{{part}}}" if n % 2 else part for n, part in enumerate(folder.split(UNKNOWN)))
                if happens or (site.place, shown) not in found:
                    place = self._place_of(folder)
                    found[site.place, shown] = Deletion(
                        site.place, shown, bool(happens), options, folder=place,
                        does="moves" if called(site.node) in _MOVES else "deletes",
                    )  # fmt: skip
        return tuple(found.values())

    def _place_of(self, folder: str) -> str:
        """Its absolute path: the output folder if its name is that, "" if it is not known."""
        if UNKNOWN in folder:
            output = self._output or ""
            return output if folder.rpartition("/")[2] == os.path.basename(output) else ""  # noqa: PTH119
        return os.path.normpath(os.path.join(self._cwd, os.path.expanduser(folder)))  # noqa: PTH111, PTH118

    def refusals(self) -> dict[int, str]:
        """What ends the trainer with the present values only if its folder has something in it, by ids, in words."""
        gone = [each.folder for each in self.deletions()]
        late = {id(one) for _, one in self._saves if any(self._is_before(other, one) for _, other in self._saves)}
        saved = (path.rpartition("/")[0] for path, site in self._saves if id(site) not in late)  # not those of the end
        there = [folder for folder in (*(each for _, each in self._removals()), *saved) if self._is_output(folder)]
        found: dict[int, str] = {}
        for self.values.there in ("", *dict.fromkeys(there)):
            folder = self.values.there
            for site in self._ends:
                makes = isinstance(site.node, ast.Call) and called(site.node) in _MAKES
                if self.values.happens(site) is True and (not makes or self._fails(site, gone)):
                    found.setdefault(id(site.node), folder and f"{site.place} ends a start when {folder} is there")
        return {key: said for key, said in found.items() if said}

    def _fails(self, site: Site, gone: Sequence[str]) -> bool:
        """Whether a call would make a folder that is there, and fail."""
        call = site.node
        assert isinstance(call, ast.Call)
        by_os = resolved(site.scope.module, call.func) in {"os.makedirs", "os.mkdir"}
        of = call.args[0] if by_os and call.args else getattr(call.func, "value", call)
        path = self.values.path(of, site.scope)
        allows = call.args[2] if len(call.args) > 2 else keyword(call, "exist_ok") or keyword(call, None)
        if path is None or UNKNOWN in path or (allows and self.values.truth(allows, site.scope) is not False):
            return False
        folder, place = self.values.there, self._place_of(path)
        return f"{folder}/".startswith(f"{path}/") and not any(f"{place}/".startswith(f"{each}/") for each in gone)


def _filtered(module: Module) -> Iterator[ast.AST]:
    """What stands in a comprehension with a condition, or is looped over by a loop that begins with one."""
    for node in module.nodes:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            yield from (each for part in node.generators if part.ifs for each in ast.walk(part.iter))
        elif isinstance(node, ast.For) and isinstance(node.body[0], ast.If):
            yield from ast.walk(node.iter)


def _line(site: Site) -> int:
    return int(getattr(site.node, "lineno", 0))


_BEFORE = frozenset({"sudo", "command", "exec", "nice", "time"})
_NOT_ALL = frozenset({"-empty", "-mtime", "-mmin", "-newer", "-size"})
"""Conditions of ``find`` that say which files are meant."""
_BRACES = re.compile(r"(?<!\$)\{([^{}]*,[^{}]*)\}")


def removed_by(words: Sequence[str]) -> Iterator[str]:
    """The folders, files and patterns that ``rm``, ``find … -delete`` and ``mv`` take away."""
    given = [word for word in words if ">" not in word]
    while given and given[0] in _BEFORE:
        given = given[1:]
    name, places = given[0].rpartition("/")[2] if given else "", [word for word in given[1:] if word[:1] != "-"]
    if name == "find" and {"-delete", "rm"} & set(given) and not _NOT_ALL & set(given):
        named = next((f"/{after}" for word, after in pairwise(given) if word in {"-name", "-iname"}), "")
        places = [f"{place}{named}" for place in places[: 1 if given[1] in places else 0]]
    elif name == "mv":
        places = places[:-1]
    elif name != "rm":
        return
    whole = name != "rm" or any(re.fullmatch(r"-\w*[rR]\w*|--recursive", word) for word in given)
    for place in places:
        inside = _BRACES.search(place)
        for part in inside[1].split(",") if inside else ("",):
            each = f"{place[: inside.start()]}{part}{place[inside.end() :]}" if inside else place
            yield os.path.normpath((each.removesuffix("*") if whole else each) or ".")


def _matches(pattern: str, saved: str) -> bool:
    """Whether a path, or a pattern of files, means what was saved, or something around it."""
    if not UNKNOWN_PART.sub("", pattern).strip("./"):
        return False  # ``{tempfile.mkdtemp()}``
    pattern, saved = (UNKNOWN_PART.sub("0", each) for each in (pattern, saved))
    return any(fnmatch.fnmatchcase(saved, each) for each in (pattern, f"{pattern}/*"))


_ENDS_AT_ONCE = re.compile(r"^\s*set\s+-\w*e|^#!.*sh\s+-\w*e", re.MULTILINE)
"""A shell that ends at a command that fails."""


def shell_deletes(
    target: Target, argv: Sequence[str], outputs: Sequence[str], saved: Sequence[str], *,
    cwd: str, env: Mapping[str, str],
) -> list[Deletion]:  # fmt: skip
    """What the shell texts on the way to the trainer delete: an output, or what the trainer is given.

    Conditions on variables are those of a restart, which has the environment of the launch; the trainer has failed.
    ``argv``: the command. ``outputs``: absolute folders; ``saved``: what it saves. ``env``: of the shells.
    """
    found: list[Deletion] = []
    args, files = target.args, [os.path.join(cwd, path) for path in saved]  # noqa: PTH118  no path yet
    scripts = {os.path.basename(name) for name, _ in target.shells}  # noqa: PTH119
    for name, text in target.shells:
        script, folder = os.path.basename(name), cwd  # noqa: PTH119
        at = next((n for n, word in enumerate(argv) if "/" in name and os.path.basename(word) == script), None)  # noqa: PTH119
        env, inner = {**env, **assigned(argv)} if at else env, dict[str, str]()  # `env KEEP=1 ./run.sh`
        variables = Variables(env, text, None if at is None else argv[at + 1 :], (target.word, *args))

        def place_of(path: str) -> str:
            return os.path.normpath(os.path.join(folder, path))  # noqa: B023, PTH118  no path yet

        def is_output(path: str) -> bool:
            given = {os.path.normpath(variables.filled(word.rpartition("=")[2])) for word in args}  # noqa: B023
            folders = map(variables.filled, outputs)  # noqa: B023
            within = (f"{output}/".startswith(f"{place_of(path)}/") for output in folders)
            return os.path.normpath(path) in given or any(within)

        def is_saved(path: str) -> bool:
            parent, _, last = path.rpartition("/")
            if (last == "*" or has_checkpoint_suffix(last)) and parent and is_output(parent):
                return True  # it is not known what the files are
            return any(_matches(place_of(path), variables.filled(file)) for file in files)  # noqa: B023

        for command, runs, why in commands_run(text, variables, is_output):
            variables.read(command.words, Path(folder), runs)
            if scripts & set(map(os.path.basename, command.words)):
                inner |= {name: variables.filled(value) for name, value in assigned(command.words).items()}
            if command.words[0] == "cd" and len(command.words) > 1 and runs is not False:
                by_name = re.search(r"dirname|BASH_SOURCE|\$0", command.text) is not None
                folder = os.path.dirname(name) if by_name and "/" in name else place_of(command.words[1])  # noqa: PTH120
            because = f" (`{command.text}`{f', decided by `{why}`' if why else ''})"
            does = "moves" if "mv" in command.words else "deletes"
            for removed in removed_by(list(variables.expanded(command.words))):
                all_of_it = is_output(removed)
                if runs is not False and (all_of_it or is_saved(removed)):
                    sure, place = runs is True and "$" not in removed, place_of(removed)
                    place = place if all_of_it else os.path.dirname(place)  # noqa: PTH120
                    found.append(Deletion(script, removed, sure, because=because, folder=place, does=does))
            alone = not command.condition and command.after not in {"&&", "||", "|", "|&"}
            if runs and alone and variables.is_trainer(command.words) and _ENDS_AT_ONCE.search(text):
                break
        env = variables.exports | inner
    return found
