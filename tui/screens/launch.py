"""Key l: the runs that can be started here, with plan and checks; Enter starts one."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

import msgspec
from textual.binding import BindingType
from textual.timer import Timer

from ...core.model.launch import LaunchCheck, LaunchOffer, LaunchPreview, LaunchRequest, Rehearsal
from ...core.model.screen_ports import Launcher
from ...core.views import quantity
from ...core.views.dashboard import HeaderView
from ...core.views.rehearsal_text import rehearsal_lines
from ...core.views.screens.confirmation import Price
from ...core.views.screens.launch import Told, check_rows, check_sum, failed_names, plan_rows
from ..dialogs.dialog import Dialog, confirm
from ..keys import Key
from ..panes.pane import Pane
from ..panes.rows_pane import OffersPane, PagePane, RowsPane
from ..run_session import Application, Box, OpenPlace, RunSession
from ..ui.cells import Paragraph
from .place_screen import PlaceScreen, bindings_of, headline, share

SIDE_FROM = 120
"""Columns from which plan and checks are side by side."""

LAUNCH_KEYS: tuple[Key, ...] = (
    Key(key="enter", shown="Enter", action="go", label="start", acts=True,
        help="start it under a supervisor of its own; one that was started before is opened"),
    Key(key="left", shown="← →", action="profile(-1)", label="profile",
        help="choose another profile; the plan shows what it changes"),
    Key(key="R", shown="R", action="rehearse", label="rehearse", acts=True,
        help="train to the first checkpoint in a scratch folder, kill, resume, and see whether tonight is safe"),
    Key(key="t", shown="t", action="type", label="type", help="type a command to start; no file is needed"),
    Key(key="up", shown="↑ ↓", action="move(-1)", label="choose", help="choose what to start (also j, Home, End)",
        footer=False),
    Key(key="L", shown="L", action="reload", label="read again", help="read the file and check again"),
    Key(key="y", shown="y", action="copy", label="copy command", help="copy the command as it would be started",
        footer=False),
    Key(key="tab", shown="tab", action="turn", label="plan/checks", footer=False,
        help="which of plan and checks has the room, and scrolls (small screens)"),
    Key(key="pagedown", shown="PgDn", action="scroll(6)", label="scroll", help="scroll plan or checks (PgUp: back)",
        footer=False),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="app.leave_place", label="back", help="back; nothing was started",
        always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"), ("j", "move(1)"), ("home", "move(-100000)"), ("end", "move(100000)"), ("right", "profile(1)"),
    ("pageup", "scroll(-6)"), ("shift+tab", "turn"), ("q", "leave"),
)  # fmt: skip


class LaunchScreen(PlaceScreen):
    """Offers, plan, checks. Nothing is started without Enter."""

    place = "launch"
    tab = "runs"
    alone = ("Nothing is started without Enter", "plan and checks are below")
    keys = LAUNCH_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(LAUNCH_KEYS, ALSO)

    def __init__(self, application: Application, session: RunSession | None) -> None:
        super().__init__(application, session)
        self.inquiry = LaunchInquiry(self)
        self.typed = ""
        self.profile: str | None = None
        self.checks_first = True
        self.start = LaunchStart(self)
        self.rehearsal = LaunchRehearsal(self)
        self.news = LaunchNews(self)

    def head_alone(self) -> HeaderView:
        """The worst first: what the checks found."""
        found = check_sum(self.inquiry.checks)
        if found.failed:
            return headline((f"{quantity.plural(found.failed, 'check')} failed", *self.alone), "danger")
        return super().head_alone()

    @property
    def launcher(self) -> Launcher | None:
        return self.application.launcher

    @property
    def offers(self) -> tuple[LaunchOffer, ...]:
        """The runs of the file."""
        return self.inquiry.offers or ()

    def bodies(self) -> Sequence[Pane]:
        """Offers, plan, checks."""
        self.table = OffersPane(id="offers")
        self.page, self.looks = PagePane(id="plan"), PagePane(id="checks")
        return (self.table, self.page, self.looks)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Offers above; plan and checks beside each other, or below. A run that was started before has no checks."""
        rows = share(height, len(self.offers) + 3, 3, max(4, height // 3))
        rest = height - rows
        if rest < 3:
            return {"offers": (0, top, width, height)}
        boxes: dict[str, Box] = {"offers": (0, top, width, rows)}
        if self.opens is not None:
            return boxes | {"plan": (0, top + rows, width, rest)}
        if width >= SIDE_FROM:
            left = width // 2
            return boxes | {
                "plan": (0, top + rows, left, rest), "checks": (left, top + rows, width - left, rest),
            }  # fmt: skip
        if rest < 10:
            return boxes | {"checks" if self.checks_first else "plan": (0, top + rows, width, rest)}
        small = max(3, min(rest // 3 + 1, rest - 6)) if rest < 30 else rest // 2
        plan = small if self.checks_first else rest - small
        return boxes | {
            "plan": (0, top + rows, width, plan), "checks": (0, top + rows + plan, width, rest - plan),
        }  # fmt: skip

    def on_mount(self) -> None:
        super().on_mount()
        self.action_reload()
        if self.application.interval_s > 0:
            self.set_interval(NEWS_S, self.news.look)

    def renew_offers(self, offers: tuple[LaunchOffer, ...], trouble: str) -> None:
        """Show other offers. Plan and checks are made again only if what is under the cursor changed."""
        chosen, on_typed = self.offer, self.offer is None and bool(self.typed)
        same = next((at for at, offer in enumerate(offers) if chosen is not None and offer.name == chosen.name), None)
        if on_typed:
            self.table.cursor = len(offers)
        elif same is not None:
            self.table.cursor = same
        unchanged = on_typed or (same is not None and offers[same] == chosen)
        self.inquiry.take_offers(offers, trouble, ask=not unchanged)

    def show(self) -> None:
        offers, found = self.offers, self.inquiry
        of_file = any(offer.of_file for offer in offers)
        self.table.show_offers(offers, self.typed, "trainwatch.toml" if of_file else "no trainwatch.toml here")
        chosen = self.offer is not None or bool(self.typed)
        started = self.opens is not None
        if self.offer is not None and not self.offer.of_file:
            self.page.show([Paragraph(STARTED_HERE, style="warning")], title=self.offer.name)
        else:
            self.page.show(plan_page(found, chosen=chosen, started=started), title=self._plan_title())
        words = check_sum(found.checks).words
        self.looks.set_class(any(c.result == "fail" for c in found.checks), "-danger")
        page = checks_page(found, self.looks.glyphs.levels, self.size.width, to_check=chosen and not started)
        self.looks.show(page, title=f"checks · {words}" if words else "checks")

    def offered(self) -> tuple[Key, ...]:
        """Enter opens a run that was started before, which has its profile already."""
        keys = super().offered()
        if self.opens is None:
            return keys
        kept = (key for key in keys if not key.action.startswith("profile("))
        return tuple(msgspec.structs.replace(key, label="open") if key.action == "go" else key for key in kept)

    @property
    def offer(self) -> LaunchOffer | None:
        """The run of the file under the cursor; None on the typed command."""
        offers = self.offers
        return offers[self.table.cursor] if self.table.cursor < len(offers) else None

    @property
    def opens(self) -> str | None:
        """The id of the run that Enter would open, because it was started before."""
        return self.offer.run_id if self.offer is not None else None

    @property
    def order(self) -> LaunchRequest:
        """What Enter would start."""
        offer = self.offer
        if offer is not None:
            return LaunchRequest(run=offer.name, profile=self.profile) if offer.of_file else LaunchRequest()
        return LaunchRequest(command=self.typed, profile=self.profile)

    def _plan_title(self) -> str:
        plan, offer = self.inquiry.plan, self.offer
        name = plan.name if plan is not None else offer.name if offer is not None else ""
        return f"plan · {name}" if name else "plan"

    def action_reload(self) -> None:
        """Read the file again."""
        self.inquiry.read()

    def answered(self) -> None:
        """Continue a start that waits for the checks, unless a dialog is open."""
        if self.is_current:
            self.start.answered(self.order)

    def on_screen_resume(self) -> None:
        """Continue a waiting start (the base class draws)."""
        self.answered()

    def ask(self) -> None:
        """Plan and check what is chosen now."""
        self.start.forget()
        self.page.top = self.looks.top = 0
        self.inquiry.ask()

    def row_chosen(self, _: RowsPane) -> None:
        """Another run to start."""
        self.profile = None
        self.ask()

    def on_rows_pane_chosen(self, _: RowsPane.Chosen) -> None:
        """A second click types the command; a run needs Enter, because a click is easily made by accident."""
        if self.offer is None:
            self.action_type()
        else:
            self.show_message("Press Enter to start it.")

    def action_move(self, rows: int) -> None:
        self.table.move(rows)

    def action_turn(self) -> None:
        """The other of plan and checks."""
        self.checks_first = not self.checks_first
        self.draw()

    def action_scroll(self, rows: int) -> None:
        """Scroll the pane that is shown, or both if they are side by side."""
        if self.size.width >= SIDE_FROM or self.checks_first:
            self.looks.scroll(rows)
        if self.size.width >= SIDE_FROM or not self.checks_first or self.opens is not None:
            self.page.scroll(rows)

    def action_profile(self, steps: int) -> None:
        plan = self.inquiry.plan
        if plan is None:
            return
        names = [name for name, _ in plan.profiles]
        offer = self.offer
        if self.opens is not None:
            self.show_message("It was started before: Enter opens it, and p switches its profile there.")
            return
        if not names:
            self.show_message("No profile is meant for this framework: trainwatch profiles list")
            return
        usual = offer.profile if offer is not None else None
        # A file that names a profile cannot be launched without one; otherwise "none" is a choice, too.
        choices: list[str | None] = [*names] if usual is not None else [None, *names]
        at = choices.index(plan.profile) if plan.profile in choices else 0
        chosen = choices[(at + steps) % len(choices)]
        self.profile = None if chosen == usual else chosen
        self.ask()

    def action_type(self) -> None:
        from ..dialogs.dialog import TypeCommand

        if self.launcher is None:
            return

        def typed(command: str | None) -> None:
            if command:
                self.typed, self.profile = command, None
                self.table.cursor = len(self.offers)
                self.ask()

        self.app.push_screen(TypeCommand(self.launcher, self.typed), typed)

    def action_copy(self) -> None:
        """The command of the plan."""
        if self.inquiry.plan is not None:
            self.application.copy(shlex.join(self.inquiry.plan.command))

    def action_rehearse(self) -> None:
        """Rehearse what is chosen, or end the rehearsal that is under way."""
        if self.offer is not None and not self.offer.of_file and not self.rehearsal.under_way:
            self.show_message("It runs already: Enter opens it.")
        elif self.rehearsal.under_way or self.offer is not None or self.typed:
            self.rehearsal.ask(self.order)
        else:
            self.action_type()

    def on_unmount(self) -> None:
        """A rehearsal ends with its screen."""
        self.rehearsal.leave()

    def action_go(self) -> None:
        """Open a run that was started before, else start it, after a confirmation if a check failed."""
        offer = self.offer
        if self.start.under_way:
            return
        if self.inquiry.offers is None:
            self.show_message("One moment: trainwatch.toml is being read.")
        elif offer is None and not self.typed:
            self.action_type()
        elif self.opens is not None:
            self.open_run(self.opens)
        elif self.inquiry.trouble:
            self.show_message("It cannot be started as it is: the plan shows why.")
        else:
            self.start.ask(self.order)


# What the launch screen found out about the chosen run: its plan and its checks, and the two pages that show them.

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


# Rehearses the chosen run from the launch screen, after a confirmation, and shows the result.

PRICE = Price(
    title="Rehearse it before the night?",
    lines=(
        "In a scratch folder it trains to its first checkpoint, is killed, and is resumed as tonight.",
        "Then you see whether step and loss go on, and what a crash, a hang or a full GPU would do.",
        "No file of yours is written. It takes as long as the first checkpoint; R again ends it.",
    ),
    confirm="rehearse",
    lost_steps=0,
)


class LaunchRehearsal:
    """One rehearsal at a time; it ends when its screen is left."""

    def __init__(self, screen: LaunchPlace) -> None:
        self._on = screen
        self.under_way = False
        self._wanted = False

    def ask(self, order: LaunchRequest) -> None:
        """Confirm and begin; if one is under way, end it."""
        if self.under_way:
            self._wanted = False
            self._on.show_message("Ending the rehearsal …")
        else:
            confirm(self._on.app, PRICE, lambda: self._begin(order))

    def leave(self) -> None:
        """The screen is left: end it."""
        self._wanted = False

    def _begin(self, order: LaunchRequest) -> None:
        launcher = self._on.launcher
        if launcher is None or self.under_way:
            return
        self.under_way = self._wanted = True
        self._on.show_message("The rehearsal begins: to the first checkpoint …")

        def say(text: str) -> None:
            self._on.tasks.show(lambda: self._on.show_message(f"Rehearsal: {text}"))

        def rehearse() -> Callable[[], None]:
            try:
                result, trouble = launcher.rehearse(order, say, lambda: self._wanted), ""
            except Exception as error:
                result, trouble = None, str(error) or type(error).__name__
            return lambda: self._done(result, trouble)

        self._on.tasks.submit(rehearse)

    def _done(self, result: Rehearsal | None, trouble: str) -> None:
        self.under_way = False
        if result is None:
            self._on.show_message(f"Rehearsal: {trouble}")
            return
        self._on.show_message(f"Rehearsal: {result.verdict}")
        text = "\n".join(rehearsal_lines(result))
        dialog: Dialog[None] = Dialog("Rehearsal", text, "[Esc] close", danger=not result.safe)
        self._on.app.push_screen(dialog)


# Starts the chosen run after its checks, with a confirmation if one failed, and opens it.


class StartPlace(LaunchPlace, Protocol):
    """The screen that starts, and goes to what was started."""

    inquiry: LaunchInquiry

    def open_run(self, run_id: str) -> None:
        """Show the dashboard of a run."""
        ...


class LaunchStart:
    """Starts one run at a time. ``under_way``: the start did not return yet.

    ``waits``: Enter was pressed before plan and checks were there; it is started when they are.
    """

    def __init__(self, screen: StartPlace) -> None:
        self._on = screen
        self.under_way = False
        self.waits = False

    def ask(self, order: LaunchRequest) -> None:
        """Start it when its checks are done, after a confirmation if one failed; a second call does not wait."""
        found = self._on.inquiry
        if found.checked:
            self._ask(order, failed_names(found.checks))
        elif not self.waits or found.plan is None:
            self.waits = True
            self._on.show_message("Its checks are still running: it starts when they are in. Enter again: do not wait.")
        else:
            missing = check_sum(found.checks).open
            still = f"{quantity.plural(missing, 'check')} not done yet" if missing else "nothing was checked yet"
            self._ask(order, (*failed_names(found.checks), still))

    def answered(self, order: LaunchRequest) -> None:
        """Plan or checks are done: continue a waiting start, or show why it cannot be started."""
        found = self._on.inquiry
        if self.waits and found.trouble:
            self.waits = False
            self._on.show_message("It cannot be started as it is: the plan shows why.")
        elif self.waits and found.checked:
            self._ask(order, failed_names(found.checks))

    def forget(self) -> None:
        """Another run was chosen: drop the waiting start."""
        self.waits = False

    def _ask(self, order: LaunchRequest, doubts: tuple[str, ...]) -> None:
        self.waits = False
        if not doubts:
            self._start(order)
            return
        price = Price(
            title="Start it all the same?",
            lines=(*doubts, "", "What failed would most likely end it. Nothing is lost by starting."),
            confirm="start it",
            lost_steps=0,
        )
        confirm(self._on.app, price, lambda: self._start(order))

    def _start(self, order: LaunchRequest) -> None:
        launcher, plan = self._on.launcher, self._on.inquiry.plan
        if launcher is None or self.under_way:
            return
        self.under_way = True
        name = plan.name if plan is not None else order.run or "it"
        self._on.show_message(f"Starting {name} under a supervisor of its own …")

        def start() -> Callable[[], None]:
            try:
                run_id, trouble = launcher.start(order), ""
            except Exception as error:
                run_id, trouble = "", str(error) or type(error).__name__
            return lambda: self._started(run_id, trouble)

        self._on.tasks.submit(start)

    def _started(self, run_id: str, trouble: str) -> None:
        self.under_way = False
        if trouble:
            self._on.inquiry.trouble = trouble
            self._on.draw()
            self._on.show_message("Nothing was started: the plan shows why.")
        else:
            self._on.open_run(run_id)


# What changes outside while the launch screen is open: a run that is started elsewhere, an edited trainwatch.toml.

NEWS_S = 3.0
"""How often it is looked for news, seconds: some lock files are tried; the offers are read again only if it changed."""


class NewsPlace(LaunchPlace, Protocol):
    """The screen that shows the offers."""

    inquiry: LaunchInquiry
    start: LaunchStart

    @property
    def is_active(self) -> bool:
        """Whether no other screen or dialog is over it."""
        ...

    @property
    def offer(self) -> LaunchOffer | None:
        """The one under the cursor."""
        ...

    def renew_offers(self, offers: tuple[LaunchOffer, ...], trouble: str) -> None:
        """Show other offers; the cursor stays where it is."""
        ...


class LaunchNews:
    """Looks in a thread of the screen; draws nothing while nothing changed."""

    def __init__(self, screen: NewsPlace) -> None:
        self._on = screen
        self._mark: object = None
        self._looking = False

    def look(self) -> None:
        """Look once. Not while a start is under way, which is news of our own."""
        launcher, screen = self._on.launcher, self._on
        if launcher is None or self._looking or screen.start.under_way or screen.inquiry.offers is None:
            return
        if not screen.is_active:
            return
        self._looking = True

        def work() -> Callable[[], None]:
            try:
                mark = launcher.mark()
                if mark == self._mark:
                    return self._done
                offers, trouble = tuple(launcher.offers()), ""
            except Exception as error:
                mark, offers, trouble = None, (), str(error)
            return lambda: self._take(mark, offers, trouble)

        screen.tasks.submit(work)

    def _done(self) -> None:
        self._looking = False

    def _take(self, mark: object, offers: tuple[LaunchOffer, ...], trouble: str) -> None:
        screen, self._looking = self._on, False
        if screen.start.under_way:
            return  # the next look sees it
        self._mark = mark
        before = screen.inquiry.offers or ()
        if (offers, trouble) == (before, screen.inquiry.file_trouble):
            return
        screen.renew_offers(offers, trouble)
        began = _began(before, offers)
        if began:
            chosen = screen.offer is not None and screen.offer.run_id == began[0].run_id
            how = "Enter opens it" if chosen else "choose it, and Enter opens it"
            screen.show_message(f"{began[0].name} was started elsewhere: {how}.")


def _began(before: Sequence[LaunchOffer], now: Sequence[LaunchOffer]) -> list[LaunchOffer]:
    known = {offer.run_id for offer in before}
    return [offer for offer in now if offer.run_id is not None and offer.run_id not in known]
