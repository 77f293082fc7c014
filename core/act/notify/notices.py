"""One notice to everybody whom ``[notify]`` names, without secrets."""

import time

from ...model.run import RunSpec
from ...model.settings import NoticeEvent
from ...model.text.edge import EDGE
from .notifier import NotifyReport, notify, notify_urls
from .services import Answers


def send_notice(  # noqa: PLR0917
    spec: RunSpec,
    event: NoticeEvent,
    title: str,
    body: str,
    incident: int | None = None,
    answers: Answers | None = None,
) -> tuple[bool, str, str]:
    """(whether all of them were notified, a sentence, output of the user's command). Blocks, raises nothing.

    ``answers``: the buttons of the message, for services that have them.
    """
    settings = spec.settings.notify
    title, body = EDGE.text(title), EDGE.text(body)
    reports: list[NotifyReport] = []
    if settings.urls:
        reports.append(notify_urls(settings.urls, event, title, body, timeout_s=settings.timeout_s, answers=answers))
    if settings.command:
        content = {
            "event": event,
            "run": EDGE.text(spec.name),
            "run_id": spec.id,
            "title": title,
            "body": body,
            "incident": incident,
            "wall": time.time(),
        }
        reports.append(notify(settings.command, content, timeout_s=settings.timeout_s, cwd=spec.cwd))
    failed = [report.detail for report in reports if not report.ok]
    output = "\n".join(report.output for report in reports if report.output)
    return not failed, "; ".join(failed or [report.detail for report in reports]), output
