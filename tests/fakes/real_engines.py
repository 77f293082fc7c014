"""Container engines as they are installed, with their storage in a folder of the test.

Their containers are made of the machine's own files. Docker gets a daemon of its own; the clients of Podman and the
daemon run in a mount namespace without the second version of cgroups, which their runtimes take for the only one
where both are mounted. What ``podman`` is started by also leaves out limits that need CAP_SYS_RESOURCE.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.e2e_world import until

REPOSITORY = Path(__file__).parents[2]
WITHOUT_SECOND_CGROUPS = "exec unshare --mount sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\"' sh"
IMAGE = "trainwatch-test"
DIRECTORIES = ("etc", "root", "tmp", "proc", "sys", "dev", "run")


class Engine(NamedTuple):
    """``words``: the command up to that of the trainer. ``client``: what is asked for the containers."""

    name: str
    words: tuple[str, ...]
    client: str
    env: Mapping[str, str]
    has_cgroups: bool

    def running(self) -> list[str]:
        """Ids of the containers that run."""
        done = subprocess.run(
            [self.client, "ps", "-q"], env={**os.environ, **self.env}, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    def kill_all(self) -> None:
        """Leave no container."""
        for name in self.running():
            subprocess.run(
                [self.client, "kill", name], env={**os.environ, **self.env}, capture_output=True, check=False
            )


@contextlib.contextmanager
def engine(name: str, folder: Path, shared: Path) -> Iterator[Engine]:
    """The engine of that name, whose containers write to ``shared``. Skips the test where it runs no container."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    with contextlib.ExitStack() as stack:
        found = ENGINES[name](folder, shared, stack)
        done = subprocess.run(
            [*found.words, "true"], env={**os.environ, **found.env}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"{name} runs no container here: {done.stderr.strip()[-300:]}")
        stack.callback(found.kill_all)
        yield found


def _needed(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"no {program} (Debian: apt install {package})")
    return path


def _volumes(shared: Path) -> dict[Path, str]:
    """What a container needs of this machine: (folder, how it is mounted)."""
    places = [Path(p) for p in ("/usr", "/lib", "/lib64", "/bin", "/sbin")]
    places += [Path(sys.base_prefix), Path(sys.prefix), REPOSITORY]
    return {place: "ro" for place in places if place.exists()} | {shared: "rw"}


def _volume_words(shared: Path) -> list[str]:
    return [word for place, how in _volumes(shared).items() for word in ("-v", f"{place}:{place}:{how}")]


def _podman(folder: Path, shared: Path, _: contextlib.ExitStack) -> Engine:
    program = _needed("podman", "podman")
    tools, root = folder / "bin", folder / "rootfs"
    tools.mkdir()
    (tools / "podman").write_text(f'#!/bin/sh\n{WITHOUT_SECOND_CGROUPS} {program} --cgroup-manager=cgroupfs "$@"\n')
    (tools / "podman").chmod(0o755)
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder / "graph"}"\nrunroot = "{folder / "podman-run"}"\n'
    )
    (folder / "containers.conf").write_text("[containers]\ndefault_ulimits = []\npids_limit = 0\n")
    env = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "CONTAINERS_CONF": str(folder / "containers.conf"),
    }
    for place in (*_volumes(shared), *(Path("/", each) for each in DIRECTORIES)):
        (root / place.relative_to("/")).mkdir(parents=True, exist_ok=True)
    words = ("podman", "run", "--rm", "--cgroups=disabled", "--network=none", *_volume_words(shared))
    return Engine("podman", (*words, "--rootfs", str(root)), str(tools / "podman"), env, has_cgroups=False)


def _docker(folder: Path, shared: Path, stack: contextlib.ExitStack) -> Engine:
    client, env = _docker_daemon(folder, stack)
    words = ("docker", "run", "--rm", "--network=none", *_volume_words(shared), IMAGE)
    return Engine("docker", words, client, env, has_cgroups=True)


def _compose(folder: Path, shared: Path, stack: contextlib.ExitStack, *tool: str) -> Engine:
    client, env = _docker_daemon(folder, stack)
    project = {
        "services": {
            "trainer": {
                "image": IMAGE,
                "network_mode": "none",
                "volumes": [f"{place}:{place}:{how}" for place, how in _volumes(shared).items()],
            }
        }
    }
    file = folder / "compose.yaml"
    file.write_text(json.dumps({"version": "3", **project}))
    words = (*tool, "-f", str(file), "run", "--rm", "-T", "trainer")
    return Engine(" ".join(tool), words, client, env, has_cgroups=True)


def _compose_plugin(folder: Path, shared: Path, stack: contextlib.ExitStack) -> Engine:
    _needed("docker", "docker.io")
    done = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("the client docker has no plugin compose")
    return _compose(folder, shared, stack, "docker", "compose")


def _compose_program(folder: Path, shared: Path, stack: contextlib.ExitStack) -> Engine:
    _needed("docker-compose", "docker-compose")
    return _compose(folder, shared, stack, "docker-compose")


def _docker_daemon(folder: Path, stack: contextlib.ExitStack) -> tuple[str, dict[str, str]]:
    """The client, and the variables with which it finds a daemon that ends with the test."""
    daemon, client = _needed("dockerd", "docker.io"), _needed("docker", "docker.io")
    _needed("containerd", "containerd")
    socket, log = folder / "docker.sock", folder / "dockerd.log"
    words = [
        "sh", "-c", f'{WITHOUT_SECOND_CGROUPS} "$@"', "sh", daemon, "--host", f"unix://{socket}",
        "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"), "--pidfile", str(folder / "pid"),
        "--storage-driver=vfs", "--iptables=false", "--ip6tables=false", "--bridge=none",
    ]  # fmt: skip
    with log.open("wb") as file:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    stack.callback(_end, process)
    env = {"DOCKER_HOST": f"unix://{socket}"}

    def answers() -> bool:
        done = subprocess.run(
            [client, "version"], env={**os.environ, **env}, capture_output=True, text=True, check=False
        )
        return done.returncode == 0 or process.poll() is not None

    until(answers, f"dockerd answers: {log}")
    if process.poll() is not None:
        pytest.skip(f"dockerd does not run here: {log.read_text().strip()[-300:]}")
    subprocess.run(
        [client, "import", "-", IMAGE], env={**os.environ, **env}, input=_empty_image(), capture_output=True, check=True
    )
    return client, env


def _empty_image() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in DIRECTORIES:
            place = tarfile.TarInfo(name)
            place.type, place.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(place)
    return made.getvalue()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()  # it ends its containers and containerd
    process.wait()


ENGINES: Mapping[str, Callable[[Path, Path, contextlib.ExitStack], Engine]] = {
    "podman": _podman,
    "docker": _docker,
    "docker compose": _compose_plugin,
    "docker-compose": _compose_program,
}
