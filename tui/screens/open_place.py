"""Which screen stands behind which number. Imported when it is opened: the dashboard's start does not wait for them."""

from ..run_session import Application, Board
from .place_screen import PlaceScreen


def place_screen(name: str, application: Application, board: Board | None) -> PlaceScreen:
    """A new screen for a place; ``board`` None only for runs and launch."""
    if name == "runs":
        from .runs_screen import RunsScreen

        return RunsScreen(application, board)
    if name == "launch":
        from .launch_screen import LaunchScreen

        return LaunchScreen(application, board)
    assert board is not None
    if name == "log":
        from .log_screen import LogScreen

        return LogScreen(application, board)
    if name == "incidents":
        from .incidents_screen import IncidentsScreen

        return IncidentsScreen(application, board)
    if name == "checkpoints":
        from .checkpoints_screen import CheckpointsScreen

        return CheckpointsScreen(application, board)
    if name == "profiles":
        from .profiles_screen import ProfilesScreen

        return ProfilesScreen(application, board)
    if name == "samples":
        from .samples_screen import SamplesScreen

        return SamplesScreen(application, board)
    raise KeyError(name)
