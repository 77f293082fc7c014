"""Key 4: every saved state of the run: what it is worth, what it holds, and what may be done with it."""

from collections.abc import Callable, Sequence
from time import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType

from ...core.model.checkpoint import Checkpoint
from ...core.model.checkpoint_jobs import CheckpointJobs, Prune
from ...core.views import quantity
from ...core.views.checkpoint_table import (
    CheckpointRow,
    Fact,
    Proof,
    checkpoint_facts,
    checkpoint_rows,
    delta_facts,
    overview_facts,
    prune_facts,
)
from ...core.views.price import Price
from ..arrange import Box
from ..job import Work
from ..keys import Key
from ..paragraph import Paragraph
from ..widgets.checkpoint_rows import CheckpointRows
from ..widgets.job_pane import JobPane
from ..widgets.page_pane import PagePane
from ..widgets.pane import Pane
from ..widgets.rows_pane import RowsPane
from .dialog import Ask, confirm
from .place import PlaceScreen, bindings_of, share

if TYPE_CHECKING:
    from .dashboard import Dashboard

SIDE_FROM = 160
"""Columns from which table and detail stand side by side."""
USUAL_KEEP = 3
"""Offered where the settings keep everything."""
NO_DIRECTORY = (
    "Nobody said where this training saves its checkpoints, so none is known. Set output_dir in trainwatch.toml, "
    "or start with: trainwatch run --output-dir DIR"
)
NONE_YET = "No checkpoint yet in {}. The first one appears here when the trainer has written it whole."

CHECKPOINT_KEYS: tuple[Key, ...] = (
    Key(key="v", shown="v", action="verify(False)", label="verify", help="check structure and sizes again"),
    Key(key="V", shown="V", action="verify(True)", label="deep",
        help="read every byte and value; goes on while you look elsewhere"),
    Key(key="s", shown="s", action="show_state", label="show", help="show what it holds"),
    Key(key="space", shown="space", action="mark", label="mark", help="mark for a comparison (two)"),
    Key(key="d", shown="d", action="compare", label="compare", help="compare the marked two (or marked and chosen)"),
    Key(key="r", shown="r", action="resume", label="resume", acts=True, when=lambda c: c.started,
        help="resume or restart from this one (asks)"),
    Key(key="b", shown="b", action="backup", label="back up", acts=True,
        help="make a verified copy elsewhere; never overwrites"),
    Key(key="D", shown="D", action="prune", label="prune", acts=True,
        help="list which old ones could go (a dry run; deleting asks for the run's name)"),
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose (also j, Home, End)", footer=False),
    Key(key="pagedown", shown="PgDn", action="scroll(8)", label="scroll", help="scroll the detail (PgUp: back)",
        footer=False),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="back", label="back",
        help="call off the work under way; else back to the dashboard", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"), ("j", "move(1)"), ("home", "move(-100000)"), ("end", "move(100000)"), ("pageup", "scroll(-8)"),
)  # fmt: skip


class Kept:
    """What stays while one looks at other screens: proofs, marks, the newest report."""

    def __init__(self) -> None:
        self.listing: tuple[Checkpoint, ...] | None = None
        self.proofs: dict[str, Proof] = {}
        self.marked: list[str] = []
        self.chosen: str | None = None
        self.report: tuple[str, tuple[Fact, ...]] | None = None
        """(title, facts) of what a job found; None: the detail of the chosen one is shown."""


class CheckpointsScreen(PlaceScreen):
    """Table, detail, and the work under way."""

    place = "checkpoints"
    keys = CHECKPOINT_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(CHECKPOINT_KEYS, ALSO)

    def __init__(self, board: "Dashboard") -> None:
        super().__init__(board)
        self.board: Dashboard = board
        kept = board.kept.setdefault("checkpoints", Kept())
        assert isinstance(kept, Kept)
        self.kept = kept
        self.rows: tuple[CheckpointRow, ...] = ()
        self._story_seen: tuple[Checkpoint, ...] | None = None
        self._reading = False
        self._trouble = ""

    @property
    def door(self) -> CheckpointJobs | None:
        """What can be asked."""
        return self.board.run.checkpoints

    def bodies(self) -> Sequence[Pane]:
        """Table, detail, work."""
        self.table, self.page, self.work = CheckpointRows(id="table"), PagePane(id="detail"), JobPane(id="job")
        return (self.table, self.page, self.work)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Side by side where it is wide; the work at the bottom."""
        boxes: dict[str, Box] = {}
        if self.board.jobs.state is not None and height >= 9:
            height -= 3
            boxes["job"] = (0, top + height, width, 3)
        if width >= SIDE_FROM:
            left = width * 3 // 5
            return boxes | {"table": (0, top, left, height), "detail": (left, top, width - left, height)}
        rows = share(height, len(self._checkpoints) + 3, 4, max(5, height * 5 // 9))
        if height - rows < 3:
            return boxes | {"table": (0, top, width, height)}
        return boxes | {"table": (0, top, width, rows), "detail": (0, top + rows, width, height - rows)}

    def on_mount(self) -> None:
        """Look into the directory."""
        super().on_mount()
        self.reload()

    @property
    def _checkpoints(self) -> tuple[Checkpoint, ...]:
        """As read from the disk; before that as the journal knows them."""
        if self.kept.listing is not None:
            return self.kept.listing
        return tuple(reversed(self.now.story.checkpoints))

    def show(self) -> None:
        """All panes."""
        story = self.now.story.checkpoints
        if self._story_seen is not None and story != self._story_seen:
            self.reload()
        self._story_seen = story
        wall = self.now.now_wall or time()
        self.rows = checkpoint_rows(self._checkpoints, self.kept.proofs, wall)
        at = next((i for i, r in enumerate(self.rows) if r.path == self.kept.chosen), 0)
        self.table.cursor = at
        self.table.show_checkpoints(self.rows, self.kept.marked, self._message())
        self.kept.chosen = self.rows[at].path if self.rows else None
        self.work.show(self.board.jobs.state)
        self._show_detail(wall)

    def _message(self) -> str:
        if self._trouble:
            return self._trouble
        door = self.door
        directory = door.directory if door is not None else None
        plan = self.board.run.plan
        directory = directory or (plan.output_dir if plan is not None else None)
        return NO_DIRECTORY if directory is None else NONE_YET.format(directory)

    def _show_detail(self, wall: float) -> None:
        if self.kept.report is not None:
            title, facts = self.kept.report
            self.page.show(paragraphs(facts), title=title, hint="[↑ ↓] the chosen one")
            return
        row = self._row
        if row is None:
            self.page.show((), title="")
            return
        checkpoint = self._checkpoints[self.table.cursor]
        self.page.show(paragraphs(checkpoint_facts(row, checkpoint, wall)), title=row.name)

    @property
    def _row(self) -> CheckpointRow | None:
        return self.rows[self.table.cursor] if self.rows else None

    def reload(self) -> None:
        """Read the directory in a thread."""
        door = self.door
        if door is None or door.directory is None or self._reading:
            return
        self._reading = True

        def read() -> Callable[[], None]:
            try:
                listing, trouble = door.listing().checkpoints, ""
            except Exception as error:
                listing, trouble = None, str(error)
            return lambda: self._take(listing, trouble)

        self.in_thread(read)

    def _take(self, listing: tuple[Checkpoint, ...] | None, trouble: str) -> None:
        self._reading = False
        if listing is not None:
            self.kept.listing = listing
            here = {c.path for c in listing}
            self.kept.marked = [p for p in self.kept.marked if p in here]
        self._trouble = trouble
        self.draw()

    def on_rows_pane_moved(self, message: RowsPane.Moved) -> None:
        """Another checkpoint: its own detail."""
        self.kept.chosen = self.rows[message.pane.cursor].path
        self.kept.report = None
        self.page.top = 0
        self.draw()

    def on_rows_pane_chosen(self, _: RowsPane.Chosen) -> None:
        """A second click shows what it holds."""
        self.action_show_state()

    def action_move(self, rows: int) -> None:
        """Choose another."""
        if self.kept.report is not None:
            self.kept.report = None
            self.draw()
        self.table.move(rows)

    def action_scroll(self, rows: int) -> None:
        """Scroll the detail."""
        self.page.scroll(rows)

    def action_mark(self) -> None:
        """Mark or unmark; of more than two the newest stay."""
        row = self._row
        if row is None:
            return
        marked = self.kept.marked
        if row.path in marked:
            marked.remove(row.path)
        else:
            marked.append(row.path)
            del marked[:-2]
        self.draw()

    def action_verify(self, deep: bool) -> None:
        """Prove the chosen one."""
        row, door = self._row, self.door
        if row is None or door is None:
            self.say(self._message() if row is None else CANNOT)
            return
        word = "verify every byte of" if deep else "verify"

        def work(progress: Callable[[int, int], None]) -> Checkpoint:
            return door.verify(row.path, deep=deep, progress=progress)

        def done(found: Checkpoint) -> str:
            self.kept.proofs[found.path] = Proof(checkpoint=found, deep=deep, wall=time())
            why = f": {found.reason}" if found.reason else ""
            return f"{found.name} is {found.verdict}{why}"

        self._start(f"{word} {row.name}", work, done)

    def action_show_state(self) -> None:
        """What the chosen one holds."""
        row, door = self._row, self.door
        if row is None or door is None:
            self.say(self._message() if row is None else CANNOT)
            return

        def done(found: Any) -> str:
            self.kept.report = (f"{row.name} · what it holds", overview_facts(found))
            return ""

        self._start(f"open {row.name}", lambda _: door.show(row.path), done)

    def action_compare(self) -> None:
        """The marked two; or the marked one with the chosen one."""
        row, door = self._row, self.door
        paths = list(self.kept.marked)
        if len(paths) == 1 and row is not None and row.path not in paths:
            paths.append(row.path)
        if len(paths) != 2 or door is None:
            self.say("Mark two checkpoints with space, then press d." if door is not None else CANNOT)
            return
        age = {c.path: (c.mtime, c.step or 0) for c in self._checkpoints}
        old, new = sorted(paths, key=lambda p: age.get(p, (0.0, 0)))
        names = {c.path: c.name for c in self._checkpoints}

        def work(progress: Callable[[int, int], None]) -> Any:
            return door.compare(old, new, progress=progress)

        def done(found: Any) -> str:
            facts = delta_facts(names.get(old, old), names.get(new, new), found)
            self.kept.report = ("comparison", facts)
            return ""

        self._start(f"compare {names.get(old, old)} with {names.get(new, new)}", work, done)

    def action_resume(self) -> None:
        """As the dashboard's key, with the checkpoint chosen here."""
        row = self._row
        if row is None:
            self.board.operations.resume()
        elif row.verdict not in {"complete", "opaque"}:
            self.say(f"{row.name} is {row.verdict}: a resume from it would fail. Choose a complete one.")
        else:
            self.board.operations.resume_from(row.path)

    def action_backup(self) -> None:
        """Ask where to, then copy."""
        row, door = self._row, self.door
        if row is None or door is None:
            self.say(self._message() if row is None else CANNOT)
            return

        def asked(destination: str | None) -> None:
            if not destination:
                return

            def work(progress: Callable[[int, int], None]) -> str:
                return door.backup(row.path, destination, progress=progress)

            self._start(f"back up {row.name}", work, lambda path: f"Copied, flushed and read back: {path}")

        body = (
            f"Where to? A folder that exists, or a new name. {row.size} are copied and read back. "
            "Nothing is overwritten."
        )
        self.app.push_screen(Ask(f"Back up {row.name}", body, "[Enter] copy   [Esc] leave it"), asked)

    def action_prune(self) -> None:
        """Ask how many to keep, then list what could go."""
        door = self.door
        if door is None or not self.rows:
            self.say(self._message() if not self.rows else CANNOT)
            return

        def asked(text: str | None) -> None:
            if text is None:
                return
            if not text.isdigit() or int(text) < 1:
                self.say(f"Keep how many? At least 1, not {text}: the resume point always stays.")
                return
            keep = int(text)
            self._start(
                f"look which ones can go beyond the newest {keep}",
                lambda progress: door.plan_prune(keep, progress=progress),
                self._planned,
            )

        body = (
            "How many of the newest sound ones stay? They are read through first. "
            "This only lists what could go; deleting is asked for separately."
        )
        usual = str(self.board.run.keep_last or USUAL_KEEP)
        self.app.push_screen(Ask("Prune: a dry run", body, "[Enter] list   [Esc] leave it", before=usual), asked)

    def _planned(self, plan: Prune) -> str:
        self.kept.report = (f"dry run · {plan.directory}", prune_facts(plan))
        if not plan.delete:
            return "Nothing can go: everything that is there has to stay."
        door = self.door
        if door is None:
            return CANNOT
        freed = f"{quantity.plural(len(plan.delete), 'checkpoint')} ({quantity.size(plan.freed_bytes)})"
        listed = [f"- {c.name}" for c in plan.delete[:8]]
        if len(plan.delete) > len(listed):
            listed.append(f"  and {len(plan.delete) - len(listed)} more, listed behind this")
        price = Price(
            title=f"Delete {freed}?",
            lines=(*listed, "They cannot be brought back. Each is looked at once more before it goes."),
            confirm="delete them",
            typed=self.board.run.name,
        )
        self.draw()
        confirm(self.app, price, lambda: self._apply(door, plan))
        return ""

    def _apply(self, door: CheckpointJobs, plan: Prune) -> None:
        def done(said: str) -> str:
            self.kept.report = None
            return said

        self._start("prune", lambda _: door.prune(plan), done)

    def action_back(self) -> None:
        """Call the work off, close the report, or leave: what is on top."""
        if self.board.jobs.state is not None:
            self.board.jobs.call_off()
        elif self.kept.report is not None:
            self.kept.report = None
            self.page.top = 0
            self.draw()
        else:
            self.application.action_place("dashboard")

    def _start(self, title: str, work: Work, done: Callable[[Any], str]) -> None:
        """Do it in the job thread; ``done`` keeps the result and returns a sentence. It may end on another screen."""
        board = self.board

        def then(result: Any, trouble: str) -> None:
            board.call_soon(lambda: finish(result, trouble))

        def finish(result: Any, trouble: str) -> None:
            said = trouble or done(result)
            front = board.in_front
            if isinstance(front, CheckpointsScreen):
                front.reload()
                front.page.top = 0
                front.draw()
            if said:
                board.say(said)

        if not board.jobs.start(title, work, then):
            self.say("One thing at a time: something else is being worked on. [Esc] calls it off.")
        self.draw()


CANNOT = "This screen cannot read the checkpoints themselves; use: trainwatch checkpoints"


def paragraphs(facts: Sequence[Fact]) -> list[Paragraph]:
    """Facts with their labels in the margin."""
    found: list[Paragraph] = []
    before = ""
    for fact in facts:
        label = "" if fact.label == before else fact.label
        before = fact.label
        found.append(Paragraph(text=fact.text, label=label, style=fact.level or "text"))
    return found
