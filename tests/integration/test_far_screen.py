"""A run of another machine on this screen: followed, steered, and told to be old when the line is cut."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import own_runtime, until
from tests.fakes.ssh_host import LACKS, SlowLine, SshHost, end_connection, env_for, ssh_host
from tests.tiers import SECOND_TIER
from trainwatch.core.app.screen.mirror.all_runs import AllRuns, AllStarters, FarHosts
from trainwatch.core.app.screen.supervisors import DetachedStarter
from trainwatch.core.model.control_messages import Reply
from trainwatch.core.model.observation import Command
from trainwatch.core.model.ports.screen import OpenRun
from trainwatch.core.model.remote.host import Host
from trainwatch.core.model.situation import Situation
from trainwatch.core.store.home import runs_folder
from trainwatch.core.views.state.verdict import verdict

pytestmark = [
    SECOND_TIER,
    pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)} (package openssh-server)"),
]
TRAINER = """
import time
for step in range(1, 100_000):
    print(f"step {step}/100000 loss {1 / step:.4f}", flush=True)
    time.sleep(0.2)
"""


class Near:
    """This machine, with a host ``box1`` whose run goes on."""

    def __init__(self, host: SshHost, env: dict[str, str]) -> None:
        self.host, self.env = host, env
        self._opened: list[FarHosts] = []

    def hosts(self) -> FarHosts:
        """As a screen that starts now has them."""
        made = FarHosts([Host(name="box1", ssh="box1", command=self.host.command())])
        self._opened.append(made)
        return made

    def close(self) -> None:
        for each in self._opened:
            each.close()


@pytest.fixture(scope="module")
def host() -> Iterator[SshHost]:
    with ssh_host() as made:
        yield made


@pytest.fixture
def near(host: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Near]:
    env = env_for(host, own_runtime(tmp_path)) | {"TRAINWATCH_HOME": str(tmp_path / "home")}
    env["PATH"] = f"{host.bin}:/usr/local/bin:/usr/bin:/bin"
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    host.reach(host.port)
    made = Near(host, env)
    yield made
    made.close()
    end_connection(host, env)


@pytest.fixture(scope="module")
def run_id(host: SshHost, tmp_path_factory: pytest.TempPathFactory) -> str:
    from trainwatch.core.app.hosts.run_there import run_there

    script = host.user.home / "train.py"
    script.write_text(TRAINER)
    script.chmod(0o644)
    words = ["run", "--name", "job", "--detach", "--", host.user.python[-1], str(script)]
    with pytest.MonkeyPatch.context() as patch:
        env = env_for(host, own_runtime(tmp_path_factory.mktemp("starter")))
        for name, value in (env | {"PATH": f"{host.bin}:/usr/local/bin:/usr/bin:/bin"}).items():
            patch.setenv(name, value)
        told: list[str] = []
        assert run_there(_box1(host), words, terminal=False, warn=told.append) == 0, told
        end_connection(host, env)
    return until(host.runs, "a run there")[0].id


def _box1(host: SshHost) -> Host:
    return Host(name="box1", ssh="box1", command=host.command())


def polled(run: OpenRun, wanted: Callable[[Situation], bool], what: str) -> Situation:
    seen: list[Situation] = []

    def look() -> bool:
        time.sleep(0.1)
        seen.append(run.feed.poll())
        return wanted(seen[-1])

    until(look, what)
    return seen[-1]


def step_of(now: Situation) -> int:
    return (now.progress.step if now.progress is not None else None) or 0


def test_a_run_is_followed_and_the_copy_agrees(near: Near, host: SshHost, run_id: str) -> None:
    runs = AllRuns(near.hosts())
    listed = until(lambda: [card for card in runs.runs() if not card.link], "the list of box1")
    assert [(card.id, card.host, card.state in {"starting", "running"}) for card in listed] == [
        (f"box1:{run_id}", "box1", True)
    ]
    run = runs.open(f"box1:{run_id}")
    now = polled(run, lambda s: step_of(s) > 3 and s.story.state == "running", "steps")
    assert (now.machine, now.link, verdict(now).level) == ("box1", "", "safe")
    later = polled(run, lambda s: step_of(s) > step_of(now) + 5, "more steps")
    assert abs(later.clock_ahead_s) < 5, "it is the same machine"
    charts = until(
        lambda: run.feed.charts(("host.ram_used", "progress.step"), 0, later.now_t, 50)["progress.step"], "a chart"
    )
    assert charts[-1][3] > 3
    assert run.logs is not None
    log = later.story.attempts[-1].log
    assert log is not None
    end = run.logs.browser.size(log)
    assert any("step" in line.text for line in run.logs.browser.before(log, end, 5).lines)
    assert run.checkpoints is not None
    assert run.profiles is not None
    copy = near.host.runs()[0].journal
    here = next(Path(near.env["XDG_CACHE_HOME"]).glob(f"trainwatch/hosts/box1/runs/{run_id}/journal.jsonl"))
    assert copy.read_bytes().startswith(here.read_bytes())
    assert not runs_folder(Path(near.env["TRAINWATCH_HOME"])).exists(), "no run of this machine"


def test_stop_and_resume_reach_the_supervisor_there(near: Near, host: SshHost, run_id: str) -> None:
    hosts = near.hosts()
    run = AllRuns(hosts).open(f"box1:{run_id}")
    polled(run, lambda s: s.story.state == "running", "running")
    reply = run.feed.send(Command(t=0.0, verb="stop", by="screen"))
    assert reply.ok, reply.message
    polled(run, lambda s: s.story.state == "stopped", "stopped")
    assert run.feed.send(Command(t=0.0, verb="resume", by="screen", fresh=True)).ok
    polled(run, lambda s: s.story.state == "running" and len(s.story.attempts) > 1, "running again")
    with pytest.raises(RuntimeError, match="already has a supervisor"):
        AllStarters(DetachedStarter(), hosts).start(f"box1:{run_id}")
    with pytest.raises(RuntimeError, match="trainwatch --on box1 forget"):
        AllRuns(hosts).forget(f"box1:{run_id}")


def test_a_cut_line_is_said_and_gone_on_with_when_it_is_back(near: Near, host: SshHost, run_id: str) -> None:
    run = AllRuns(near.hosts()).open(f"box1:{run_id}")
    before = polled(run, lambda s: step_of(s) > 3 and s.story.state == "running", "steps")
    host.reach(1)  # nothing answers there
    assert host.cut()
    lost = polled(run, lambda s: "no line to box1" in s.link, "the line is lost")
    assert verdict(lost).level == "warning"
    assert verdict(lost).clauses[1] == "then running"
    later = polled(run, lambda s: s.silent_s > lost.silent_s + 1, "the age grows")
    assert (later.now_t, step_of(later)) == (lost.now_t, step_of(lost)), "time stands still without a line"
    refused: Reply = run.feed.send(Command(t=0.0, verb="stop", by="screen"))
    assert (refused.ok, "no line to box1" in refused.message) == (False, True)
    host.reach(host.port)
    back = polled(run, lambda s: not s.link and step_of(s) > step_of(before) + 3, "the line is back")
    assert back.story.state == "running"
    here = next(Path(near.env["XDG_CACHE_HOME"]).glob(f"trainwatch/hosts/box1/runs/{run_id}/journal.jsonl"))
    assert host.runs()[0].journal.read_bytes().startswith(here.read_bytes())


def test_what_was_seen_last_is_shown_with_its_age_without_a_line(near: Near, host: SshHost, run_id: str) -> None:
    hosts = near.hosts()
    run = AllRuns(hosts).open(f"box1:{run_id}")
    seen = polled(run, lambda s: step_of(s) > 3, "steps")
    until(lambda: hosts.known["box1"].mirror.mark(hosts.known["box1"].mirror.run(run_id)).heard_wall, "a mark")
    hosts.known["box1"].cards_now()
    hosts.close()
    end_connection(host, near.env)
    host.reach(1)
    again = AllRuns(near.hosts())
    row = until(lambda: [c for c in again.runs() if "no line to box1: as of" in c.link], "the list as it was")[0]
    assert row.name == "job"
    now = polled(again.open(row.id), lambda s: "no line to box1" in s.link, "the run as it was")
    assert now.story.attempts
    assert step_of(now) >= step_of(seen) - 1
    assert verdict(now).level == "warning"


def test_a_slow_line_delays_what_is_new_and_nothing_else(near: Near, host: SshHost, run_id: str) -> None:
    line = SlowLine(host.port, 0.15)  # 300 ms for there and back
    try:
        host.reach(line.port)
        hosts = near.hosts()
        run = AllRuns(hosts).open(f"box1:{run_id}")
        first = polled(run, lambda s: step_of(s) > 3, "steps")
        until(lambda: hosts.known["box1"].link.state.round_trip_s, "a measured line")
        assert (hosts.known["box1"].link.state.round_trip_s or 0) >= 0.3
        polled(run, lambda s: step_of(s) > step_of(first) + 5 and not s.link, "more steps")
        line.broken = True  # nothing comes through any more, and nothing says so
        lost = polled(run, lambda s: bool(s.link), "silence is noticed")
        assert verdict(lost).level == "warning"
        charts = run.feed.charts(("host.ram_used",), 0, lost.now_t, 50)
        assert charts["host.ram_used"], "charts are read from the copy"
    finally:
        line.close()


def test_commands_of_this_machine_know_nothing_of_the_copy(near: Near, host: SshHost, run_id: str) -> None:
    from trainwatch.core.app.errors import CliError
    from trainwatch.core.app.runs.known_runs import all_runs, find_run

    hosts = near.hosts()
    AllRuns(hosts).open(f"box1:{run_id}")
    assert all_runs() == []
    with pytest.raises(CliError):
        find_run(run_id)
