"""Key 4: all checkpoints of the run with their verdicts and contents; verify, show, resume."""

from collections.abc import Iterator, Sequence
from time import time
from typing import Any, cast

from ...core.model.checkpoint import Checkpoint, Listing
from ...core.model.ports import RunServices
from ...core.views.checkpoint_list import CheckpointRow, Verification, checkpoint_rows, verdict_clause
from ...core.views.screens.checkpoint_details import CHECKPOINT_COLUMNS, checkpoint_facts, count_text, overview_facts
from ...core.views.words import Paragraph
from ..background import Progress
from ..keys import HELP, Key
from ..panes.head import TaskPane
from ..panes.pane import Pane
from ..panes.rows_pane import PagePane, RowsPane
from ..run_session import Box
from ..ui.cells import Span
from .place_screen import RunPage, above, beside, share

SIDE_FROM = 160
"""Columns from which table and detail stand side by side."""
NO_DIRECTORY = (
    "The directory of this training's checkpoints is not known. Set output_dir in trainwatch.toml, "
    "or start with: trainwatch run --output-dir DIR"
)
NONE_YET = "No checkpoint yet in {}. The first one appears here when the trainer has written it completely."

CHECKPOINT_KEYS: tuple[Key, ...] = (
    Key("v", "verify(False)", "verify", "check structure and sizes again"),
    Key("V", "verify(True)", "deep", "read every byte and value; continues while other screens are open"),
    Key("s", "show_state", "show", "show what it contains"),
    Key("r", "resume", "resume", "resume or restart from this one (asks)", acts=True, when=lambda c: c.started),
    Key("y", "copy", "copy path", "copy the path of the chosen one", footer=False),
    Key("i", "app.place('samples')", "images", "the newest sample images of the run"),
    Key("↑ ↓", "move(±1)", "choose", "choose (also k, j, Home, End)", footer=False),
    Key("PgDn", "scroll(±8)", "scroll", "scroll the detail (PgUp: back)", footer=False),
    HELP,
    Key("Esc", "back", "back", "cancel the running task; else back to the dashboard", always=True),
)


class CheckpointsState:
    """What the screen restores when it is opened again: verifications, the newest report."""

    def __init__(self) -> None:
        self.listing: tuple[Checkpoint, ...] | None = None
        self.verifications: dict[str, Verification] = {}
        self.chosen: object = None
        """The one that a person moved the cursor to; None: the newest."""
        self.report: tuple[str, tuple[Paragraph, ...]] | None = None
        """(title, facts) of a task's result; None: the details of the chosen checkpoint are shown."""


class CheckpointsScreen(RunPage):
    """Table, detail, and the work under way."""

    place = "checkpoints"
    keys = CHECKPOINT_KEYS
    kept = CheckpointsState
    state: CheckpointsState
    rows: tuple[CheckpointRow, ...] = ()
    _story_seen: tuple[Checkpoint, ...] | None = None
    _trouble = ""

    @property
    def services(self) -> RunServices:
        return self.session.run.services

    def bodies(self) -> Sequence[Pane]:
        self.table, self.page, self.work = RowsPane(id="table"), PagePane(id="detail"), TaskPane(id="job")
        self.table.chosen = self.state.chosen
        return (self.table, self.page, self.work)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Side by side on wide screens; the long task at the bottom."""
        boxes: dict[str, Box] = {}
        if self.session.long_task.state is not None and height >= 9:
            height -= 3
            boxes["job"] = (0, top + height, width, 3)
        if width >= SIDE_FROM:
            return boxes | beside((0, top, width, height), width * 3 // 5, "table", "detail")
        rows = share(height, len(self.checkpoints) + 3, 4, max(5, height * 5 // 9))
        return boxes | above((0, top, width, height), rows, "table", "detail")

    def on_mount(self) -> None:
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
        self.rows = checkpoint_rows(self.checkpoints, self.state.verifications, wall, story)
        title = f"checkpoints · {count_text(self.rows)}" if self.rows else "checkpoints"
        self.table.show_table(
            CHECKPOINT_COLUMNS, self.rows, title=title, message=self.message(), level=lambda row: row.level,
            tail=self._tail, ids=lambda row: row.path,
        )  # fmt: skip
        self.work.show(self.session.long_task.state)
        if self.state.report is not None:
            self.page.show(self.state.report[1], title=self.state.report[0], hint="[Esc] close")
            return
        row = self._row
        self.page.show(() if row is None else checkpoint_facts(row), title="" if row is None else row.name)

    def _tail(self, row: CheckpointRow, left: int) -> Iterator[Span]:
        """That a resume takes it, in so many cells; what else is known of it."""
        cursor = self.table.glyphs.cursor
        if row.resume:
            mark = f"  {cursor} resume point"
            yield "accent", mark if len(mark) <= left else f" {cursor}"
        if detail := row.why or row.verified:
            yield "label", f" · {detail}"

    @property
    def _row(self) -> CheckpointRow | None:
        return cast("CheckpointRow | None", self.table.here)

    def reload(self) -> None:
        """Read the directory in a thread."""
        if self.services.directory is not None:
            self.read(self.services.listing, self._take)

    def _take(self, found: Listing | None, trouble: str) -> None:
        if found is not None:
            self.state.listing = found.checkpoints
        self.table.stays = True  # from now on: until the disk is read, the rows are those of the last visit
        self._trouble = trouble

    def renew(self) -> None:
        self.page.top = 0
        self.reload()
        self.draw()

    def row_chosen(self, pane: RowsPane) -> None:
        self.state.chosen = pane.chosen if pane.cursor else None
        self.close()

    def close(self) -> None:
        """Show the details of the chosen one."""
        self.state.report = None
        self.page.top = 0
        self.draw()

    def on_rows_pane_chosen(self, _: RowsPane.Chosen) -> None:
        self.action_show_state()

    def action_move(self, rows: int) -> None:
        if self.state.report is not None:
            self.close()
        self.table.move(rows)

    def copied(self) -> str:
        return "" if self._row is None else self._row.path

    def action_resume(self) -> None:
        row = self._row
        if row is None:
            self.session.operations.resume()
        elif row.verdict not in {"complete", "opaque"} and row.judged.understood:
            found = f"{row.name} {verdict_clause(row.verdict)}"
            self.show_message(f"{found}: a resume from it would fail. Choose a complete one.")
        else:
            self.session.operations.resume_from(row.path)

    def action_back(self) -> None:
        if self.session.long_task.state is not None:
            self.session.long_task.cancel()
        elif self.state.report is not None:
            self.close()
        else:
            self.application.action_place("dashboard")

    def message(self) -> str:
        """Why the table is empty."""
        if self._trouble:
            return self._trouble
        directory = self.services.directory or self.session.run.plan.output_dir
        return NO_DIRECTORY if directory is None else NONE_YET.format(directory)

    def action_verify(self, deep: bool) -> None:
        row, services = self._row, self.services
        if row is None:
            self.show_message(self.message())
            return

        def work(progress: Progress) -> Checkpoint:
            return services.verify(row.path, deep=deep, progress=progress)

        def done(found: Checkpoint) -> str:
            wall = self.now.now_wall or time()
            self.state.verifications[found.path] = Verification(checkpoint=found, deep=deep, wall=wall)
            return f"{found.name} {verdict_clause(found.verdict)}" + (f": {found.reason}" if found.reason else "")

        self.start_task(f"{'verify every byte of' if deep else 'verify'} {row.name}", work, done)

    def action_show_state(self) -> None:
        row, services = self._row, self.services
        if row is None:
            self.show_message(self.message())
            return

        def done(found: Any) -> str:
            self.state.report = (f"{row.name} · what it holds", overview_facts(found))
            return ""

        self.start_task(f"open {row.name}", lambda _: services.show(row.path), done)
