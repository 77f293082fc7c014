"""Rehearses the chosen run from the launch screen, after a confirmation, and shows the result."""

from collections.abc import Callable

from ....core.model.launch.launch_preview import LaunchRequest
from ....core.model.launch.rehearsal import Rehearsal
from ....core.views.rehearsal_text import rehearsal_lines
from ....core.views.screens.confirmation import Price
from ...dialogs.dialog import Dialog, confirm
from .launch_inquiry import LaunchPlace

PRICE = Price(
    title="Rehearse it before the night?",
    lines=(
        "In a scratch folder it trains to its first checkpoint, is killed, and is resumed as tonight.",
        "Then you see whether step and loss go on, and what a crash, a hang or a full GPU would do.",
        "No file of yours is written. It takes as long as the first checkpoint; R again ends it.",
    ),
    confirm="rehearse",
    lost_steps=0,
)


class LaunchRehearsal:
    """One rehearsal at a time; it ends when its screen is left."""

    def __init__(self, screen: LaunchPlace) -> None:
        self._on = screen
        self.under_way = False
        self._wanted = False

    def ask(self, order: LaunchRequest) -> None:
        """Confirm and begin; if one is under way, end it."""
        if self.under_way:
            self._wanted = False
            self._on.show_message("Ending the rehearsal …")
        else:
            confirm(self._on.app, PRICE, lambda: self._begin(order))

    def leave(self) -> None:
        """The screen is left: end it."""
        self._wanted = False

    def _begin(self, order: LaunchRequest) -> None:
        launcher = self._on.launcher
        if launcher is None or self.under_way:
            return
        self.under_way = self._wanted = True
        self._on.show_message("The rehearsal begins: to the first checkpoint …")

        def say(text: str) -> None:
            self._on.tasks.show(lambda: self._on.show_message(f"Rehearsal: {text}"))

        def rehearse() -> Callable[[], None]:
            try:
                result, trouble = launcher.rehearse(order, say, lambda: self._wanted), ""
            except Exception as error:
                result, trouble = None, str(error) or type(error).__name__
            return lambda: self._done(result, trouble)

        self._on.tasks.submit(rehearse)

    def _done(self, result: Rehearsal | None, trouble: str) -> None:
        self.under_way = False
        if result is None:
            self._on.show_message(f"Rehearsal: {trouble}")
            return
        self._on.show_message(f"Rehearsal: {result.verdict}")
        text = "\n".join(rehearsal_lines(result))
        dialog: Dialog[None] = Dialog("Rehearsal", text, "[Esc] close", danger=not result.safe)
        self._on.app.push_screen(dialog)
