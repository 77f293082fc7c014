"""The control socket with real sockets: good clients, rude clients, none at all, a supervisor that died."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from trainwatch.core.model.observation import ENDING, Command, Reply, Request
from trainwatch.core.model.run import RunSpec
from trainwatch.core.store import control_client, control_server
from trainwatch.core.store.control_client import LINE_BYTES, NoSupervisor, SupervisorSilent, send, socket_folder
from trainwatch.core.store.control_server import ControlServer
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory

Handle = Callable[[Request], Reply]
Serve = Callable[..., ControlServer]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path, RunSpec(id="r", name="r", command=("c",), cwd="/", created_wall=0))


@pytest.fixture
def serve(run: RunDirectory, tmp_path: Path) -> Iterator[Serve]:
    (tmp_path / "xdg").mkdir(mode=0o700)
    with ExitStack() as stack:

        def start(handle: Handle, **times: float) -> ControlServer:
            server = ControlServer(run, handle, {"XDG_RUNTIME_DIR": str(tmp_path / "xdg")}, **times)
            server.start()
            stack.callback(server.stop)
            return server

        yield start


def echo(request: Request) -> Reply:
    return Reply(ok=True, message=request.command.verb if request.command else "ping", data={"n": 1})


def connect(server: ControlServer) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)  # blocking: with a timeout, a full queue of connections is an error
    client.connect(str(server.path))
    client.settimeout(10)
    return client


def answer(client: socket.socket) -> dict[str, object]:
    data = b""
    while not data.endswith(b"\n"):
        received = client.recv(65536)
        assert received, "closed without an answer"
        data += received
    decoded = json.loads(data)
    assert isinstance(decoded, dict)
    return decoded


def test_a_control_command_is_delivered_and_answered(run: RunDirectory, serve: Serve) -> None:
    server = serve(echo)
    assert send(run, Request()) == Reply(ok=True, message="ping", data={"n": 1})
    assert send(run, Request(command=Command(t=0, verb="stop"))).message == "stop"
    assert server.path is not None
    assert stat.S_IMODE(server.path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(server.path.stat().st_mode) == 0o600
    assert json.loads(run.control.read_bytes()) == {"version": 1, "socket": str(server.path), "pid": os.getpid()}


def test_a_missing_supervisor_is_reported_at_once(run: RunDirectory, serve: Serve) -> None:
    with pytest.raises(NoSupervisor, match=r"no supervisor is running for r; `trainwatch resume r` starts one"):
        send(run, Request())
    server = serve(echo)
    path = server.path
    server.stop()
    server.stop()
    assert path is not None
    assert not path.exists()
    assert not run.control.exists()
    with pytest.raises(NoSupervisor):
        send(run, Request())


def test_the_socket_of_a_dead_supervisor_is_replaced(run: RunDirectory, serve: Serve, tmp_path: Path) -> None:
    code = (
        "import sys, signal\nfrom pathlib import Path\nfrom trainwatch.core.store.run_directory import RunDirectory\n"
        "from trainwatch.core.store.control_server import ControlServer\n"
        "ControlServer(RunDirectory(Path(sys.argv[1])), print, {'XDG_RUNTIME_DIR': sys.argv[2]}).start()\n"
        "print(flush=True)\nsignal.pause()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(run.path), str(tmp_path / "xdg")], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert run.control.exists()
    with pytest.raises(NoSupervisor):
        send(run, Request())
    serve(echo)
    assert send(run, Request()).ok


def test_a_client_waits_for_a_starting_supervisor(run: RunDirectory, serve: Serve) -> None:
    with SupervisorLock(run.lock):
        with pytest.raises(SupervisorSilent, match="does not listen"):
            send(run, Request(), timeout_s=0.1)
        replies: list[Reply] = []
        client = threading.Thread(target=lambda: replies.append(send(run, Request(), timeout_s=10)))
        client.start()
        serve(echo)
        client.join()
    assert replies[0].ok


def test_a_command_waits_for_the_end_of_a_supervisor_that_takes_none(run: RunDirectory, serve: Serve) -> None:
    """Before: `resume` right behind a `kill` that ends the supervisor was answered "give it again", exit code 1."""
    ending = [Reply(ok=False, message="is just ending", data={ENDING: True})] * 2
    serve(lambda request: ending.pop() if ending else echo(request))
    with SupervisorLock(run.lock):
        assert send(run, Request(command=Command(t=0.0, verb="resume", by="ann"))).message == "resume"


def test_a_command_is_not_repeated_and_one_that_was_not_read_in_time_is_not_carried_out(
    run: RunDirectory, serve: Serve
) -> None:
    seen: list[Request] = []
    go_on = threading.Event()

    def slow(request: Request) -> Reply:
        seen.append(request)
        go_on.wait(10)
        return Reply(ok=True)

    serve(slow)
    for _ in range(2):  # the second one waits behind the first
        with pytest.raises(SupervisorSilent, match=r"did not answer within 0.1 s; `trainwatch events r`"):
            send(run, Request(), timeout_s=0.1)
    go_on.set()
    assert send(run, Request()).ok
    assert len(seen) == 2


def test_several_clients_and_requests_are_answered_at_once(serve: Serve) -> None:
    server = serve(echo)
    clients = [connect(server) for _ in range(10)]
    for client in clients:
        client.sendall(b'{"command":{"kind":"comm')
    for client in clients:
        client.sendall(b'and","t":0,"verb":"ack"}}\n\n')
    for client in clients:
        assert answer(client)["message"] == "ack"
        client.close()


def test_malformed_requests_are_answered_with_an_error(run: RunDirectory, serve: Serve) -> None:
    def handle(request: Request) -> Reply:
        if request.command is not None:
            raise RuntimeError("disk on fire")
        return Reply(ok=True)

    server = serve(handle)
    for line in (b"\xff\xfe", b"[]", b'{"command":{"kind":"command","t":0,"verb":"dance"}}', b"[" * 10_000):
        with connect(server) as client:
            client.sendall(line + b"\n")
            reply = answer(client)
            assert reply["ok"] is False
            assert str(reply["message"]).startswith("not understood")
    with connect(server) as client:
        client.sendall(b'{"command":{"kind":"command","t":0,"verb":"stop"}}\n')
        assert answer(client)["message"] == "the supervisor could not take it: disk on fire"
    with connect(server) as client:
        client.sendall(b"x" * (LINE_BYTES + 1))
        assert "at most 65536 bytes" in str(answer(client)["message"])
        client.settimeout(10)
        assert client.recv(1) == b"", "dropped"
    silent = connect(server)
    assert send(run, Request()).ok
    silent.close()


def test_idle_control_clients_are_dropped(serve: Serve) -> None:
    with connect(serve(echo, idle_s=0.0, look_s=0.02)) as client:
        with suppress(BrokenPipeError):  # dropped already
            client.sendall(b'{"half a')
        with suppress(ConnectionResetError):  # dropped before it was read
            assert client.recv(1) == b""


def test_a_client_beyond_the_bound_replaces_the_one_that_was_silent_longest(serve: Serve, run: RunDirectory) -> None:
    server = serve(echo)
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(control_server.CLIENTS)]
        for client in clients:
            client.sendall(b"{}\n")
            answer(client)
        extra = stack.enter_context(connect(server))
        extra.sendall(b"{}\n")
        answer(extra)
        assert clients[0].recv(1) == b""
        for client in clients[1:]:
            client.sendall(b"{}\n")
            answer(client)


def test_a_removed_socket_folder_is_recreated(run: RunDirectory, serve: Serve) -> None:
    """Logging out removes XDG_RUNTIME_DIR under a supervisor that goes on."""
    server = serve(echo, look_s=0.02)
    assert server.path is not None
    with SupervisorLock(run.lock):
        server.path.unlink()
        assert send(run, Request(), timeout_s=10).ok


def test_a_folder_that_was_made_for_one_socket_goes_with_it(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_client, "check_private", lambda _: os.close(-1))  # all folders are another user's
    server = serve(echo)
    assert server.path is not None
    folder = server.path.parent
    assert folder.parent == Path("/tmp")
    server.stop()
    assert not folder.exists()


def test_the_control_server_delivers_its_last_answer_when_it_stops(run: RunDirectory, serve: Serve) -> None:
    stopper: list[threading.Thread] = []

    def handle(_: Request) -> Reply:
        stopper.append(threading.Thread(target=server.stop))
        stopper[0].start()
        return Reply(ok=True, message="bye")

    server = serve(handle)
    assert send(run, Request()).message == "bye"
    stopper[0].join()


def test_control_sockets_are_reachable_by_the_owner_only(tmp_path: Path) -> None:
    assert socket_folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "trainwatch"
    long = tmp_path / ("x" * 100)
    long.mkdir()
    short = socket_folder({"XDG_RUNTIME_DIR": str(long), "TMPDIR": str(tmp_path)})
    assert short.parent == tmp_path
    assert stat.S_IMODE(short.stat().st_mode) == 0o700
    squatted = tmp_path / "t"
    squatted.mkdir()
    (squatted / f"trainwatch-{os.geteuid()}").mkdir(mode=0o777)
    (squatted / f"trainwatch-{os.geteuid()}").chmod(0o777)
    last_resort = Path(f"/tmp/trainwatch-{os.geteuid()}")
    existed = last_resort.exists()
    assert socket_folder({"TMPDIR": str(squatted)}).parent != squatted
    if not existed:
        with suppress(OSError):  # another program may use it by now
            last_resort.rmdir()
    (tmp_path / "gone").symlink_to(squatted)
    assert socket_folder({"XDG_RUNTIME_DIR": "/does/not/exist", "TMPDIR": str(tmp_path)}).parent == tmp_path


def test_half_open_connections_do_not_keep_a_command_out(serve: Serve, run: RunDirectory) -> None:
    server = serve(echo)
    with ExitStack() as stack:
        stack.enter_context(SupervisorLock(run.lock))  # as of a live supervisor, whose full queue is waited for
        for number in range(control_server.CLIENTS + 8):
            half = stack.enter_context(connect(server))
            if number % 2:
                with suppress(OSError):  # replaced already
                    half.sendall(b'{"command":')
        for _ in range(3):
            assert send(run, Request(command=Command(t=0, verb="ack", by="ann"))).message == "ack"


def test_after_a_client_for_whom_no_thread_was_left_later_ones_are_answered(
    run: RunDirectory, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control thread ended: the supervisor took no command any more."""
    server = serve(echo)

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        with closing(connect(server)) as client:
            assert client.recv(1) == b""
    assert send(run, Request(command=Command(t=0.0, verb="pause"))).ok
