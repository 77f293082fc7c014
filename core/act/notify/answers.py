"""Answers by a button of a message (``[notify] actions``): wait, stop, resume.

The answers are asked for: Telegram's ``getUpdates``, and a topic of ntfy that only the buttons name. No port is opened.
Each answer holds a code that only this run can make, for one attempt and for some hours; it counts once.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...model.settings import NoticeEvent
from .services import Answers, Button, NotSentError, Service, ask, send, service_of

VERBS = {"snooze": "Wait 10 min", "stop": "Stop", "resume": "Resume"}
EVENTS: frozenset[NoticeEvent] = frozenset({"incident", "warning", "question", "withheld"})
"""Messages with buttons: those that a person may want to answer."""
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
VALID_S = 12 * 3600.0
POLL_S = 5.0
FOREIGN_S = 300.0
"""How long an answer to another run of the same bot is left for that run to read."""

Carry = Callable[[str, str], str]
"""Verb, by whom → the reply for the person."""


class Codes:
    """Makes and checks answers. ``path``: the run's key, made if it is not there."""

    def __init__(self, path: Path, *, now: Callable[[], float] = time.time) -> None:
        self._key = _key(path)
        self._now = now
        self._used: set[str] = set()

    def buttons(self, attempt: int) -> tuple[Button, ...]:
        """One for each verb, for answers about this attempt."""
        return tuple(Button(label, self._answer(verb, attempt, int(self._now()))) for verb, label in VERBS.items())

    def answers(self, event: NoticeEvent, urls: Sequence[str], attempt: int) -> Answers | None:
        """What a message about this attempt can be answered with; None for those that need no answer."""
        if event not in EVENTS or attempt < 1:
            return None
        known = {url: service for url in urls if (service := service_of(url)) is not None}
        topics = {url: self.reply_topic(service) for url, service in known.items() if service.kind == "ntfy"}
        return Answers(self.buttons(attempt), topics)

    def check(self, answer: str, attempt: int) -> tuple[str | None, str]:
        """(the verb, or None, and why not). An answer of another run, made up or used before is no answer."""
        if not self.knows(answer):
            return None, "no answer of this run"
        verb, number, at, _ = answer.split(".")
        if answer in self._used:
            return None, "it was taken already"
        if self._now() - int(at) > VALID_S:
            return None, "the message is too old"
        if int(number) != attempt:
            return None, f"it was about attempt {number}, and now attempt {attempt} is the newest: nothing was done"
        self._used.add(answer)
        return verb, ""

    def knows(self, answer: str) -> bool:
        """Whether this run made it."""
        verb, number, at, _ = (*answer.split("."), "", "", "", "")[:4]
        if verb not in VERBS or not number.isdecimal() or not at.isdecimal():
            return False
        import hmac  # loads OpenSSL

        return hmac.compare_digest(answer.encode(), self._answer(verb, int(number), int(at)).encode())

    def reply_topic(self, service: Service) -> str:
        """The topic to which the buttons of a message in ntfy publish."""
        return f"{service.to[:40]}-{self._code(f'topic {service.base} {service.to}')}"

    def _answer(self, verb: str, attempt: int, at: int) -> str:
        return f"{verb}.{attempt}.{at}.{self._code(f'{verb} {attempt} {at}')}"

    def _code(self, text: str) -> str:
        import hmac
        from base64 import urlsafe_b64encode

        made = hmac.new(self._key, text.encode(), "sha256").digest()[:15]

        return urlsafe_b64encode(made).decode()


def _key(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        found = path.read_bytes()
        if len(found) >= 32:
            return found
    key = os.urandom(32)
    with contextlib.suppress(OSError), os.fdopen(os.open(path, _FLAGS, 0o600), "wb") as file:
        file.write(key)
    return key


class AnswerPoll:
    """Asks the services for answers in a thread, and carries them out.

    ``attempt``: the number of the newest one. ``tell``: a sentence for the journal, at the first failure of a service
    and when it answers again.
    """

    def __init__(
        self,
        services: Sequence[Service],
        codes: Codes,
        *,
        attempt: Callable[[], int],
        carry: Carry,
        tell: Callable[[str], None],
        poll_s: float = POLL_S,
    ) -> None:
        self._services = [service for service in services if service.kind in {"telegram", "ntfy"}]
        self._codes = codes
        self._attempt = attempt
        self._carry = carry
        self._tell = tell
        self._poll_s = poll_s
        self._stopping = threading.Event()
        self._since = dict.fromkeys(self._services, str(int(time.time())))
        self._offset: dict[Service, int] = {}
        self._seen: set[tuple[Service, int]] = set()
        self._failing: set[Service] = set()
        self._thread = threading.Thread(target=self._run, name="answers", daemon=True)

    def start(self) -> None:
        """Begin to ask, if there is a service that can be asked."""
        if self._services:
            self._thread.start()

    def stop(self) -> None:
        """Ask no more. Does not wait for a service that is slow."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(self._poll_s):
            for service in self._services:
                try:
                    if service.kind == "telegram":
                        self._ask_telegram(service)
                    else:
                        self._ask_ntfy(service)
                except NotSentError as error:
                    self._note(service, f"answers cannot be asked for ({service.kind}): {error}")
                except Exception as error:  # what a server sends must not end the thread
                    self._note(service, f"answers cannot be read ({service.kind}): {type(error).__name__}")
                else:
                    if service in self._failing:
                        self._failing.discard(service)
                        self._tell(f"answers can be asked for again ({service.kind})")

    def _note(self, service: Service, text: str) -> None:
        if service not in self._failing:
            self._failing.add(service)
            self._tell(text)

    def _ask_ntfy(self, service: Service) -> None:
        topic = self._codes.reply_topic(service)
        for line in ask(f"{service.base}/{topic}/json?poll=1&since={self._since[service]}").splitlines():
            found = json.loads(line)
            if found.get("event") == "message":
                self._since[service] = str(found["id"])
                said = self._take(str(found.get("message", "")), "a button in ntfy")
                send(service, said, "", kind="info")

    def _ask_telegram(self, service: Service) -> None:
        bot = f"{service.base}/bot{service.token}"
        asked = {"timeout": 0, "allowed_updates": ["callback_query"]}
        if service in self._offset:
            asked["offset"] = self._offset[service]
        left = False
        for update in json.loads(ask(f"{bot}/getUpdates", asked))["result"]:
            number, query = int(update["update_id"]), update.get("callback_query") or {}
            message = query.get("message") or {}
            answer, chat = str(query.get("data", "")), message.get("chat") or {}
            own = self._codes.knows(answer) and service.to in {str(chat.get("id")), f"@{chat.get('username')}"}
            # An answer to another run with this bot stays for that run to read.
            left = left or (not own and time.time() - float(message.get("date", 0)) < FOREIGN_S)
            if not left:
                self._offset[service] = number + 1
            if own and (service, number) not in self._seen:
                self._seen.add((service, number))
                who = (query.get("from") or {}).get("username") or "a button"
                said = self._take(answer, f"{who} (Telegram)")
                ask(f"{bot}/answerCallbackQuery", {"callback_query_id": query["id"], "text": said[:200]})

    def _take(self, answer: str, by: str) -> str:
        verb, why_not = self._codes.check(answer, self._attempt())
        if verb is None:
            return why_not
        return self._carry(verb, by)
