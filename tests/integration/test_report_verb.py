"""``trainwatch report`` on a run that is on disk."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.fakes.feed import CRASH, WALL0, created, started, training
from trainwatch.cli import main
from trainwatch.core.app.runs.report import last_words, wsl
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.fact import (
    AttemptEnded,
    AttemptStarted,
    CheckpointKnown,
    Fact,
    IncidentOpened,
    OutputKnown,
    StateChanged,
)
from trainwatch.core.model.observation import GpuReading, GpuSample, MetricValues
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.latest import ProgressPoint
from trainwatch.core.store.run_directory import RunDirectory

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(folder: Path) -> RunDirectory:
    """A run that crashed once and was given up, with its log and its losses."""
    log = folder / "train.log"
    log.write_text(
        'loading\nsteps: 1% | 3/300 Traceback (most recent call last):\n  File "t.py", line 1\nOSError: token=q1w2e3r4t5\n\n'
    )
    spec = RunSpec(
        id="luca-1a2b3c4d", name="luca", command=("python", "t.py", "--api-key", "zxcvbnm1"), cwd=str(folder),
        created_wall=WALL0,
    )  # fmt: skip
    directory = RunDirectory.create(folder / "home", spec)
    facts: list[tuple[float, tuple[Fact, ...]]] = [
        (0.0, created()),
        (1.0, (AttemptStarted(attempt=1, pid=1, log=str(log)), *started(1)[:1])),
        (90.0, training(1, 1)),
        (CRASH.t, (IncidentOpened(incident=CRASH), AttemptEnded(attempt=1, how="crashed", code=1, last_step=2340))),
        (CRASH.t + 1, (StateChanged(state="given_up", reason="it does not go away"),)),
    ]
    with JournalWriter(directory.journal) as journal:
        for t, batch in facts:
            journal.append_all(t, WALL0 + t, batch)
    history = HistoryWriter(directory.history)
    for i in range(100):
        history.add(ProgressPoint(t=100.0 + 40 * i, progress=Progress(step=i, loss=0.5 - i * 0.004)))
    for i in range(10):
        history.add(MetricValues(t=100.0 + 100 * i, values={"grad_norm": 2.0 - i / 10}))
    history.commit()
    history.close()
    return directory


@pytest.fixture
def say(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> Say:
    def call(*words: str) -> tuple[int, str, str]:
        code = main(["report", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_report_describes_the_whole_run(say: Say) -> None:
    code, out, err = say("luca")
    assert (code, err) == (0, "")
    assert out.startswith("# luca: given up\n")
    assert "CUDA out of memory" in out
    assert "\n    Traceback (most recent call last):\n" in out
    assert "loss | 0.5" in out
    assert "| grad_norm | 2.00 | 1.10 | 1.10 | 2.00 |" in out
    assert "zxcvbnm1" not in out
    assert "q1w2e3r4t5" not in out


def test_report_calls_nothing_damaged_that_was_written_again(say: Say, run: RunDirectory, tmp_path: Path) -> None:
    path = tmp_path / "out" / "checkpoint-20"
    path.mkdir(parents=True)
    (path / "state.pt").write_bytes(b"new")
    lost = Checkpoint(
        path=str(path), name=path.name, kind="directory", step=20, epoch=None, size_bytes=3, mtime=WALL0,
        verdict="nonfinite", reason="NaN",
    )  # fmt: skip
    with JournalWriter(run.journal) as journal:
        journal.append_all(CRASH.t + 2, WALL0 + CRASH.t + 2, (CheckpointKnown(checkpoint=lost),))

    _, out, _ = say("luca")
    assert "cannot be resumed from" not in out
    assert "writing: it was written again" in out

    os.utime(path / "state.pt", (WALL0, WALL0))
    os.utime(path, (WALL0, WALL0))
    assert "1 checkpoint cannot be resumed from; you may remove it: checkpoint-20" in say("luca")[1]


def test_a_run_may_be_named_by_an_option_and_its_folder_is_listed(
    run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    with JournalWriter(run.journal) as journal:
        journal.append_all(CRASH.t + 2, WALL0 + CRASH.t + 2, (OutputKnown(folder=str(tmp_path / "out"), why="seen"),))
    assert main(["status", "--run", "luca"]) == main(["status", "luca"])
    assert "luca" in capsys.readouterr().out
    for words in ((), ("luca",)):
        assert main(["checkpoints", "list", *words]) == 0
        assert f"no checkpoints in {tmp_path}/out" in capsys.readouterr().out


def test_report_as_json_is_one_object(say: Say) -> None:
    for words in (("--json",), ("--format", "json")):
        code, out, _ = say(*words)
        made = json.loads(out)
        assert code == 0
        assert (made["run"], made["state"], len(made["waiting"])) == ("luca", "given_up", 2)
        assert made["loss"]["first"] > made["loss"]["last"]
        assert [(metric["name"], metric["highest"]) for metric in made["metrics"]] == [("grad_norm", 2.0)]
        assert any(name == "kernel" for name, _ in made["environment"])


@pytest.mark.parametrize(("name", "begins"), [("r.md", "# luca"), ("r.html", "<!doctype html>"), ("r.json", "{")])
def test_report_format_follows_the_file_suffix_and_never_overwrites(
    say: Say, tmp_path: Path, name: str, begins: str
) -> None:
    assert say("-o", name)[0] == 0
    path = tmp_path / name
    text = path.read_text()
    assert text.startswith(begins)
    path.write_text("mine")
    code, out, err = say("-o", name)
    assert (code, out) == (2, "")
    assert "already exists" in err
    assert path.read_text() == "mine"


def test_html_report_has_charts_of_the_values_that_are_known(say: Say, run: RunDirectory) -> None:
    shown = say("--format", "html")[1]
    assert shown.count("<svg") == 1
    assert "loss" in shown[shown.index("<svg") : shown.index("</svg>")]
    assert "GPU" not in shown[shown.index("<svg") : shown.index("</svg>")], "no reading, no chart"
    assert "#b8302a" in shown, "the crash is marked"
    history = HistoryWriter(run.history)
    for i in range(50):
        gpu = GpuReading(index=0, util_pct=97.0, mem_used_bytes=9 << 30, mem_total_bytes=16 << 30, own=True)
        history.add(GpuSample(t=100.0 + 80 * i, gpus=(gpu, msgspec.structs.replace(gpu, index=1, own=False))))
    history.commit()
    history.close()
    chart = say("--format", "html")[1]
    chart = chart[chart.index("<svg") : chart.index("</svg>")]
    assert "GPU 0" in chart
    assert "GPU 1" not in chart, "a GPU of others"
    assert "<svg" not in say()[1]


def test_report_does_not_write_through_a_dangling_link(say: Say, tmp_path: Path) -> None:
    (tmp_path / "r.md").symlink_to(tmp_path / "elsewhere.md")
    assert say("-o", "r.md")[0] == 2
    assert not (tmp_path / "elsewhere.md").exists()


def test_report_names_missing_sources(say: Say) -> None:
    assert say("nobody")[0] == 3
    code, _, err = say("-o", "no/such/folder/r.md")
    assert code == 3
    assert "no/such/folder/r.md" in err


def test_report_shows_the_last_traceback(tmp_path: Path) -> None:
    log = tmp_path / "l.log"
    log.write_text("Traceback (most recent call last):\nold\n" + "x\n" * 30)
    assert last_words(str(log))[0] == "Traceback (most recent call last):"
    log.write_text("a\n" * 30)
    assert len(last_words(str(log))) == 12
    log.write_text("Traceback (most recent call last):\n" + "deep\n" * 200 + "ValueError: 1\n")
    words = last_words(str(log))
    assert len(words) == 61
    assert words[-1] == "ValueError: 1"
    assert last_words(str(tmp_path / "none.log")) == ()


def test_report_recognises_wsl_by_the_kernel_release() -> None:
    assert wsl("6.1.0-18-amd64", {}) is None
    assert wsl("5.15.167.4-microsoft-standard-WSL2", {"WSL_DISTRO_NAME": "Ubuntu"}) == "WSL2, distribution Ubuntu"
    assert wsl("4.4.0-19041-Microsoft", {}) == "WSL1, distribution unknown"
