"""The command palette: every action that applies now, of the screen in front and of the run, and every place."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.screen import Screen

from .keys import Key, applying, key_words
from .operations import ACTS
from .places import PLACES
from .screens.dashboard import Dashboard
from .screens.place_screen import PlaceScreen

if TYPE_CHECKING:
    from .app import TrainwatchApp


SIDE_WORDS = {
    "samples": ("images", "i", "the newest sample images of the run"),
    "ranks": ("ranks", "D", "the ranks of a distributed training, and the nodes of its job"),
    "launch": ("launch", "l", "start something: a run of trainwatch.toml, or a command"),
}


def commands(app: "TrainwatchApp", screen: Screen[object]) -> Iterator[SystemCommand]:
    """What the palette offers over ``screen``."""
    dashboard = app.dashboard
    titles: set[str] = set()

    def command(title: str, words: str, do: Callable[[], None]) -> Iterator[SystemCommand]:
        if title not in titles:
            titles.add(title)
            yield SystemCommand(title, words, do)

    own: tuple[Key, ...] = ()
    if isinstance(screen, PlaceScreen):
        own = screen.offered()
    elif dashboard is not None and screen is dashboard:
        own = applying(dashboard.context)
    for key in own:
        yield from command(f"{key.label} ({key_words(key.shown)})", key.help, _press(app, key.key))
    if dashboard is not None and screen is not dashboard:
        # What can be done to the run can be done from everywhere.
        for key in applying(dashboard.context):
            if key.action in ACTS or key.action == "attach":
                yield from command(f"{key.label}: {dashboard.run.name}", key.help, _act(dashboard, key.action))
    for place in PLACES:
        if app.offers(place.name):
            yield from command(f"go to {place.name} ({place.key})", f"the {place.name} screen", _go(app, place.name))
    for name, (title, shown, words) in SIDE_WORDS.items():
        if app.offers(name):
            yield from command(f"{title} ({shown})", words, _go(app, name))
    yield from command("Theme", "choose the colours", app.action_change_theme)
    if not any(key.action == "app.copy_text" for key in own):  # else it stands above with its other key
        yield from command("copy this screen (ctrl+y)", "copy its text", app.action_copy_text)
    yield from command("picture of this screen (ctrl+s)", "save it as SVG", app.action_save_picture)
    yield from command("leave (q)", "leave the screen; training and supervisor continue", app.action_leave)


def _press(app: "TrainwatchApp", key: str) -> Callable[[], None]:
    return lambda: app.simulate_key(key)


def _act(dashboard: Dashboard, action: str) -> Callable[[], None]:
    if action == "attach":
        return dashboard.action_attach
    return lambda: dashboard.action_operate(action)


def _go(app: "TrainwatchApp", name: str) -> Callable[[], None]:
    return lambda: app.action_place(name)
