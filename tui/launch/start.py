"""Starting what was chosen: asked first where a check failed, done in a thread, then opened."""

from collections.abc import Callable
from typing import Protocol

from ...core.views.launch import failed_names
from ...core.views.price import Price
from ..dialogs.dialog import confirm
from ..launching import LaunchOrder
from .inquiry import LaunchInquiry, LaunchPlace


class StartPlace(LaunchPlace, Protocol):
    """The screen that starts, and goes to what was started."""

    inquiry: LaunchInquiry

    def open_run(self, run_id: str) -> None:
        """Show the dashboard of a run."""
        ...


class LaunchStart:
    """Starts one thing at a time. ``under_way``: it was begun, and did not answer yet."""

    def __init__(self, screen: StartPlace) -> None:
        self._on = screen
        self.under_way = False

    def ask(self, order: LaunchOrder) -> None:
        """Start it, after a question where a check failed."""
        failed = failed_names(self._on.inquiry.checks)
        if not failed:
            self._start(order)
            return
        price = Price(
            title="Start it all the same?",
            lines=(*failed, "", "What failed would most likely end it. Nothing is lost by starting."),
            confirm="start it",
            lost_steps=0,
        )
        confirm(self._on.app, price, lambda: self._start(order))

    def _start(self, order: LaunchOrder) -> None:
        launcher, plan = self._on.launcher, self._on.inquiry.plan
        if launcher is None or self.under_way:
            return
        self.under_way = True
        name = plan.name if plan is not None else order.run or "it"
        self._on.say(f"Starting {name} under a supervisor of its own …")

        def start() -> Callable[[], None]:
            try:
                run_id, trouble = launcher.start(order), ""
            except Exception as error:
                run_id, trouble = "", str(error) or type(error).__name__
            return lambda: self._started(run_id, trouble)

        self._on.in_thread(start)

    def _started(self, run_id: str, trouble: str) -> None:
        self.under_way = False
        if trouble:
            self._on.inquiry.trouble = trouble
            self._on.draw()
            self._on.say("Nothing was started: the plan says why.")
        else:
            self._on.open_run(run_id)
