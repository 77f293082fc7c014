"""The launch screen: the runs that can be started, the preview of a start, and its checks."""

import shlex
from collections.abc import Iterable, Sequence

from ...model.launch import LaunchCheck, LaunchOffer, LaunchPreview
from ...model.preset import Change
from ...model.progress import Level
from .. import quantity
from ..columns import Column, level_style
from ..words import STATE_WORDS, Paragraph, shown

LEVELS: dict[str | None, Level] = {"fail": "danger", "warn": "warning", None: "unknown", "pass": "safe"}
"""In the order of the checks: what the user has to act on comes first."""


def check_words(checks: Iterable[LaunchCheck]) -> str:
    """``2 failed · 1 warning · 12 passed · 3 to come``."""
    count = [c.result for c in checks].count
    warned = quantity.plural(count("warn"), "warning") if count("warn") else ""
    counts = ((count("fail"), "failed"), (count("pass"), "passed"), (count(None), "to come"))
    failed, *rest = (f"{number} {word}" if number else "" for number, word in counts)
    return " · ".join(filter(None, (failed, warned, *rest)))


def plan_rows(plan: LaunchPreview) -> list[Paragraph]:
    """Preset, profile with what it changes, command, places."""
    rows = [Paragraph(f"{plan.preset}: {plan.preset_why}", "preset")]
    if plan.resume:
        rows.append(Paragraph(plan.resume, "resume", "text" if plan.resumes else "strong"))
    if plan.unused:
        rows.append(Paragraph(plan.unused, "file", "warning"))
    names = [name for name, _ in plan.profiles]
    if plan.profile is None:
        others = f" · {quantity.plural(len(names), 'profile')} to choose from: ← →" if names else ""
        rows.append(Paragraph(f"none, your own config as it is{others}", "profile"))
    else:
        place = f" · {names.index(plan.profile) + 1} of {len(names)}" if plan.profile in names else ""
        title = dict(plan.profiles).get(plan.profile, "")
        rows.append(Paragraph(f"{plan.profile}{place}" + (f" · {title}" if title else ""), "profile", "strong"))
    rows += change_rows(plan.changes)
    rows.append(Paragraph(shlex.join(plan.command), "command"))
    rows.append(Paragraph(plan.cwd, "in", hard=True))
    if plan.config is not None:
        rows.append(Paragraph(f"{plan.config} (each attempt gets its own copy; yours is never written)", "config"))
    output = plan.output_dir or "not known yet: it is found when the trainer saves"
    rows.append(Paragraph(output, "output", "text" if plan.output_dir else "warning"))
    return rows


def change_rows(changes: Iterable[Change]) -> list[Paragraph]:
    """Changes of the user's own settings, one row each."""
    changed = [c for c in changes if c.of != "resume"]
    width = max((len(c.key) for c in changed), default=0)
    rows = [
        Paragraph(f"{c.key:<{width}}  {shown(c.before)} → {shown(c.after)}", "changes" if number == 0 else "")
        for number, c in enumerate(changed)
    ]
    return rows or [Paragraph("nothing of your own settings", "changes", "label")]


BELOW = ("text", "  ")
"""Before a row that belongs to the sign above it."""


def check_rows(checks: Sequence[LaunchCheck], *, beside: bool = True) -> list[Paragraph]:
    """Failures with their remedies, then warnings, running checks and passed ones.

    ``beside``: a check's name has a margin of its own; else it stands in its text.
    """
    rows: list[Paragraph] = []
    for check in sorted(checks, key=lambda c: list(LEVELS).index(c.result)):
        level = LEVELS[check.result]
        name, before = (check.name, "") if beside else ("", f"{check.name}: ")
        if check.result is None:
            rows.append(Paragraph(f"{before}checking …", name, "label", level=level))
            continue
        first, *more = check.found.splitlines() or [""]
        rows.append(Paragraph(f"{before}{first}", name, level_style(level), level=level))
        rows += [Paragraph(line, style="label", mark=BELOW) for line in more]
        if check.remedy and check.result != "pass":
            rows.append(Paragraph(f"→ {check.remedy}", mark=BELOW))
    return rows


def failed_names(checks: Iterable[LaunchCheck]) -> tuple[str, ...]:
    """``name: finding`` of each failed check."""
    return tuple(f"{c.name}: {c.found.partition(chr(10))[0]}" for c in checks if c.result == "fail")


TYPE_IT = "type one: no file is needed"
OFFER_COLUMNS: tuple[Column[LaunchOffer], ...] = (
    Column(title="", text=lambda o: o.name, width=12, fit=True, after=2, style="strong", below_width=60),
    Column(title="", text=lambda o: o.name, width=24, fit=True, after=2, style="strong", from_width=60),
    Column(title="", text=lambda o: o.command or TYPE_IT, fill=True, style=lambda o: "text" if o.command else "label"),
    # The state of a run of the file, once it was started.
    Column(title="", text=lambda o: "" if o.run_id is None else STATE_WORDS.get(o.state, o.state), fit=True, right=True,
           before=2, style="accent", if_any=True),
)  # fmt: skip
"""What can be started: the runs of trainwatch.toml, and the typed command."""
