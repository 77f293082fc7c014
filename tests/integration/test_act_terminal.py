"""pty mode: a real terminal for the trainer, its log, and people who attach to it."""

import os
import pty
import select
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.integration.act_world import World, python, wait_for, world
from tests.integration.sense_world import ListInbox, RunClock, running
from trainwatch.core import spool
from trainwatch.core.act.launch import spawn
from trainwatch.core.act.launch.trainer_pty import CLIENT_BACKLOG_BYTES, LogFile
from trainwatch.core.act.view.pty_client import connect, frame
from trainwatch.core.model.observation import LogChunk
from trainwatch.core.processes import is_alive
from trainwatch.core.sense.log.log_tail import LogTail

ECHO = """if True:
    import os, signal, sys
    def resized(*_):
        print("size", *os.get_terminal_size(), flush=True)
    signal.signal(signal.SIGWINCH, resized)
    print(sys.stdin.isatty(), sys.stdout.isatty(), *os.get_terminal_size(), flush=True)
    while True:
        try:
            print("got", input(), flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)"""


class Person:
    """Someone at a terminal, running the attach program."""

    def __init__(self, directory: str, *more: str) -> None:
        self.master, slave = pty.openpty()
        spawn.set_size(self.master, 30, 90)
        self.slave = slave
        self.program = subprocess.Popen(
            [sys.executable, "-P", "-m", "trainwatch.core.act.view.pty_client", directory, *more],
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        self.text = ""

    def sees(self, text: str) -> None:
        def look() -> bool:
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 65536).decode("utf-8", "replace")
            return text in self.text

        wait_for(look, f"{text!r} on the screen, which shows {self.text!r}")

    def types(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def leave(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self.master)
        os.close(self.slave)


def test_the_trainer_gets_a_terminal_of_the_configured_size(run: World) -> None:
    target = run.launch(*python(ECHO), terminal="pty", columns=133, rows=44)
    run.log_has(target, "True True 133 44")


def test_pty_output_is_complete_in_the_log_when_the_exit_is_recorded(run: World) -> None:
    target = run.launch(*python("import sys\nsys.stdout.write('line\\n' * 200_000)\nsys.exit(7)"), terminal="pty")
    assert run.exit(target).code == 7
    assert target.log is not None
    assert Path(target.log).read_bytes() == b"line\r\n" * 200_000


def test_an_attached_terminal_shows_types_resizes_interrupts_and_detaches(run: World) -> None:
    target = run.launch(*python(ECHO), terminal="pty")
    run.log_has(target, "True True")
    person = Person(target.directory)
    try:
        person.sees("keys reach it, Ctrl-C interrupts the training; Ctrl-]: leave")
        person.sees("True True 120 40")  # what was there before
        person.sees("size 90 30")
        person.types("añ✓\r".encode())
        person.sees("got añ✓")
        spawn.set_size(person.master, 20, 100)
        person.program.send_signal(signal.SIGWINCH)
        person.sees("size 100 20")
        person.types(b"\x03")
        person.sees("interrupted")
        person.types(b"\x1d")
        person.sees("detached; the training continues")
        assert person.program.wait(10) == 0
    finally:
        person.leave()
    assert is_alive(target.trainer)
    run.log_has(target, "got añ✓")


def test_two_attached_terminals_show_the_same_output_and_the_end(run: World) -> None:
    target = run.launch(*python(ECHO), terminal="pty")
    run.log_has(target, "True True")
    people = [Person(target.directory), Person(target.directory, "--pane")]
    try:
        for person in people:
            person.sees("True True")
        people[0].types(b"both\r")
        for person in people:
            person.sees("got both")
        os.kill(target.trainer.pid, signal.SIGKILL)
        for person in people:
            person.sees("the terminal has closed")
            assert person.program.wait(10) == 0
    finally:
        for person in people:
            person.leave()
    assert run.exit(target).signal == 9
    wait_for(lambda: not (Path(target.directory) / spool.SOCKET).exists(), "the socket is removed")


def test_attaching_to_an_ended_attempt_is_refused_in_one_sentence(run: World) -> None:
    target = run.launch("true", terminal="pty")
    run.exit(target)
    wait_for(lambda: not is_alive(target.runner), "the runner is gone")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "trainwatch.core.act.view.pty_client", target.directory],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the trainer's terminal is closed")


def test_a_client_that_does_not_read_is_dropped_and_the_trainer_goes_on(run: World) -> None:
    code = f"import sys\ninput()\nsys.stdout.write('x' * {CLIENT_BACKLOG_BYTES * 4})\nprint('all written', flush=True)"
    target = run.launch(*python(code), terminal="pty")
    with closing(connect(target.directory)) as idle, closing(connect(target.directory)) as link:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.sendall(frame(b"d", b"\n"))
        assert run.exit(target).code == 0
    assert "all written" in run.log(target)


def test_malformed_data_on_the_terminal_socket_is_ignored(run: World) -> None:
    target = run.launch(*python(ECHO), terminal="pty")
    run.log_has(target, "True True")
    for nonsense in (b"d\xff\xff\xff\xff", b"w\0\0\0\1x", b"?\0\0\0\0", b"d\0\0"):
        with closing(connect(target.directory)) as link:
            link.sendall(nonsense)
    with closing(connect(target.directory)) as link:
        link.sendall(frame(b"d", b"still here\n"))
        run.log_has(target, "got still here")


def test_a_long_state_directory_path_works_in_pty_mode(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    with world(deep) as run:
        target = run.launch(*python(ECHO), terminal="pty")
        with closing(connect(target.directory)) as link:
            link.sendall(frame(b"d", b"deep\n"))
            run.log_has(target, "got deep")


def test_a_full_disk_drops_pty_output_and_is_recorded() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    read_end, write_end = os.pipe()
    try:
        log = LogFile(full)
        log.write(b"lost")
        log._handle = write_end
        log.write(b"kept\n")
        assert os.read(read_end, 1000) == (
            b"\r\n[trainwatch: 4 bytes of output were lost: No space left on device]\r\nkept\n"
        )
    finally:
        for handle in (full, read_end, write_end):
            os.close(handle)


def test_a_log_into_which_no_runner_copies_any_more_cannot_be_read(run: World) -> None:
    """The trainer goes on without a line: no step is no hang."""
    code = "import signal, time\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nprint('hi', flush=True)\ntime.sleep(60)"
    target = run.launch(*python(code), terminal="pty")
    run.log_has(target, "hi")
    inbox = ListInbox()
    tail = LogTail(inbox=inbox, clock=RunClock(), poll_s=0.01)
    with running(tail):
        tail.follow(target)
        wait_for(lambda: inbox.of(LogChunk), "its text")
        assert target.runner is not None
        os.kill(target.runner.pid, signal.SIGKILL)
        wait_for(lambda: inbox.of(LogChunk)[-1].unread, "that nothing comes any more")
    assert not inbox.of(LogChunk)[0].unread
