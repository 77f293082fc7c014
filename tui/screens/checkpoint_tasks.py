"""The tasks of the checkpoints screen: verify, show, compare, back up, prune. Each is the run's long task."""

from collections.abc import Callable
from time import time
from typing import Any, Protocol

from ...core.model.checkpoints.checkpoint import Checkpoint
from ...core.model.checkpoints.checkpoint_results import PrunePlan
from ...core.model.ports.screen import CheckpointJobs
from ...core.views import quantity
from ...core.views.checkpoint_list import verdict_clause
from ...core.views.screens.checkpoint_details import (
    CheckpointRow,
    Fact,
    Verification,
    delta_facts,
    overview_facts,
    prune_facts,
    size_text,
)
from ...core.views.screens.confirmation import Price
from ..background import Progress
from ..dialogs.dialog import Ask, confirm
from ..run_session import TaskPlace, start_task

USUAL_KEEP = 3
"""Offered if the settings keep all."""
LISTED = 8
"""Maximum number of names in the confirmation; the dry run lists all."""
CANNOT = "This screen cannot read the checkpoints themselves; use: trainwatch checkpoints"


class CheckpointsState:
    """What the screen restores when it is opened again: verifications, marks, the newest report."""

    def __init__(self) -> None:
        self.listing: tuple[Checkpoint, ...] | None = None
        self.verifications: dict[str, Verification] = {}
        self.marked: list[str] = []
        self.chosen: str | None = None
        self.report: tuple[str, tuple[Fact, ...]] | None = None
        """(title, facts) of a task's result; None: the details of the chosen checkpoint are shown."""
        self.plan: PrunePlan | None = None
        """The dry run that the report shows."""

    def show_report(self, title: str, facts: tuple[Fact, ...], plan: PrunePlan | None = None) -> None:
        """Show the result of a task."""
        self.report, self.plan = (title, facts), plan

    def close(self) -> None:
        """Show the chosen one again."""
        self.report = self.plan = None


class CheckpointsPlace(TaskPlace, Protocol):
    """The checkpoints screen, as its tasks use it."""

    state: CheckpointsState
    rows: tuple[CheckpointRow, ...]

    @property
    def jobs(self) -> CheckpointJobs | None: ...

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Those of ``rows``, in their order."""
        ...

    def message(self) -> str:
        """Why there is nothing to see."""
        ...


class CheckpointWork:
    """The tasks of a checkpoints screen. Results are kept in its state, which outlives the screen."""

    def __init__(self, screen: CheckpointsPlace) -> None:
        self._on = screen
        self._state = screen.state

    def _able(self, row: CheckpointRow | None) -> CheckpointJobs | None:
        """The service if there is one and a checkpoint is chosen; else shows why not."""
        jobs = self._on.jobs
        if row is None or jobs is None:
            self._on.show_message(self._on.message() if row is None else CANNOT)
            return None
        return jobs

    def verify(self, row: CheckpointRow | None, *, deep: bool) -> None:
        jobs = self._able(row)
        if row is None or jobs is None:
            return

        def work(progress: Progress) -> Checkpoint:
            return jobs.verify(row.path, deep=deep, progress=progress)

        def done(found: Checkpoint) -> str:
            wall = self._on.session.now.now_wall or time()
            self._state.verifications[found.path] = Verification(checkpoint=found, deep=deep, wall=wall)
            return f"{found.name} {verdict_clause(found.verdict)}" + (f": {found.reason}" if found.reason else "")

        self._start(f"{'verify every byte of' if deep else 'verify'} {row.name}", work, done)

    def show(self, row: CheckpointRow | None) -> None:
        """Show the contents of a checkpoint."""
        jobs = self._able(row)
        if row is None or jobs is None:
            return

        def done(found: Any) -> str:
            self._state.show_report(f"{row.name} · what it holds", overview_facts(found))
            return ""

        self._start(f"open {row.name}", lambda _: jobs.show(row.path), done)

    def compare(self, row: CheckpointRow | None) -> None:
        """The marked two, the older first; a single marked one with the chosen one."""
        jobs = self._able(row)
        if row is None or jobs is None:
            return
        paths = list(self._state.marked)
        if len(paths) == 1 and row.path not in paths:
            paths.append(row.path)
        if len(paths) != 2:
            self._on.show_message("Mark two checkpoints with space, then press d.")
            return
        known = {c.path: c for c in self._on.checkpoints}
        old, new = sorted(paths, key=lambda p: (known[p].mtime, known[p].step or 0))

        def work(progress: Progress) -> Any:
            return jobs.compare(old, new, progress=progress)

        def done(found: Any) -> str:
            self._state.show_report("comparison", delta_facts(known[old].name, known[new].name, found))
            return ""

        self._start(f"compare {known[old].name} with {known[new].name}", work, done)

    def backup(self, row: CheckpointRow | None) -> None:
        """Ask where to, then copy."""
        jobs = self._able(row)
        if row is None or jobs is None:
            return

        def asked(destination: str | None) -> None:
            if destination:
                self._start(
                    f"back up {row.name}",
                    lambda progress: jobs.backup(row.path, destination, progress=progress),
                    lambda path: f"Copied, flushed and read back: {path}",
                )

        body = (
            f"Where to? A folder that exists, or a new name. {size_text(row)} are copied and read back. "
            "Nothing is overwritten."
        )
        self._on.app.push_screen(Ask(f"Back up {row.name}", body, "[Enter] copy   [Esc] cancel"), asked)

    def plan_prune(self) -> None:
        """Ask how many to keep, then list what could go. Changes nothing."""
        jobs = self._able(self._on.rows[0] if self._on.rows else None)
        if jobs is None:
            return

        def asked(text: str | None) -> None:
            if text is None:
                return
            if not text.isdigit() or int(text) < 1:
                self._on.show_message(f"Keep how many? At least 1, not {text}: the resume point always stays.")
                return
            keep = int(text)
            self._start(
                f"look which ones can go beyond the newest {keep}",
                lambda progress: jobs.plan_prune(keep, progress=progress),
                self._planned,
            )

        body = (
            "How many of the newest verified ones are kept? They are read through first. "
            "This only lists what could go; deleting is asked for separately."
        )
        usual = str(self._on.session.run.keep_last or USUAL_KEEP)
        self._on.app.push_screen(Ask("Prune: a dry run", body, "[Enter] list   [Esc] cancel", before=usual), asked)

    def _planned(self, plan: PrunePlan) -> str:
        self._state.show_report(f"dry run · {plan.directory}", prune_facts(plan), plan if plan.delete else None)
        if not plan.delete:
            return "Nothing can go: everything that is there has to stay."
        return "A dry run: nothing was deleted. [D] asks whether to delete what is listed."

    def delete(self, plan: PrunePlan) -> None:
        """Ask for the run's name, then delete what the dry run listed."""
        jobs = self._able(self._on.rows[0] if self._on.rows else None)
        if jobs is None:
            return
        listed = [f"- {c.name}" for c in plan.delete[:LISTED]]
        if len(plan.delete) > len(listed):
            listed.append(f"  and {len(plan.delete) - len(listed)} more, as listed")
        price = Price(
            title=f"Delete {quantity.plural(len(plan.delete), 'checkpoint')} ({quantity.size(plan.freed_bytes)})?",
            lines=(*listed, "They cannot be brought back. Each is checked once more before it is deleted."),
            confirm="delete them",
            typed=self._on.session.run.name,
        )

        def done(message: str) -> str:
            self._state.close()
            return message

        confirm(self._on.app, price, lambda: self._start("prune", lambda _: jobs.prune(plan), done))

    def _start(self, title: str, work: Callable[[Progress], Any], done: Callable[[Any], str]) -> None:
        """``done`` keeps the result and returns a sentence."""
        start_task(self._on, title, work, done)
