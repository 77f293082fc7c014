"""A container engine (``serve``) and its client in one program: each container is a PID namespace made by ``unshare``.

It behaves as docker does where trainwatch depends on it: the command is no child of the client, the client passes its
output and its exit status on, a client that is killed leaves the container behind, ``kill`` signals only the first
process, and variables reach the inside only by ``-e``. ``ENGINE_STATE`` is its folder; a file ``dead`` there makes it
refuse everything. Needs root.
"""
# ruff: noqa: T201 - a client prints

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

STATE = Path(os.environ.get("ENGINE_STATE", "/nonexistent"))
POLL_S = 0.02


def main(words: list[str]) -> int:
    if (STATE / "dead").exists():
        sys.stderr.write("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.\n")
        return 1
    with (STATE / "calls.txt").open("a") as file:
        file.write(json.dumps(words) + "\n")
    verb, rest = words[0], words[1:]
    if verb == "run":
        return run(rest)
    if verb == "ps":
        wanted = next(word.removeprefix("label=") for word in rest if word.startswith("label="))
        print("\n".join(place.name for place in containers() if wanted in record(place)["labels"] and runs(place)))
        return 0
    place = STATE / rest[-1]
    if not runs(place):
        sys.stderr.write(f"Error response from daemon: No such container: {rest[-1]}\n")
        return 1
    return on_container(verb, rest, place)


def on_container(verb: str, words: list[str], place: Path) -> int:
    first = int((place / "pid").read_text())
    if verb == "kill":
        os.kill(first, signal.Signals[f"SIG{words[words.index('--signal') + 1]}"])
    elif verb == "inspect":
        print(first if "Pid" in words[1] else str((place / "paused").exists()).lower())
    elif verb in {"pause", "unpause"}:
        for pid in namespace_of(first):
            os.kill(pid, signal.SIGSTOP if verb == "pause" else signal.SIGCONT)
        (place / "paused").touch() if verb == "pause" else (place / "paused").unlink()
    return 0


def run(words: list[str]) -> int:
    """Start a container and follow it as ``docker run`` in the foreground does."""
    labels, env, name = [], {"PATH": os.environ["PATH"]}, uuid.uuid4().hex * 2
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "--label":
            labels.append(words.pop(0))
        elif option == "-e":
            key, equals, value = words.pop(0).partition("=")
            if equals or key in os.environ:
                env[key] = value if equals else os.environ[key]
        elif option == "-v":
            words.pop(0)
    place = STATE / name
    place.mkdir()
    write(place / "record.json", json.dumps({"labels": labels, "command": words[1:], "env": env}))
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _frame: asked.append(n))
    with (place / "log").open("rb") if wait_for(place / "log") else sys.exit(125) as log:
        while True:
            over = (place / "code").exists()
            text = log.read()
            sys.stdout.buffer.write(text)
            sys.stdout.flush()
            if over and not text:
                return int((place / "code").read_text())
            if asked and runs(place):
                os.kill(int((place / "pid").read_text()), asked.pop())
            time.sleep(POLL_S)


def serve() -> None:
    """The daemon: it starts what clients ask for, and lives on whatever becomes of them."""
    seen: set[Path] = set()
    started: dict[Path, subprocess.Popen[bytes]] = {}
    while True:
        for place in set(containers()) - seen:
            seen.add(place)
            started[place] = start(place)
        for place, process in list(started.items()):
            if (code := process.poll()) is not None:
                write(place / "code", str(code if code >= 0 else 128 - code))
                del started[place]
        time.sleep(POLL_S)


def start(place: Path) -> "subprocess.Popen[bytes]":
    asked = json.loads((place / "record.json").read_text())
    with (place / "log").open("wb") as log:
        unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *asked["command"]]
        process = subprocess.Popen(unshare, env=asked["env"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    children, first = Path(f"/proc/{process.pid}/task/{process.pid}/children"), ""
    while process.poll() is None and not first:
        first = children.read_text().strip()
    write(place / "pid", first or "0")
    return process


def write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)


def wait_for(path: Path) -> bool:
    end = time.monotonic() + 10
    while not path.exists() and time.monotonic() < end:
        time.sleep(POLL_S)
    return path.exists()


def containers(state: Path = STATE) -> list[Path]:
    return [path for path in state.iterdir() if (path / "record.json").exists()]


def record(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "record.json").read_text())
    return found


def runs(place: Path) -> bool:
    return (place / "pid").exists() and not (place / "code").exists()


def namespace_of(first: int) -> list[int]:
    wanted = Path(f"/proc/{first}/ns/pid").readlink()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "ns/pid").readlink() == wanted:
                found.append(int(path.name))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else sys.exit(main(sys.argv[1:]))
