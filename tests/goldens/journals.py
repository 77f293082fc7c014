"""Recorded journals: written down from the stories (stories.py), and laid out as runs that verbs can be asked about.

``journals.jsonl.gz`` has one line for each: its spec, its journal as it was written, and the samples of its history.
"""

import gzip
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tests.goldens.stories import STORIES, WALL0, Told
from trainwatch.core.app.runs import supervisor_life
from trainwatch.core.model import fact as facts
from trainwatch.core.model.decision import Entry
from trainwatch.core.model.observation import GpuSample, HostSample, MetricValues, Observation, ProcessSample
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Settings
from trainwatch.core.store.history_writer import HistoryWriter
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.latest import ProgressPoint
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory

RECORDED = Path(__file__).parent / "journals.jsonl.gz"
NO_PID = 10**9
"""Above what a kernel gives: no process of the machine is taken for one of these runs."""
SAMPLE_S = 60.0
Body = Entry | facts.Outcome


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the file. ``t``: when the run is looked at, in run seconds."""

    name: str
    spec: RunSpec
    watched: bool
    t: float
    samples: tuple[Observation, ...]
    progress: tuple[ProgressPoint, ...]
    journal: str


def record(name: str, told: Told, folder: Path) -> Recording:
    """Write the journal of a story as the supervisor does, and return it with the samples of its history."""
    spec = RunSpec(
        id=f"{name.replace('_', '-')}-1a2b3c4d", name=name, command=("python", "train.py", "--output_dir", "out"),
        cwd="/golden", created_wall=WALL0, output_dir="/golden/out", settings=told.world.judge.knowledge.settings,
        **told.spec,
    )  # fmt: skip
    world = told.world
    created = facts.RunCreated(
        run=spec.id, name=name, command=spec.command, cwd=spec.cwd, preset="generic", output_dir=spec.output_dir,
        max_restarts=spec.settings.restart.max_restarts, act=spec.settings.restart.act,
    )  # fmt: skip
    bodies: list[tuple[float, Body]] = [(0.0, created), (0.0, facts.SupervisorStarted(pid=NO_PID)), *world.bodies]
    if not told.watched and name != "interrupted":
        bodies.append((world.t, facts.SupervisorEnded(pid=NO_PID, why="the run is over")))
    with JournalWriter(folder / f"{name}.jsonl") as journal:
        for t, body in bodies:
            if isinstance(body, facts.AttemptStarted):
                body = msgspec.structs.replace(body, pid=NO_PID + body.attempt)  # noqa: PLW2901
            journal.append_all(t, WALL0 + t, (body,))
    return Recording(
        name=name,
        spec=spec,
        watched=told.watched,
        t=world.t + 2.0,
        samples=tuple(thinned(world.seen)),
        progress=tuple(
            ProgressPoint(t=t, progress=b.progress, step_t=t) for t, b in bodies if isinstance(b, facts.ProgressMade)
        ),
        journal=(folder / f"{name}.jsonl").read_text(encoding="utf-8"),
    )


def thinned(seen: Iterable[Observation]) -> Iterator[Observation]:
    """A sample of each kind a minute, the newest ones, and all metrics."""
    kept: dict[type, float] = {}
    last: dict[type, Observation] = {}
    for each in seen:
        if isinstance(each, MetricValues):
            yield each
        elif isinstance(each, GpuSample | HostSample | ProcessSample):
            if each.t - kept.get(type(each), -SAMPLE_S) >= SAMPLE_S:
                kept[type(each)] = each.t
                yield each
            else:
                last[type(each)] = each
    yield from last.values()


def record_all() -> None:
    """Write the file anew."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [msgspec.json.encode(record(name, build(), Path(folder))) for name, build in STORIES.items()]
    RECORDED.write_bytes(gzip.compress(b"\n".join(lines), mtime=0))


@cache
def recordings() -> tuple[Recording, ...]:
    return tuple(map(_read, gzip.decompress(RECORDED.read_bytes()).splitlines()))


@cache
def _known() -> dict[str, set[str]]:
    """The keys of each section of today's settings."""
    names = msgspec.structs.fields
    return {each.encode_name: {key.encode_name for key in names(each.type)} for each in names(Settings)}


def _read(line: bytes) -> Recording:
    """Without the settings that are gone: what verbs say of a run must not depend on them."""
    found, known = msgspec.json.decode(line), _known()
    found["spec"]["settings"] = {
        section: {key: value for key, value in keys.items() if key in known[section]}
        for section, keys in found["spec"]["settings"].items()
        if section in known
    }
    return msgspec.convert(found, Recording, str_keys=True)


@contextmanager
def laid_out(recording: Recording, home: Path, patch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    """The run on the disk, with the clock at the moment at which it is looked at, and a supervisor if it had one."""
    patch.setenv("TRAINWATCH_HOME", str(home))
    patch.setattr(time, "time", lambda: WALL0 + recording.t)
    patch.setattr(supervisor_life, "unusable", lambda _folder: None)  # the disk of whoever runs the test
    run = RunDirectory.create(home, recording.spec)
    run.journal.write_text(recording.journal, encoding="utf-8")
    history = HistoryWriter(run.history)
    for each in (*recording.samples, *recording.progress):
        history.add(each)
    history.commit()
    history.close()
    if not recording.watched:
        yield run
        return
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    run.life_sign.write_text(f"{os.getpid()} 0 {time.monotonic() + 1e6:.2f} {boot}\n", encoding="ascii")  # always fresh
    with SupervisorLock(run.lock):
        yield run
