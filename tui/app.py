"""The application. It shows a run and owns nothing: training and supervisor continue without it."""

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")

from textual import events
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.screen import Screen
from textual.types import CSSPathType

from ..core.model.ports import Launcher, OpenRun, RunPicker
from ..core.model.run import TERMINAL_STATES
from ..core.model.story import Situation
from ..core.model.text import typed
from ..core.store.home import make_private
from .keys import READ_ONLY, KeyContext
from .places import PLACES, SIDE_PLACES
from .run_session import PaneFocus, Remembered, keep, recall
from .screens.dashboard import Dashboard
from .screens.pane_screen import is_place
from .ui.cells import ASCII, draws_letters, glyphs_for
from .ui.terminal import DARK, ROLES, exit_with_terminal, in_browser, mouse_supported, own_themes, use_terminal_size

HERE = Path(__file__).parent


class TrainwatchApp(App[None]):
    """``run`` None: start with the list of runs of ``picker``, or with the launch screen.

    Without ``launcher`` nothing can be launched from here.
    ``read_only`` hides everything that changes something. ``interval_s`` 0: no polling (tests).
    ``home``: the state folder, for the saved state and screenshots; None: nothing is saved.
    """

    TITLE = "trainwatch"
    CSS_PATH: ClassVar[CSSPathType | None] = [HERE / "panes" / "pane.tcss", HERE / "dialogs" / "dialogs.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+q,ctrl+c", "leave", show=False, priority=False),
        Binding("R", "place('runs')", show=False),
        Binding("ctrl+s", "save_picture", show=False),
        Binding("ctrl+y", "copy_text", show=False),
        Binding("ctrl+z", "suspend_process", show=False),
        *(Binding(p.key, f"place('{p.name}')", show=False) for p in PLACES),
    ]

    themed = False
    """Whether our themes are registered."""

    def __init__(
        self,
        run: OpenRun | None,
        *,
        picker: RunPicker,
        launcher: Launcher | None = None,
        launch_first: bool = False,
        read_only: bool = False,
        interval_s: float = 1.0,
        home: Path | None = None,
    ) -> None:
        super().__init__()
        self.first_run, self.picker, self.read_only, self.interval_s = run, picker, read_only, interval_s
        self.launcher, self.launch_first = launcher, launch_first
        self.home, self.remembered = home, recall(home)
        self.explains_k = True
        self._ascii: LineFilter | None = None
        if glyphs_for() is ASCII:
            from .ui.cells import AsciiFilter  # few terminals need it

            self._ascii = AsciiFilter(letters=draws_letters())
        self.pane_focus = PaneFocus()
        self.exit_message = ""
        """Printed on the terminal after exit."""
        self.animation_level = "none"
        self.themed = True
        for theme in own_themes(self.console.color_system, colourless=self.no_color):
            self.register_theme(theme)
        if self.remembered.theme in self.available_themes and self.remembered.theme != DARK.name:
            self.theme = self.remembered.theme
        else:
            self.set_reactive(App.theme, DARK.name)  # setting it would have all style sheets parsed twice
            self.stylesheet.set_variables(self.get_css_variables())

    def get_css_variables(self) -> dict[str, str]:
        """The colours of the theme; none for the constructor of Textual, which does not know our themes yet."""
        return super().get_css_variables() if self.themed else {}

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Values of our colour variables for other themes."""
        return ROLES

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Those of Textual, and one that draws in ASCII on terminals without Unicode."""
        filters = super().get_line_filters()
        return [*filters, self._ascii] if self._ascii is not None else filters

    def run(self, *, headless: bool = False, **rest: Any) -> None:
        """Run on this terminal until exit, then print what continues."""
        browser = in_browser(os.environ)
        if not headless:
            if not browser:
                use_terminal_size()
            exit_with_terminal()
            rest = {"mouse": mouse_supported(os.environ), **rest}
        result = super().run(headless=headless, **rest)
        if self.exit_message and not headless and not browser:
            print(self.exit_message)  # noqa: T201  after the application
        return result

    def on_mount(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.action_leave)
        # The terminal is empty after Ctrl-Z and ``fg``, and Textual paints only what changes.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        if self.first_run is None:
            self.action_place("launch" if self.launch_first else "runs")

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.MouseDown | events.AppFocus) and self.dashboard is not None:
            self.dashboard.away.used(pressed=not isinstance(event, events.AppFocus))
        await super().on_event(event)

    @property
    def dashboard(self) -> Dashboard | None:
        return next((s for s in reversed(self.screen_stack) if isinstance(s, Dashboard)), None)

    def get_default_screen(self) -> Screen[Any]:
        """The dashboard of the first run: Textual would lay out and paint an empty screen below it, too."""
        return super().get_default_screen() if self.first_run is None else Dashboard(self, self.first_run)

    def context_of(self, now: Situation) -> KeyContext:
        """What decides which keys apply."""
        return KeyContext(now=now, launchable=self.launcher is not None, read_only=self.read_only)

    def show_run(self, run: OpenRun) -> None:
        """Replace the dashboard with that of another run."""
        dashboard = Dashboard(self, run)
        self._uncover()
        while sum(is_place(s) for s in self.screen_stack) > 1:
            self.pop_screen()
        if len(self.screen_stack) > 1:
            self.switch_screen(dashboard)
            return
        if self.dashboard is not None:
            self.dashboard.leave()  # Textual keeps the first screen
        self.push_screen(dashboard)

    def action_place(self, name: str) -> None:
        """Open a screen by name; without an open run only those that need none."""
        dashboard = self.dashboard
        if dashboard is None and name == "dashboard":
            self.action_leave_place()
            return
        if not self.offers(name):
            if name == "launch" and self.read_only:
                self.show_message(READ_ONLY)
            return
        if is_place(self.screen) and self.screen.place == name:
            return
        if name not in SIDE_PLACES:
            self._uncover()
        from .screens.place_screen import place_screen  # the first picture does not wait for it

        if dashboard is None and name == "runs" and is_place(self.screen):
            self.switch_screen(place_screen(name, self, dashboard))
        elif dashboard is None or name != "dashboard":
            self.push_screen(place_screen(name, self, dashboard))

    def offers(self, name: str) -> bool:
        """Whether a screen can be opened now."""
        if name == "runs":
            return True
        if name == "launch":
            return self.launcher is not None and not self.read_only
        dashboard = self.dashboard
        if dashboard is None:
            return False
        return name != "ranks" or dashboard.context.distributed

    def action_leave_place(self) -> None:
        """Go back to the screen that this one was opened from; from the first one to the list of runs."""
        if not is_place(self.screen):
            return
        if self.dashboard is not None or sum(is_place(s) for s in self.screen_stack) > 1:
            self.pop_screen()
        elif self.screen.place != "runs" and self.offers("runs"):
            self.action_place("runs")
        else:
            self.show_message("This is the first screen: q leaves it.")

    def _uncover(self) -> None:
        """Close the screens over the dashboard."""
        while is_place(self.screen) and self.dashboard is not None:
            self.pop_screen()

    def show_log_line(self, log: str | None, line: int) -> None:
        """Show a line (counted from 1) of a log."""
        dashboard = self.dashboard
        if dashboard is None:
            return
        from .screens.log_screen import LogScreen

        screen = LogScreen(self, dashboard)  # over the current screen: Escape returns to it
        self.push_screen(screen)
        screen.call_after_refresh(screen.to_line, log, line)

    def action_leave(self) -> None:
        self.exit_message = exit_message(self.dashboard)
        keep(self.home, Remembered(theme=self.theme))
        self.exit()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        from .palette import commands

        return commands(self, screen)

    def action_copy_text(self) -> None:
        lines: list[str] = []
        for pane in getattr(self.screen, "panes", {}).values():
            if pane.display and pane.id not in {"keys", "tabs"}:
                lines += [*([str(pane.border_title)] if pane.border_title else []), *pane.plain_lines(), ""]
        self.copy_to_clipboard("\n".join(lines).strip() + "\n")
        self.show_message("Copied (if this terminal allows it).")

    def action_save_picture(self) -> None:
        svg = self.export_screenshot(title="trainwatch")
        try:
            folder = make_private(self.home / "screenshots") if self.home is not None else Path.cwd()
            path = folder / time.strftime("trainwatch-%Y%m%d-%H%M%S.svg")
            with path.open("x", encoding="utf-8") as file:
                file.write(svg)
        except OSError as error:
            self.show_message(f"The picture was not saved: {error.strerror}: {error.filename}")
        else:
            self.show_message(f"Saved as SVG: {path}")

    def copy(self, text: str) -> None:
        """Copy to the terminal's clipboard, and show what was copied."""
        self.copy_to_clipboard(text)
        self.show_message(f"Copied (if this terminal allows it): {text}")

    def show_message(self, text: str) -> None:
        """Show a sentence in the footer of the current screen."""
        front = next((s for s in reversed(self.screen_stack) if is_place(s) or isinstance(s, Dashboard)), None)
        if front is not None:
            front.show_message(text)


def exit_message(dashboard: Dashboard | None) -> str:
    """The sentence that is printed after exit: what continues."""
    if dashboard is None:
        return ""
    story, name = dashboard.now.story, dashboard.run.name
    if not story.attempts:
        return f"{name} was not started."
    if story.state in TERMINAL_STATES:
        return f"{name} is {story.state.replace('_', ' ')}. Its events: {typed('events', dashboard.run.run_id)}"
    if dashboard.now.supervisor_alive is False:
        return (
            f"{name}: the trainer continues without a supervisor. "
            f"Start a supervisor with: {typed('resume', dashboard.run.run_id)}, or open the screen again and press S."
        )
    again = typed("--run", dashboard.run.run_id)
    return f"{name}: training and supervisor continue. Open the screen again with: {again}"
