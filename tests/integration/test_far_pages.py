"""Each page of a run of another machine shows what it shows there; without a line, what was seen last."""

import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import msgspec
import pytest

from tests.fakes.e2e_world import own_runtime, until
from tests.fakes.ssh_host import LACKS, SshHost, end_connection, env_for, ssh_host
from tests.tiers import SECOND_TIER
from trainwatch.core.act.processes import all_processes
from trainwatch.core.app.hosts.run_there import run_there
from trainwatch.core.app.screen.mirror.all_runs import AllRuns, FarHosts
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.core.app.screen.run_services import AttemptStamps
from trainwatch.core.model.ports.screen import OpenRun
from trainwatch.core.model.remote.host import Host
from trainwatch.core.store.lock import is_held
from trainwatch.tui.app import TrainwatchApp

pytestmark = [
    SECOND_TIER,
    pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)} (package openssh-server)"),
]
TRAINER = """
import json, pathlib, struct, sys, time, zlib

def piece(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

def picture(path):
    rows = b"".join(b"\\0" + bytes((200, 10, 10)) * 64 for _ in range(64))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\\x89PNG\\r\\n\\x1a\\n" + piece(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
                     + piece(b"IDAT", zlib.compress(rows)) + piece(b"IEND", b""))

out = pathlib.Path("out")
shape = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
at = sys.argv.index("--resume_from_checkpoint") + 1 if "--resume_from_checkpoint" in sys.argv else 0
begin = int(sys.argv[at].rpartition("-")[2]) if at else 0
print(f"resumed from step {begin}", flush=True)
for step in range(begin + 1, 41):
    print(f"step {step}/100 loss {2 / step:.4f} lr 1e-4", flush=True)
    time.sleep(0.1)
    if step % 10 == 0:
        folder = out / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(shape)) + shape + struct.pack("<2f", 1, 2))
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
        picture(out / "sample" / f"job_{step:06d}_00.png")
raise ValueError("bad sample in shard 7")
"""
PROJECT = """
[run]
name = "job"
command = [PYTHON, "train.py"]
output_dir = "out"
preset = "hf"

[profiles]
ladder = ["hf-careful", "hf-fast"]

[restart]
backoff_s = [0.1]
"""
PAGES = ("dashboard", "log", "incidents", "checkpoints", "profiles", "metrics", "gpus", "host", "samples")


@pytest.fixture(scope="module")
def host() -> Iterator[SshHost]:
    with ssh_host() as made:
        yield made


@pytest.fixture(scope="module")
def env(host: SshHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of a screen on this machine, in force for all tests here."""
    folder = tmp_path_factory.mktemp("near")
    made = env_for(host, own_runtime(folder)) | {"TRAINWATCH_HOME": str(folder / "home"), "TZ": "UTC"}
    made |= {"PATH": f"{host.bin}:/usr/local/bin:/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.items():
            patch.setenv(name, value)
        time.tzset()
        yield made
        end_connection(host, made)
    time.tzset()


def box1(host: SshHost) -> Host:
    return Host(name="box1", ssh="box1", command=host.command(), folder=str(host.user.home / "project"))


@pytest.fixture(scope="module")
def run_id(host: SshHost, env: dict[str, str]) -> str:
    """A run that saved, painted, and ended by an error; its supervisor is done with it."""
    project = host.user.home / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAINER)
    python = host.user.python[-1]
    (project / "trainwatch.toml").write_text(PROJECT.replace("PYTHON", f'"{python}"'))
    for path in (project, *project.iterdir()):
        os.chown(path, *_owner(host.user.home))
    told: list[str] = []
    assert run_there(box1(host), ["run", "--detach"], terminal=False, warn=told.append) == 0, told
    run = until(host.runs, "a run there")[0]
    until(lambda: (run.incident(1) / "report.md").exists() or list(run.incidents.glob("*/*")), "evidence")
    until(lambda: not is_held(run.lock), "the supervisor is done")
    return run.id


def _owner(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_uid, status.st_gid


def opened(hosts: FarHosts, run_id: str) -> OpenRun:
    run = AllRuns(hosts).open(f"box1:{run_id}")
    until(lambda: run.feed.poll().story.attempts, "the copy")
    return run


@asynccontextmanager
async def shown(run: OpenRun) -> AsyncIterator[dict[str, str]]:
    """The texts of all pages, when nothing changes on them any more."""
    app = TrainwatchApp(run, interval_s=0)
    pages: dict[str, str] = {}
    async with app.run_test(size=(160, 50)) as pilot:
        await pilot.pause()
        for page in PAGES:
            if page != "dashboard":
                app.action_place(page)
            text, same = "", 0
            deadline = time.monotonic() + 60
            while same < 8 and time.monotonic() < deadline:
                assert app.dashboard is not None
                app.dashboard.look()
                await pilot.pause(0.1)
                newest = text_of(app)
                same = same + 1 if newest == text and "…" not in waits(newest) else 0
                text = newest
            pages[page] = text
        yield pages


def waits(text: str) -> str:
    return "…" if re.search(r"(Reading|Looking for|Calculating|Counting)[^…\n]*…", text) else ""


def text_of(app: TrainwatchApp) -> str:
    """All panes but the list of keys, with ages and the machine's name left out."""
    lines: list[str] = []
    for name, pane in getattr(app.screen, "panes", {}).items():
        if pane.display and name not in {"keys", "head"}:
            lines += [f"== {name} {pane.border_title or ''}", *pane.plain_lines()]
    text = "\n".join(line.rstrip() for line in lines).replace("box1: ", "")
    return re.sub(r" +", " ", re.sub(r"\b(\d+ (ms|s|min|m|h)\b ?)+", "# ", text))


async def test_each_page_shows_what_it_shows_there(host: SshHost, env: dict[str, str], run_id: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINWATCH_HOME", str(host.state))
        async with shown(MachineRuns().open(run_id)) as there:
            pass
    with closing(FarHosts([box1(host)])) as hosts:
        async with shown(opened(hosts, run_id)) as here:
            pass
    assert "bad sample in shard 7" in there["log"]
    assert "checkpoint-40" in there["checkpoints"]
    assert "64 × 64" in there["samples"]
    for page in PAGES:
        assert here[page] == there[page], page


async def test_without_a_line_each_page_shows_what_was_seen_last(
    host: SshHost, env: dict[str, str], run_id: str, request: pytest.FixtureRequest
) -> None:
    with closing(FarHosts([box1(host)])) as hosts:
        async with shown(opened(hosts, run_id)) as before:
            pass
    end_connection(host, env)
    request.addfinalizer(lambda: host.reach(host.port))
    host.reach(1)  # nothing answers there
    answers = Path(env["XDG_CACHE_HOME"]) / "trainwatch" / "hosts" / "box1" / "runs" / run_id / "answers"
    for path in answers.iterdir():
        KeptAnswersOf(path).make_older_s(7200)
    with closing(FarHosts([box1(host)])) as hosts:
        run = opened(hosts, run_id)
        async with shown(run) as lost:
            pass
        now = run.feed.poll()
        assert now.link.startswith("no line to box1 for ")
        assert now.link.endswith(" as of 2 h 00 m ago)"), now.link
        for page in PAGES:
            assert without_tabs(lost[page]) == without_tabs(before[page]), page
        first = str(host.runs()[0].attempt(1) / "train.log")
        assert run.logs is not None
        with pytest.raises(OSError, match="no line to box1"):
            run.logs.browser.after(first, 0, 10)


def without_tabs(text: str) -> str:
    """The row of tabs has the verdict, which says that there is no line."""
    return text.partition("\n==")[2]


class KeptAnswersOf:
    """The file of one answer."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def make_older_s(self, seconds: float) -> None:
        wall, data = msgspec.msgpack.decode(self._path.read_bytes())
        self._path.write_bytes(msgspec.msgpack.encode((wall - seconds, data)))


def test_lines_have_the_times_of_there(host: SshHost, env: dict[str, str], run_id: str) -> None:
    with closing(FarHosts([box1(host)])) as hosts:
        run = opened(hosts, run_id)
        assert run.logs is not None
        assert run.logs.stamps is not None
        log = str(host.runs()[0].attempt(1) / "train.log")
        lines = run.logs.browser.before(log, run.logs.browser.size(log), 100).lines
        index = AttemptStamps(host.runs()[0])
        times = [run.logs.stamps.time_of(1, line.offset) for line in lines]
        assert times == [index.time_of(1, line.offset) for line in lines]
        assert any(times)
        assert run.logs.stamps.offset_at(1, 2.0) == index.offset_at(1, 2.0)


def test_a_trial_is_run_there_and_a_cause_is_taught_there(host: SshHost, env: dict[str, str], run_id: str) -> None:
    with closing(FarHosts([box1(host)])) as hosts:
        run = opened(hosts, run_id)
        assert run.trials is not None
        assert run.causes is not None
        told: list[tuple[int, int]] = []
        result = run.trials.attempt("", 0.03, beside=True, progress=lambda done, total: told.append((done, total)))
        assert result.started
        assert told
        assert [each.steps > 0 for each in run.trials.results().values()] == [True]

        def cancel(_done: int, _total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run.trials.attempt("", 5.0, beside=True, progress=cancel)
        until(lambda: not _trials_there(run_id), "the trial there ended")
        assert "code_bug" in dict(run.causes.classes())
        said = run.causes.teach(1, "code_bug")
        assert "+=" in said
        written = [path.read_text() for path in (host.user.home / "project").rglob("*.toml")]
        assert any("bad sample" in text for text in written), said


def _trials_there(run_id: str) -> list[int]:
    words = {pid: Path(f"/proc/{pid}/cmdline") for pid in all_processes()}
    return [pid for pid, path in words.items() if path.exists() and b"trial" in path.read_bytes().split(b"\0")]
