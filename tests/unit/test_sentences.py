"""Nothing is decided by the words of a sentence of ours: what a record means is a value of its own.

The fields below hold sentences that we make for people. A condition on their words breaks when somebody rewords them, and
is met by whatever a path or a line of a log that they quote happens to say.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

SENTENCES = frozenset({"reason", "state_reason", "sentence", "detail", "explanation"})
"""Fields, and variables that are called like them."""
FIELDS = SENTENCES | {
    "ending",
    "why",
    "message",
    "title",
    "remedy",
    "found",
    "advice",
    "body",
    "note",
    "refusal",
    "summary",
}
"""Fields that are sentences; as a variable such a word may be anything."""
LOOKS = frozenset({"startswith", "endswith", "find", "index", "count", "search", "match", "fullmatch", "finditer"})
"""Methods that look for words: of the text, or of a pattern."""
ROOT = Path(__file__).parents[2]


def is_sentence(node: ast.expr) -> bool:
    """Also in lower case, and as the field of an object for JSON."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="lower" | "casefold" | "strip"), args=[]):
            return is_sentence(value)
        case ast.BoolOp(values=[value, *_]):
            return is_sentence(value)
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in FIELDS
        case ast.Name(id=name):
            return name in SENTENCES
        case _:
            return False


def is_words(node: ast.expr) -> bool:
    """Words that stand in the source, or a constant that holds them."""
    match node:
        case ast.Constant(value=str(text)):
            return bool(text)
        case ast.Name(id=name):
            return name.isupper()
        case ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.List(elts=parts):
            return any(map(is_words, parts))
        case _:
            return isinstance(node, ast.JoinedStr)


def conditions(source: str) -> Iterator[int]:
    """Lines with a condition on the words of a sentence."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                for op, (a, b) in zip(ops, pairwise([left, *others]), strict=True):
                    either = isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn)
                    if either and ((is_words(a) and is_sentence(b)) or (is_sentence(a) and is_words(b))):
                        yield node.lineno
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if attr in LOOKS:
                if is_sentence(value) or any(map(is_sentence, args)):
                    yield node.lineno
            case _:
                pass


def test_nothing_is_decided_by_the_words_of_a_sentence() -> None:
    files = [path for top in ("core", "tui", "src") for path in sorted((ROOT / top).rglob("*.py"))]
    found = [f"{path.relative_to(ROOT)}:{line}" for path in files for line in conditions(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'story.state_reason.startswith("held:")',
        'story.state_reason.startswith((FULL, "held:"))',
        '"disk" in now.story.state_reason',
        "REPEATED in reason",
        'reason.lower() == "stopped"',
        're.search("is full", outcome.detail)',
        "PATTERN.match(incident.ending)",
        'WORDS in (i["ending"] or "")',
        'change.why.startswith("go on from ")',
    ],
)
def test_a_condition_on_words_is_found(line: str) -> None:
    assert list(conditions(line)) == [1]


@pytest.mark.parametrize(
    "line",
    [
        'reason == ""',
        "reason != known.reason",
        'story.state_why.kind == "disk_full"',
        "job.cause in ENDS",
        "if_(reason)",
    ],
)
def test_a_condition_on_a_value_is_none(line: str) -> None:
    assert list(conditions(line)) == []
