"""The status of a run, read from outside: no supervisor is needed."""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...store.run_directory import RunDirectory, RunUnreadable, run_id_for
from ...store.run_lookup import unreadable_runs
from ..errors import CliError, ExitCode
from .known_runs import all_runs, example_verb, find_run, here, home

if TYPE_CHECKING:
    from ...model.story import Situation
    from ...views.run_summary import RunSummary


def status_of(name: str | None, warn: Callable[[str], None]) -> tuple[dict[str, Any], Callable[[], None]]:
    """Status of the run that is meant, or of one that the project's file names.

    The second: to be called when a person has seen it; it remembers that, and what needed them.
    """
    try:
        run = find_run(name, warn)
        found = read_run(run, ask=True)
        status = {**found.status, "needs_you": found.said.needs_you}
        return status, partial(_remember_look, run, found.now)
    except CliError as error:
        idle = idle_status(name) if name is not None and error.code is ExitCode.NOT_FOUND else None
        if idle is None:
            raise
        return {**idle, "needs_you": None}, lambda: None


def _remember_look(run: RunDirectory, now: "Situation") -> None:
    from ...model.story import Look, Situation
    from ...store.learned import write_look
    from ...views.run_summary import urgent_keys

    seen = Situation(story=now.story, now_wall=now.now_wall, supervisor_alive=now.supervisor_alive, frozen=now.frozen)
    write_look(run.last_look, Look(wall=seen.now_wall, needs=urgent_keys(seen)))


def run_rows(warn: Callable[[str], None]) -> list[dict[str, Any]]:
    """The rows of ``runs --json``, newest first.

    ``stand_in``: the verb whose example run it is (demo or drill). ``trouble``: the worst that is wrong now;
    ``needs_you``: the most urgent that a person has to do or decide. Sentences, or None. ``resume_step``: where the
    newest attempt began. ``level``: of its sentence; ``still``: what is said while steps are due and none come.
    ``warn`` is called for each run that cannot be read; the others are listed.
    """
    from ...store.journal import JournalTooNew

    for problem in unreadable_runs(home()):
        warn(problem)
    rows = []
    for run in all_runs():
        try:
            (status, said, _), spec = read_run(run), run.load_spec()
        except (JournalTooNew, RunUnreadable, OSError) as error:
            warn(str(error))
            continue
        last = status["incidents"][-1] if status["incidents"] else None
        rows.append(
            {
                "run": spec.name,
                "id": run.path.name,
                "state": status["state"],
                "level": said.level,
                "still": said.still,
                "attempt": status["attempt"],
                "step": status["overall"]["step"],
                "total_steps": status["overall"]["total_steps"],
                "resume_step": said.resumed_at,
                "eta_s": said.position.eta_s,
                "trouble": said.troubles[0].text if said.troubles else None,
                "needs_you": said.needs_you,
                "last_incident": last,
                "supervisor": status["supervisor"],
                "cwd": spec.cwd,
                "created": spec.created_wall,
                "stand_in": example_verb(spec),
            }
        )
    return rows


def idle_status(name: str) -> dict[str, Any] | None:
    """The status of a run that this project's file names and that was never started; None if it names none."""
    from ...config.document import ConfigError
    from ...config.project import find_project, load_project
    from ...model.story import Situation
    from ...views.state.status import status_object

    try:
        path = find_project(here())
        if path is None or name not in load_project(path).runs:
            return None
    except (CliError, ConfigError):
        return None
    return status_object(Situation(now_wall=time.time()), run=name, run_id=run_id_for(name, path))


class RunReading(NamedTuple):
    """A run, read from outside. ``status``: the object of ``status --json``; the others are what it is made of."""

    status: dict[str, Any]
    said: "RunSummary"
    now: "Situation"


def read_run(run: RunDirectory, *, ask: bool = False) -> RunReading:
    """``ask``: as for ``read_situation``."""
    from ...views.length_words import place_words
    from ...views.run_summary import summarise
    from ...views.state.status import status_object
    from .supervisor_life import read_situation

    spec, (now, life) = run.load_spec(), read_situation(run, ask=ask, disks=True)
    said = summarise(now, spec.name)
    status = status_object(
        now,
        run=spec.name,
        run_id=run.id,
        act=spec.settings.restart.act,
        resume=spec.resume_way,
        supervisor=life,
        summary=said,
    )
    status["place"] = place_words(spec.command)
    status["job"], status["nodes"], nodes = None, [], None
    if spec.capabilities.queues:
        from .run_usage import job_object, job_of, node_objects, nodes_of

        status["job"] = job_object(job_of(status["log"]), now.now_wall)
        nodes = nodes_of(status["log"])
        status["nodes"] = node_objects(nodes, now.now_t)
    status["ranks"] = []
    if status["pid"] is not None:
        from .run_usage import ranks_now

        status["ranks"] = ranks_now(now.process, status["log"], nodes)
    newest = status["checkpoints"]["newest"]
    if newest is not None and newest["kind"] == "unknown" and newest["verdict"] != "opaque":
        # A journal knows a checkpoint by its name; its kind follows from its content, as ``checkpoints list`` has it.
        from ...checkpoints.inspection import inspect

        with contextlib.suppress(OSError):
            seen = inspect(Path(newest["path"]))
            newest["kind"] = "unknown" if seen is None else seen.kind
    return RunReading(status, said, now)
