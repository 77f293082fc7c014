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
    end_price,
    kill_price,
    pause_price,
    profile_price,
    resume_price,
    stop_price,
)
from .keys import BY_ACTION, why_not

if TYPE_CHECKING:
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
        self._offers_end = False
        """A kill was left for the supervisor: once it is seen there, the screen offers to end the trainer."""

    def do(self, action: str) -> None:
        """An action of the key table that acts on the run."""
        if action in PRICES:
            self._ask(action, lambda: PRICES[action](self._on.now), lambda: self.send(order(action)))
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
        self._ask("answer", lambda: answer_price(self._on.now, held), lambda: self.send(command))

    def act(self) -> None:
        """Choose what is done without a person."""
        from .dialogs.choose import choose_act

        def chosen(mode: str | None) -> None:
            if mode is not None:
                self.send(order("act", act=mode))

        self._on.app.push_screen(choose_act(self._on.now.story.act or "all"), chosen)

    def acknowledge(self, incident: int | None = None) -> None:
        """Acknowledge an incident; by default the newest open one."""
        held = self._on.now.story.question
        if incident is None and held is not None and held.fact.by:  # no, to what a program asks for
            self.send(order("ack"))
            return
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
        """Choose the settings if there are any to choose from, confirm, then restart.

        ``path``: of the checkpoint to start from, None = from the beginning.
        """
        from .dialogs.choose import KEEP, UNDO, choose_remedies

        def chosen(name: str | None) -> None:
            if name is not None:
                self._resume_with(path, () if name in {KEEP, UNDO} else (name,), without=name == UNDO)

        story = self._on.now.story
        if story.remedies or story.proposals:
            self._on.app.push_screen(choose_remedies(story.remedies, story.proposals), chosen)
        else:
            self._resume_with(path)

    def take(self, remedy: str) -> None:
        """Confirm, then restart from the resume point with this proposed remedy."""
        self._resume_with(next((v.path for v in self._on.view.checkpoints if v.resume), None), (remedy,))

    def _resume_with(self, path: str | None, take: tuple[str, ...] = (), *, without: bool = False) -> None:
        # The newest verified one is the policy's own choice: unnamed, it may fall back to an older one if deep
        # verification finds damage; a named checkpoint is used or refused.
        usual = any(v.resume and v.path == path for v in self._on.view.checkpoints)
        command = order(
            "restart" if self._on.context.live else "resume",
            fresh=path is None and bool(self._on.now.story.checkpoints),
            checkpoint=None if usual else path,
            remedies=take,
            without_remedies=without,
        )

        def price() -> Price:
            return resume_price(self._on.now, path, take=take, without_remedies=without)

        self._ask("resume", price, lambda: self.send(command))

    def switch_to(self, name: str, *, at_once: bool) -> None:
        """Confirm the switch to this profile, then switch."""
        command = order("profile", profile=name, now=at_once)
        self._ask("profile", lambda: profile_price(self._on.now, name, at_once=at_once), lambda: self.send(command))

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

        def told(reply: Reply | None, trouble: str) -> None:
            if reply is None:
                self._on.show_message(f"Not sent: {trouble}")
            elif not reply.ok:
                self._on.show_message(f"Refused: {reply.message}")
            else:
                self._on.show_message(reply.message or f"{command.verb}: accepted")
                self._offers_end = command.verb == "kill" and "left" in reply.data
            self._on.poll()

        self._on.show_message(f"{command.verb}: asked …")
        self._on.tasks.fetch(lambda: self._on.run.feed.send(command), told)

    def _offer_to_end(self) -> None:
        """The supervisor has the order, so that it restarts nothing, and does not answer."""
        end = self._on.run.services.end_trainer
        self._ask("take_back", lambda: end_price(self._on.now), lambda: self._on.in_thread(end, "Not ended: "))

    def take_back(self) -> None:
        """Take the order away that the supervisor has not answered."""
        feed, verb = self._on.run.feed, "it" if self._on.now.left is None else self._on.now.left.verb
        late = f"Too late: the supervisor has taken {verb}."
        self._on.in_thread(lambda: f"{verb} is taken back: it is not done." if feed.take_back() else late)

    def renew(self) -> None:
        """Update the cost in the open question: the training continues meanwhile. It ends when its reason does."""
        if self._offers_end and self._on.now.left is not None:
            self._offers_end = False
            self._offer_to_end()
            return
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

    def _ask(self, action: str, price: Callable[[], Price], then: Callable[[], None]) -> None:
        from .dialogs.dialog import confirm

        question = confirm(self._on.app, price(), then)
        self._asked = Asked(question, price, action, self._attempt)


PRICES: dict[str, Callable[[Situation], Price]] = {"kill": kill_price, "stop": stop_price, "pause": pause_price}
"""Actions that ask, with what they cost, and are then sent by their name."""
ORDERS = {"wait": "snooze", "save_now": "save"}
"""Actions that are sent at once, and the command of each."""
OWN: dict[str, Callable[[Operations], None]] = {
    "answer": Operations.answer, "act": Operations.act, "acknowledge": Operations.acknowledge,
    "resume": Operations.resume, "take_back": Operations.take_back,
    "supervisor": Operations.start_supervisor, "start": Operations.start_supervisor,
}  # fmt: skip
ACTS = frozenset({*PRICES, *ORDERS, *OWN})
"""Actions of the key table that act on the run."""
