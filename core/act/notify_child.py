"""Program that sends one notice to URLs, run by path: a service that hangs, or apprise, blocks only this process.

Reads one JSON object from stdin: ``urls``, ``title``, ``body`` and ``kind`` (info, success, warning, failure). The URLs
contain secrets: they are never on a command line, and none is printed. Exit code 0: all delivered; 1: some not.
Each service that took it, or may have, is a line at once.

Telegram, Discord and ntfy are sent to from here, in apprise's simple forms of URL: ``tgram://TOKEN/CHAT``,
``discord://ID/TOKEN``, ``ntfy://TOPIC``, ``ntfy://HOST[:PORT]/TOPIC`` (http) and ``ntfys://…`` (https).
``?api=http://HOST:PORT`` names another server of the same form (Telegram's own bot API server, a proxy). Any other form
is apprise's, which imports a hundred modules. Standard library only.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import urllib.error

REACHED = "reached"
AT_ONCE = 8
"""Services that are notified at the same time: one that hangs must not use the time of the others."""
TIMEOUT_S = 15.0
ANSWER_BYTES = 1 << 20
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Request(NamedTuple):
    """What one service is asked: its name, the address and the message."""

    service: str
    address: str
    message: Mapping[str, Any]


class NotSentError(Exception):
    """The service did not take the message; the sentence holds no part of the URL."""


class AnswerLostError(NotSentError):
    """It may have taken the message."""


def request_of(url: str, title: str, body: str, kind: str) -> Request | None:
    """The request of a URL that can be sent to from here; None: apprise's."""
    from urllib.parse import parse_qsl, unquote, urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    host, query = parts.netloc, dict(parse_qsl(parts.query))
    api = query.pop("api", None)
    if query or parts.fragment or (api is not None and not re.match(r"https?://[^/]+", api)):
        return None
    path = [unquote(part) for part in parts.path.split("/") if part]
    match parts.scheme, path:
        case "tgram", [chat] if re.fullmatch(r"[0-9]+:[\w-]+", host):
            address = f"{(api or 'https://api.telegram.org').rstrip('/')}/bot{host}/sendMessage"
            return Request("Telegram", address, {"chat_id": chat, "text": f"{title}\n{body}".strip()[:4096]})
        case "discord", [token] if "@" not in host:
            address = f"{(api or 'https://discord.com').rstrip('/')}/api/webhooks/{host}/{token}"
            content = f"**{title}**\n{body}".strip()[:2000]
            return Request("Discord", address, {"content": content, "allowed_mentions": {"parse": []}})
        case (("ntfy" | "ntfys"), ([] | [_])) if "@" not in host and api is None:
            server, topic = (host, path[0]) if path else ("ntfy.sh", host)
            secure = parts.scheme == "ntfys" or not path or parts.hostname == "ntfy.sh"
            text = (body or title).encode()[:4096].decode("utf-8", "ignore")  # ntfy makes longer ones an attachment
            message = {"topic": topic, "title": title, "message": text, "priority": 4 if kind == "failure" else 3}
            address = f"{'https' if secure else 'http'}://{server}/"
            return Request("Ntfy", address, message) if _TOPIC.fullmatch(topic) else None
    return None


def ask(url: str, message: Mapping[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S) -> bytes:
    """POST ``message`` as JSON, or GET without one; the answer. Raises NotSentError."""
    data = None if message is None else json.dumps(message).encode()
    import urllib.error
    import urllib.request  # 2 MB, for runs that notify people through a service

    request = urllib.request.Request(  # noqa: S310  http or https: request_of and bounds.py see to it
        url, data=data, headers={"User-Agent": "trainwatch"}
    )
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310  the same
            return bytes(answer.read(ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        raise NotSentError(f"HTTP {error.code}{_reason(error)}") from None
    except urllib.error.URLError as error:
        why = error.reason
        raise NotSentError(why.strerror or type(why).__name__ if isinstance(why, OSError) else str(why)) from None
    except (OSError, ValueError) as error:
        raise AnswerLostError(f"{type(error).__name__}") from None


def _reason(error: "urllib.error.HTTPError") -> str:
    """What the service says about it (``description`` of Telegram, ``message`` of Discord, ``error`` of ntfy)."""
    try:
        said = json.loads(error.read(4096))
    except (OSError, ValueError):
        return ""
    words = next((said[key] for key in ("description", "message", "error") if isinstance(said.get(key), str)), "")
    return f": {words[:200]}" if words else ""


def main() -> int:
    """Read the request from standard input, send the notice, write the result."""
    order: dict[str, Any] = json.loads(sys.stdin.read())
    words = (order["title"], order["body"], order["kind"])
    apprise: Any = None
    if not all(request_of(url, *words) for url in order["urls"]):
        try:
            import apprise
        except ImportError:
            apprise = None
    warnings = _Warnings()
    logging.getLogger("apprise").addHandler(warnings)

    def reached() -> None:
        sys.stdout.write(f"{REACHED}\n")
        sys.stdout.flush()

    def deliver(numbered: tuple[int, str]) -> str | None:
        number, url = numbered
        request = request_of(url, *words)
        if request is None and apprise is None:
            return "apprise is not installed; install it: pip install 'trainwatch-tui[notify]'"
        if request is None:
            return by_apprise(number, url)
        try:
            ask(request.address, request.message)
        except NotSentError as error:
            if isinstance(error, AnswerLostError):
                reached()
            return f"url {number} ({request.service}): not delivered: {error}"
        reached()
        return None

    def by_apprise(number: int, url: str) -> str | None:
        service = apprise.Apprise()
        if not service.add(url):
            return f"url {number}: no service that apprise knows; see its list of URLs"
        name = service[0].service_name
        try:
            sent = service.notify(title=order["title"], body=order["body"] or order["title"], notify_type=order["kind"])
        except Exception as fault:  # a plugin's bug fails only its own service
            return f"url {number} ({name}): {type(fault).__name__}: {fault}"
        if sent:
            reached()
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
