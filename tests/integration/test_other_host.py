"""``trainwatch --on HOST VERB``: over a real sshd on loopback, as another user where that is possible."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import PATIENCE_S, World, lives, until, world_at
from tests.fakes.ssh_host import LACKS, SshHost, end_connection, env_for
from tests.tiers import SECOND_TIER
from trainwatch import __version__
from trainwatch.core.processes import all_processes

pytestmark = [
    SECOND_TIER,
    pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)} (package openssh-server)"),
]
TRAINER = """
import sys, time
for step in range(1, 100_000):
    print(f"step {step}/100000 loss {1 / step:.4f}", flush=True)
    time.sleep(0.2)
"""


@pytest.fixture
def near(tmp_path: Path, host: SshHost) -> Iterator[World]:
    with world_at(tmp_path) as world:
        world.env = env_for(host, world.env) | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
        file = tmp_path / "config" / "trainwatch" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f'[hosts.box1]\nssh = "box1"\ncommand = "{host.command()}"\n[hosts.bare]\nssh = "box1"\n')
        host.reach(host.port)
        yield world
        end_connection(host, world.env)


@pytest.fixture(scope="module")
def run_id(host: SshHost, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A training that goes on there, started from here."""
    script = host.user.home / "train it.py"
    script.write_text(TRAINER)
    script.chmod(0o644)
    with world_at(tmp_path_factory.mktemp("starter")) as world:
        world.env = env_for(host, world.env) | {"XDG_CONFIG_HOME": str(world.short)}
        (world.project / "trainwatch.toml").write_text(f'[hosts.box1]\nssh = "box1"\ncommand = "{host.command()}"\n')
        python = host.user.python[-1]
        started = world.do("--on", "box1", "run", "--name", "job", "--", python, str(script), "two words", "$HOME")
        assert started.code == 0, started.err
        end_connection(host, world.env)
    until(host.runs, "a run there")
    return host.runs()[0].id


def following(words: str) -> list[int]:
    return [pid for pid, each in all_processes().items() if words in _words(pid) and lives(pid)]


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def test_reading_verbs_print_what_they_print_there(near: World, host: SshHost, run_id: str) -> None:
    status = near.do("--on", "box1", "status", run_id, "--json")
    assert (status.code, status.json["run"]) == (0, "job"), status.err
    spec = json.loads(host.runs()[0].spec.read_text())
    assert spec["command"][-2:] == ["two words", "$HOME"]
    assert spec["cwd"] == str(host.user.home) or not host.user.another
    runs = near.do("runs", "--on=box1", "--json").json
    assert [row["id"] for row in runs["runs"]] == [run_id]
    missing = near.do("--on", "box1", "status", "no such")
    assert (missing.code, missing.out) == (3, "")
    assert "trainwatch --on box1 runs" in missing.err
    assert near.runs() == []


def test_the_answer_comes_over_one_connection(near: World, host: SshHost, run_id: str) -> None:
    def logins() -> int:
        return (host.root / "sshd.log").read_text().count("Accepted publickey")

    before = logins()
    for _ in range(3):
        assert near.do("--on", "box1", "status", run_id).code == 0
    assert logins() == before + 1
    sockets = list((Path(near.env["XDG_RUNTIME_DIR"]) / "trainwatch").iterdir())
    assert len(sockets) == 1
    assert sockets[0].parent.stat().st_mode & 0o077 == 0


def test_ctrl_c_ends_following_here_and_there_and_not_the_training(near: World, host: SshHost, run_id: str) -> None:
    with (near.short / "out").open("wb") as out:
        follower = subprocess.Popen(
            [sys.executable, "-m", "trainwatch", "--on", "box1", "logs", run_id, "--follow"],
            env=near.env, cwd=near.project, stdin=subprocess.DEVNULL, stdout=out, start_new_session=True,
        )  # fmt: skip
    until(lambda: (near.short / "out").read_text().count("step") > 3, "lines of the log")
    assert len(following(f"logs {run_id} --follow")) >= 1
    os.killpg(follower.pid, signal.SIGINT)
    assert follower.wait(PATIENCE_S) == 130
    until(lambda: not following(f"logs {run_id} --follow"), "nothing follows there any more")
    assert near.do("--on", "box1", "status", run_id, "--json").json["state"] in {"running", "starting"}


def test_stop_asks_on_a_terminal_and_not_without_one(near: World, host: SshHost, run_id: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(near.project)
        os.execvpe(sys.executable, [sys.executable, "-m", "trainwatch", "--on", "box1", "stop", run_id], near.env)
    said = b""
    end = time.monotonic() + PATIENCE_S
    while b"[y/N]" not in said and time.monotonic() < end:
        said += os.read(terminal, 4096)
    os.write(terminal, b"n\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1, said
    os.close(terminal)
    assert near.do("--on", "box1", "status", run_id, "--json").json["state"] in {"running", "starting"}
    stopped = near.do("--on", "box1", "stop", run_id)
    assert stopped.code == 0, stopped.err
    until(lambda: near.do("--on", "box1", "status", run_id, "--json").json["state"] == "stopped", "stopped")
    resumed = near.do("--on", "box1", "resume", run_id, "--fresh")
    assert resumed.code == 0, resumed.err
    until(lambda: near.do("--on", "box1", "status", run_id, "--json").json["state"] == "running", "running again")


def test_a_cut_is_told_and_the_training_goes_on(near: World, host: SshHost, run_id: str) -> None:
    follower = near.begin("--on", "box1", "events", run_id, "--follow")
    until(lambda: "attempt" in follower.said, "events")
    assert host.cut()
    assert follower.ends() == 1
    assert "box1: the connection was cut" in follower.said
    assert "goes on" in follower.said
    until(lambda: not following(f"events {run_id} --follow"), "nothing follows there any more")
    assert near.do("--on", "box1", "status", run_id, "--json").json["state"] == "running"


def test_what_is_wrong_is_told_in_plain_words(near: World, host: SshHost) -> None:
    missing = near.do("--on", "bare", "status")
    assert missing.code == 1
    assert "no trainwatch there" in missing.err
    end_connection(host, near.env)
    host.reach(1)
    down = near.do("--on", "box1", "status")
    assert (down.code, down.out) == (1, "")
    assert "no ssh server listens there" in down.err
    host.reach(host.port, known=False)
    assert "its host key is not known here" in near.do("--on", "box1", "status").err
    host.reach(host.port, identity="host_key")
    assert "it refused the login" in near.do("--on", "box1", "status").err


def test_what_the_shell_prints_there_does_not_reach_json(near: World, host: SshHost, run_id: str) -> None:
    if not host.user.another:
        pytest.skip("the login shell's file of this user is not changed")
    (host.user.home / ".bashrc").write_text("echo welcome; echo to box1\n")
    try:
        said = subprocess.run([host.bin / "ssh", "box1", "true"], env=near.env, capture_output=True, check=True)
        assert said.stdout == b"welcome\nto box1\n"
        assert near.do("--on", "box1", "runs", "--json").json["runs"]
    finally:
        (host.user.home / ".bashrc").unlink()


def test_another_version_there_is_told_and_used(near: World, host: SshHost) -> None:
    old = host.user.home / "old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo "trainwatch 0.0.9"; exit 0; }\n'
                   'echo "{}"\n')  # fmt: skip
    old.chmod(0o755)
    file = Path(near.env["XDG_CONFIG_HOME"]) / "trainwatch" / "config.toml"
    file.write_text(f'[hosts.box1]\nssh = "box1"\ncommand = "{old}"\n')
    done = near.do("--on", "box1", "runs", "--json")
    assert (done.code, done.json) == (0, {})
    assert "box1 has trainwatch 0.0.9" in done.err
    listed = near.do("runs", "--on", "all", "--json").json
    trouble = next(each["trouble"] for each in listed["hosts"] if each["name"] == "box1")
    assert "answered what this version does not understand" in trouble


def test_the_list_of_hosts_says_which_answer(near: World, host: SshHost) -> None:
    file = Path(near.env["XDG_CONFIG_HOME"]) / "trainwatch" / "config.toml"
    file.write_text(file.read_text() + '[hosts.gone]\nssh = "ssh://127.0.0.1:1"\n')
    rows = {row["name"]: row for row in near.do("hosts", "--json").json["hosts"]}
    assert rows["box1"]["version"] == __version__
    assert (rows["bare"]["reached"], rows["bare"]["version"]) == (True, None)
    assert (rows["gone"]["reached"], "no ssh server" in rows["gone"]["trouble"]) == (False, True)
    assert near.do("hosts", "list", "gone").code == 1
