"""The operations on a run: each asks for confirmation if needed, then sends one command to the supervisor."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..core.model.observation import Command, Reply
from ..core.model.run import PAUSED_STATES
from ..core.model.story import Situation
from ..core.views.screens.confirmation import (
    Price,
    answer_price,
    kill_price,
    pause_price,
    profile_price,
    resume_price,
    stop_price,
)
from .keys import BY_ACTION, why_not

if TYPE_CHECKING:
    from .dialogs.choose import RemedyChoice
    from .dialogs.dialog import Consent
    from .screens.dashboard import Dashboard

BY = "screen"


def order(verb: str, **fields: Any) -> Command:
    """A command of this screen; ``fields``: of ``Command``."""
    return msgspec.convert({"t": 0.0, "kind": "command", "verb": verb, "by": BY, **fields}, Command)


class Asked(NamedTuple):
    """An open question, what it costs now, the action of the key table that it is about, and the attempt then."""

    question: "Consent"
    price: Callable[[], Price]
    action: str
    attempt: int


class Operations:
    """Operations on the run of one dashboard. Commands are sent in threads; the reply is shown in the footer."""

    def __init__(self, on: "Dashboard") -> None:
        self._on = on
        self._asked: Asked | None = None

    def do(self, action: str) -> None:
        """An action of the key table that acts on the run."""
        if action in PRICES:
            self._ask(action, lambda: PRICES[action](self._on.now), order(action))
        elif action in ORDERS:
            self.send(order(ORDERS[action]))
        else:
            OWN[action](self)

    def answer(self) -> None:
        """Ask, then do what was withheld."""
        held = self._on.now.story.question
        if held is None:
            self._on.show_message("Nothing is asked any more: it was answered, or the run went on.")
            return
        command = order(held.fact.verb, incident=held.fact.incident)
        self._ask("answer", lambda: answer_price(self._on.now, held), command)

    def act(self) -> None:
        """Choose what is done without a person."""
        from .dialogs.choose import choose_act

        def chosen(mode: str | None) -> None:
            if mode is not None:
                self.send(order("act", act=mode))

        self._on.app.push_screen(choose_act(self._on.now.story.act or "all"), chosen)

    def acknowledge(self, incident: int | None = None) -> None:
        """Acknowledge an incident; by default the newest open one."""
        waiting = [i.id for i in self._on.now.story.open_incidents if not i.acknowledged]
        if incident is None and not waiting:
            self._on.show_message("No incident waits to be acknowledged.")
        else:
            self.send(order("ack", incident=waiting[-1] if incident is None else incident))

    def resume(self) -> None:
        """End a pause; else choose a checkpoint, confirm, restart from it."""
        if self._on.now.story.state in PAUSED_STATES:
            self.send(order("resume"))
            return
        from .dialogs.choose import BEGINNING, choose_checkpoint

        def chosen(path: str | None) -> None:
            if path is not None:
                self.resume_from(None if path == BEGINNING else path)

        self._on.app.push_screen(choose_checkpoint(self._on.view.checkpoints), chosen)

    def resume_from(self, path: str | None) -> None:
        """Choose the remedies if there are any, confirm, then restart.

        ``path``: of the checkpoint to start from, None = from the beginning.
        """
        from .dialogs.choose import AS_IT_IS, ChooseRemedies, RemedyChoice

        def chosen(choice: RemedyChoice | None) -> None:
            if choice is not None:
                self._resume_with(path, choice)

        story = self._on.now.story
        if story.remedies or story.proposals:
            self._on.app.push_screen(ChooseRemedies(story.remedies, story.proposals), chosen)
        else:
            self._resume_with(path, AS_IT_IS)

    def take(self, remedy: str) -> None:
        """Confirm, then restart from the resume point with this proposed remedy."""
        from .dialogs.choose import RemedyChoice

        usual = next((v.path for v in self._on.view.checkpoints if v.resume), None)
        self._resume_with(usual, RemedyChoice(take=(remedy,)))

    def _resume_with(self, path: str | None, choice: "RemedyChoice") -> None:
        # The newest verified one is the policy's own choice: unnamed, it may fall back to an older one if deep
        # verification finds damage; a named checkpoint is used or refused.
        usual = any(v.resume and v.path == path for v in self._on.view.checkpoints)
        command = order(
            "restart" if self._on.context.live else "resume",
            fresh=path is None and bool(self._on.now.story.checkpoints),
            checkpoint=None if usual else path,
            remedies=choice.take,
            without_remedies=choice.take_back,
        )

        def price() -> Price:
            return resume_price(self._on.now, path, take=choice.take, without_remedies=choice.take_back)

        self._ask("resume", price, command)

    def switch_to(self, name: str, *, at_once: bool) -> None:
        """Confirm the switch to this profile, then switch."""
        command = order("profile", profile=name, now=at_once)
        self._ask("profile", lambda: profile_price(self._on.now, name, at_once=at_once), command)

    def start_supervisor(self, then: Command | None = None) -> None:
        picker, run = self._on.application.picker, self._on.run

        def start() -> str:
            picker.start(run.run_id, then)
            what = "is running now" if then is None else f"was started for it ({then.verb})"
            return f"A supervisor {what}; it continues when you leave."

        self._on.show_message("Starting a supervisor …")
        self._on.in_thread(start)

    def send(self, command: Command) -> None:
        """Send a command; without a supervisor, start one with it as its first command."""
        if not self._on.context.watched:
            self.start_supervisor(command)
            return
        feed = self._on.run.feed

        def tell() -> str:
            reply: Reply = feed.send(command)
            if reply.ok:
                return reply.message or f"{command.verb}: accepted"
            return f"Refused: {reply.message}"

        self._on.show_message(f"{command.verb}: asked …")
        self._on.in_thread(tell, "Not sent: ")

    def renew(self) -> None:
        """Update the cost in the open question: the training continues meanwhile. It ends when its reason does."""
        asked = self._asked
        if asked is None:
            return
        key = BY_ACTION.get(asked.action)
        if not asked.question.is_attached:
            self._asked = None
        elif asked.attempt == self._attempt and (key is None or key.when(self._on.context)):
            asked.question.renew(asked.price())
        elif asked.question.is_current:
            self._asked = None
            asked.question.dismiss(None)
            over = f"Attempt {asked.attempt} is over." if asked.attempt and asked.attempt != self._attempt else ""
            self._on.show_message(f"Nothing was sent. {over or why_not(asked.action, self._on.context)}")

    @property
    def _attempt(self) -> int:
        attempt = self._on.now.story.attempt
        return 0 if attempt is None else attempt.number

    def _ask(self, action: str, price: Callable[[], Price], command: Command) -> None:
        from .dialogs.dialog import confirm

        question = confirm(self._on.app, price(), lambda: self.send(command))
        self._asked = Asked(question, price, action, self._attempt)


PRICES: dict[str, Callable[[Situation], Price]] = {"kill": kill_price, "stop": stop_price, "pause": pause_price}
"""Actions that ask, with what they cost, and are then sent by their name."""
ORDERS = {"wait": "snooze", "save_now": "save"}
"""Actions that are sent at once, and the command of each."""
OWN: dict[str, Callable[[Operations], None]] = {
    "answer": Operations.answer, "act": Operations.act, "acknowledge": Operations.acknowledge,
    "resume": Operations.resume, "supervisor": Operations.start_supervisor, "start": Operations.start_supervisor,
}  # fmt: skip
ACTS = frozenset({*PRICES, *ORDERS, *OWN})
"""Actions of the key table that act on the run."""
