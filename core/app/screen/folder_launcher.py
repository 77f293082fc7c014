"""The launch screen's Launcher: what this folder can start, what a start would be, its checks, and the start itself.

It loads much of core: the screen imports it when it is needed first.
"""

import contextlib
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ...config.location import FILE_NAME, find_project
from ...config.project import Overrides, load_project
from ...model.launch import LaunchCheck, LaunchOffer, LaunchPreview, LaunchRequest
from ...model.preset import Profile
from ...model.redact import EDGE
from ...model.run import APART, RunSpec
from ...store.home import runs_folder
from ...store.journal import JournalTooNew, load_story
from ...store.lock import is_held
from ...store.run_directory import RunDirectory, RunUnreadable, run_id_for
from ...store.run_lookup import list_runs
from ...views.length_words import resume_words
from ..errors import config_errors
from ..plan.launch_plan import LaunchPlan, fitting_profiles, plan_command, plan_project
from ..plan.specs import read_definitions
from ..plan.trainer_folders import not_used_for_a_command
from ..preflight.check import Check, look_at_machine
from ..preflight.checklist import checks_of, config_check
from ..runs.known_runs import here, home
from ..start.detached import start_detached
from ..start.project_run import create_run, project_run
from .run_services import sentences

CHECKERS = 4
"""Threads: a check that waits (for a driver, torch's import, a slow disk) does not delay the others."""


class FolderLauncher:
    """Implements the screen's Launcher for the working folder."""

    def __init__(self) -> None:
        self._planned: tuple[LaunchRequest, LaunchPlan] | None = None

    def offers(self) -> Sequence[LaunchOffer]:
        """The runs of the nearest trainwatch.toml, and those of commands in this folder that a supervisor holds."""
        offers, path = [], find_project(here())
        if path is not None:
            with sentences(), config_errors():
                known = read_definitions(path)
                project = load_project(path, profiles=known.profiles, presets=known.presets)
            usual = project.settings.profiles.use
            offers = [_offer(r.name, shlex.join(r.command), usual, path) for r in project.runs.values()]
        return (*offers, *_commands_here(here()))

    def plan(self, order: LaunchRequest) -> LaunchPreview:
        """The first launch as it would be now."""
        with sentences():
            plan = _plan(order)
            self._planned = (order, plan)
            if plan.derived is None:
                raise RuntimeError(plan.problem)
            spec = plan.spec
            return LaunchPreview(
                name=spec.name,
                preset=spec.preset,
                preset_why=plan.preset.told(spec.preset_why),
                command=EDGE.words(plan.command_shown),
                cwd=spec.cwd,
                config=spec.config,
                output_dir=spec.output_dir,
                profile=spec.settings.profiles.use,
                profiles=_choices(spec, plan.profiles),
                changes=EDGE.value(plan.derived.changes),
                resume=resume_words(spec.resume_way),
                resumes=spec.resumes,
                unused="" if order.run is not None else not_used_for_a_command() or "",
            )

    def check(self, order: LaunchRequest, seen: Callable[[LaunchCheck], None], wanted: Callable[[], bool]) -> None:
        """As ``trainwatch check``, several checks at a time."""
        with sentences():
            planned = self._planned
            plan = planned[1] if planned is not None and planned[0] == order else _plan(order)
        seen(_told(0, config_check(plan.spec)))
        seen(LaunchCheck(place=1, name="machine"))
        listed = list(enumerate(checks_of(plan, look_at_machine()), 1))
        for place, (name, _) in listed:
            seen(LaunchCheck(place=place, name=name))

        waiting = listed[::-1]

        def work() -> None:
            with contextlib.suppress(IndexError):
                while wanted():
                    place, (name, run_check) = waiting.pop()
                    try:
                        found = run_check()
                    except Exception as error:  # a check that fails does not hide the others
                        said = f"could not be checked: {error}"
                        seen(LaunchCheck(place=place, name=name, result="warn", found=said))
                        continue
                    # An empty name takes the place of a check that does not apply.
                    seen(LaunchCheck(place=place, name="") if found is None else _told(place, found))

        # Daemons: one that waits for a driver does not keep the program from ending.
        threads = [threading.Thread(target=work, name="preflight", daemon=True) for _ in range(CHECKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def start(self, order: LaunchRequest) -> str:
        """As ``run --detach`` and ``--headless``: a new run is made, and refused if it cannot be started."""
        with sentences():
            if order.run is not None:
                ready = project_run(order.run, Overrides(profile=order.profile), to_start=True)
            else:
                ready = create_run(_plan(order))
            if not is_held(ready.run.lock):
                start_detached(ready.run, ready.first, ready.claim)
            elif ready.claim is not None:  # a supervisor was quicker: the run is started, as requested
                ready.claim.hand_over()
        return ready.run.id


def _plan(order: LaunchRequest) -> LaunchPlan:
    overrides = Overrides(profile=order.profile)
    if order.run is None:
        try:
            words = tuple(shlex.split(order.command))
        except ValueError as error:
            raise RuntimeError(f"the command cannot be read: {str(error).lower()}") from error
        return plan_command(words, overrides)
    plan = plan_project(order.run, overrides)
    if plan is None:
        raise RuntimeError(f"{FILE_NAME} was removed from {here()}")
    return plan


def _offer(name: str, command: str, profile: str | None, project: Path) -> LaunchOffer:
    run = RunDirectory(runs_folder(home()) / run_id_for(name, project))
    offer = LaunchOffer(name=name, command=EDGE.text(command), profile=profile)
    if not run.path.exists():
        return offer
    known = msgspec.structs.replace(offer, run_id=run.id)
    with contextlib.suppress(JournalTooNew, RunUnreadable, OSError):
        story = load_story(run.journal)
        begun = story.attempts or is_held(run.lock)
        return msgspec.structs.replace(known, state=story.state) if begun else offer
    return known


def _commands_here(cwd: Path) -> Iterator[LaunchOffer]:
    """The newest first. What a rehearsal or a trial runs is its own affair."""
    for run in list_runs(home()):
        with contextlib.suppress(RunUnreadable, JournalTooNew, OSError):
            spec = run.load_spec()
            apart = spec.project is not None or spec.cwd != str(cwd) or APART & spec.labels.keys()
            if apart or not is_held(run.lock):
                continue
            yield LaunchOffer(
                name=spec.name,
                command=EDGE.text(shlex.join(spec.command)),
                run_id=run.id,
                state=load_story(run.journal).state,
                of_file=False,
            )


def _choices(spec: RunSpec, known: Mapping[str, Profile]) -> tuple[tuple[str, str], ...]:
    """(name, title) in the order of the ladder; without one, that of the file first."""
    fitting = fitting_profiles(spec, known)
    if not spec.settings.profiles.ladder:
        usual = None if spec.project is None else load_project(Path(spec.project)).settings.profiles.use
        fitting = tuple(sorted(fitting, key=lambda profile: profile.name != usual))
    return tuple((profile.name, profile.title or profile.description) for profile in fitting)


def _told(place: int, check: Check) -> LaunchCheck:
    shown = EDGE.value(check)
    return LaunchCheck(place=place, name=shown.name, result=shown.result, found=shown.found, remedy=shown.remedy)
