"""Key l: the runs that can be started here, with plan and checks; Enter starts one."""

import shlex
from collections.abc import Sequence
from typing import ClassVar

import msgspec
from textual.binding import BindingType

from ....core.model.launch.launch_preview import LaunchOffer, LaunchRequest
from ....core.model.ports.screen import Launcher
from ....core.views import quantity
from ....core.views.panes.header import HeaderView
from ....core.views.screens.launch import check_sum
from ...keys import Key
from ...panes.offers_pane import OffersPane
from ...panes.page_pane import PagePane
from ...panes.pane import Pane
from ...panes.rows_pane import RowsPane
from ...run_session import Application, RunSession
from ...ui.paragraph import Paragraph
from ..box import Box
from ..place_screen import PlaceScreen, bindings_of, headline, share
from .launch_inquiry import STARTED_HERE, LaunchInquiry, checks_page, plan_page
from .launch_news import NEWS_S, LaunchNews
from .launch_rehearsal import LaunchRehearsal
from .launch_start import LaunchStart

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
        from ...dialogs.type_command import TypeCommand

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
