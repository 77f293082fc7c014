"""The options of a trainer: what can be told to it from outside, by each way to declare it that is known.

Calls (argparse, click, absl), names with types (fields of a class, parameters of a function: typer, tyro, fire,
HfArgumentParser and their like), module variables, the environment, ``sys.argv``, and keys of configuration files
(Hydra's, OmegaConf's, the file that the command names). Of what declares them in another way it is said that it may
take options that are not seen.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from . import words
from .parsers import Subcommands
from .project import (
    Function,
    Module,
    Project,
    constant,
    default_of,
    dotted,
    keyword,
    last,
    parameters,
    resolved,
    root_of,
    text_of,
    texts_in,
)

Kind = Literal["option", "positional", "override", "environment"]
Takes = Literal["value", "flag", "truth", "number"]
"""``flag``: no value; ``truth``: a value that says yes or no."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """``name``: as it is written on the command line (``--resume``, ``trainer.resume``, ``RESUME``).

    ``dest``: the name under which the code reads it. ``default``: None if there is none or it is not a literal.
    ``joined``: only ``--name=value`` is read. ``after``: a word (subcommand) that must stand before it. ``library``:
    it is declared by this library, not by the project. ``parameter``: it comes as a parameter of this function.
    """

    name: str
    dest: str
    kind: Kind = "option"
    takes: Takes = "value"
    default: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    file: str = ""
    line: int = 0
    joined: bool = False
    after: str = ""
    library: str = ""
    parameter: str = ""
    negated: str = ""
    """The option that switches it off (``--no-resume``)."""
    aliases: tuple[str, ...] = ()
    """All names of an option (``-r``, ``--resume``)."""
    any_text: bool = False
    """Any text is true, also ``False``: argparse's ``type=bool``."""

    @property
    def place(self) -> str:
        """Where it is declared, for people (``train.py:12``)."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def says_resume(self) -> bool:
        """Whether its name says that a training goes on by it, and nothing else."""
        names = (self.name, self.dest, *self.aliases)
        bare = {name.lstrip("-+").replace("-", "_").rpartition(".")[2].lower() for name in names}
        return self.library != "transformers" and any(words.RESUME_OPTION.fullmatch(name) for name in bare)


class _Known(NamedTuple):
    """What a reader may ask for beside its module. ``classes``, ``functions``: by name, with the module of each."""

    project: Project
    subcommands: Subcommands
    classes: Mapping[str, tuple[Module, ast.ClassDef]]
    functions: Mapping[str, tuple[Module, Function]]


def options_of(project: Project, subcommands: Subcommands) -> list[Option]:
    """All options that the project declares, in the order of its files and lines; a name counts once."""
    known = _Known(
        project, subcommands,
        {n.name: (m, n) for m in reversed(project.modules) for n in m.classes},
        {f.name: (m, f) for m in project.modules for f in m.functions},
    )  # fmt: skip
    found: dict[tuple[str, str], Option] = {}
    for module in project.modules:
        for read in _READERS:
            for option in read(module, known):
                found.setdefault((option.name, option.after), option)
    return list(found.values())


def _option(module: Module, node: ast.AST, name: str, dest: str, **more: Any) -> Option:
    return Option(name=name, dest=dest, file=module.shown, line=getattr(node, "lineno", 0), **more)


# --- declared one by one by a call ---

_ADD = re.compile(r"add_(argument|arg|option)|argument|add")
_BOOLS = frozenset(
    {"bool", "str2bool", "strtobool", "str_to_bool", "boolean", "parse_bool", "string_to_bool", "t_or_f"}
)
_CLICK = re.compile(r"(?:^|\.)(option|argument)$")


def _argparse(module: Module, known: _Known) -> Iterator[Option]:
    for node in module.calls:
        if not isinstance(node.func, ast.Attribute) or not _ADD.fullmatch(node.func.attr):
            continue
        names = [text for each in node.args if (text := text_of(each)) is not None]
        dashed = [name for name in names if name.startswith("-")]
        if not names or (not dashed and node.func.attr == "add") or any(" " in name for name in names):
            continue
        any_text = last(dotted(keyword(node, "type") or node)) == "bool"
        declared = msgspec.structs.replace(_by_call(module, node, names, dashed), any_text=any_text)
        for after in sorted(known.subcommands.of_call.get(id(node), {""})):
            yield msgspec.structs.replace(declared, after=after)


def _click(module: Module, known: _Known) -> Iterator[Option]:
    for function in module.functions:
        for decorator in function.decorator_list:
            if not isinstance(decorator, ast.Call) or not (kind := _CLICK.search(dotted(decorator.func))):
                continue
            names = [text for each in decorator.args if (text := text_of(each)) is not None]
            dashed = [name for name in names if name.startswith("-")]
            if names and bool(dashed) == (kind[1] == "option"):
                option = _by_call(module, decorator, names, dashed)
                yield msgspec.structs.replace(
                    option, parameter=function.name, dest=option.dest.replace("-", "_").lower(),
                    after=known.subcommands.after(function),
                )  # fmt: skip


def _by_call(module: Module, node: ast.Call, names: list[str], dashed: list[str]) -> Option:
    told = {k.arg: k.value for k in node.keywords if k.arg}
    name = next((each for each in dashed if each.startswith("--")), (dashed or names)[0])
    name, _, other = (part.strip() for part in name.partition("/"))  # click: --resume/--no-resume
    plain, bare = [each for each in names if not each.startswith("-")], name.lstrip("-").replace("-", "_")
    action = text_of(told.get("action")) or last(dotted(told.get("action", node)))
    kind = last(dotted(told.get("type", ast.Constant(None))))
    default, choices = constant(told.get("default")), constant(told.get("choices"))
    needed = constant(told.get("required"))
    flags = {"store_true", "store_false", "BooleanOptionalAction", "store_const", "count"}
    takes: Takes = "value"
    if action in flags or constant(told.get("is_flag")) is True or other:
        takes = "flag"
    elif kind in _BOOLS or (kind == "" and isinstance(default, bool)):
        takes = "truth"
    elif "type" in told and kind != "str" and default in ("true", "false", "True", "False"):
        takes = "truth"  # a text that a function of the script turns into one
    elif kind in {"int", "float"} or (kind == "" and isinstance(default, int | float)):
        takes = "number"
    if action == "BooleanOptionalAction":
        other = f"--no-{name.lstrip('-')}"
    if action == "store_false":
        other, default = name, True
    elif takes == "flag" and default is None:
        default = False
    if choices is None and isinstance(chosen := told.get("type"), ast.Call) and chosen.args:
        choices = constant(chosen.args[0])  # click.Choice([...])
    free = not dashed and text_of(told.get("nargs")) not in {"?", "*"} and constant(told.get("default")) is None
    return _option(
        module, node, name, text_of(told.get("dest")) or (plain[0] if plain and dashed else bare),
        kind="option" if dashed else "positional", takes=takes, default=default,
        required=needed is True or (free and needed is not False),
        choices=tuple(c for c in choices if isinstance(c, str)) if isinstance(choices, list | tuple | set) else (),
        help=texts_in(told.get("help")), negated=other,
        aliases=tuple(each.strip() for name_ in dashed for each in name_.split("/")),
    )  # fmt: skip


def _absl(module: Module, _known: _Known) -> Iterator[Option]:
    kinds: dict[str, Takes] = {"bool": "flag", "boolean": "flag", "integer": "number", "float": "number"}
    for node in module.calls:
        found = re.search(r"DEFINE_(\w+)$", dotted(node.func))
        name = text_of(node.args[0]) if found and node.args else None
        if found is None or name is None or "config" in found[1]:
            continue
        yield _option(
            module, node, f"--{name}", name, takes=kinds.get(found[1], "value"),
            default=constant(keyword(node, "default") or (node.args[1] if len(node.args) > 1 else None)),
            help=texts_in(keyword(node, "help") or (node.args[-1] if len(node.args) > 2 else None)),
            negated=f"--no{name}" if "bool" in found[1] else "",
        )  # fmt: skip


def _lightning(module: Module, _known: _Known) -> Iterator[Option]:
    for node in module.calls:
        if last(resolved(module, node.func)) == "LightningCLI" and constant(keyword(node, "run")) is not False:
            yield _option(
                module, node, "--ckpt_path", "$lightning", library="lightning", after="fit",
                help="Path of the checkpoint from which training is resumed.",
            )  # fmt: skip


# --- made of names and types ---

_TYPED_CALLS = {
    "typer.run": "-", "tyro.cli": "-", "fire.Fire": "_", "jsonargparse.CLI": "_", "jsonargparse.auto_cli": "_",
    "CLI": "_", "auto_cli": "_", "cli": "-", "Fire": "_", "run": "-",
}  # fmt: skip
"""Calls that make options of a function's parameters or of a class's fields, with the character between words."""
_TYPED_LIBRARIES = ("typer", "tyro", "fire", "jsonargparse")
_DECORATORS = re.compile(r"\.(command|callback)$")
_PARSERS = re.compile(
    r"(HfArgumentParser|TrlParser|add_arguments|ArgumentParser|parse|parse_known_args|parse_args_into_dataclasses)$"
)
_LIBRARY_ARGUMENTS = re.compile(
    r"(TrainingArguments|Seq2SeqTrainingArguments|(SFT|DPO|GRPO|KTO|ORPO|Reward|PPO|RLOO|CPO|GKD|PRM)Config)$"
)


def _functions(module: Module, known: _Known) -> Iterator[Option]:
    for function in module.functions:
        decorator = next((d for d in function.decorator_list if _DECORATORS.search(dotted(d))), None)
        if decorator is None or any(_CLICK.search(dotted(d)) for d in function.decorator_list):
            continue
        if any(name in module.text for name in ("typer", "cyclopts")):
            after = known.subcommands.after(function)
            for option in _of_parameters(module, function, "-"):
                yield msgspec.structs.replace(option, after=after)
    for node in module.calls:
        name = resolved(module, node.func)
        separator = _TYPED_CALLS.get(name) or _TYPED_CALLS.get(last(name), "")
        if not separator or not any(library in name for library in _TYPED_LIBRARIES):
            continue
        named = (k.value for k in node.keywords if k.arg in {"component", "components", "f", "args_type"})
        for given in (last(dotted(each)) for each in (*node.args[:1], *named)):
            if given in known.functions:
                yield from _of_parameters(*known.functions[given], separator, known)
            else:
                yield from _fields(known, given, separator, nested=True)


def _classes(module: Module, known: _Known) -> Iterator[Option]:
    """HfArgumentParser, simple_parsing: classes that are given to a parser."""
    for node in module.calls:
        if not _PARSERS.search(dotted(node.func)):
            continue
        given = [*node.args, *(k.value for k in node.keywords)]
        parts = [e for each in given for e in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])]
        for name in (last(dotted(each)) for each in parts):
            yield from _fields(known, name, "_")
            bases = [last(dotted(b)) for b in known.classes[name][1].bases] if name in known.classes else []
            if any(_LIBRARY_ARGUMENTS.search(each) for each in (name, *bases)):
                yield _option(
                    module, node, "--resume_from_checkpoint", "resume_from_checkpoint", library="transformers",
                    help="The path to a folder with a valid checkpoint for your model.",
                )  # fmt: skip


def _of_parameters(module: Module, function: Function, separator: str, known: _Known | None = None) -> Iterator[Option]:
    """``known``: a parameter whose type is a class of the project stands for the fields of it."""
    for parameter in parameters(function):
        annotation, default = parameter.annotation, default_of(function, parameter.arg)
        if parameter.arg in {"self", "cls", "ctx"}:
            continue
        inner = _class_in(annotation)
        if known is not None and inner in known.classes:
            yield from _fields(known, inner, separator, prefix=f"{parameter.arg}.", nested=True)
            continue
        further: list[ast.expr] = []
        match annotation:
            case ast.Subscript(slice=ast.Tuple(elts=parts)) if last(dotted(annotation)) == "Annotated":
                further = parts[1:]
        described = next((n for n in (default, *further) if isinstance(n, ast.Call)), None)
        option = _of_name(module, parameter, parameter.arg, annotation, default, described, separator)
        yield msgspec.structs.replace(option, parameter=function.name)


def _fields(
    known: _Known, name: str, separator: str, prefix: str = "", *, nested: bool = False, depth: int = 0
) -> Iterator[Option]:
    """The fields of a class, those of its bases first. ``nested``: a field that is a class stands for its fields."""
    if name not in known.classes or depth > 4:
        return
    module, node = known.classes[name]
    for base in node.bases:
        yield from _fields(known, last(dotted(base)), separator, prefix, nested=nested, depth=depth + 1)
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        inner, written = _class_in(field.annotation), field.target.id
        if inner in known.classes and nested:
            inside = written.replace("_", "-") if separator == "-" else written
            yield from _fields(known, inner, separator, f"{prefix}{inside}.", nested=True, depth=depth + 1)
            continue
        described = field.value if isinstance(field.value, ast.Call) else None
        yield _of_name(module, field, written, field.annotation, field.value, described, separator, prefix)


def _of_name(  # noqa: PLR0917
    module: Module,
    node: ast.AST,
    name: str,
    annotation: ast.expr | None,
    default: ast.expr | None,
    described: ast.Call | None,
    separator: str,
    prefix: str = "",
) -> Option:
    """A parameter or a field. ``described``: the call that tells more (``typer.Option``, ``dataclasses.field``)."""
    names: list[str] = []
    told, value = "", constant(default) if default is not described else None
    if described is not None:
        names = [text for each in described.args if (text := text_of(each)) is not None and text.startswith("-")]
        value = constant(given) if (given := keyword(described, "default")) is not None else value
        if value is None and described.args and not isinstance(described.args[0], ast.Starred):
            first = constant(described.args[0])
            value = None if (isinstance(first, str) and first.startswith("-")) or first is ... else first
        metadata = keyword(described, "metadata")
        told = texts_in(keyword(described, "help")) or texts_in(metadata if isinstance(metadata, ast.Dict) else None)
    type_ = ast.unparse(annotation) if annotation is not None else ""
    takes: Takes = "value"
    if re.search(r"\bbool\b", type_) or (not type_ and isinstance(value, bool)):
        takes = "flag" if separator == "-" else "truth"
    elif re.fullmatch(r"(typing\.)?(Optional\[)?(int|float)\]?( \| None)?", type_):
        takes = "number"
    written = f"{prefix}{name.replace('_', '-') if separator == '-' else name}"
    kind: Kind = "option"
    option = f"--{written}"
    if described is not None and last(dotted(described)) == "Argument":
        option, kind = name, "positional"
    elif names:
        option = names[0].partition("/")[0]
    choices = re.findall(r"['\"]([\w.-]+)['\"]", type_) if "Literal" in type_ else []
    negated = f"--{prefix}no-{written.removeprefix(prefix)}" if takes == "flag" else ""
    return _option(
        module, node, option, name, kind=kind, takes=takes, default=value, choices=tuple(choices), help=told,
        required=default is None and described is None, negated=negated,
    )  # fmt: skip


def _class_in(annotation: ast.expr | None) -> str:
    """The last name in an annotation (``Optional[Config]`` → ``Config``)."""
    if annotation is None:
        return ""
    if (text := text_of(annotation)) is not None:
        return last(text)
    if isinstance(annotation, ast.Subscript):
        inner = annotation.slice
        return _class_in(inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner)
    return last(dotted(annotation))


# --- declared by variables ---


def _variables(module: Module, known: _Known) -> Iterator[Option]:
    """Module variables that the command line replaces: ``exec(open('configurator.py').read())`` (nanoGPT)."""
    if module is not known.project.modules[0] or not re.search(r"exec\(open\([^)]*\)\.read\(\)\)", module.text):
        return
    for node in module.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                value = constant(node.value)
                if isinstance(value, str | bool | int | float):
                    line = module.text.splitlines()[node.lineno - 1]
                    number: Takes = "value" if isinstance(value, str) else "number"
                    yield _option(
                        module, node, f"--{name}", name, default=value, help=line.partition("#")[2].strip(),
                        joined=True, parameter="<module>", takes="truth" if isinstance(value, bool) else number,
                    )  # fmt: skip


# --- read from the environment and from sys.argv ---


def environment_name(module: Module, node: ast.AST) -> str | None:
    """The variable that an expression reads from the environment; None if it is no such expression."""
    if isinstance(node, ast.Call) and node.args:
        name = resolved(module, node.func)
        if last(name) == "getenv" or name.endswith(("environ.get", "environ.pop")):
            return text_of(node.args[0])
    if isinstance(node, ast.Subscript) and resolved(module, node.value) in {"os.environ", ".os.environ"}:
        return text_of(node.slice)
    return None


def argv_index(module: Module, node: ast.AST) -> int | None:
    """N for ``sys.argv[N]``, else None."""
    if not isinstance(node, ast.Subscript) or not resolved(module, node.value).endswith("sys.argv"):
        return None
    number = constant(node.slice)
    return number if isinstance(number, int) and number > 0 else None


def argv_searched(node: ast.AST) -> str | None:
    """``--resume`` for ``sys.argv.index("--resume")``, behind which its value stands; else None."""
    match node:
        case ast.Call(func=ast.Attribute(value=searched, attr="index"), args=[ast.Constant(value=str() as name), *_]):
            return name if name.startswith("-") and "argv" in ast.unparse(searched) else None
    return None


def _environment(module: Module, _known: _Known) -> Iterator[Option]:
    for node in module.nodes:
        if (name := environment_name(module, node)) is not None:
            default = constant(node.args[1]) if isinstance(node, ast.Call) and len(node.args) > 1 else None
            yield _option(module, node, name, f"${name}", kind="environment", default=default)


def _argv(module: Module, _known: _Known) -> Iterator[Option]:
    valued = {name for node in module.calls if (name := argv_searched(node)) is not None}
    for node in module.nodes:
        if (number := argv_index(module, node)) is not None:
            yield _option(module, node, f"argument {number}", f"$argv{number}", kind="positional")
        match node:
            case ast.Compare(left=ast.Constant(value=str() as name), ops=[ast.In()], comparators=[where]):
                if name.startswith("-") and "argv" in ast.unparse(where):
                    takes: Takes = "value" if name in valued else "flag"
                    default = None if name in valued else False
                    yield _option(module, node, name, f"$argv{name}", takes=takes, default=default)


_READERS: tuple[Callable[[Module, _Known], Iterator[Option]], ...] = (
    _argparse, _click, _functions, _classes, _absl, _lightning, _variables, _environment, _argv,
)  # fmt: skip


# --- keys of configuration files ---

MOST_CONFIGS = 200
LARGEST_BYTES = 1 << 18
_LINE = re.compile(r"^(\s*)([\w-]+)\s*:(.*)$")


def override_options(project: Project) -> list[Option]:
    """``key=value`` words: Hydra's and OmegaConf's. Keys of Hydra's own files, and keys that the code reads."""
    found: dict[str, Option] = {}
    for module in project.modules:
        decorators = [d for n in module.functions for d in n.decorator_list if isinstance(d, ast.Call)]
        hydra = [
            d for d in decorators
            if dotted(d.func).endswith("hydra.main") or module.aliases.get(dotted(d.func)) == "hydra.main"
        ]  # fmt: skip
        for option in (each for decorator in hydra for each in _hydra_keys(module, decorator)):
            found.setdefault(option.name, option)
        if hydra:
            for option in _read_keys(project, prefix="+"):
                if not any(o.dest == option.dest for o in found.values()):
                    found.setdefault(option.name, option)
        elif re.search(r"OmegaConf\.from_(cli|dotlist)|DEFINE_config_file|from_cli\(", module.text):
            for option in _read_keys(project, prefix="--config." if "DEFINE_config_file" in module.text else ""):
                found.setdefault(option.name, option)
    return list(found.values())


def _hydra_keys(module: Module, decorator: ast.Call) -> Iterator[Option]:
    path = text_of(keyword(decorator, "config_path"))
    folder = module.path.parent / (path or ".")
    if path is None or not folder.is_dir():
        return
    name = (text_of(keyword(decorator, "config_name")) or "config").removesuffix(".yaml")
    files = sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")])[:MOST_CONFIGS]
    for file in sorted(files, key=lambda f: f.stem != name):
        group = file.parent.relative_to(folder).parts
        try:
            text = file.read_text("utf-8", "replace") if file.stat().st_size < LARGEST_BYTES else ""
        except OSError:
            continue
        package = re.search(r"@package\s+(\S+)", text[:400])
        if package:
            group = () if package[1] == "_global_" else tuple(package[1].split("."))
        for keys, value, line in _yaml_keys(text):
            bare = value.partition(" #")[0].strip().strip("\"'")
            nothing = bare.lower() in {"", "null", "~", "none"} or bare.startswith(("#", "${", "???"))
            default = None if nothing else {"true": True, "false": False}.get(bare.lower(), bare)
            yield Option(
                name=".".join((*group, *keys)), dest=keys[-1], kind="override", default=default, file=file.name,
                takes="truth" if isinstance(default, bool) else "value", line=line,
                help=value.partition("#")[2].strip(),
            )  # fmt: skip


def _yaml_keys(text: str) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """(keys, text of the value, line) of the plain keys of a YAML text, by their indentation. Lists are left out."""
    open_: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _LINE.match(line)
        if found is None or line.lstrip().startswith("#"):
            continue
        indent = len(found[1])
        while open_ and open_[-1][0] >= indent:
            open_.pop()
        open_.append((indent, found[2]))
        yield tuple(key for _, key in open_), found[3].strip(), number


def _read_keys(project: Project, *, prefix: str) -> Iterator[Option]:
    """Keys that the code reads and that may be about a resume: ``cfg.trainer.resume``, ``cfg["resume"]``."""
    flag = prefix.startswith("-")
    for module, keys, node in _accesses(project):
        name = f"{prefix}{'.'.join(keys)}"
        yield _option(module, node, name, keys[-1], kind="option" if flag else "override", joined=flag)


def file_options(project: Project, settings: Mapping[str, Any], path: str) -> list[Option]:
    """Keys of the config that the command names, and keys that the code reads and that may be about a resume.

    ``settings``: dotted key → value.
    """
    options = [
        Option(name=key, dest=last(key), kind="override", default=value, file=path, library="config")
        for key, value in settings.items()
    ]
    known = {option.dest for option in options}
    for module, keys, node in _accesses(project):
        if keys[-1] not in known:
            known.add(keys[-1])
            options.append(_option(module, node, keys[-1], keys[-1], kind="override", library="config"))
    return options


def _accesses(project: Project) -> Iterator[tuple[Module, tuple[str, ...], ast.AST]]:
    seen: set[tuple[str, ...]] = set()
    for module in project.modules:
        for node in module.nodes:
            keys = tuple(reversed(list(_chain(node))))
            if not keys or not (words.RESUME.search(keys[-1]) or words.CHECKPOINT.search(keys[-1])) or keys in seen:
                continue
            if root_of(node) not in module.aliases and root_of(node) not in {"self", "torch", "os"}:
                seen.add(keys)
                yield module, keys, node


def _chain(node: ast.AST) -> Iterable[str]:
    """The keys of an access, the last first; nothing if it is none."""
    while True:
        match node:
            case ast.Attribute(value=inner, attr=key):
                pass
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() as key)) if key.isidentifier():
                pass
            case ast.Call(func=ast.Attribute(value=inner, attr="get"), args=[ast.Constant(value=str() as key), *_]) if (
                key
            ):
                pass
            case ast.Call(func=ast.Name(id="get"), args=[ast.Constant(value=str() as key), *_]) if key:
                yield key
                return
            case _:
                return
        yield key
        node = inner
