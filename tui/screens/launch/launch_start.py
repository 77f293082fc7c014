"""Starts the chosen run after its checks, with a confirmation if one failed, and opens it."""

from collections.abc import Callable
from typing import Protocol

from ....core.model.launch.launch_preview import LaunchRequest
from ....core.views import quantity
from ....core.views.screens.confirmation import Price
from ....core.views.screens.launch import check_sum, failed_names
from ...dialogs.dialog import confirm
from .launch_inquiry import LaunchInquiry, LaunchPlace


class StartPlace(LaunchPlace, Protocol):
    """The screen that starts, and goes to what was started."""

    inquiry: LaunchInquiry

    def open_run(self, run_id: str) -> None:
        """Show the dashboard of a run."""
        ...


class LaunchStart:
    """Starts one run at a time. ``under_way``: the start did not return yet.

    ``waits``: Enter was pressed before plan and checks were there; it is started when they are.
    """

    def __init__(self, screen: StartPlace) -> None:
        self._on = screen
        self.under_way = False
        self.waits = False

    def ask(self, order: LaunchRequest) -> None:
        """Start it when its checks are done, after a confirmation if one failed; a second call does not wait."""
        found = self._on.inquiry
        if found.checked:
            self._ask(order, failed_names(found.checks))
        elif not self.waits or found.plan is None:
            self.waits = True
            self._on.show_message("Its checks are still running: it starts when they are in. Enter again: do not wait.")
        else:
            missing = check_sum(found.checks).open
            still = f"{quantity.plural(missing, 'check')} not done yet" if missing else "nothing was checked yet"
            self._ask(order, (*failed_names(found.checks), still))

    def answered(self, order: LaunchRequest) -> None:
        """Plan or checks are done: continue a waiting start, or show why it cannot be started."""
        found = self._on.inquiry
        if self.waits and found.trouble:
            self.waits = False
            self._on.show_message("It cannot be started as it is: the plan shows why.")
        elif self.waits and found.checked:
            self._ask(order, failed_names(found.checks))

    def forget(self) -> None:
        """Another run was chosen: drop the waiting start."""
        self.waits = False

    def _ask(self, order: LaunchRequest, doubts: tuple[str, ...]) -> None:
        self.waits = False
        if not doubts:
            self._start(order)
            return
        price = Price(
            title="Start it all the same?",
            lines=(*doubts, "", "What failed would most likely end it. Nothing is lost by starting."),
            confirm="start it",
            lost_steps=0,
        )
        confirm(self._on.app, price, lambda: self._start(order))

    def _start(self, order: LaunchRequest) -> None:
        launcher, plan = self._on.launcher, self._on.inquiry.plan
        if launcher is None or self.under_way:
            return
        self.under_way = True
        name = plan.name if plan is not None else order.run or "it"
        self._on.show_message(f"Starting {name} under a supervisor of its own …")

        def start() -> Callable[[], None]:
            try:
                run_id, trouble = launcher.start(order), ""
            except Exception as error:
                run_id, trouble = "", str(error) or type(error).__name__
            return lambda: self._started(run_id, trouble)

        self._on.tasks.submit(start)

    def _started(self, run_id: str, trouble: str) -> None:
        self.under_way = False
        if trouble:
            self._on.inquiry.trouble = trouble
            self._on.draw()
            self._on.show_message("Nothing was started: the plan shows why.")
        else:
            self._on.open_run(run_id)
