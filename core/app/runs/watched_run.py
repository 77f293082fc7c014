"""The supervised run of this folder, found without reading settings, so that the screen opens sooner."""

from ...config.location import find_project
from ...store.lock import is_held
from ...store.run_directory import RunDirectory, RunUnreadable
from ...store.run_lookup import list_runs
from .known_runs import here, home


def watched_run() -> RunDirectory | None:
    """The only run of this folder's trainwatch.toml, if a supervisor holds it and the file is unchanged since.

    None: the settings must be read to know which run is meant, or what they changed.
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
