"""The launch screen's door: what this folder could start, what a start would be, and the start itself."""

import argparse
import queue
import re
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...config.problem import ConfigError
from ...config.project import FILE_NAME, find_project, load_project
from ...config.shipped import load_presets, load_profiles
from ...model.launching import LaunchCheck, LaunchOffer, LaunchOrder, LaunchPlan
from ...model.profile import Preset, Profile
from ...model.run import RunSpec
from ...store.home import runs_folder
from ...store.journal import JournalTooNew, load_story
from ...store.lock import is_held
from ...store.run_directory import RunDirectory, RunUnreadable, run_id_for
from ..errors import CliError
from ..runs.known_runs import here, home
from .detached import start_detached
from .fitting_profiles import fitting_profiles
from .project_run import project_run, project_spec
from .specs import spec_of_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..preflight.check import Check

LOOKERS = 4
"""Looks that wait (for a driver, torch's import, a slow disk) leave others their turn."""


class FolderLauncher:
    """Implements the screen's Launcher for the working folder."""

    def offers(self) -> Sequence[LaunchOffer]:
        """The runs of the nearest trainwatch.toml."""
        path = find_project(here())
        if path is None:
            return ()
        with _sentences():
            project = load_project(path, profiles=load_profiles(path), presets=load_presets(path))
        usual = project.settings.profiles.use
        return tuple(_offer(r.name, shlex.join(r.command), usual, path) for r in project.runs.values())

    def preset_of(self, command: str) -> str:
        """Detection on what is typed so far."""
        with _sentences():
            words = _split(command)
            if not words:
                return ""
            spec = spec_of_command(words, _order_words(LaunchOrder()))
            return f"preset {spec.preset}: {_preset_why(spec, load_presets(here() / FILE_NAME))}"

    def plan(self, order: LaunchOrder) -> LaunchPlan:
        """Derived as the first launch would be."""
        from ...act.config.derive import DeriveError
        from .framework import plan_first_launch

        with _sentences():
            spec = _spec(order)
            place = Path(spec.project) if spec.project else Path(spec.cwd, FILE_NAME)
            presets, known = load_presets(place), load_profiles(place)
            usual = _spec(LaunchOrder(run=order.run, command=order.command)).settings.profiles.use
            try:
                derived = plan_first_launch(spec)
            except (DeriveError, OSError) as error:
                raise RuntimeError(str(error)) from error
        return LaunchPlan(
            name=spec.name,
            preset=spec.preset,
            preset_why=_preset_why(spec, presets),
            command=tuple(derived.argv),
            cwd=spec.cwd,
            config=spec.config,
            output_dir=spec.output_dir,
            profile=spec.settings.profiles.use,
            profiles=_choices(spec, known, usual),
            changes=tuple(derived.changes),
        )

    def check(self, order: LaunchOrder, seen: Callable[[LaunchCheck], None], wanted: Callable[[], bool]) -> None:
        """As ``trainwatch check``, several looks at a time."""
        from ..preflight.check import look_at_machine
        from ..preflight.checklist import config_check, looks
        from ..preflight.launch_checks import plan_of

        with _sentences():
            spec = _spec(order)
        seen(_told(0, config_check(spec)))
        plan, launch = plan_of(spec)
        seen(_told(1, launch))
        seen(LaunchCheck(place=2, name="machine"))
        machine = look_at_machine()
        waiting: queue.SimpleQueue[tuple[int, str, Callable[[], Check | None]]] = queue.SimpleQueue()
        listed = looks(plan, machine)
        for place, (name, look) in enumerate(listed, 2):
            seen(LaunchCheck(place=place, name=name))
            waiting.put((place, name, look))

        def take_turns() -> None:
            while wanted():
                try:
                    place, name, look = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    found = look()
                except Exception as error:  # a look that fails is told, and does not hide the others
                    seen(LaunchCheck(place=place, name=name, result="warn", found=f"could not be looked at: {error}"))
                    continue
                # A look that does not apply takes its place back.
                seen(LaunchCheck(place=place, name="") if found is None else _told(place, found))

        threads = [threading.Thread(target=take_turns, name="preflight", daemon=True) for _ in range(LOOKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def start(self, order: LaunchOrder) -> str:
        """The path of ``run --detach`` and ``--headless``: made once, refused when it could not start at all."""
        with _sentences():
            if order.run is not None:
                run = project_run(_order_words(order), to_start=True)
            else:
                from .output_owner import require_own_output
                from .startable import require_startable

                spec = _spec(order)
                require_own_output(spec)
                require_startable(spec)
                run = RunDirectory.create(home(), spec)
        if not is_held(run.lock):  # somebody else may have been quicker; then it runs, which is what was asked for
            start_detached(run)
        return run.id


def _order_words(order: LaunchOrder) -> argparse.Namespace:
    """As the command line would have said it."""
    return argparse.Namespace(run_name=order.run, profile=order.profile)


def _spec(order: LaunchOrder) -> RunSpec:
    if order.run is None:
        return spec_of_command(_split(order.command), _order_words(order))
    spec = project_spec(_order_words(order))
    if spec is None:
        raise RuntimeError(f"{FILE_NAME} is gone from {here()}")
    return spec


def _split(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise RuntimeError(f"the command cannot be read: {str(error).lower()}") from error


def _offer(name: str, command: str, profile: str | None, project: Path) -> LaunchOffer:
    run = RunDirectory(runs_folder(home()) / run_id_for(name, project))
    offer = LaunchOffer(name=name, command=command, profile=profile)
    if not run.path.exists():
        return offer
    try:
        story = load_story(run.journal)
    except (JournalTooNew, RunUnreadable, OSError):
        return LaunchOffer(name=name, command=command, profile=profile, run_id=run.id)
    if not story.attempts and not is_held(run.lock):
        return offer
    return LaunchOffer(name=name, command=command, profile=profile, run_id=run.id, state=story.state)


def _preset_why(spec: RunSpec, presets: Mapping[str, Preset]) -> str:
    if spec.project is not None:
        project = load_project(Path(spec.project))
        section = project.runs.get(spec.name)
        if section is not None and section.preset is not None:
            return f"set in {project.provenance.get(f'{section.key}.preset', FILE_NAME)}"
    preset = presets.get(spec.preset)
    if preset is None or spec.preset == "generic":
        return "no framework recognised; its output is read as it is"
    line = " ".join(spec.command)
    by_command = any(re.search(pattern, line) for pattern in preset.detect_command)
    return "recognised from the command" if by_command else "recognised from the keys of its config"


def _choices(spec: RunSpec, known: Mapping[str, Profile], usual: str | None) -> tuple[tuple[str, str], ...]:
    """(name, title), the usual one first."""
    fitting = sorted(fitting_profiles(spec, known), key=lambda profile: profile.name != usual)
    return tuple((profile.name, profile.title or profile.description) for profile in fitting)


def _told(place: int, check: "Check") -> LaunchCheck:
    return LaunchCheck(place=place, name=check.name, result=check.result, found=check.found, remedy=check.remedy)


@contextmanager
def _sentences() -> "Iterator[None]":
    """What the command line would end with comes out as RuntimeError with its sentences."""
    try:
        yield
    except (CliError, ConfigError) as error:
        raise RuntimeError(str(error)) from error
