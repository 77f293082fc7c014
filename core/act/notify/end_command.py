"""The user's command at the end of a run (``[end]``): once, with a time limit; a failure is told."""

import time

import msgspec

from ...model.decision import RunAtEnd
from ...model.run import RunSpec
from ...model.text.edge import EDGE
from .notices import send_notice
from .notifier import NotifyReport, run_with_event


def run_at_end(spec: RunSpec, order: RunAtEnd) -> NotifyReport:
    """Run it with the event as JSON on its stdin, as ``[notify] command`` gets it. Blocks, raises nothing."""
    event = {
        "event": order.event,
        "run": EDGE.text(spec.name),
        "run_id": spec.id,
        "title": EDGE.text(order.reason),
        "output_dir": spec.output_dir,
        "wall": time.time(),
    }
    end = spec.settings.end
    key = "at_end_by" if order.event == "end_by" and end.at_end_by else "at_give_up"
    key = "at_finish" if order.event == "finish" else key
    report = run_with_event(f"end.{key}", order.command, event, timeout_s=end.timeout_s, cwd=spec.cwd)
    if report.ok:
        report = msgspec.structs.replace(report, detail=f"{order.command[0]} is done")
    else:
        body = f"{report.detail}\nit is not run again; the run itself is over"
        send_notice(spec, "warning", f"{spec.name}: the command for its end failed", body)
    return report
