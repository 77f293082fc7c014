"""The run of this folder that is being looked after, found without reading any settings: the screen is there sooner."""

from ...config.location import find_project
from ...store.lock import is_held
from ...store.run_directory import RunDirectory, RunUnreadable, list_runs
from .known_runs import here, home


def watched_run() -> RunDirectory | None:
    """The only run of this folder's trainwatch.toml, if a supervisor holds it and the file did not change since.

    None: it takes the settings to tell which run is meant, or what there is to take over from them.
    """
    path = find_project(here())
    if path is None:
        return None
    try:
        found = [run for run in list_runs(home()) if run.load_spec().project == str(path)]
        if len(found) == 1 and is_held(found[0].lock) and found[0].spec.stat().st_mtime > path.stat().st_mtime:
            return found[0]
    except (OSError, RunUnreadable):
        pass
    return None
