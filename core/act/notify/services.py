"""Telegram, Discord and ntfy, sent to without apprise: messages with buttons, and servers of one's own.

The URLs are apprise's, in their simple form: ``tgram://TOKEN/CHAT``, ``discord://ID/TOKEN``, ``ntfy://TOPIC``,
``ntfy://HOST[:PORT]/TOPIC`` (http) and ``ntfys://…`` (https). ``?api=http://HOST:PORT`` names another server of the
same form (Telegram's own bot API server, a proxy). Any other form is apprise's. Standard library only: the child that
sends and the thread that asks for answers use it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import urllib.error

TIMEOUT_S = 15.0
ANSWER_BYTES = 1 << 20
LIMITS = {"telegram": 4096, "discord": 2000, "ntfy": 4096}
"""Characters of one message; ntfy counts bytes, and makes longer ones an attachment."""
_NTFY_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Service(NamedTuple):
    """``base``: address without a slash at the end. ``token``: of the bot or the webhook. ``to``: chat, id or topic."""

    kind: Literal["telegram", "discord", "ntfy"]
    base: str
    token: str
    to: str


class Button(NamedTuple):
    """``answer``: what comes back if it is pressed."""

    label: str
    answer: str


class Answers(NamedTuple):
    """The buttons of a message. ``topics``: by URL of an ntfy topic, the topic to which they publish."""

    buttons: tuple[Button, ...] = ()
    topics: dict[str, str] = {}  # noqa: RUF012  a NamedTuple's default, never changed


class NotSentError(Exception):
    """The service did not take the message; the sentence holds no part of the URL."""


def service_of(url: str) -> Service | None:
    """The service of a URL that can be sent to from here; None: apprise's."""
    from urllib.parse import parse_qsl, unquote, urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    query = dict(parse_qsl(parts.query))
    api = query.pop("api", None)
    if query or parts.fragment or (api is not None and not re.match(r"https?://[^/]+", api)):
        return None
    path = [unquote(part) for part in parts.path.split("/") if part]
    match parts.scheme:
        case "tgram" if len(path) == 1 and re.fullmatch(r"[0-9]+:[\w-]+", parts.netloc):
            return Service("telegram", (api or "https://api.telegram.org").rstrip("/"), parts.netloc, path[0])
        case "discord" if len(path) == 1 and "@" not in parts.netloc:
            return Service("discord", (api or "https://discord.com").rstrip("/"), path[0], parts.netloc)
        case "ntfy" | "ntfys" if "@" not in parts.netloc and api is None:
            secure = parts.scheme == "ntfys" or parts.hostname == "ntfy.sh" or not path
            base = f"{'https' if secure else 'http'}://{parts.netloc}" if path else "https://ntfy.sh"
            topic = path[0] if path else parts.netloc
            return Service("ntfy", base, "", topic) if len(path) <= 1 and _NTFY_TOPIC.fullmatch(topic) else None
        case _:
            return None


def send(
    service: Service, title: str, body: str, *, kind: str, buttons: Sequence[Button] = (), reply_topic: str = ""
) -> None:
    """Send one message. ``reply_topic``: of ntfy, where its buttons publish. Raises NotSentError."""
    limit = LIMITS[service.kind]
    match service.kind:
        case "telegram":
            message: dict[str, Any] = {"chat_id": service.to, "text": f"{title}\n{body}".strip()[:limit]}
            if buttons:
                row = [{"text": button.label, "callback_data": button.answer} for button in buttons]
                message["reply_markup"] = {"inline_keyboard": [row]}
            ask(f"{service.base}/bot{service.token}/sendMessage", message)
        case "discord":
            text = f"**{title}**\n{body}".strip()[:limit]
            message = {"content": text, "allowed_mentions": {"parse": []}}
            ask(f"{service.base}/api/webhooks/{service.to}/{service.token}", message)
        case "ntfy":
            text = (body or title).encode()[:limit].decode("utf-8", "ignore")
            message = {"topic": service.to, "title": title, "message": text, "priority": 4 if kind == "failure" else 3}
            if buttons:
                message["actions"] = [
                    {
                        "action": "http",
                        "label": button.label,
                        "url": f"{service.base}/{reply_topic}",
                        "method": "POST",
                        "body": button.answer,
                        "clear": True,
                    }
                    for button in buttons
                ]
            ask(f"{service.base}/", message)


def ask(url: str, message: Mapping[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S) -> bytes:
    """POST ``message`` as JSON, or GET without one; the answer. Raises NotSentError."""
    data = None if message is None else json.dumps(message).encode()
    import urllib.error
    import urllib.request  # 2 MB, for runs that notify people through a service

    request = urllib.request.Request(  # noqa: S310  http or https: service_of and bounds.py see to it
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
        raise NotSentError(f"{type(error).__name__}") from None


def _reason(error: "urllib.error.HTTPError") -> str:
    """What the service says about it (``description`` of Telegram, ``message`` of Discord, ``error`` of ntfy)."""
    try:
        said = json.loads(error.read(4096))
    except (OSError, ValueError):
        return ""
    words = next((said[key] for key in ("description", "message", "error") if isinstance(said.get(key), str)), "")
    return f": {words[:200]}" if words else ""
