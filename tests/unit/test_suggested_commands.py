"""Commands that messages suggest: each is made by one function, names its run, is quoted, and parses."""

import ast
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.builders import knowledge
from trainwatch.cli.parser import build_parser
from trainwatch.core.model.text import typed

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("core", "tui", "src") for path in (ROOT / folder).rglob("*.py"))
OF_A_RUN = (
    "resume|restart|stop|kill|status|events|report|attach|logs|pause|ack|wait|profile|act|forget|diagnose"
    "|--headless --run|checkpoints (?:verify|show|compare|prune|backup|list)"
)
SPELLED_OUT = re.compile(rf"(?:^|[\s`(:;=])trainwatch (?:{OF_A_RUN})(?![\w-])")
ABOUT_THE_PROGRAM = re.compile(r"(?:\w+_)?(?:DESCRIPTION|HELP|EXAMPLES?|EPILOG)")
"""Help texts name verbs, not runs."""


def messages(tree: ast.Module) -> Iterator[ast.Constant]:
    """All texts but docstrings and help."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                skipped.add(id(node.value))
            case ast.Assign(targets=[ast.Name(id=name)]) if ABOUT_THE_PROGRAM.fullmatch(name):
                skipped |= {id(inner) for inner in ast.walk(node)}
            case (
                ast.keyword(arg="help" | "epilog" | "description" | "usage")
                | ast.Call(func=ast.Name(id="VERBS" | "flag"))
            ):
                skipped |= {id(inner) for inner in ast.walk(node)}
            case _:
                pass
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node


ALLOWED = {
    ("core/app/rehearsal_verdict.py", "trainwatch --headless"),  # before the run has an id
    ("core/supervisor/loop.py", "trainwatch resume"),  # of a supervisor that is built without a run
    ("core/judge/recovery/gate.py", "trainwatch ack"),  # {run} is filled in where it is shown
    ("core/judge/recovery/gate.py", "trainwatch stop"),
    ("core/judge/recovery/remedies.py", "trainwatch profile"),
    ("core/app/start/start_choice.py", "trainwatch resume"),  # compared, not shown
    ("core/config/detection.py", "trainwatch diagnose"),  # comments of a file, about any log
    ("core/config/shipped.py", "trainwatch diagnose"),
    ("src/trainwatch/cli/control.py", "trainwatch resume"),  # usage
    ("src/trainwatch/cli/control.py", "trainwatch wait"),  # --help
    ("tui/run_session.py", "trainwatch report"),
    ("src/trainwatch/cli/parser.py", "trainwatch status"),  # examples of --help
}


def test_no_message_spells_out_a_command_about_a_run() -> None:
    found = {
        (str(path.relative_to(ROOT)), " ".join(hit.group().strip(" `(:;=\n").split()[:2]))
        for path in SOURCES
        if "trainwatch " in (text := path.read_text())
        for node in messages(ast.parse(text))
        for hit in SPELLED_OUT.finditer(str(node.value))
    }
    assert found <= ALLOWED, "use typed() of core/model/text.py"


class Call(NamedTuple):
    where: str
    words: tuple[str, ...]


def calls() -> Iterator[Call]:
    """Each call that makes a command, as a person would type it: what is computed is ``x``, a run is ``luca-1a2b``."""
    for path in SOURCES:
        text = path.read_text()
        if "typed(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not node.args or path.name in {"suggestion.py", "knowledge.py"}:
                continue
            match node.func:
                case ast.Name(id="typed"):
                    run: tuple[str, ...] = ()
                case ast.Attribute(attr="typed"):
                    run = ("luca-1a2b",)
                case _:
                    continue
            words = [
                str(arg.value) if isinstance(arg, ast.Constant) else "3" if isinstance(arg, ast.Call) else "newest"
                for arg in node.args
                if not isinstance(arg, ast.Starred)
            ]
            verb = words[0] if isinstance(node.args[0], ast.Constant) else "resume"
            rest = (*words[1:], *run) if verb == "profile" else (*run, *words[1:])
            yield Call(f"{path.relative_to(ROOT)}:{node.lineno}", (*verb.split(), *rest))


def test_each_suggested_command_parses() -> None:
    for call in calls():
        own = ["3" if word == "N" else word for word in takewhile(lambda word: word != "--", call.words)]
        if own[:2] == ["checkpoints", "backup"]:
            assert own[-1] == "FOLDER"
        try:
            unknown = build_parser(own).parse_known_args(own)[1]
        except SystemExit:
            unknown = own
        assert unknown == [], call.where


@pytest.mark.parametrize("path", ["/a b/c's", "$HOME/x", "a;b", "*", "-n", "ünï", "x`y`"])
def test_a_path_reaches_the_command_as_it_is(path: str) -> None:
    assert shlex.split(typed("resume", "luca-1a2b", "--from", path)) == [
        "trainwatch", "resume", "luca-1a2b", "--from", path,
    ]  # fmt: skip


def test_the_judge_names_the_run_by_its_id() -> None:
    known = msgspec.structs.replace(knowledge(), run="my run", run_id="my-run-1a2b")
    assert known.typed("resume", "--from", "a b") == "trainwatch resume my-run-1a2b --from 'a b'"
    assert known.typed("profile", "half") == "trainwatch profile half my-run-1a2b"
