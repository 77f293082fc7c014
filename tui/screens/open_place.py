"""Which screen stands behind which number. Imported when it is opened: the dashboard's start does not wait for them."""

from ..work.board import Application, Board
from .place import PlaceScreen


def place_screen(name: str, application: Application, board: Board | None) -> PlaceScreen:
    """A new screen for a place; ``board`` None only for runs and launch."""
    if name == "runs":
        from .runs import RunsScreen

        return RunsScreen(application, board)
    if name == "launch":
        from .launch import LaunchScreen

        return LaunchScreen(application, board)
    assert board is not None
    if name == "log":
        from .log import LogScreen

        return LogScreen(application, board)
    if name == "incidents":
        from .incidents import IncidentsScreen

        return IncidentsScreen(application, board)
    if name == "checkpoints":
        from .checkpoints import CheckpointsScreen

        return CheckpointsScreen(application, board)
    if name == "profiles":
        from .profiles import ProfilesScreen

        return ProfilesScreen(application, board)
    if name == "samples":
        from .samples import SamplesScreen

        return SamplesScreen(application, board)
    raise KeyError(name)
