"""Other machines on this terminal: the screen there, and the runs of all machines in one list; through a real sshd."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.e2e_world import PATIENCE_S, World, until, world_at
from tests.fakes.ssh_host import LACKS, SshHost, end_connection, env_for, free_port
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.tiers import SECOND_TIER

pytestmark = [
    SECOND_TIER,
    pytest.mark.tmux,
    NO_TMUX,
    pytest.mark.skipif(bool(LACKS), reason=f"not installed: {', '.join(LACKS)} (package openssh-server)"),
]
TRAINER = """
import time
for step in range(1, 100_000):
    print(f"step {step}/100000 loss {1 / step:.4f}", flush=True)
    time.sleep(0.2)
"""


@pytest.fixture
def near(tmp_path: Path, host: SshHost) -> Iterator[World]:
    """This machine, with a host that has a run, one without trainwatch, and one that is not there."""
    with world_at(tmp_path) as world:
        world.env = env_for(host, world.env) | {"XDG_CONFIG_HOME": str(tmp_path / "config")}
        file = tmp_path / "config" / "trainwatch" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(
            f'[hosts.box1]\nssh = "box1"\ncommand = "{host.command()}"\n[hosts.bare]\nssh = "box1"\n'
            f'[hosts.gone]\nssh = "ssh://127.0.0.1:{free_port()}"\n'
        )
        host.reach(host.port)
        yield world
        end_connection(host, world.env)


@pytest.fixture
def run_id(host: SshHost, near: World) -> str:
    """A training that goes on there."""
    if not host.runs():
        script = host.user.home / "train.py"
        script.write_text(TRAINER)
        script.chmod(0o644)
        started = near.do("--on", "box1", "run", "--name", "job", "--", host.user.python[-1], str(script))
        assert started.code == 0, started.err
        until(host.runs, "a run there")
    return host.runs()[0].id


def rows(text: str, *words: str) -> list[str]:
    """The lines of the screen with all of these words."""
    return [line for line in text.splitlines() if all(word in line for word in words)]


def goes_on(near: World, run_id: str) -> bool:
    return bool(near.do("--on", "box1", "status", run_id, "--json").json["state"] == "running")


def test_the_screen_opens_there_on_this_terminal(near: World, run_id: str) -> None:
    with terminal((120, 40), near.project, near.env) as person:
        person.trainwatch("--on", "box1", "--run", "job")
        person.see("Training", "step", "attempt 1", "log · following")
        assert near.runs() == [], "nothing of it is kept here"
        assert not list((near.short / "cache").rglob("*.sqlite")), "nor copied"
        person.press("6")
        person.see("runs of this machine", run_id)
        person.press("q")
        person.see(f"Open the screen again with: trainwatch --on box1 --run {run_id}")
        until(lambda: person.ended, "it ends with the screen there")
    assert goes_on(near, run_id)


def test_a_line_that_is_cut_leaves_a_terminal_that_can_be_used(near: World, host: SshHost, run_id: str) -> None:
    with terminal((80, 24), near.project, near.env) as person:
        person.run(f'"{sys.executable}" -m trainwatch --on box1; echo it was $?')
        person.see("Training")
        assert modes(person)[:2] == ["1", "1"]
        host.cut()
        person.see("the connection was cut; what runs there goes on", "closed.)", "it was 1")
        until(lambda: modes(person) == ["0", "0", "1", "1"], "screen, mouse, cursor and wrapping as before")
    end_connection(host, near.env)
    assert goes_on(near, run_id)


def modes(person: Terminal) -> list[str]:
    """Alternate screen, mouse, cursor, wrapped lines: as the terminal has them now."""
    asked = "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{wrap_flag}"
    return person.tmux("display-message", "-p", asked).split()


def test_what_is_missing_is_said_on_the_terminal(near: World) -> None:
    with terminal((120, 30), near.project, near.env) as person:
        person.run(f'"{sys.executable}" -m trainwatch --on bare; echo it was $?')
        person.see("bare: no trainwatch there", "install it there", "it was 1")
        person.run("clear")
        person.run(f'"{sys.executable}" -m trainwatch --on gone; echo it was $?')
        person.see("gone: the machine answers, but no ssh server listens there", "it was 1")
        bare_path = near.short / "no-ssh"
        bare_path.mkdir()
        person.run("clear")
        person.run(f'PATH={bare_path} "{sys.executable}" -m trainwatch --on box1; echo it was $?')
        person.see("ssh is not installed here", "it was 1")


def test_the_list_of_all_machines_has_their_runs_and_who_does_not_answer(near: World, run_id: str) -> None:
    near.write("--steps", "5000", "--step-time", "0.05")
    near.headless()
    near.at_step(1)
    listed = near.do("runs", "--on", "all", "--json").json
    told = {(row["host"], row["id"]): row for row in listed["runs"]}
    assert set(told) == {(None, near.run.id), ("box1", run_id)}
    far = told["box1", run_id]
    assert (far["run"], far["state"], far["total_steps"], far["needs_you"]) == ("job", "running", 100_000, None)
    assert far["eta_s"] > 0
    hosts = {each["name"]: each for each in listed["hosts"]}
    assert (hosts["box1"]["reached"], hosts["box1"]["trouble"]) == (True, None)
    assert "no trainwatch there" in hosts["bare"]["trouble"]
    assert "no ssh server listens there" in hosts["gone"]["trouble"]
    text = near.do("--on", "all", "runs").out
    assert rows(text, f"box1:{run_id}", "running", "left", "watched")
    assert rows(text, "gone ", "no answer: ", "no ssh server")
    refused = near.do("--on", "all", "stop", "job")
    assert (refused.code, "trainwatch runs --on all" in refused.err) == (2, True)


def test_enter_on_the_page_of_runs_opens_the_screen_there_and_leaving_it_comes_back(
    near: World, host: SshHost, run_id: str
) -> None:
    near.write("--steps", "5000", "--step-time", "0.05")
    near.headless()
    near.at_step(1)
    with terminal((120, 40), near.project, near.env) as person:
        person.trainwatch()
        person.see("Training")
        begun = time.monotonic()
        person.press("6")
        page = person.see("runs of 4 machines", "box1: job", "the machine answers", "no trainwatch there")
        assert time.monotonic() - begun < PATIENCE_S / 2
        assert rows(page, "● box1: job", "running", "of 100,000", "done ")
        assert rows(page, "– gone", "no answer")
        person.press_until("j", f"id       box1:{run_id}")
        person.press("h")
        person.see("a run of another machine")
        person.press("Enter")
        person.see("of 100,000", "log · following", "a attach")
        person.press("q")
        person.see("runs of 4 machines", "Back from box1.")
        host.down()
        try:
            person.press_until("L", "– box1: job", "was running", "as of ")
        finally:
            host.up()
        person.press_until("L", "● box1: job")
    assert goes_on(near, run_id)
