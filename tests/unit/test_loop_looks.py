"""Which source and which stacks are a loop that changes nothing, and which are work."""

import ast
import textwrap
from typing import Any

import pytest

from trainwatch.core.act.evidence.loop_looks import (
    Frame,
    Stack,
    call_of,
    enclosing_while,
    loop_of,
    only_asks,
    only_reads,
)

STANDARD = "/usr/lib/python3.11/"
TRAIN = "/home/ann/train.py"


def at(function: str, line: int, *inner: Frame) -> Stack:
    """A stack, called by the script's first level."""
    return (*inner, Frame(function, TRAIN, line), Frame("<module>", TRAIN, 90))


def asks(function: str = "Event.is_set", module: str = "threading.py") -> Frame:
    return Frame(function, STANDARD + module, 601)


def place(source: str, *stacks: Stack) -> tuple[str, bool] | None:
    """Where the loop is, and whether it polls."""
    return loop_of(list(stacks), {TRAIN: textwrap.dedent(source)}.get)


BARE = """\
def spin(self):
    while not self.ready:
        pass
"""
POLLING = """\
def wait(event):
    while True:
        if event.is_set():
            break
"""


@pytest.mark.parametrize(
    ("loop", "reads", "asks"),
    [
        ("while True: pass", True, True),
        ("while not self.ready:\n    continue", True, True),
        ("while flags[0] == 0 and not done: pass", True, True),
        ("while True:\n    while a.b is not None: pass", True, True),
        # One that keeps something, or computes, is work.
        ("while n < 10: n += 1", False, False),
        ("while queue: item = queue.pop()", False, False),
        ("while (line := read()): pass", False, False),
        ("while True:\n    for x in data: pass", False, False),
        ("while True: self.total = f()", False, False),
        ("while a @ b: pass", False, False),
        ("while True: yield", False, False),
        ("while True: del cache[0]", False, False),
        ("while True:\n    try:\n        q.get_nowait()\n    except Empty:\n        continue", False, True),
    ],
)
def test_loop_that_only_reads_or_only_asks(loop: str, reads: bool, asks: bool) -> None:
    (node,) = ast.parse(loop).body
    assert isinstance(node, ast.While)
    assert (only_reads(node), only_asks(node)) == (reads, asks)


def test_innermost_loop_of_the_function_counts() -> None:
    source = textwrap.dedent("""\
        while True:
            def train():
                while step < total:
                    while not ready:
                        pass
                    step += 1
                evaluate()
            train()
        """)
    lines = {line: enclosing_while(source, "train", [line]) for line in (3, 5, 6, 7)}
    assert {line: loop and loop.lineno for line, loop in lines.items()} == {3: 3, 5: 4, 6: 3, 7: None}
    module = enclosing_while(source, "<module>", [8])
    assert module is not None
    assert module.lineno == 1
    assert enclosing_while(source, "other", [5]) is None
    assert enclosing_while("while True:", "<module>", [1]) is None


def test_thread_in_a_bare_loop_in_every_look_is_in_a_loop() -> None:
    assert place(BARE, at("Trainer.spin", 2), at("Trainer.spin", 3), at("Trainer.spin", 2)) == (
        "Trainer.spin (train.py:2)",
        False,
    )


def test_an_unknown_source_shows_nothing() -> None:
    assert loop_of([at("spin", 2)] * 3, lambda _file: None) is None


def test_thread_that_asks_the_standard_library_for_ever_is_in_a_loop() -> None:
    assert place(POLLING, at("wait", 3), at("wait", 3, asks()), at("wait", 2)) == ("wait (train.py:2)", True)
    assert place(POLLING, at("wait", 3), at("wait", 3, asks("exists", "genericpath.py"))) is not None


NO_LOOP = {
    "one look": (BARE, at("spin", 2)),
    "elsewhere once": (BARE, at("spin", 2), at("spin", 2), at("step", 2)),
    "called from elsewhere once": (BARE, at("spin", 2), (Frame("spin", TRAIN, 2), Frame("<module>", TRAIN, 91))),
    "a call in a bare loop": (BARE, at("spin", 2), at("spin", 2, Frame("ready", TRAIN, 8))),
    "a line that calls": (POLLING, at("wait", 3), at("wait", 3), at("wait", 3)),
    "one long question": (POLLING, at("wait", 3, asks()), at("wait", 3, asks())),
    "it computes": (POLLING, at("wait", 3), at("wait", 3, Frame("dumps", STANDARD + "json/__init__.py", 231))),
    "it calls its own": (POLLING, at("wait", 3), at("wait", 3, Frame("get", "/home/ann/queue.py", 12))),
    "of a package": (POLLING, at("wait", 3), at("wait", 3, Frame("get", STANDARD + "site-packages/queue.py", 12))),
    "the standard library alone": (POLLING, (asks(),), (asks(),)),
}


@pytest.mark.parametrize("looks", NO_LOOP.values(), ids=NO_LOOP)
def test_what_looks_show_is_no_loop(looks: tuple[Any, ...]) -> None:
    assert place(*looks) is None


def test_call_in_a_package_is_named_with_the_own_line_that_made_it() -> None:
    torch = Frame("synchronize", "/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py", 1162)
    assert call_of(at("train", 31, torch)) == "synchronize (__init__.py:1162), called by train (train.py:31)"
    assert call_of(at("train", 31)) == "train (train.py:31)"
    assert call_of((torch,)) == "synchronize (__init__.py:1162)"
