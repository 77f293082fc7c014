"""Program that sends one notice to URLs, run by path. apprise imports a hundred modules and may hang.

Reads one JSON object from stdin: ``urls``, ``title``, ``body``, ``kind`` (info, success, warning, failure), ``buttons``
(label, answer) and ``topics`` (URL → topic of ntfy that the buttons publish to). Telegram, Discord and ntfy are sent to
from here (services.py), the others by apprise. The URLs contain secrets: they are never on a command line, and none is
printed. Exit code 0: all delivered; 1: some not.
"""

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

AT_ONCE = 8
"""Services that are notified at the same time: one that hangs must not use the time of the others."""


def main() -> int:
    """Read the request from standard input, send the notice, write the result."""
    order: dict[str, Any] = json.loads(sys.stdin.read())
    from trainwatch.core.act.notify.services import Button, NotSentError, send, service_of

    apprise: Any = None
    if not all(map(service_of, order["urls"])):
        try:
            import apprise
        except ImportError:
            apprise = None
    warnings = _Warnings()
    logging.getLogger("apprise").addHandler(warnings)
    buttons = [Button(*button) for button in order.get("buttons", ())]

    def deliver(numbered: tuple[int, str]) -> str | None:
        number, url = numbered
        direct = service_of(url)
        if direct is not None:
            topic = order.get("topics", {}).get(url, "")
            try:
                send(
                    direct, order["title"], order["body"], kind=order["kind"], reply_topic=topic,
                    buttons=buttons if direct.kind == "telegram" or topic else (),
                )  # fmt: skip
            except NotSentError as error:
                return f"url {number} ({direct.kind.capitalize()}): not delivered: {error}"
            return None
        if apprise is None:
            return "apprise is not installed; install it: pip install 'trainwatch-tui[notify]'"
        return by_apprise(number, url)

    def by_apprise(number: int, url: str) -> str | None:
        service = apprise.Apprise()
        if not service.add(url):
            return f"url {number}: no service that apprise knows; see its list of URLs"
        name = service[0].service_name
        try:
            sent = service.notify(title=order["title"], body=order["body"] or order["title"], notify_type=order["kind"])
        except Exception as fault:  # a plugin's bug fails only its own service
            return f"url {number} ({name}): {type(fault).__name__}: {fault}"
        return None if sent else f"url {number} ({name}): not delivered"

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        failed = [failure for failure in pool.map(deliver, enumerate(order["urls"], 1)) if failure]
    if failed:
        reasons = f" ({'; '.join(dict.fromkeys(warnings.messages))})" if warnings.messages else ""
        sys.stdout.write("; ".join(dict.fromkeys(failed)) + reasons[:400] + "\n")
    return 1 if failed else 0


class _Warnings(logging.Handler):
    """Collects apprise's warnings, which have the reason of a failure."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.messages) < 4:
            self.messages.append(record.getMessage())


if __name__ == "__main__":
    sys.exit(main())
