"""What the launch screen found out about the chosen run: its plan and its checks, and the two pages that show them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from textual.timer import Timer

from ....core.model.launch.launch_preview import (
    LaunchCheck,
    LaunchOffer,
    LaunchPreview,
    LaunchRequest,
)
from ....core.model.ports.screen import Launcher
from ....core.views.screens.launch import Told, check_rows, plan_rows
from ...run_session import OpenPlace
from ...ui.paragraph import Paragraph

LOOK_AFTER_S = 0.25
"""Delay before the checks, so that moving over the list does not start them for each row."""
CANNOT = "This screen cannot start anything; use: trainwatch run -- COMMAND"


class LaunchPlace(OpenPlace, Protocol):
    """The screen on which it is chosen what to start."""

    @property
    def launcher(self) -> Launcher | None: ...

    @property
    def order(self) -> LaunchRequest: ...

    @property
    def opens(self) -> str | None:
        """The id of the chosen run, if it was started before."""
        ...

    @property
    def is_attached(self) -> bool:
        """False once it was removed."""
        ...

    def answered(self) -> None:
        """The plan came, or the last of the checks."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Call ``callback`` once, after ``delay`` seconds."""
        ...


class LaunchInquiry:
    """Asks the launcher in threads of the screen; the screen draws what is here."""

    def __init__(self, screen: LaunchPlace) -> None:
        self._on = screen
        self.offers: tuple[LaunchOffer, ...] | None = None
        """None: not read yet."""
        self.plan: LaunchPreview | None = None
        self.trouble = ""
        """Why the file, or what is chosen, cannot be started: a line a problem."""
        self.checked = False
        """All checks are done."""
        self.file_trouble = ""
        """Why the file cannot be read."""
        self._checks: dict[int, LaunchCheck] = {}
        self._asked = 0

    @property
    def _launcher(self) -> Launcher | None:
        return self._on.launcher

    @property
    def checks(self) -> list[LaunchCheck]:
        """In their order; those that turned out not to apply are left out."""
        return [check for _, check in sorted(self._checks.items()) if check.name]

    def read(self) -> None:
        """Read the file, then plan and check what is chosen."""
        launcher = self._launcher
        if launcher is None:
            self.offers, self.trouble = (), CANNOT
            self._on.draw()
            return

        def work() -> Callable[[], None]:
            try:
                offers, trouble = tuple(launcher.offers()), ""
            except Exception as error:
                offers, trouble = (), str(error)
            return lambda: self.take_offers(offers, trouble)

        self._on.tasks.submit(work)

    def take_offers(self, offers: tuple[LaunchOffer, ...], trouble: str, *, ask: bool = True) -> None:
        """Show these. ``ask``: plan and check what is chosen among them."""
        self.offers, self.file_trouble = offers, trouble
        self._on.draw()
        if ask:
            self.ask()

    def ask(self) -> None:
        """Plan what is chosen now, and check it."""
        self._asked += 1
        asked, order, launcher = self._asked, self._on.order, self._launcher
        nothing = order.run is None and not order.command
        self.plan, self._checks, self.checked = None, {}, False
        self.trouble = self.file_trouble if nothing else ""
        self._on.draw()
        if launcher is None or nothing:
            return

        def work() -> Callable[[], None]:
            try:
                plan, trouble = launcher.plan(order), ""
            except Exception as error:
                plan, trouble = None, str(error)
            return lambda: self._take_plan(asked, order, plan, trouble)

        self._on.tasks.submit(work)

    def _take_plan(self, asked: int, order: LaunchRequest, plan: LaunchPreview | None, trouble: str) -> None:
        if asked != self._asked:
            return
        self.plan, self.trouble = plan, trouble
        self._on.draw()
        self._on.answered()
        if plan is not None and self._on.opens is None:
            self._on.set_timer(LOOK_AFTER_S, lambda: self._look(asked, order))

    def _look(self, asked: int, order: LaunchRequest) -> None:
        launcher, screen = self._launcher, self._on
        if asked != self._asked or launcher is None:
            return

        def wanted() -> bool:
            return asked == self._asked and screen.is_attached and screen.app.is_running

        def seen(check: LaunchCheck) -> None:
            if wanted():
                screen.tasks.show(lambda: self._take_check(asked, check))

        def work() -> Callable[[], None]:
            try:
                launcher.check(order, seen, wanted)
            except Exception as error:
                seen(LaunchCheck(place=0, name="checks", result="warn", found=f"could not be made: {error}"))
            return lambda: self._done(asked)

        screen.tasks.submit(work)

    def _take_check(self, asked: int, check: LaunchCheck) -> None:
        if asked == self._asked:
            self._checks[check.place] = check
            self._on.draw()

    def _done(self, asked: int) -> None:
        if asked == self._asked:
            self.checked = True
            self._on.draw()
            self._on.answered()


NARROW = 60
"""Below it a check's name stands in its text, not in a margin of its own."""
STARTED_BEFORE = "It was started before: Enter opens it. There r starts it again, from a checkpoint or anew."

STARTED_HERE = "It was started in this folder by its command, and is no run of trainwatch.toml. Enter opens it."


def plan_page(inquiry: LaunchInquiry, *, chosen: bool, started: bool) -> list[Paragraph]:
    """``chosen``: there is something to start; ``started``: it was started before."""
    if inquiry.offers is None:
        return [Paragraph("Reading trainwatch.toml …", style="label")]
    if inquiry.trouble:
        lines = [  # an excerpt of a file keeps its columns, with what points into it
            Paragraph(line, style="danger", hard=line.startswith(" ")) for line in inquiry.trouble.splitlines()
        ]
        return [*lines, Paragraph(), Paragraph("Correct it, then press L to read it again.", style="label")]
    if not chosen:
        return [Paragraph("Press t (or Enter) and type the command that starts your training.", style="label")]
    found = [Paragraph(STARTED_BEFORE, style="warning"), Paragraph()] if started else []
    if inquiry.plan is None:
        return [*found, Paragraph("Calculating …", style="label")]
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
