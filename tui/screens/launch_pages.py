"""The two pages of the launch screen: what a start would be, and what could end it."""

from collections.abc import Mapping, Sequence

from ...core.views.screens.launch import Told, check_rows, plan_rows
from ..ui.paragraph import Paragraph
from .launch_inquiry import LaunchInquiry

NARROW = 60
"""Below it a check's name stands in its text, not in a margin of its own."""
STARTED_BEFORE = "It was started before: Enter opens it. There r starts it again, from a checkpoint or anew."


def plan_page(inquiry: LaunchInquiry, *, chosen: bool, started: bool) -> list[Paragraph]:
    """``chosen``: there is something to start; ``started``: it was started before."""
    if inquiry.offers is None:
        return [Paragraph("Reading trainwatch.toml …", style="label")]
    if inquiry.trouble:
        lines = [Paragraph(line, style="danger", hard=True) for line in inquiry.trouble.splitlines()]
        return [*lines, Paragraph(), Paragraph("Correct it, then press L to read it again.", style="label")]
    if not chosen:
        return [Paragraph("Press t (or Enter) and type the command that starts your training.", style="label")]
    found = [Paragraph(STARTED_BEFORE, style="warning"), Paragraph()] if started else []
    if inquiry.plan is None:
        return [*found, Paragraph("Working it out …", style="label")]
    return found + [Paragraph(r.text, r.label, r.style, hard=r.hard) for r in plan_rows(inquiry.plan)]


def checks_page(inquiry: LaunchInquiry, glyphs: Mapping[str, str], width: int, *, to_check: bool) -> list[Paragraph]:
    """What was looked at so far, what needs a person first."""
    checks = inquiry.checks
    if checks:
        return check_paragraphs(check_rows(checks), glyphs, width)
    return [Paragraph("Looking …" if to_check and not inquiry.trouble else "Nothing to check.", style="label")]


def check_paragraphs(rows: Sequence[Told], glyphs: Mapping[str, str], width: int) -> list[Paragraph]:
    """A sign, the name in the margin where there is room for one, what was found."""
    found = []
    for row in rows:
        mark = ("text", "  ") if row.level is None else (row.level, f"{glyphs[row.level]} ")
        beside = width >= NARROW
        text = row.text if beside or not row.label else f"{row.label}: {row.text}"
        found.append(Paragraph(text, row.label if beside else "", row.style, mark))
    return found
