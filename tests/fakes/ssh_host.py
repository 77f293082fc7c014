"""Another machine for tests: a real sshd on loopback with its own host key, and another user where that is possible.

The ssh client reads only a configuration of its own (``ssh -F``, by a script named ``ssh`` in PATH).
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tests.fakes.e2e_world import PATIENCE_S, Done, until
from tests.fakes.tmux_place import end_server
from tests.source_trees import REPOSITORY
from trainwatch.core import processes
from trainwatch.core.act.launch.launching import find_attempt
from trainwatch.core.act.stopping import members
from trainwatch.core.store.lock import holder_pid
from trainwatch.core.store.run_directory import RunDirectory

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
LACKS = [name for name, at in (("sshd", SSHD), ("ssh", shutil.which("ssh"))) if at is None]


class FarUser(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs trainwatch there. ``python``: argv of a Python that this user may run, with what trainwatch needs."""

    name: str
    home: Path
    python: tuple[str, ...]
    another: bool = False


class SshHost:
    """``box1``. ``port``: of sshd. ``through``: port that the client connects to, if a proxy stands between."""

    def __init__(self, root: Path, user: FarUser) -> None:
        self.root, self.user = root, user
        self.port = free_port()
        self.config = root / "ssh_config"
        self.bin = root / "bin"
        self._daemon: subprocess.Popen[bytes] | None = None
        for name in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", root / name], check=True)
        (root / "authorized_keys").write_bytes((root / "user_key.pub").read_bytes())
        (root / "authorized_keys").chmod(0o644)
        self.bin.mkdir()
        (self.bin / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.config} "$@"\n')
        (self.bin / "ssh").chmod(0o755)
        self.reach(self.port)

    def reach(self, port: int, *, known: bool = True, identity: str = "user_key") -> None:
        """Write the client's configuration: the port to connect to, whether the host key is known, the user's key."""
        kind, key = (self.root / "host_key.pub").read_text().split()[:2]
        (self.root / "known_hosts").write_text(f"box1 {kind} {key}\n" if known else "")
        self.config.write_text(
            f"Host box1\n HostName 127.0.0.1\n Port {port}\n User {self.user.name}\n HostKeyAlias box1\n"
            f" IdentityFile {self.root}/{identity}\n IdentitiesOnly yes\n IdentityAgent none\n"
            f" UserKnownHostsFile {self.root}/known_hosts\n GlobalKnownHostsFile /dev/null\n"
        )

    def up(self) -> None:
        config = self.root / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.root}/host_key\nPidFile none\n"
            f"AuthorizedKeysFile {self.root}/authorized_keys\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # its privilege separation wants it
        assert SSHD is not None
        self._daemon = subprocess.Popen([SSHD, "-D", "-f", config, "-E", self.root / "sshd.log"])

        def answers() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
            assert self._daemon is not None
            assert self._daemon.poll() is None, (self.root / "sshd.log").read_text()
            return False

        until(answers, "sshd listens")

    def cut(self) -> list[int]:
        """End the server's side of all connections, as a lost line would; the daemon goes on. Returns their pids."""
        assert self._daemon is not None
        servers = [each for each in processes.descendants(self._daemon.pid) if each.name.startswith("sshd")]
        for server in servers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(server.pid, signal.SIGKILL)
        return [server.pid for server in servers]

    def down(self) -> None:
        """End the daemon and all connections."""
        if self._daemon is not None:
            self.cut()
            self._daemon.kill()
            self._daemon.wait(PATIENCE_S)
            self._daemon = None

    def command(self, state: Path | None = None) -> str:
        """``[hosts.box1] command``: the checkout's trainwatch, run by the user there."""
        own = (
            f"TRAINWATCH_HOME={state or self.state} TMUX_TMPDIR={self.user.home} XDG_CACHE_HOME={self.user.home}/cache"
        )
        return f"env {own} {' '.join(self.user.python)} -m trainwatch"

    @property
    def state(self) -> Path:
        """TRAINWATCH_HOME there."""
        return self.user.home / "state"

    def runs(self) -> list[RunDirectory]:
        folder = self.state / "runs"
        return [RunDirectory(p) for p in sorted(folder.iterdir()) if p.name[0] != "."] if folder.is_dir() else []

    def clear(self) -> None:
        """End all that runs there."""
        self.down()
        for tmux in self.user.home.glob("tmux-*/*"):
            end_server("-S", str(tmux), env=dict(os.environ))
        for run in self.runs():
            if (pid := holder_pid(run.lock)) is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for folder in run.attempts.iterdir():
                target = find_attempt(folder)
                if target is None:
                    continue
                for process in members(target):
                    processes.send_signal(process.key, signal.SIGKILL)
                if target.runner is not None:
                    processes.send_signal((target.runner.pid, target.runner.start_ticks), signal.SIGKILL)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def far_user() -> Iterator[FarUser]:
    """Another user with a home of its own if this is root and that user can run trainwatch; else the same one."""
    home = Path(tempfile.mkdtemp(prefix="tw-far-"))
    try:
        if os.geteuid() == 0 and shutil.which("useradd") is not None and (python := _python_for_others()) is not None:
            name = f"tw-far-{os.getpid()}"
            useradd = [
                "useradd",
                "--password",
                "*",
                "--shell",
                shutil.which("bash") or "/bin/sh",
                "--home-dir",
                str(home),
            ]
            if not subprocess.run([*useradd, name], check=False).returncode:
                shutil.chown(home, name)
                try:
                    yield FarUser(name=name, home=home, python=python, another=True)
                finally:
                    subprocess.run(["userdel", "--force", name], capture_output=True, check=False)
                return
        me = pwd.getpwuid(os.geteuid()).pw_name
        yield FarUser(name=me, home=home, python=(sys.executable,))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _python_for_others() -> tuple[str, ...] | None:
    """argv of a Python of the same version that others than root may run, with this checkout's packages."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [str(REPOSITORY / "src"), *(path for path in sys.path if path.endswith("site-packages"))]
    for place in ("/usr/bin", "/usr/local/bin"):
        python = Path(place) / name
        argv = ("env", f"PYTHONPATH={':'.join(folders)}", str(python))
        look = ["setpriv", "--reuid=65534", "--clear-groups", *argv, "-c", "import trainwatch.cli, msgspec, psutil"]
        if python.exists() and subprocess.run(look, cwd="/", capture_output=True, check=False).returncode == 0:
            return argv
    return None


@contextlib.contextmanager
def ssh_host() -> Iterator[SshHost]:
    """A host that is up; all that was started there is ended afterwards."""
    root = Path(tempfile.mkdtemp(prefix="tw-ssh-"))
    root.chmod(0o755)  # sshd reads the keys as the user there
    with far_user() as user:
        host = SshHost(root, user)
        try:
            host.up()
            yield host
        finally:
            host.clear()
            shutil.rmtree(root, ignore_errors=True)


def env_for(host: SshHost, env: Mapping[str, str]) -> dict[str, str]:
    """Variables of a trainwatch that reaches the host, added to others."""
    return {**env, "PATH": f"{host.bin}:{env.get('PATH', os.defpath)}"}


def end_connection(host: SshHost, env: Mapping[str, str]) -> Done:
    """End the shared connection, if there is one."""
    folder = Path(env["XDG_RUNTIME_DIR"]) / "trainwatch"
    done = subprocess.run(
        [host.bin / "ssh", "-o", f"ControlPath={folder}/%C", "-O", "exit", "box1"], capture_output=True, check=False
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
