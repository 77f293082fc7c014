"""One run of a row under trainwatch: ``trainwatch run --headless -- COMMAND`` and nothing else."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from .place import Place

SAMPLE_S = 3.0


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """``progress`` of ``status --json``, asked at ``wall`` and answered at ``read`` (epoch seconds)."""

    wall: float
    read: float
    progress: dict[str, Any]


class Supervised(msgspec.Struct, frozen=True, kw_only=True):
    """What trainwatch left. ``code`` None: it was ended after the limit."""

    code: int | None
    status: dict[str, Any]
    records: list[dict[str, Any]]
    samples: list[Sample]
    log: str = ""
    """The log of the first attempt."""
    output: str = ""
    """What trainwatch printed."""


def supervise(place: Place, limit_s: float, *, config: bool, meanwhile: Callable[[], None] | None = None) -> Supervised:
    """Run until trainwatch ends by itself, at most ``limit_s``. ``config``: with the row's trainwatch.toml.

    ``meanwhile`` is called each half second.
    """
    words = ["run", "--headless", "--interval", "5"]
    if config:
        (place.work / "trainwatch.toml").write_text(place.row.toml)
    words += ["--", *place.words(place.row.command)]
    # Open in the supervisor alone: a process with an open file above a folder may have written what is saved there.
    with (place.root / "trainwatch.log").open("wb") as printed:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "trainwatch", *words],
            cwd=place.work, env=place.env(), stdin=subprocess.DEVNULL, stdout=printed, stderr=printed,
            start_new_session=True,
        )  # fmt: skip
    samples, until, code = list[Sample](), time.monotonic() + limit_s, None
    while time.monotonic() < until:
        try:
            code = supervisor.wait(0.5 if meanwhile else SAMPLE_S)
            break
        except subprocess.TimeoutExpired:
            if meanwhile:
                meanwhile()
            elif place.fault.name == "none":
                samples += _sample(place)
    if code is None:
        _ask(place, "kill", "--yes")
        supervisor.kill()
        supervisor.wait()
    end_trainers(place)
    status = _json(_ask(place, "status", "--json"))
    lines = _ask(place, "events", "--json").splitlines()
    records = [json.loads(line) for line in lines]
    started = [record["fact"] for record in records if record.get("fact", {}).get("fact") == "attempt_started"]
    output = (place.root / "trainwatch.log").read_text(errors="replace")
    return Supervised(
        code=code, status=status, records=records, samples=samples, log=started[0]["log"] if started else "",
        output=output,
    )  # fmt: skip


def progress_of(place: Place, log: str) -> dict[str, Any]:
    """What ``trainwatch progress`` reads in a finished log."""
    return _json(_ask(place, "progress", log, "--json"))


def resume_said(place: Place, *, before: bool) -> str:
    """``will`` of ``resume``, as it is said of the command ``before`` its start, or of the run."""
    words = ("run", "--dry-run", "--json", "--", *place.words(place.row.command)) if before else ("status", "--json")
    return str((_json(_ask(place, *words)).get("resume") or {}).get("will", "not said"))


def _sample(place: Place) -> list[Sample]:
    wall = time.time()
    progress = _json(_ask(place, "status", "--json")).get("progress")
    return [Sample(wall=wall, read=time.time(), progress=progress)] if progress else []


def _ask(place: Place, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "trainwatch", *words],
        cwd=place.work, env=place.env(counted=False), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def end_trainers(place: Place) -> list[int]:
    """Kill the processes of this run that are still alive (they have its ledger in their environment)."""
    wanted = f"GALLERY_LEDGER={place.ledger}".encode()
    ended = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                ended.append(int(folder.name))
        except (OSError, ProcessLookupError):
            continue
    return ended
