"""The file and line of the user's own code at which a failure was raised, in the forms in which they are printed."""

from pathlib import Path

import pytest

from tests.builders import judge
from tests.shipped import CATALOGUE, FAILURES, SHAPES
from tests.unit.test_diagnosis_causes import QUIET
from tests.unit.test_judge_recovery import quick, running
from trainwatch.cli import main
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.text.numbers import placed
from trainwatch.core.model.observation import Exit, LogChunk

TRACEBACK = "Traceback (most recent call last):\n"
SYNTAX = '  File "/job/train.py", line 12\n    for x in (1, 2:\n                 ^\nSyntaxError: invalid syntax\n'
PLACES = {
    "syntax error of the script": (SYNTAX, "/job/train.py:12"),
    "indentation error of the script": (
        '  File "train.py", line 3\n    step()\n    ^\nIndentationError: expected an indented block\n',
        "train.py:3",
    ),
    "tab error without a caret": (
        '  File "train.py", line 3\n    y = 2\nTabError: inconsistent use of tabs\n',
        "train.py:3",
    ),
    "syntax error of an imported module": (
        (
            f'{TRACEBACK}  File "/job/train.py", line 1, in <module>\n    import net\n  File "/job/net.py", line 7\n'
            "    def f(:\n          ^\nSyntaxError: invalid syntax\n"
        ),
        "/job/net.py:7",
    ),
    "syntax error on a rank": ("".join(f"[rank3]: {line}\n" for line in SYNTAX.splitlines()), "/job/train.py:12"),
    "the innermost frame": (
        (
            f'{TRACEBACK}  File "/job/train.py", line 9, in <module>\n    main()\n  File "/job/data.py", line 4, in load\n'
            "    return d['x']\nKeyError: 'x'\n"
        ),
        "/job/data.py:4",
    ),
    "not one of a package": (
        (
            f'{TRACEBACK}  File "/job/train.py", line 9, in <module>\n    main()\n'
            '  File "/env/lib/python3.11/site-packages/net/mod.py", line 88, in f\n    raise ValueError\n'
            '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n    raise err\n'
            "json.decoder.JSONDecodeError: Expecting value: line 2 column 7 (char 15)\n"
        ),
        "/job/train.py:9",
    ),
    "nothing but packages and the script of a command": (
        (
            f'{TRACEBACK}  File "/env/bin/yolo", line 8, in <module>\n    sys.exit(entry())\n'
            '  File "/env/lib/python3.11/site-packages/net/mod.py", line 88, in f\n    raise ValueError("x")\nValueError: x\n'
        ),
        "",
    ),
    "a box of rich": (
        (
            "╭───── Traceback (most recent call last) ─────╮\n│ /job/train.py:12 in main                    │\n"
            "│                                             │\n│ ❱ 12     step()                             │\n"
            "╰─────────────────────────────────────────────╯\nTypeError: step() missing 1 required positional argument: 'n'\n"
        ),
        "/job/train.py:12",
    ),
    "IPython": (
        (
            f"{TRACEBACK}File /job/train.py:12, in main()\n     11 x = 1\n---> 12 step()\n"
            "TypeError: step() missing 1 required positional argument: 'n'\n"
        ),
        "/job/train.py:12",
    ),
    "faulthandler, newest frame first": (
        (
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n"
            '  File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 88 in conv\n'
            '  File "/job/net.py", line 31 in forward\n  File "/job/train.py", line 9 in <module>\n'
        ),
        "/job/net.py:31",
    ),
    "YAML: where the parser stopped": (
        (
            f'{TRACEBACK}  File "/job/train.py", line 2, in <module>\n    yaml.safe_load(f)\n'
            "yaml.parser.ParserError: while parsing a flow sequence\n"
            "  in \"conf/base.yaml\", line 2, column 4\nexpected ',' or ']', but got ':'\n"
            '  in "conf/base.yaml", line 3, column 2\n'
        ),
        "conf/base.yaml:3",
    ),
    "YAML of no file": (
        (
            f'{TRACEBACK}  File "/job/train.py", line 2, in <module>\n    yaml.safe_load(s)\n'
            "yaml.constructor.ConstructorError: could not determine a constructor for the tag '!x'\n"
            '  in "<unicode string>", line 1, column 4:\n'
        ),
        "/job/train.py:2",
    ),
    "configparser": (
        (
            f'{TRACEBACK}  File "/job/train.py", line 2, in <module>\n    c.read("a.ini")\n'
            "configparser.MissingSectionHeaderError: File contains no section headers.\nfile: 'a.ini', line: 1\n'[a\\n'\n"
        ),
        "a.ini:1",
    ),
    "no traceback": ("RuntimeError: CUDA error: an illegal memory access was encountered\n", ""),
    "a header far above": (SYNTAX.splitlines()[0] + "\nx\n" * 4 + "SyntaxError: invalid syntax\n", ""),
}


@pytest.mark.parametrize(("text", "place"), PLACES.values(), ids=PLACES)
def test_the_place_of_a_failure(text: str, place: str) -> None:
    assert diagnosis_of([text], CATALOGUE, 1).place == place
    assert diagnosis_of([QUIET, *text.splitlines(keepends=True)], CATALOGUE, 1).place == place


def test_the_place_is_that_of_the_exception_which_is_the_cause() -> None:
    """A finally block that fails, too, is no cause."""
    text = (
        f"{TRACEBACK}  File \"/job/net.py\", line 5, in f\n    load()\nModuleNotFoundError: No module named 'apex'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        f'{TRACEBACK}  File "/job/train.py", line 99, in <module>\n    close()\nBrokenPipeError: [Errno 32] Broken pipe\n'
    )
    assert diagnosis_of([text], CATALOGUE, 1).place == "/job/net.py:5"


def test_the_reason_and_the_evidence_of_an_incident_name_the_place() -> None:
    world = running(judge(quick(), catalogue=CompiledCatalogue(FAILURES, SHAPES)))

    world = world.see(LogChunk(t=world.t, text=f"\n{SYNTAX}"), Exit(t=world.t, code=1))

    assert world.incidents[-1].reason == "exit code 1: SyntaxError: invalid syntax (at train.py:12)"
    assert "raised at /job/train.py:12" in [each.what for each in world.incidents[-1].evidence]


@pytest.mark.parametrize(
    ("text", "place", "shown"),
    [
        ("SyntaxError: x", "/job/train.py:12", "SyntaxError: x (at train.py:12)"),
        ("ImportError: x", "/job/net/__init__.py:3", "ImportError: x (at net/__init__.py:3)"),
        ("error in /job/train.py:12: x", "/job/train.py:12", "error in /job/train.py:12: x"),
        ("Non-UTF-8 code in file /job/train.py on line 1, but", "/job/train.py:1", None),
        ("in train.py:120", "/job/train.py:12", "in train.py:120 (at train.py:12)"),
        ("x", "", "x"),
    ],
)
def test_a_place_is_named_once(text: str, place: str, shown: str | None) -> None:
    assert placed(text, place) == (text if shown is None else shown)


def test_diagnose_prints_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text(SYNTAX)

    assert main(["diagnose", str(log), "--exit-code", "1"]) == 0

    assert "  at       /job/train.py:12\n" in capsys.readouterr().out
