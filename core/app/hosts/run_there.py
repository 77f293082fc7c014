"""Running trainwatch on another machine over ssh: a verb or the screen there, or an answer for this process."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from trainwatch import __version__

from ...act import remote
from ...bound_process import bound
from ...config.location import USER_FILE, find_project, user_file
from ...model.run import Host, There
from ...model.text import did_you_mean
from ..errors import CliError, ExitCode, config_errors
from ..runs.known_runs import here

SOCKET_NAME_BYTES = 40 + 1 + 16
"""``%C`` of ssh_config(5), and what ssh adds while it makes the socket (mux.c)."""
NOISE_BYTES = 1_000_000
"""Most that the shell's own files may print before trainwatch there begins."""
KEPT_BYTES = 4096
"""Of standard error, for the reason of a failure."""
ANSWER_S = 20.0
"""Longest wait for the answer of a machine: ssh connects (10 s), and Python starts on a busy machine."""
ASKING = frozenset({"adopt", "checkpoints", "forget", "kill", "rehearse", "resume", "restart", "run", "stop", "trial"})
"""Verbs that ask a question on a terminal."""
ON_TERMINAL = frozenset({"attach"})
"""Verbs that are of no use without one."""
TOLD_THERE = ("COLORTERM", "NO_COLOR", "TERM_PROGRAM", "KITTY_WINDOW_ID", "STY")
"""Variables about the terminal that ssh does not pass on: its colours, its pictures, GNU screen."""
LEFT_ON = "\x1b[<u\x1b7\x1b[?1049l\x1b[?7;25h\x1b[?1000;1002;1003;1004;1006;1015;1016;2004;2048l\x1b[m\x1b[23;2t"
"""Ends what a program on the terminal there switched on and cannot end any more: kitty's keyboard, the alternate screen
(1049; the cursor stays), lines that do not wrap, a hidden cursor, mouse, focus, pasted text, size reports, colours, the
title. See xterm's ctlseqs."""


class UnansweredError(CliError):
    """The machine gave no answer. ``needs_a_person``: another attempt fails in the same way."""

    def __init__(self, text: str, *, needs_a_person: bool = False) -> None:
        super().__init__(ExitCode.FAILED, text)
        self.needs_a_person = needs_a_person


def needs_terminal(words: Sequence[str]) -> bool:
    """Whether the verb there asks a person, or shows a terminal."""
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb in ON_TERMINAL:
        return True
    own = words[: words.index("--")] if "--" in words else words
    return verb in ASKING and not {"--json", "--yes", "-y", "--help", "-h", "--dry-run"} & set(own)


def detached(words: Sequence[str]) -> list[str]:
    """The words; ``run`` and ``adopt`` with --detach, since what runs in the foreground there hangs on this line."""
    end = words.index("--") if "--" in words else len(words)
    own = words[:end]
    foreground = {"--detach", "--headless", "--dry-run", "--help", "-h"}
    if own and own[0] in {"run", "adopt"} and not foreground & set(own):
        return [*own, "--detach", *words[end:]]
    return list(words)


def show_there(host: Host, words: Sequence[str]) -> int:
    """Run ``trainwatch WORDS`` there on the terminal of this process: the screen, ``attach``, a verb that asks.

    Returns its exit code. Raises CliError if it could not be run there, or if the connection was cut.
    """
    terminal = {name: os.environ[name] for name in TOLD_THERE if name in os.environ}
    process = _started(host, remote.command_there(host, words, terminal=terminal), terminal=True, may_ask=True)
    said = Said(process.stderr, onward=True)
    with _ending_with_us(process):
        code = process.wait()
    if code == remote.SSH_FAILED:
        os.write(1, LEFT_ON.encode())
    _require(host, code, said, None)
    return code


def run_there(host: Host, words: Sequence[str], *, may_ask: bool, warn: Callable[[str], None]) -> int:
    """Run ``trainwatch WORDS`` there, and return its exit code; its output is passed on as it is.

    ``may_ask``: ssh may ask on the terminal of this process. Raises CliError if it could not be run there, or if the
    connection was cut.
    """

    def began(version: str) -> None:
        if version and version != __version__:
            other = f"{host.name} has trainwatch {version}, this machine {__version__}"
            warn(f"{other}: options and output are those of there")

    found = _answer(host, remote.command_there(host, words), may_ask=may_ask, began=began)
    _require(host, found.code, found.said, found.version)
    return found.code


def ask_there(host: Host, words: Sequence[str]) -> bytes:
    """What ``trainwatch WORDS`` prints there, within ANSWER_S; nobody is asked. Raises UnansweredError."""
    found = _answer(host, remote.command_there(host, words), may_ask=False)
    if found.late:
        raise UnansweredError(f"{host.name}: no answer within {ANSWER_S:.0f} s")
    _require(host, found.code, found.said, found.version)
    if found.code:
        last = " ".join(found.said.text().strip().splitlines()[-1:])
        why = last.removeprefix("trainwatch: ") or f"exit code {found.code}"
        raise UnansweredError(f"{host.name}: trainwatch {found.version or ''} there: {why}".replace("  ", " "))
    return found.out


def look(host: Host, *, may_ask: bool) -> There:
    """What there is on another machine: trainwatch, its version. Raises CliError with a sentence.

    ``may_ask``: ssh may ask on the terminal of this process.
    """
    found = _answer(host, remote.look_there(host), may_ask=may_ask)
    if found.version is None:
        problem = found.said.text()
        why = f"{host.name}: {problem.strip() or f'exit {found.code}'}"
        raise CliError(ExitCode.FAILED, remote.why_failed(host, problem) if found.code == remote.SSH_FAILED else why)
    told = dict(line.partition("=")[::2] for line in found.out.decode(errors="replace").splitlines())
    return There(version=version_of(told.get("version", "")), path=told.get("path", ""))


def missing_there(host: Host) -> str:
    if host.command:
        return f"{host.name}: `{host.command}` is not there, or no trainwatch ([hosts.{host.name}] command)"
    where = f"name it by [hosts.{host.name}] command"
    return f"{host.name}: no trainwatch there (looked in PATH and ~/.local/bin); install it there, or {where}"


class Answer(NamedTuple):
    """``version``: behind the line with MARK, None = that line never came. ``late``: it took longer than ANSWER_S."""

    version: str | None
    out: bytes
    code: int
    said: "Said"
    late: bool


def _answer(host: Host, command: str, *, may_ask: bool, began: Callable[[str], None] | None = None) -> Answer:
    """Run a command there, and keep what it prints; while a person may be asked, it may take any time.

    ``began``: called with the version there, and what follows is passed on as it comes, to this process's own output.
    """
    process = _started(host, command, may_ask=may_ask, output=subprocess.PIPE)
    said, late = Said(process.stderr, onward=began is not None), threading.Event()

    def give_up() -> None:
        late.set()
        process.terminate()

    timer = threading.Timer(ANSWER_S, give_up)
    assert process.stdout is not None
    with process.stdout as stream, _ending_with_us(process):
        if not may_ask and began is None:
            timer.start()
        head = behind_mark(stream)
        out = b"" if head is None else head[1]
        if head is not None and began is None:
            out += stream.read()
        elif head is not None and began is not None:
            began(head[0])
            _write(out)
            while got := os.read(stream.fileno(), 65_536):
                _write(got)
        code = process.wait()
        timer.cancel()
    return Answer(None if head is None else head[0], out, code, said, late.is_set())


def _started(
    host: Host, command: str, *, may_ask: bool, terminal: bool = False, output: int | None = None
) -> "subprocess.Popen[bytes]":
    """Start ssh with this command. Raises CliError if ssh is not installed.

    At the end of this process it gets SIGTERM: what runs over the connection is closed, and not the connection itself.
    """
    from ...store.control_client import socket_folder

    try:
        sockets = socket_folder(os.environ, SOCKET_NAME_BYTES)  # of the connections
        argv = remote.ssh_argv(host, sockets, command, terminal=terminal, may_ask=may_ask)
    except remote.NoSshError as error:
        raise UnansweredError(str(error), needs_a_person=True) from None
    stdin = None if may_ask or output is None else subprocess.DEVNULL
    return subprocess.Popen(bound(argv, at_end=signal.SIGTERM), stdin=stdin, stdout=output, stderr=subprocess.PIPE)


@contextlib.contextmanager
def _ending_with_us(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """It ends with whatever ends the wait for it."""
    try:
        yield
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _require(host: Host, code: int, said: "Said", version: str | None) -> None:
    """Raise UnansweredError with a sentence if trainwatch there did not run to its own end."""
    if code == remote.SSH_FAILED and version is not None:
        raise UnansweredError(
            f"{host.name}: the connection was cut; what was begun there goes on, its outcome is not known here"
        )
    if code == remote.SSH_FAILED:
        text = said.text()
        raise UnansweredError(remote.why_failed(host, text), needs_a_person=remote.needs_a_person(text))
    if code == remote.MISSING and not version:
        raise UnansweredError(missing_there(host), needs_a_person=True)
    if code == remote.NO_FOLDER and version is None and host.folder:
        gone = f"{host.name}: the folder {host.folder} is not there ([hosts.{host.name}] folder)"
        raise UnansweredError(gone, needs_a_person=True)


def behind_mark(stream: IO[bytes]) -> tuple[str, bytes] | None:
    """The version that the line with MARK names, and what came behind it; None: the line never came."""
    head = b""
    mark = remote.MARK.encode()
    while True:
        at = head.find(mark)
        end = head.find(b"\n", at) if at >= 0 else -1
        if end >= 0:
            break
        got = os.read(stream.fileno(), 65_536)
        if not got or len(head) > NOISE_BYTES:
            return None
        head += got
    return version_of(head[at + len(mark) : end].decode(errors="replace")), head[end + 1 :]


def version_of(line: str) -> str:
    """The number in ``trainwatch 0.2.0``; empty if it is none."""
    name, _, number = line.strip().partition(" ")
    return number.strip() if name == "trainwatch" else ""


def _write(data: bytes) -> None:
    """To standard output as it is: the other side has redacted it, and JSON stays as it was."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


class Said:
    """Keeps the end of standard error. ``onward``: it is passed on as it comes."""

    def __init__(self, stream: IO[bytes] | None, *, onward: bool) -> None:
        assert stream is not None
        self._stream = stream
        self._onward = onward
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._copy, name="ssh stderr", daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        with self._stream, contextlib.suppress(OSError):
            while got := os.read(self._stream.fileno(), 4096):
                self._kept += got
                del self._kept[:-KEPT_BYTES]
                if self._onward:
                    os.write(2, got)

    def text(self) -> str:
        """What came. The shared connection may keep the other end open, so its end is not waited for."""
        self._thread.join(0.2)
        return bytes(self._kept).decode(errors="replace")


# The other machines that can be named by ``--on``.

NONE_KNOWN = 'no other machine is known: write [hosts.box1] and ssh = "user@box1" into ~/.config/trainwatch/config.toml'


def all_hosts() -> "dict[str, Host]":
    """By name: those of the user's own file, then those that this folder's trainwatch.toml adds.

    A project's file cannot replace a host of the user's. Raises CliError if a file has problems.
    """
    own = user_file(os.environ)
    project = find_project(here())
    if not (_may_name_hosts(own) or _may_name_hosts(project)):
        return {}
    from ...config.hosts import hosts_in  # a screen that opens should not wait for it

    with config_errors():
        hosts = {} if own is None else hosts_in(own, alone=True)
        added = {} if project is None else hosts_in(project, alone=False)
    return {**added, **hosts}


def _may_name_hosts(path: Path | None) -> bool:
    """Whether it must be read as TOML. A file that cannot be read is: then that is told."""
    if path is None or not path.exists():
        return False
    try:
        return path.name == USER_FILE or b"hosts" in path.read_bytes()
    except OSError:
        return True


def host_named(name: str) -> "Host":
    """The host. Raises CliError (exit code 2) that names the nearest one, or how to add it."""
    hosts = all_hosts()
    if name in hosts:
        return hosts[name]
    place = user_file(os.environ) or "trainwatch.toml"
    add = f'; to add it, write into {place}: [hosts.{name}] and below it ssh = "user@{name}"'
    raise CliError(ExitCode.USAGE, f'no host "{name}"{did_you_mean(name, hosts) or add}')
