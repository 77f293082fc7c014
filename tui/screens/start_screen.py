"""The first page if no run is open: this machine as it is now, the runs, and what to do first."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ...core.model.machine_details import MachineDetails
from ...core.model.ports import MachineFeed
from ...core.model.story import Situation
from ...core.views.columns import Column
from ...core.views.dashboard import HeaderView, gpu_pane_view, memory_view
from ...core.views.machine_page import PROCESS_COLUMNS, READ, TREE_COLUMNS, WHOSE, WRITTEN, host_page_view, most_first
from ...core.views.words import Paragraph
from ..background import Poller, Snapshot, TaskQueue
from ..keys import Key
from ..panes.dashboard_panes import GpuPane, MemoryPane
from ..panes.pane import Pane
from ..panes.rows_pane import PagePane, RowsPane
from ..places import run_in_terminal
from ..run_session import Band, Box, stack
from ..ui.chart import window
from .place_screen import headline
from .runs_screen import ABOUT_ROWS, NO_RUN, RUNS_KEYS, RunsScreen

if TYPE_CHECKING:
    from ..app import TrainwatchApp

POLL_S, PROCESSES_S, TRAINING_S = 1.0, 2.0, 10.0
"""How often readings, processes and a training to adopt are read."""
LIST_LEAST, FIRST_ROWS, PROCESSES_LEAST = 6, 5, 5
METERS = 5
SIDE_FROM = 64
"""Columns from which GPUs and machine have room beside each other."""
DEMO = Key("d", "demo", "demo", "a short real training that crashes once and hangs once", acts=True)
ADOPT = Key("a", "adopt", "adopt", "supervise a training that runs already", acts=True)


class StartScreen(RunsScreen):
    """Without runs it says what to do first, in place of the list."""

    keys = (*RUNS_KEYS[:2], DEMO, ADOPT, *RUNS_KEYS[2:])
    feed: MachineFeed | None = None
    poller: Poller | None = None
    snapshot: Snapshot | None = None
    details = MachineDetails()
    training = ""
    _left = False

    def __init__(self, application: "TrainwatchApp", session: None) -> None:
        super().__init__(application, session)
        self._polls = TaskQueue(self, "machine", in_order=True)

    def head_alone(self) -> HeaderView:
        view = headline((NO_RUN,)) if self.cards == () else super().head_alone()
        return msgspec.structs.replace(view, name="trainwatch")

    def bodies(self) -> Sequence[Pane]:
        self.first, self.gpu, self.memory = PagePane(id="first"), GpuPane(id="gpu"), MemoryPane(id="memory")
        self.processes = RowsPane(id="processes")
        return (*super().bodies(), self.first, self.gpu, self.memory, self.processes)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """The list, or what to do first; GPUs beside the machine; the chosen run and processes, if there is room."""
        gpus, beside = len(self.gpu.view.gpus), width >= SIDE_FROM
        gpu_rows = 2 + min(4 if gpus == 1 else max(2, gpus + 1), height // 3)
        machine = max(2 + METERS, gpu_rows) if beside else 2 + METERS + gpu_rows
        cards = self.cards or ()
        rows = FIRST_ROWS if self.cards == () else max(LIST_LEAST, min(len(cards) + 3, height // 2))
        machine = machine if height - machine >= rows else 0
        left = height - rows - machine
        about = ABOUT_ROWS if cards and left >= ABOUT_ROWS + PROCESSES_LEAST else 0
        processes = left - about if left - about >= PROCESSES_LEAST else 0
        bands: list[Band] = [
            (height - machine - about - processes, (("first" if self.cards == () else "runs", width),)),
            (about, (("about", width),)),
        ]
        if beside and machine:
            bands.append((machine, (("gpu", width // 2), ("memory", width - width // 2))))
        elif machine:
            bands += [(gpu_rows, (("gpu", width),)), (2 + METERS, (("memory", width),))]
        bands.append((processes, (("processes", width),)))
        return stack((0, top, width, height), bands)

    def on_mount(self) -> None:
        super().on_mount()
        if self.application.interval_s > 0:
            self.tasks.fetch(self._begin, self._opened)

    def on_unmount(self) -> None:
        self._left = True
        self._polls.close()
        if self.feed is not None:
            self.feed.close()

    def _begin(self) -> MachineFeed:
        """In a thread; what it begins ends also if the page was left meanwhile."""
        self.feed = feed = self.application.picker.machine()
        if self._left:
            feed.close()
        return feed

    def _opened(self, feed: MachineFeed | None, trouble: str) -> None:
        if feed is None:
            self.show_message(trouble)
            return
        self.poller = Poller(feed, self._polls, self._polled, period_s=POLL_S)
        self.poller.poll()
        self.every(PROCESSES_S, lambda: self.read(feed.details, self._listed))
        look = self.application.picker.training
        self.every(TRAINING_S, lambda: self.read(partial(look, self.details.gpus), self._found))

    def _polled(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.draw()

    def _listed(self, details: MachineDetails | None, _: str) -> None:
        self.details = details or self.details

    def _found(self, training: str | None, _: str) -> None:
        self.training = training or ""

    def show(self) -> None:
        super().show()
        found = self.snapshot
        now, series = (found.situation, found.series) if found is not None else (Situation(), {})
        shown = window(None, now_t=now.now_t, over=False)
        cpu = (each for each in host_page_view(now, self.details).gauges if each.series == "host.cpu")
        self.first.show(self._first(), title="start here")
        self.gpu.show(gpu_pane_view(now), series, shown)
        machine = memory_view(now)
        meters = (*(msgspec.structs.replace(each, label="cpu") for each in cpu), *machine.meters)
        self.memory.show(msgspec.structs.replace(machine, meters=meters), series, shown)
        self._show_processes()
        if self.poller is not None:
            self.poller.series_queries = (*self.gpu.series_queries(), *self.memory.series_queries())

    def _show_processes(self) -> None:
        gpus, tree = self.details.gpus, self.details.tree
        if gpus is not None and gpus.processes:
            rows = sorted(gpus.processes, key=lambda row: (row.gpu, most_first(row.mem_bytes), row.pid))
            self.processes.show_table(_but(PROCESS_COLUMNS, WHOSE), rows, title=f"processes on the GPUs · {len(rows)}")
        else:
            others = tree.others if tree is not None else ()
            self.processes.show_table(
                _but(TREE_COLUMNS, READ, WRITTEN), others, title="processes that use most", message="Reading …"
            )

    def _first(self) -> list[Paragraph]:
        found = f"adopt what trains here: {self.training}" if self.training else "adopt a training that runs already"
        lines = {"d": "see the demo: a crash, a hang", "l": "start a training", "a": found}
        keys = {key.shown for key in self.offered()}
        return [Paragraph(text, mark=("key", f"{key}  ")) for key, text in lines.items() if key in keys]

    def action_demo(self) -> None:
        self._use_terminal("demo")

    def action_adopt(self) -> None:
        self._use_terminal("adopt")

    def _use_terminal(self, verb: str) -> None:
        said = run_in_terminal(self.app, self.application.picker.verb(verb), f"Back from `trainwatch {verb}`.")
        self.show_message(said)
        self.action_reload()


def _but(columns: Sequence[Column[Any]], *of_a_run: Column[Any]) -> list[Column[Any]]:
    return [column for column in columns if column not in of_a_run]
