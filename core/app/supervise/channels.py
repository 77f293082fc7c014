"""What connects a supervisor with services outside: the ping address, and answers by buttons."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from ...act.notify.answers import AnswerPoll, Codes
from ...act.notify.outbox import Outbox
from ...act.notify.services import Answers, service_of
from ...model.control_messages import Reply
from ...model.observation import Command
from ...model.ports.supervision import AttemptTarget
from ...model.settings import NoticeEvent
from ...store.run_directory import RunDirectory
from .dead_man import DeadManPing
from .vitality import Vitality

ANSWER_S = 4.0
KEY = "answer_key"
"""The file of a run's folder with the key of its answers."""


class Loop(Protocol):
    """What is needed of the supervisor's loop."""

    @property
    def attempts(self) -> int:
        """The number of the newest attempt."""

    @property
    def live(self) -> AttemptTarget | None:
        """The attempt that is followed now."""

    def note(self, text: str) -> None:
        """Write a sentence to the journal."""

    def ask(self, command: Command) -> Future[Reply]:
        """Carry out an operator command."""


class Channels:
    """Started with the supervisor's loop and stopped with it."""

    def __init__(self, run: RunDirectory, supervisor: Loop, vitality: Vitality) -> None:
        spec = run.load_spec()
        settings = spec.settings.notify
        self._parts: list[DeadManPing | AnswerPoll] = []
        if settings.ping_url:
            self._parts.append(
                DeadManPing(
                    settings.ping_url,
                    settings.ping_s,
                    lambda: vitality.why_blind(live=supervisor.live is not None),
                    _trouble("ping", "the ping address is called again", supervisor, vitality),
                )
            )
        if settings.actions:
            services = [service for url in settings.urls if (service := service_of(url)) is not None]
            self._parts.append(
                AnswerPoll(
                    services,
                    Codes(run.path / KEY),
                    attempt=lambda: supervisor.attempts,
                    carry=lambda verb, by: _carry(supervisor, verb, by),
                    tell=supervisor.note,
                )
            )

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        for part in self._parts:
            part.stop()


def outbox_of(run: RunDirectory, vitality: Vitality, supervisor: Callable[[], Loop]) -> Outbox:
    """What sends the run's notices. ``supervisor``: called when something is sent."""
    spec = run.load_spec()
    settings = spec.settings.notify
    codes = Codes(run.path / KEY) if settings.actions else None

    def answers(event: NoticeEvent) -> Answers | None:
        return None if codes is None else codes.answers(event, settings.urls, supervisor().attempts)

    vitality.outbox = Outbox(spec, run.path, tell=lambda text: supervisor().note(text), answers=answers)
    return vitality.outbox


def _carry(supervisor: Loop, verb: str, by: str) -> str:
    try:
        return supervisor.ask(_command(verb, by)).result(ANSWER_S).message
    except TimeoutError:
        return f"{verb}: received"


def _command(verb: str, by: str) -> Command:
    match verb:
        case "snooze":
            return Command(t=0.0, verb="snooze", by=by)
        case "stop":
            return Command(t=0.0, verb="stop", by=by)
        case _:
            return Command(t=0.0, verb="resume", by=by)


def _trouble(kind: str, over: str, supervisor: Loop, vitality: Vitality) -> Callable[[str | None], None]:
    def tell(trouble: str | None) -> None:
        if trouble is None:
            vitality.troubles.clear(kind)
            supervisor.note(over)
        elif vitality.troubles.set(kind, trouble, "warning"):
            supervisor.note(trouble)

    return tell
