"""Where a rehearsal or a trial writes, and which folders of the user it must not write to."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...model.run import RunSpec
from ...store.home import make_private
from ...store.learned.rehearsals import rehearsals_folder
from ..plan.launch_plan import LaunchPlan
from ..runs.known_runs import home
from ..runs.output_folder import list_run_checkpoints

PREFIX = "trainwatch-rehearsal-"
ROOM_BYTES = 20e9
"""A place with less is used only if no other has more."""
CACHES = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "TORCH_HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR")
"""Folders of downloads: they stay the user's own, so that nothing is fetched twice."""


@contextmanager
def scratch_folder(parent: Path, *, keep: bool) -> Iterator[Path]:
    """A new folder in ``parent``, removed afterwards unless ``keep``."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        yield folder
    finally:
        if not keep:
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove the scratch folder. overlayfs leaves folders in it that nobody may enter, not even their owner."""
    for place, names, _ in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink() and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def places(given: Path | None, wanted: Sequence[Path]) -> list[Path]:
    """Where a scratch folder may be, the best first: outside what overlays must cover, with room."""
    if given is not None:
        return [given.absolute()]
    own = make_private(rehearsals_folder(home()) / "scratch")
    real = [Path(os.path.realpath(folder)) for folder in wanted]
    found = []
    for place in (Path("/var/tmp"), own, Path(tempfile.gettempdir())):  # noqa: S108  a folder of our own is made there
        outside = not any(Path(os.path.realpath(place)).is_relative_to(folder) for folder in real)
        if outside and os.access(place, os.W_OK | os.X_OK):
            found.append(place)
    found = list(dict.fromkeys(found)) or [own]
    return sorted(found, key=lambda place: shutil.disk_usage(place).free < ROOM_BYTES)


def written_folders(spec: RunSpec) -> list[Path]:
    """The folders of the user that a training certainly writes to."""
    folders = [Path(spec.cwd)]
    if spec.output_dir is not None:
        place = Path(spec.cwd, spec.output_dir)
        folders.append(next(parent for parent in (place, *place.parents) if parent.is_dir()))
    return folders


def hidden_folders(plan: LaunchPlan) -> list[Path]:
    """The output folder, if it holds checkpoints: tonight begins without them. One that holds input is not hidden."""
    spec = plan.spec
    if spec.output_dir is None or not list_run_checkpoints(spec, plan.preset).checkpoints:
        return []
    folder = Path(os.path.realpath(Path(spec.cwd, spec.output_dir)))
    words = [*spec.command, *map(str, plan.settings.values())]
    named = [Path(os.path.realpath(Path(spec.cwd, word))) for word in words if word and "\0" not in word]
    holds_input = any(place.is_relative_to(folder) and place != folder and place.exists() for place in named)
    is_work_folder = Path(os.path.realpath(spec.cwd)).is_relative_to(folder)
    return [] if holds_input or is_work_folder else [folder]


def caches(environ: Mapping[str, str]) -> list[Path]:
    """Folders of downloads that there may be."""
    user = environ.get("HOME")
    named = [Path(environ[name]) for name in CACHES if environ.get(name)]
    return [*([Path(user, ".cache")] if user else []), *named]
