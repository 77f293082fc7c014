"""Key 4: all checkpoints of the run with their verdicts and contents; verify, compare, back up, prune, resume."""

from collections.abc import Callable, Sequence
from time import time
from typing import ClassVar

from textual.binding import BindingType

from ...core.model.checkpoints.checkpoint import Checkpoint
from ...core.model.ports.screen import CheckpointJobs
from ...core.views.checkpoint_list import verdict_clause
from ...core.views.screens.checkpoint_details import (
    CheckpointRow,
    Fact,
    checkpoint_facts,
    checkpoint_rows,
)
from ..keys import Key
from ..panes.lists.checkpoint_rows import CheckpointRows
from ..panes.page_pane import PagePane
from ..panes.pane import Pane
from ..panes.rows_pane import RowsPane
from ..panes.task_pane import TaskPane
from ..run_session import Application, RunSession
from ..ui.paragraph import Paragraph
from .box import Box
from .checkpoint_tasks import CheckpointsState, CheckpointWork
from .place_screen import PlaceScreen, bindings_of, share

SIDE_FROM = 160
"""Columns from which table and detail stand side by side."""
NO_DIRECTORY = (
    "The directory of this training's checkpoints is not known. Set output_dir in trainwatch.toml, "
    "or start with: trainwatch run --output-dir DIR"
)
NONE_YET = "No checkpoint yet in {}. The first one appears here when the trainer has written it completely."

CHECKPOINT_KEYS: tuple[Key, ...] = (
    Key(key="v", shown="v", action="verify(False)", label="verify", help="check structure and sizes again"),
    Key(key="V", shown="V", action="verify(True)", label="deep",
        help="read every byte and value; continues while other screens are open"),
    Key(key="s", shown="s", action="show_state", label="show", help="show what it contains"),
    Key(key="space", shown="space", action="mark", label="mark", help="mark for a comparison (two)"),
    Key(key="d", shown="d", action="compare", label="compare", help="compare the marked two (or marked and chosen)"),
    Key(key="r", shown="r", action="resume", label="resume", acts=True, when=lambda c: c.started,
        help="resume or restart from this one (asks)"),
    Key(key="b", shown="b", action="backup", label="back up", acts=True,
        help="make a verified copy elsewhere; never overwrites"),
    Key(key="D", shown="D", action="prune", label="prune", acts=True,
        help="list which old ones could go (a dry run; deleting asks for the run's name)"),
    Key(key="y", shown="y", action="copy", label="copy path", help="copy the path of the chosen one", footer=False),
    Key(key="i", shown="i", action="app.place('samples')", label="images", when=lambda c: c.samples,
        help="the newest sample images of the run"),
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose (also j, Home, End)", footer=False),
    Key(key="pagedown", shown="PgDn", action="scroll(8)", label="scroll", help="scroll the detail (PgUp: back)",
        footer=False),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="back", label="back",
        help="cancel the running task; else back to the dashboard", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"), ("j", "move(1)"), ("home", "move(-100000)"), ("end", "move(100000)"), ("pageup", "scroll(-8)"),
)  # fmt: skip


class CheckpointsScreen(PlaceScreen):
    """Table, detail, and the work under way."""

    place = "checkpoints"
    keys = CHECKPOINT_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(CHECKPOINT_KEYS, ALSO)

    def __init__(self, application: Application, session: RunSession) -> None:
        super().__init__(application, session)
        self.session: RunSession = session
        state = session.screen_states.setdefault("checkpoints", CheckpointsState())
        assert isinstance(state, CheckpointsState)
        self.state = state
        self.doing = CheckpointWork(self)
        self.rows: tuple[CheckpointRow, ...] = ()
        self._story_seen: tuple[Checkpoint, ...] | None = None
        self._reading = False
        self._trouble = ""

    @property
    def jobs(self) -> CheckpointJobs | None:
        return self.session.run.checkpoints

    def bodies(self) -> Sequence[Pane]:
        """Table, detail, work."""
        self.table, self.page, self.work = CheckpointRows(id="table"), PagePane(id="detail"), TaskPane(id="job")
        return (self.table, self.page, self.work)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Side by side on wide screens; the long task at the bottom."""
        boxes: dict[str, Box] = {}
        if self.session.long_task.state is not None and height >= 9:
            height -= 3
            boxes["job"] = (0, top + height, width, 3)
        if width >= SIDE_FROM:
            left = width * 3 // 5
            return boxes | {"table": (0, top, left, height), "detail": (left, top, width - left, height)}
        rows = share(height, len(self.checkpoints) + 3, 4, max(5, height * 5 // 9))
        if height - rows < 3:
            return boxes | {"table": (0, top, width, height)}
        return boxes | {"table": (0, top, width, rows), "detail": (0, top + rows, width, height - rows)}

    def on_mount(self) -> None:
        """Read the directory."""
        super().on_mount()
        self.reload()

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """As read from the disk; before that from the journal."""
        if self.state.listing is not None:
            return self.state.listing
        return tuple(reversed(self.now.story.checkpoints))

    def show(self) -> None:
        story = self.now.story
        if self._story_seen is not None and story.checkpoints != self._story_seen:
            self.reload()
        self._story_seen = story.checkpoints
        wall = self.now.now_wall or time()
        self.rows = checkpoint_rows(self.checkpoints, self.state.verifications, wall, story.set_aside, story)
        at = next((i for i, r in enumerate(self.rows) if r.path == self.state.chosen), 0)
        self.table.cursor = at
        self.table.show_checkpoints(self.rows, self.state.marked, self.message())
        self.state.chosen = self.rows[at].path if self.rows else None
        self.work.show(self.session.long_task.state)
        self._show_detail()

    def _show_detail(self) -> None:
        if self.state.report is not None:
            title, facts = self.state.report
            can_delete = self.state.plan is not None and not self.context.read_only
            self.page.show(paragraphs(facts), title=title, hint="[D] delete these" if can_delete else "[Esc] close")
            return
        row = self._row
        if row is None:
            self.page.show((), title="")
            return
        self.page.show(paragraphs(checkpoint_facts(row)), title=row.name)

    @property
    def _row(self) -> CheckpointRow | None:
        return self.rows[self.table.cursor] if self.rows else None

    def reload(self) -> None:
        """Read the directory in a thread."""
        jobs = self.jobs
        if jobs is None or jobs.directory is None or self._reading:
            return
        self._reading = True

        def read() -> Callable[[], None]:
            try:
                listing, trouble = jobs.listing().checkpoints, ""
            except Exception as error:
                listing, trouble = None, str(error)
            return lambda: self._take(listing, trouble)

        self.tasks.submit(read)

    def _take(self, listing: tuple[Checkpoint, ...] | None, trouble: str) -> None:
        self._reading = False
        if listing is not None:
            self.state.listing = listing
            here = {c.path for c in listing}
            self.state.marked = [p for p in self.state.marked if p in here]
        self._trouble = trouble
        self.draw()

    def renew(self) -> None:
        """Read the directory again after a task."""
        self.page.top = 0
        self.reload()
        self.draw()

    def row_chosen(self, pane: RowsPane) -> None:
        """Another checkpoint: its own detail."""
        self.state.chosen = self.rows[pane.cursor].path
        self.state.close()
        self.page.top = 0
        self.draw()

    def on_rows_pane_chosen(self, _: RowsPane.Chosen) -> None:
        """A second click shows its contents."""
        self.action_show_state()

    def action_move(self, rows: int) -> None:
        if self.state.report is not None:
            self.state.close()
            self.draw()
        self.table.move(rows)

    def action_scroll(self, rows: int) -> None:
        self.page.scroll(rows)

    def action_mark(self) -> None:
        """Mark or unmark; of more than two the newest stay."""
        row = self._row
        if row is None:
            return
        marked = self.state.marked
        if row.path in marked:
            marked.remove(row.path)
        else:
            marked.append(row.path)
            del marked[:-2]
        self.draw()

    def action_verify(self, deep: bool) -> None:
        self.doing.verify(self._row, deep=deep)

    def action_show_state(self) -> None:
        """Show the contents of the chosen one."""
        self.doing.show(self._row)

    def action_compare(self) -> None:
        """The marked two; or the marked one with the chosen one."""
        self.doing.compare(self._row)

    def action_copy(self) -> None:
        """The path of the chosen one."""
        if self._row is not None:
            self.application.copy(self._row.path)

    def action_resume(self) -> None:
        """Resume from the chosen checkpoint."""
        row = self._row
        if row is None:
            self.session.operations.resume()
        elif row.verdict not in {"complete", "opaque"} and row.judged.understood:
            found = f"{row.name} {verdict_clause(row.verdict)}"
            self.show_message(f"{found}: a resume from it would fail. Choose a complete one.")
        else:
            self.session.operations.resume_from(row.path)

    def action_backup(self) -> None:
        """Ask where to, then copy."""
        self.doing.backup(self._row)

    def action_prune(self) -> None:
        """Ask how many to keep, then list what could go; once it is listed: ask whether to delete it."""
        if self.state.plan is not None and self.state.report is not None:
            self.doing.delete(self.state.plan)
        else:
            self.doing.plan_prune()

    def action_back(self) -> None:
        """Cancel the long task, else close the report, else go back."""
        if self.session.long_task.state is not None:
            self.session.long_task.cancel()
        elif self.state.report is not None:
            self.state.close()
            self.page.top = 0
            self.draw()
        else:
            self.application.action_place("dashboard")

    def message(self) -> str:
        """Why the table is empty."""
        if self._trouble:
            return self._trouble
        jobs = self.jobs
        directory = jobs.directory if jobs is not None else None
        plan = self.session.run.plan
        directory = directory or (plan.output_dir if plan is not None else None)
        return NO_DIRECTORY if directory is None else NONE_YET.format(directory)


def paragraphs(facts: Sequence[Fact]) -> list[Paragraph]:
    """Facts with their labels in the margin."""
    found: list[Paragraph] = []
    before = ""
    for fact in facts:
        label = "" if fact.label == before else fact.label
        before = fact.label
        found.append(Paragraph(text=fact.text, label=label, style=fact.level or "text"))
    return found
