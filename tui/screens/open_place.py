"""Creates the screens by name. Each module is imported when its screen is first opened, to keep the start fast."""

from ..run_session import Application, RunSession
from .place_screen import PlaceScreen


def place_screen(name: str, application: Application, session: RunSession | None) -> PlaceScreen:
    """A new screen for a place; ``session`` None only for runs and launch."""
    if name == "runs":
        from .runs_screen import RunsScreen

        return RunsScreen(application, session)
    if name == "launch":
        from .launch.launch_screen import LaunchScreen

        return LaunchScreen(application, session)
    assert session is not None
    if name == "log":
        from .log_screen import LogScreen

        return LogScreen(application, session)
    if name == "incidents":
        from .incidents_screen import IncidentsScreen

        return IncidentsScreen(application, session)
    if name == "checkpoints":
        from .checkpoints_screen import CheckpointsScreen

        return CheckpointsScreen(application, session)
    if name == "profiles":
        from .profiles_screen import ProfilesScreen

        return ProfilesScreen(application, session)
    if name == "metrics":
        from .metrics.metrics_screen import MetricsScreen

        return MetricsScreen(application, session)
    if name == "gpus":
        from .machine.gpu_screen import GpuScreen

        return GpuScreen(application, session)
    if name == "host":
        from .machine.host_screen import HostScreen

        return HostScreen(application, session)
    if name == "ranks":
        from .machine.ranks_screen import RanksScreen

        return RanksScreen(application, session)
    if name == "samples":
        from .samples_screen import SamplesScreen

        return SamplesScreen(application, session)
    raise KeyError(name)
