"""Opens the card of an incident over the screen, and does what is chosen on it."""

from collections.abc import Callable
from typing import Any, Protocol

from textual.app import App

from ...core.model.incident import EvidenceFile
from ...core.views.screens.incident_card import Choice, IncidentCard, card_markdown, incident_card, innermost
from ..background import TaskQueue
from ..operations import ACTS
from ..run_session import Application, RunSession


class Explained(RunSession, Protocol):
    """The open run, and where work runs in threads."""

    tasks: TaskQueue

    @property
    def app(self) -> App[Any]:
        """Where the card is opened."""
        ...


def explain(application: Application, on: Explained, number: int) -> None:
    """Open the card; where the processes were is read in a thread and then added."""
    from ..dialogs.incident_dialog import IncidentDialog

    card = incident_card(on.now, number)
    if card is None:
        on.show_message("That incident is not known any more.")
        return
    where: tuple[str, ...] = ()

    def newest() -> IncidentCard | None:
        return incident_card(on.now, number, where)

    dialog = IncidentDialog(card, newest, read_only=on.context.read_only)

    def chosen(choice: Choice | None) -> None:
        if choice is not None:
            _do(application, on, dialog.card, choice)

    on.app.push_screen(dialog, chosen)
    source = on.run.incident_files
    if source is None:
        return

    def read() -> Callable[[], None]:
        try:
            files: tuple[EvidenceFile, ...] = tuple(source.files(number))
        except OSError:  # the stacks screen says why
            files = ()
        found = innermost(files)

        def show() -> None:
            nonlocal where
            where = found
            if dialog.is_attached:
                dialog.renew()

        return show

    on.tasks.submit(read)


def _teach(on: Explained, number: int) -> None:
    """Ask for the class of the cause, and learn the line that ended the attempt."""
    from ..dialogs.choose import choose_cause

    causes = on.run.causes
    attempt = next((each.attempt for each in on.now.story.incidents if each.id == number), None)
    if causes is None or attempt is None:
        return

    def ask() -> Callable[[], None]:
        try:
            classes = causes.classes()
        except RuntimeError as error:
            said = str(error)
            return lambda: on.show_message(said)

        def show() -> None:
            on.app.push_screen(choose_cause(classes), chosen)

        return show

    def chosen(failure: str | None) -> None:
        if failure is not None:
            on.tasks.submit(lambda: learn(failure))

    def learn(failure: str) -> Callable[[], None]:
        try:
            said = causes.teach(attempt, failure)
        except RuntimeError as error:
            said = str(error)
        return lambda: on.show_message(said)

    on.tasks.submit(ask)


def _do(application: Application, on: Explained, card: IncidentCard, choice: Choice) -> None:
    match choice.act:
        case "take":
            on.operations.take(choice.name)
        case "acknowledge":
            on.operations.acknowledge(card.number)
        case "log":
            if card.line is not None:
                application.show_log_line(card.log, card.line)
        case "stacks":
            from .stacks_screen import StacksScreen

            on.app.push_screen(StacksScreen(application, on, card.number, card.title))
        case "teach":
            _teach(on, card.number)
        case "copy":
            application.copy(card_markdown(card, on.run.name))
        case act:
            ACTS[act](on.operations)
