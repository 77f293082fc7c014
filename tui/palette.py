"""The command palette: every action that applies now, of the screen in front and of the run, and every place."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.screen import Screen

from .keys import KEYS, Key, applying, key_words
from .operations import ACTS
from .places import PLACES, SIDE_PLACES
from .screens.place_screen import PlaceScreen

if TYPE_CHECKING:
    from .app import TrainwatchApp


PLACE_KEYS = {key.action.partition("'")[2].rstrip("')"): key for key in KEYS if key.name == "app.place"}
"""The keys that open a screen."""


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
        yield from command(f"{key.label} ({key_words(key.shown)})", key.help, partial(app.simulate_key, key.key))
    if dashboard is not None and screen is not dashboard:
        # What can be done to the run can be done from everywhere.
        for key in applying(dashboard.context):
            if key.action in ACTS or key.action == "attach":
                act = (
                    dashboard.action_attach if key.action == "attach" else partial(dashboard.action_operate, key.action)
                )
                yield from command(f"{key.label}: {dashboard.run.name}", key.help, act)
    places = [(p.name, f"go to {p.name} ({p.key})", f"the {p.name} screen") for p in PLACES]
    places += [(name, f"{k.label} ({k.shown})", k.help) for name in SIDE_PLACES if (k := PLACE_KEYS.get(name))]
    for name, title, words in places:
        if app.offers(name):
            yield from command(title, words, partial(app.action_place, name))
    yield from command("Theme", "choose the colours", app.action_change_theme)
    if not any(key.action == "app.copy_text" for key in own):  # else it stands above with its other key
        yield from command("copy this screen (ctrl+y)", "copy its text", app.action_copy_text)
    yield from command("picture of this screen (ctrl+s)", "save it as SVG", app.action_save_picture)
    yield from command("leave (q)", "leave the screen; training and supervisor continue", app.action_leave)
