"""``trainwatch rehearse``: train to the first checkpoint, kill, resume, prove it, in a scratch folder.

The run is a real one: planned, launched, judged, verified and restarted by the same parts as tonight, with a state
folder of its own in the scratch folder. Its process (inside.py) sees the user's folders through overlays; where the
kernel does not allow that, the known output options are redirected, or the rehearsal is refused.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from ...act.config.derive import DeriveError
from ...act.config.redirect import redirected
from ...model.launch.rehearsal import Apart, Rehearsal
from ...model.run import RunSpec
from ...store.learned.rehearsals import keep_rehearsal, source_digest
from ..apart import caches, hidden_folders, places, run_apart, scratch_folder, written_folders
from ..errors import CliError, ExitCode
from ..plan.launch_plan import LaunchPlan
from ..runs.known_runs import home
from ..runs.output_claim import lock_rival
from ..trial.trial_run import rival_runs
from .beside import beside
from .conclusion import conclude
from .order import ORDER, RehearsalOrder, Seen, read_seen, write
from .proven_config import config_text
from .spec_apart import spec_apart
from .trackers import offline

LIMIT_S = 1800.0
"""Longest time by default: half an hour before the night."""
MOST_FILES = 50_000


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """``limit_s``: longest time. ``scratch``: parent of the scratch folder. ``keep``: leave it there."""

    limit_s: float = LIMIT_S
    scratch: Path | None = None
    keep: bool = False


def rehearse(plan: LaunchPlan, limits: Limits, say: Callable[[str], None]) -> Rehearsal:
    """Rehearse a planned launch. ``say`` gets lines of progress. Raises CliError, KeyboardInterrupt."""
    spec = plan.spec
    if plan.problem is not None:
        raise CliError(ExitCode.USAGE, plan.problem)
    if (rival := lock_rival(spec, home())) is not None:
        raise CliError(ExitCode.OWNED, f"{rival}; nothing was started")
    if others := beside(rival_runs(spec)):
        raise CliError(
            ExitCode.FAILED,
            f"{'; '.join(others)}: a rehearsal beside it would slow it or take its memory; nothing was started",
        )
    began = time.time()
    source = source_digest(spec.command, spec.cwd, spec.config)
    before = _listing(spec)
    seen, apart = _on_overlays(plan, limits, say)
    if seen.finished and seen.no_overlay is None:
        say("the training was done before it could be killed: once more, killed at the first sight of a checkpoint")
        seen, apart = _on_overlays(plan, limits, say, hasty=True)
    if seen.no_overlay is not None:
        say(f"no overlay here ({seen.no_overlay}): redirecting the output instead")
        seen, apart = _redirected(plan, limits, say, seen.no_overlay)
    if seen.interrupted:
        raise KeyboardInterrupt
    if seen.problem is not None:
        raise CliError(ExitCode(seen.code), seen.problem)
    known = Rehearsal(
        run=spec.name,
        command=spec.command,
        wall=began,
        took_s=time.time() - began,
        apart=apart,
        preset=spec.preset,
        touched=tuple(_changed(before, _listing(spec))),
    )
    result = conclude(plan, seen, known, limits.limit_s)
    result = msgspec.structs.replace(result, config=config_text(spec, result))
    if result.verdict != "unknown":
        try:
            keep_rehearsal(home(), spec.cwd, result, source)
        except OSError as error:
            say(f"the result is not kept: {error}")
    return result


def _on_overlays(
    plan: LaunchPlan, limits: Limits, say: Callable[[str], None], *, hasty: bool = False
) -> tuple[Seen, Apart]:
    """With every path as tonight. The first place for the scratch folder that can hold an overlay is used."""
    spec = plan.spec
    seen = Seen(no_overlay="no place for a scratch folder")
    wanted = written_folders(spec)
    for parent in places(limits.scratch, wanted):
        with scratch_folder(parent, keep=limits.keep) as scratch:
            order = RehearsalOrder(
                spec=spec_apart(spec, scratch, offline(plan, os.environ, scratch)),
                tonight=spec,
                limit_s=limits.limit_s,
                apart="overlay",
                parent=os.getpid(),
                hasty=hasty,
                wanted=tuple(map(str, wanted)),
                kept=tuple(map(str, caches(os.environ))),
                hidden=tuple(map(str, hidden_folders(plan))),
            )
            seen = _run(order, scratch, say)
            if seen.no_overlay is None:
                break
    return seen, "overlay"


def _run(order: RehearsalOrder, scratch: Path, say: Callable[[str], None]) -> Seen:
    """Run the process that rehearses (inside.py) to its end. Raises CliError if it failed."""
    write(scratch / ORDER, order)
    end = run_apart("trainwatch.core.app.rehearse.inside", scratch, say)
    if end.interrupted:
        return Seen(interrupted=True)
    seen = read_seen(scratch)
    if seen is None:
        raise CliError(ExitCode.FAILED, f"the rehearsal's own process failed: {end.said}")
    return seen


def _redirected(plan: LaunchPlan, limits: Limits, say: Callable[[str], None], no_overlay: str) -> tuple[Seen, Apart]:
    """With the output options of command and config changed. Raises CliError if none is known."""
    parent = next(iter(places(limits.scratch, written_folders(plan.spec))))
    with scratch_folder(parent, keep=limits.keep) as scratch:
        apart = spec_apart(plan.spec, scratch, offline(plan, os.environ, scratch))
        try:
            spec = redirected(apart, plan.preset, plan.profile, scratch / "out")
        except DeriveError as error:
            raise CliError(
                ExitCode.FAILED,
                f"no rehearsal: {error}. Overlays over your folders, which need no such option, are not possible here: "
                f"{no_overlay}; nothing was started",
            ) from None
        (scratch / "out").mkdir()
        tonight = msgspec.structs.replace(spec, settings=plan.spec.settings)
        order = RehearsalOrder(spec=spec, tonight=tonight, limit_s=limits.limit_s, apart="redirect", parent=os.getpid())
        seen = _run(order, scratch, say)
        return msgspec.structs.replace(seen, saved_in=plan.spec.output_dir), "redirect"


def _listing(spec: RunSpec) -> dict[str, tuple[int, int]]:
    """The files of the working folder and the output folder: size and mtime."""
    found: dict[str, tuple[int, int]] = {}
    for top in dict.fromkeys((spec.cwd, *([spec.output_dir] if spec.output_dir else []))):
        for folder, _, names in os.walk(Path(spec.cwd, top)):
            for name in names:
                if len(found) >= MOST_FILES:
                    return found
                path = os.path.join(folder, name)  # noqa: PTH118  many files
                try:
                    entry = os.lstat(path)
                except OSError:
                    continue
                found[path] = (entry.st_size, entry.st_mtime_ns)
    return found


def _changed(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    if len(before) >= MOST_FILES or len(after) >= MOST_FILES:
        return
    yield from sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
