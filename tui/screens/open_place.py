"""Which screen stands behind which number. Imported when it is opened: the dashboard's start does not wait for them."""

from typing import TYPE_CHECKING

from .place import PlaceScreen

if TYPE_CHECKING:
    from .dashboard import Dashboard


def place_screen(name: str, board: "Dashboard | None") -> PlaceScreen:
    """A new screen for a place; ``board`` None only for runs and launch."""
    if name == "runs":
        from .runs import RunsScreen

        return RunsScreen(board)
    if name == "launch":
        from .launch import LaunchScreen

        return LaunchScreen(board)
    assert board is not None
    if name == "log":
        from .log import LogScreen

        return LogScreen(board)
    if name == "incidents":
        from .incidents import IncidentsScreen

        return IncidentsScreen(board)
    if name == "checkpoints":
        from .checkpoints import CheckpointsScreen

        return CheckpointsScreen(board)
    if name == "profiles":
        from .profiles import ProfilesScreen

        return ProfilesScreen(board)
    if name == "samples":
        from .samples import SamplesScreen

        return SamplesScreen(board)
    raise KeyError(name)
