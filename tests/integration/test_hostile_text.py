"""Files that somebody else may have written, or that a disk has damaged: a sentence, never a traceback or a wait."""

import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import Done, in_this_process
from trainwatch.core import processes
from trainwatch.core.act.launch import locks
from trainwatch.core.act.launch.locks import SLOT_BYTES, SUPERVISOR, Owner
from trainwatch.core.act.launch.output_locks import NAME

TRAINER = [sys.executable, "-c", "for n in range(1, 4): print(f'step {n}/3 loss 0.{9 - n}', flush=True)"]
KEPT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def verb(folder: Path, *words: str) -> Done:
    return in_this_process(words, folder, {**KEPT, "HOME": str(folder), "TRAINWATCH_HOME": str(folder / "home")})


def lock_text(**changed: Any) -> str:
    owner = Owner("theirs-2", 2.0, "/nowhere/at/all", "/out")
    holder = locks.here(owner, SUPERVISOR)
    content = {"trainwatch": 1, **owner._asdict(), **holder._asdict()}
    del content["owner"]
    return json.dumps(content | changed)


def init() -> tuple[int, int]:
    process = processes.read_process(1)
    assert process is not None
    return 1, process.start_ticks


LOCKS = {
    "nested": "[" * 2000,
    "surrogate": lock_text(directory="\ud800"),
    "surrogate in the home": lock_text(home="/\udfff"),
    "NUL": lock_text(output_dir="/out\0/x"),
    "numbers as texts": lock_text(directory=[1], pid="1e999"),
    "infinite": lock_text(created=0).replace('"created": 0', '"created": 1e999'),
    "a long number": lock_text(pid=0).replace('"pid": 0', '"pid": ' + "9" * 1900),
    "escapes in the host": lock_text(host="\x1b]0;owned\x07\nsecond", boot="other"),
    "escapes in the run": lock_text(run="\x1b[2J", role="\x1b[H", trainer=init()),
    "init": lock_text(pid=1, start_ticks=init()[1], trainer=init(), directory="/somewhere"),
}


@pytest.mark.parametrize("text", LOCKS.values(), ids=LOCKS)
def test_what_a_lock_says_is_text(tmp_path: Path, text: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "config.json").write_text("{}")
    (out / NAME).write_bytes(text.encode().ljust(2 * SLOT_BYTES))
    done = verb(tmp_path, "run", "--dry-run", "--output-dir", str(out), "--", *TRAINER)
    told = done.out + done.err
    assert done.code in {0, 4}, told
    assert "\x1b" not in told
    assert "\x07" not in told
    assert "(kill" not in told


PROJECTS = {
    "nested arrays": (f"x = {'[' * 20_000}{']' * 20_000}", "nested too deeply"),
    "nested tables": (f"x = {'{a=' * 3000}1{'}' * 3000}", "nested too deeply"),
    "a long number": ("x = " + "9" * 5000, "not TOML"),
    "a long number in a table": ("[run]\nname = 'a'\nsteps = " + "1" * 4999, "not TOML"),
}


@pytest.mark.parametrize(("text", "said"), PROJECTS.values(), ids=PROJECTS)
@pytest.mark.parametrize("words", [("check",), ("run", "--dry-run"), ("status",)], ids=" ".join)
def test_a_hostile_project_file_is_one_sentence(tmp_path: Path, text: str, said: str, words: tuple[str, ...]) -> None:
    (tmp_path / "trainwatch.toml").write_text(text)
    done = verb(tmp_path, *words)
    assert done.code in {1, 2, 3}
    assert words[0] == "status" or (said in done.out + done.err and "trainwatch.toml" in done.out + done.err)
    assert "Traceback" not in done.err


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: Path(path).symlink_to("/dev/null")], ids=["FIFO", "device"])
def test_a_project_file_that_is_no_file_is_said(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "trainwatch.toml")
    done = verb(tmp_path, "check")
    assert done.code != 0
    assert "trainwatch.toml: no regular file" in done.out + done.err


@pytest.mark.parametrize("words", [("verify",), ("verify", "--deep"), ("show",), ("list",)], ids=" ".join)
@pytest.mark.parametrize("links", [{"loop.pt": "loop.pt"}, {"a.bin": "b.bin", "b.bin": "a.bin"}], ids=len)
def test_a_checkpoint_folder_with_links_that_lead_nowhere(
    tmp_path: Path, links: dict[str, str], words: tuple[str, ...]
) -> None:
    folder = tmp_path / "checkpoint-10"
    folder.mkdir()
    (folder / "model.pt").write_bytes(b"x")
    for name, target in links.items():
        (folder / name).symlink_to(target)
    done = verb(tmp_path, "checkpoints", words[0], str(folder), *words[1:])
    assert done.code in {0, 1}
    assert any(verdict in done.out + done.err for verdict in ("corrupt", "torn"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of a run that has finished and has a history."""
    folder = tmp_path_factory.mktemp("finished")
    env = {**KEPT, "HOME": str(folder), "TRAINWATCH_HOME": str(folder / "home")}
    words = [sys.executable, "-m", "trainwatch", "run", "--headless", "--", *TRAINER]
    subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True, timeout=100)
    return folder


def history(project: Path) -> Path:
    (path,) = (project / "home" / "runs").glob("*/history.sqlite")
    return path


def test_a_history_with_texts_where_numbers_belong_gives_a_report(finished: Path) -> None:
    path = history(finished)
    before = path.read_bytes()
    with sqlite3.connect(path) as changed:
        tables = [name for (name,) in changed.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for _, column, *_ in changed.execute(f"PRAGMA table_info({table})").fetchall():
                if column not in {"number", "kind"}:
                    changed.execute(f"UPDATE OR IGNORE {table} SET {column} = CAST(x'ff6e6f' AS TEXT)")
    changed.close()
    try:
        for form in ((), ("--format", "html"), ("--format", "json")):
            done = verb(finished, "report", *form)
            assert done.code == 0, done.err
            assert "finished" in done.out
        assert verb(finished, "status", "--json").code == 0
        assert verb(finished, "metrics").code in {0, 1, 3}
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("seed", range(12))
def test_a_history_with_flipped_bits_gives_a_report(finished: Path, seed: int) -> None:
    chosen = random.Random(seed)
    path = history(finished)
    before = path.read_bytes()
    damaged = bytearray(before)
    for _ in range(40):
        at = chosen.randrange(100, len(damaged))
        damaged[at] ^= 1 << chosen.randrange(8)
    path.write_bytes(damaged)
    try:
        for words in (("report", "--format", "html"), ("status", "--json"), ("metrics",)):
            done = verb(finished, *words)
            assert done.code in {0, 1, 3}, (words, done.err)
    finally:
        path.write_bytes(before)
