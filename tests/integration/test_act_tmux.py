"""The window on a trainer: real tmux servers of our own, real keys, real deaths."""

import contextlib
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.slowness import slowness
from tests.fakes.tmux_place import socket_folder
from tests.integration.act_world import World, python, wait_for, world
from tests.tiers import SECOND_TIER, second
from trainwatch.core import processes
from trainwatch.core.act.view import tmux
from trainwatch.core.act.view.tmux import TmuxError, attach_command, is_log_view, output, popup_command
from trainwatch.core.app.plan.launch_plan import LaunchPlan
from trainwatch.core.app.preflight.check import Machine
from trainwatch.core.app.preflight.host_checks import check_old_sessions
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Settings, Tmux
from trainwatch.core.processes import is_alive

pytestmark = [pytest.mark.tmux, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]

TICKING = """if True:
    import signal, time
    signal.signal(signal.SIGINT, lambda *_: print("INTERRUPTED", flush=True))
    for i in range(100000):
        print(f"tick {i}")
        time.sleep(0.02)"""


class TmuxPlace:
    """A world with a tmux server of its own."""

    def __init__(self, run: World, environ: dict[str, str]) -> None:
        self.run = run
        self.environ = environ
        self.socket = f"trainwatch-test-{uuid.uuid4().hex[:12]}"

    def spec(self, name: str = "luca", **more: object) -> RunSpec:
        settings = Settings(tmux=Tmux(socket=self.socket, **more.pop("tmux", {})))  # type: ignore[arg-type]
        values: dict[str, object] = {
            "id": f"id-{name}",
            "name": name,
            "command": ("x",),
            "cwd": str(self.run.root),
            "created_wall": 0.0,
            "settings": settings,
        }
        return RunSpec(**(values | more))  # type: ignore[arg-type]

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.socket, *words],
            capture_output=True,
            text=True,
            check=True,
            env=self.environ,
            timeout=10,
        )
        return done.stdout

    def screen(self, session: str) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", f"={session}:trainer")

    @contextlib.contextmanager
    def attached(self, session: str) -> Iterator[None]:
        """A client is there meanwhile: a control client, which has no size and so changes none."""
        client = subprocess.Popen(
            ["tmux", "-L", self.socket, "-C", "attach-session", "-t", f"={session}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=self.environ,
        )
        try:
            yield
        finally:
            client.communicate(timeout=10)  # it ends with its input

    def shows(self, session: str, text: str) -> None:
        """To somebody who attaches to the session."""
        with self.attached(session):
            wait_for(lambda: text in self.screen(session), f"{text!r} in the window")

    def socket_path(self) -> str:
        return self.tmux("display-message", "-p", "#{socket_path}").strip()

    def server_pid(self) -> int:
        return int(self.tmux("display-message", "-p", "#{pid}"))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[TmuxPlace]:
    environ = {key: value for key, value in os.environ.items() if key not in {"TMUX", "TMUX_PANE"}}
    with world(tmp_path) as made, socket_folder() as environ["TMUX_TMPDIR"]:
        place = TmuxPlace(made, environ | {"LC_ALL": "C.UTF-8"})
        try:
            yield place
        finally:
            subprocess.run(
                ["tmux", "-L", place.socket, "kill-server"], capture_output=True, check=False, env=environ, timeout=10
            )


def test_tmux_options_of_the_user_are_not_changed(place: TmuxPlace) -> None:
    place.tmux("-f", "/dev/null", "new-session", "-d", "-s", "mine", "sleep", "600")
    before = [
        place.tmux("show-options", "-g"),
        place.tmux("show-options", "-gw"),
        place.tmux("show-options", "-t", "=mine:"),
    ]
    target = place.run.launch(*python(TICKING))
    assert tmux.show(place.spec(), target, place.environ).ok
    after = [
        place.tmux("show-options", "-g"),
        place.tmux("show-options", "-gw"),
        place.tmux("show-options", "-t", "=mine:"),
    ]
    assert after == before
    assert place.tmux("list-windows", "-t", "=mine:", "-F", "x") == "x\n"


def test_keys_in_the_log_view_do_not_reach_the_trainer(place: TmuxPlace) -> None:
    target = place.run.launch(*python(TICKING))
    session = tmux.show(place.spec(), target, place.environ).session
    assert session is not None
    place.shows(session, "tick 3")
    for key in ("C-c", "C-\\", "C-z", "C-c"):
        place.tmux("send-keys", "-t", f"={session}:trainer", key)
    lines = place.run.log(target).count("\n")
    later = f"tick {lines + 10}"
    place.run.log_has(target, later)
    place.shows(session, later)  # and the view itself goes on too
    assert "INTERRUPTED" not in place.run.log(target)
    assert is_alive(target.trainer)


class TerminalProgram:
    """A program in a pseudo-terminal, with keys and output as a person has them."""

    def __init__(self, argv: list[str], environ: dict[str, str]) -> None:
        self.keyboard, screen = pty.openpty()
        self.program = subprocess.Popen(
            argv, stdin=screen, stdout=screen, stderr=screen, env=environ | {"TERM": "xterm"}, start_new_session=True
        )
        os.close(screen)
        os.set_blocking(self.keyboard, False)
        self._seen = b""

    def sees(self, text: str) -> bool:
        with contextlib.suppress(OSError):
            while data := os.read(self.keyboard, 65536):
                self._seen += data
        return text in self._seen.decode("utf-8", "replace")

    def press(self, key: bytes) -> None:
        os.write(self.keyboard, key)

    def close(self) -> None:
        if self.program.poll() is None:
            self.program.kill()
        self.program.wait()
        os.close(self.keyboard)


@pytest.mark.parametrize("key", [b"q", second(b"\x03")], ids=["q", "ctrl-c"])
def test_a_view_in_tmux_detaches_by_key_and_shows_the_key(place: TmuxPlace, key: bytes) -> None:
    target = place.run.launch(*python(TICKING))
    session = tmux.show(place.spec(), target, place.environ).session
    assert session is not None
    terminal = TerminalProgram(attach_command(place.spec(), target, place.environ), place.environ)
    try:
        wait_for(lambda: terminal.sees("log of luca · q or Ctrl-C: leave"), "the status line")
        wait_for(lambda: terminal.sees("tick 60"), "the log, scrolled")
        terminal.press(key)
        wait_for(lambda: terminal.sees("detached") and terminal.program.poll() == 0, "the end of the view")
    finally:
        terminal.close()
    later = f"tick {place.run.log(target).count(chr(10)) + 10}"
    place.shows(session, later)  # the next one to come finds it going on
    assert is_alive(target.trainer)


@pytest.mark.parametrize("key", [b"q", second(b"\x03")], ids=["q", "ctrl-c"])
def test_a_view_without_tmux_ends_by_key(place: TmuxPlace, key: bytes) -> None:
    target = place.run.launch(*python(TICKING))
    terminal = TerminalProgram(attach_command(place.spec(), target, place.environ, plain=True), place.environ)
    try:
        wait_for(lambda: terminal.sees("tick 5"), "the log")
        assert terminal.sees("\x1b]2;log of luca, attempt 1 (file mode): no key here reaches the trainer; q or Ctrl-C")
        terminal.press(b"\x1a\x1c")
        seen = f"tick {place.run.log(target).count(chr(10)) + 10}"
        wait_for(lambda: terminal.sees(seen), "that it goes on")
        terminal.press(key)
        wait_for(lambda: terminal.program.poll() == 0, "the end of the view")
    finally:
        terminal.close()
    assert is_alive(target.trainer)
    assert "INTERRUPTED" not in place.run.log(target)


def test_a_users_session_of_the_same_name_is_not_used(place: TmuxPlace) -> None:
    place.tmux("-f", "/dev/null", "new-session", "-d", "-s", "trainwatch-luca", "sleep", "600")
    target = place.run.launch(*python(TICKING))
    report = tmux.show(place.spec(), target, place.environ)
    assert report.session == "trainwatch-luca-2"
    assert tmux.close(place.spec(), place.environ)
    assert place.tmux("list-sessions", "-F", "#{session_name}") == "trainwatch-luca\n"
    assert not tmux.close(place.spec(), place.environ)
    assert is_alive(target.trainer)


def test_runs_of_the_same_name_have_sessions_of_their_own(place: TmuxPlace) -> None:
    first, second = place.spec(), place.spec(id="id-other")
    target = place.run.launch(*python(TICKING))
    assert tmux.show(first, target, place.environ).session == "trainwatch-luca"
    machine = Machine(home=place.run.root / "home", environ=place.environ)
    found = check_old_sessions(LaunchPlan(spec=second), machine)
    assert found is not None
    assert found.result == "pass", found
    assert tmux.show(second, target, place.environ).session == "trainwatch-luca-2"
    assert tmux.close(second, place.environ)
    assert place.tmux("list-sessions", "-F", "#{session_name}") == "trainwatch-luca\n"
    place.tmux("set-option", "-u", "-t", "trainwatch-luca", tmux.MARK)
    found = check_old_sessions(LaunchPlan(spec=second), machine)
    assert found is not None
    assert "that trainwatch did not make" in found.found


def test_no_window_of_a_user_is_ended_in_a_tmux_with_a_socket_of_its_own(place: TmuxPlace) -> None:
    """The session was made on the default server, and window 0 of the server of ``$TMUX`` was ended in its place."""
    place.tmux("-f", "/dev/null", "new-session", "-d", "-s", "mine", "-n", "work", "sleep", "600")
    inside = place.tmux("display-message", "-p", "-t", "=mine:", "#{socket_path},#{pid},0").strip()
    environ = place.environ | {"TMUX": inside}
    spec = place.spec(settings=Settings())
    target = place.run.launch(*python(TICKING))
    for again in (False, True):
        report = tmux.show(spec, target, environ)
        assert report.detail == f"shown {'again ' if again else ''}in tmux session trainwatch-luca"
    windows = place.tmux("list-windows", "-a", "-F", "#{session_name}:#{window_name}")
    assert windows.split() == ["mine:work", "trainwatch-luca:trainer"]
    assert tmux.close(spec, environ)
    assert place.tmux("list-windows", "-a", "-F", "#{session_name}:#{window_name}") == "mine:work\n"


def test_an_attached_tmux_session_is_not_closed(place: TmuxPlace) -> None:
    target = place.run.launch(*python(TICKING))
    session = tmux.show(place.spec(), target, place.environ).session
    assert session is not None
    keyboard, terminal = pty.openpty()
    words = ["tmux", "-L", place.socket, "attach-session", "-t", f"={session}"]
    client = subprocess.Popen(
        words, stdin=terminal, stdout=terminal, stderr=terminal, env=place.environ | {"TERM": "xterm"}
    )
    try:
        wait_for(lambda: bool(place.tmux("list-clients", "-t", f"={session}")), "a client")
        assert not tmux.close(place.spec(), place.environ, unless_attached=True)
        place.tmux("detach-client", "-s", f"={session}")
        client.wait(10)
    finally:
        client.kill()
        client.wait()
        os.close(keyboard)
        os.close(terminal)
    assert tmux.close(place.spec(), place.environ, unless_attached=True)
    assert tmux.find_sessions(place.spec(), environ=place.environ).own is None


def test_names_and_paths_with_special_characters_reach_tmux_unchanged(place: TmuxPlace) -> None:
    target = place.run.launch(*python("print('über ✓')"), log=str(place.run.root / "a 'b\" $HOME;"))
    report = tmux.show(place.spec("x;"), target, place.environ)
    assert report.session == "trainwatch-x-"
    place.shows("trainwatch-x-", "über ✓")


def test_killing_the_tmux_server_does_not_affect_the_training(place: TmuxPlace) -> None:
    code = "import time\nfor i in range(100):\n    print(i)\n    time.sleep(0.01)"
    target = place.run.launch(*python(code))
    assert tmux.show(place.spec(), target, place.environ).ok
    place.run.log_has(target, "3\n")
    os.kill(place.server_pid(), signal.SIGKILL)
    assert place.run.exit(target).code == 0
    assert place.run.log(target) == "".join(f"{i}\n" for i in range(100))
    assert tmux.find_sessions(place.spec(), environ=place.environ).own is None
    assert tmux.show(place.spec(), target, place.environ).ok  # a new server shows the log again


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def tmux_clients(place: TmuxPlace) -> list[int]:
    """Clients that were started for the server of this test and that have not ended."""
    socket = f"-L{place.socket}".encode()
    found = []
    for pid in processes.all_processes():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if socket in words and b"new-session" not in words:  # the server keeps the argv of its first client
                found.append(pid)
    return found


@SECOND_TIER
def test_stopped_tmux_server_costs_the_deadline_and_a_sentence(place: TmuxPlace) -> None:
    target = place.run.launch(*python(TICKING))
    assert tmux.show(place.spec(), target, place.environ).ok
    begun = time.monotonic()
    with slowness() as machine, stopped(place.server_pid()):
        report = tmux.show(place.spec(), target, place.environ)
        attach = attach_command(place.spec(), target, place.environ)
    took_s = time.monotonic() - begun
    assert report.detail == (
        "no tmux window: the tmux server did not answer within 3 s; the training continues without one"
    )
    assert is_log_view(attach)
    assert took_s < 15.0 * machine.factor  # 3 s and 2 s, and the start of two Python processes
    wait_for(lambda: not tmux_clients(place), "the end of the clients")
    assert tmux.show(place.spec(), target, place.environ).ok  # it answers again


def test_a_request_ends_at_its_deadline(place: TmuxPlace) -> None:
    target = place.run.launch(*python(TICKING))
    assert tmux.show(place.spec(), target, place.environ).ok
    with stopped(place.server_pid()), pytest.raises(TmuxError, match=r"did not answer within 0\.2 s") as caught:
        output(place.spec().settings.tmux, place.environ, ("list-sessions",), deadline_s=0.2)
    assert caught.value.fault == "deadline"
    wait_for(lambda: not tmux_clients(place), "the end of the clients")


@pytest.mark.parametrize("words", [("list-sessions",), ("set-environment", "A", "b")])
def test_a_request_ends_with_its_tmux_client_if_the_caller_is_killed(place: TmuxPlace, words: tuple[str, ...]) -> None:
    target = place.run.launch(*python(TICKING))
    assert tmux.show(place.spec(), target, place.environ).ok
    server = place.server_pid()
    code = (
        "import os; from trainwatch.core.model.settings import Tmux; from trainwatch.core.act.view.tmux import *;"
        f"output(Tmux(socket={place.socket!r}), os.environ, {words!r}, deadline_s=600.0)"
    )
    with stopped(server):
        caller = subprocess.Popen([sys.executable, "-P", "-c", code], env=place.environ)
        waiting = wait_for(lambda: tmux_clients(place), "a tmux client that waits")
        caller.kill()
        caller.wait()
        wait_for(lambda: not tmux_clients(place), "the end of the client")
    assert waiting


def test_a_run_is_shown_in_a_popup_inside_the_same_server(place: TmuxPlace) -> None:
    target = place.run.launch(*python(TICKING))
    session = tmux.show(place.spec(), target, place.environ).session
    assert session is not None
    terminal = TerminalProgram(["tmux", "-L", place.socket, "new-session", "-s", "mine", "sh"], place.environ)
    try:
        wait_for(lambda: terminal.sees("[mine]"), "the user's session")
        terminal.press(f"{shlex.join(popup_command(place.socket_path(), session))}; echo po''pup closed\n".encode())
        wait_for(lambda: terminal.sees("log of luca · q or Ctrl-C: leave"), "the status line in the popup")
        wait_for(lambda: terminal.sees("tick 60"), "the log in the popup")
        terminal.press(b"\x02d")
        wait_for(lambda: terminal.sees("popup closed"), "the user's shell")
    finally:
        terminal.close()
    assert "mine" in place.tmux("list-sessions", "-F", "#{session_name}")
    assert is_alive(target.trainer)


def test_without_a_popup_the_client_is_switched(tmp_path: Path) -> None:
    called = tmp_path / "called"
    fake = tmp_path / "tmux"
    fake.write_text(
        f'#!/bin/sh\necho "$*" >> {called}\ncase "$*" in *-V*) echo tmux 3.3a;; *popup*) echo no >&2; exit 1;; esac\n'
    )
    fake.chmod(0o755)
    environ = os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMUX": "/tmp/s,1,0", "TMUX_PANE": "%1"}
    assert subprocess.run(popup_command("/tmp/s", "luca"), env=environ, check=False, timeout=30).returncode == 0
    assert called.read_text().splitlines()[-1] == "-S /tmp/s switch-client -t =luca"


def test_without_tmux_attach_follows_the_log(place: TmuxPlace) -> None:
    target = place.run.launch(*python(TICKING))
    environ = place.environ | {"PATH": str(place.run.root)}
    report = tmux.show(place.spec(), target, environ)
    assert (report.ok, report.session) == (False, None)
    assert report.detail == (
        "no tmux window: tmux is not installed (apt install tmux); the training continues without one"
    )
    argv = attach_command(place.spec(), target, environ)
    assert is_log_view(argv)
    assert "--pane" not in argv


def test_tmux_can_be_switched_off(place: TmuxPlace) -> None:
    target = place.run.launch(*python(TICKING))
    report = tmux.show(place.spec(tmux={"enabled": False}), target, place.environ)
    assert report.detail == "no tmux window: switched off (tmux.enabled)"


def test_attach_inside_tmux_switches_the_client(place: TmuxPlace) -> None:
    target = place.run.launch(*python(TICKING))
    spec = place.spec()
    session = tmux.show(spec, target, place.environ).session
    assert attach_command(spec, target, place.environ) == [
        "tmux",
        "-L",
        place.socket,
        "attach-session",
        "-t",
        f"={session}",
    ]
    path = place.socket_path()
    inside = place.environ | {"TMUX": f"{path},123,0"}
    assert session is not None
    assert attach_command(spec, target, inside) == popup_command(path, session)
    elsewhere = place.environ | {"TMUX": "/tmp/another,123,0"}
    assert is_log_view(attach_command(spec, target, elsewhere))
    assert is_log_view(attach_command(spec, target, place.environ, plain=True))


def test_pty_mode_shows_the_trainers_own_terminal(place: TmuxPlace) -> None:
    code = "print('name?', flush=True); print('hello', input())\nimport time; time.sleep(600)"
    target = place.run.launch(*python(code), terminal="pty")
    spec = place.spec(terminal="pty")
    session = tmux.show(spec, target, place.environ).session
    assert session is not None
    place.shows(session, "name?")
    place.shows(session, "keys reach it")
    place.tmux("send-keys", "-t", f"={session}:trainer", "-l", "Ada")
    place.tmux("send-keys", "-t", f"={session}:trainer", "Enter")
    place.shows(session, "hello Ada")
    place.run.log_has(target, "hello Ada")
