"""The dialog to type a command to start; it shows the detected framework while typing."""

from textual.widgets import Input, Static

from ...core.model.ports.screen import Launcher
from ..background import Show, TaskQueue
from .dialog import Ask

BODY = "As in your shell, but it is not run by one: no |, &&, > or $VARIABLE. It starts in this folder."


class TypeCommand(Ask):
    """Answers with the command, or None."""

    def __init__(self, launcher: Launcher, before: str) -> None:
        super().__init__("A command to start", BODY, "[Enter] plan and check it   [Esc] cancel", before=before)
        self._launcher, self._tasks = launcher, TaskQueue(self)
        self._newest = 0
        self.message = ""

    def on_input_changed(self, event: Input.Changed) -> None:
        """Detect the framework in a thread; only the newest result is shown."""
        event.stop()
        self._newest += 1
        number, command = self._newest, event.value.strip()
        launcher = self._launcher

        def ask() -> Show:
            try:
                message = launcher.preset_of(command) if command else ""
            except Exception as error:
                message = str(error)
            return lambda: self._show(number, message)

        self._tasks.submit(ask)

    def _show(self, number: int, message: str) -> None:
        if number == self._newest:
            self.message = message
            self.query_one("#objection", Static).update(message)
