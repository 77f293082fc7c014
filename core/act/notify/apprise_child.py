"""Sends one notice to apprise URLs. A program of its own, run by path: apprise imports a hundred modules and may hang.

Reads one JSON object on stdin: ``urls``, ``title``, ``body``, ``kind`` (info, success, warning, failure). The URLs hold
secrets: they come this way and never on a command line, and none of them is printed. Exit code 0: all took it; 1: some
did not (one line each); 3: apprise is not installed.
"""

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

AT_ONCE = 8
"""Services told side by side: one that hangs must not use up the time of the others."""


def main() -> int:
    """See the module."""
    order: dict[str, Any] = json.loads(sys.stdin.read())
    try:
        import apprise
    except ImportError:
        sys.stdout.write("apprise is not installed; install it: pip install 'trainwatch-tui[notify]'\n")
        return 3
    heard = _Heard()
    logging.getLogger("apprise").addHandler(heard)

    def tell(numbered: tuple[int, str]) -> str | None:
        number, url = numbered
        service = apprise.Apprise()
        if not service.add(url):
            return f"url {number}: no service that apprise knows; see its list of URLs"
        name = service[0].service_name
        try:
            sent = service.notify(title=order["title"], body=order["body"] or order["title"], notify_type=order["kind"])
        except Exception as fault:  # a plugin's bug is this service's, not the others'
            return f"url {number} ({name}): {type(fault).__name__}: {fault}"
        return None if sent else f"url {number} ({name}): not delivered"

    with ThreadPoolExecutor(max_workers=AT_ONCE) as hands:
        failed = [said for said in hands.map(tell, enumerate(order["urls"], 1)) if said]
    if failed:
        reasons = f" ({'; '.join(dict.fromkeys(heard.said))})" if heard.said else ""
        sys.stdout.write("; ".join(failed) + reasons[:400] + "\n")
    return 1 if failed else 0


class _Heard(logging.Handler):
    """What apprise says about why."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if len(self.said) < 4:
            self.said.append(record.getMessage())


if __name__ == "__main__":
    sys.exit(main())
