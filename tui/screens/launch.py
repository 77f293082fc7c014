"""Key l: the runs that can be started here, with plan and checks; Enter starts one."""

import shlex
from collections.abc import Mapping, Sequence

import msgspec

from ...core.model.launch import LaunchCheck, LaunchOffer, LaunchPreview, LaunchRequest
from ...core.model.ports import Launcher
from ...core.views import quantity
from ...core.views.dashboard import HeaderView
from ...core.views.screens.confirmation import Price
from ...core.views.screens.launch import OFFER_COLUMNS, check_rows, check_words, failed_names, plan_rows
from ...core.views.words import Paragraph
from ..dialogs.dialog import Ask, confirm
from ..keys import HELP, Key
from ..panes.pane import Pane
from ..panes.rows_pane import PagePane, RowsPane
from ..run_session import Box
from .place_screen import PlaceScreen, above, beside, headline, share

SIDE_FROM = 120
"""Columns from which plan and checks are side by side."""
LOOK_AFTER_S = 0.25
"""Delay before the checks, so that moving over the list does not start them for each row."""
TYPE_BODY = "As in your shell, but it is not run by one: no |, &&, > or $VARIABLE. It starts in this folder."
TYPE_KEYS = "[Enter] plan and check it   [Esc] cancel"
CANNOT_START = "It cannot be started as it is: the plan shows why."

LAUNCH_KEYS: tuple[Key, ...] = (
    Key("Enter", "go", "start", "start it under a supervisor of its own; one that was started before is opened",
        acts=True),
    Key("← →", "profile(±1)", "profile", "choose another profile; the plan shows what it changes"),
    Key("t", "type", "type", "type a command to start; no file is needed"),
    Key("↑ ↓", "move(±1)", "choose", "choose what to start (also k, j, Home, End)", footer=False),
    Key("L", "reload", "read again", "read the file and check again"),
    Key("y", "copy", "copy command", "copy the command as it would be started", footer=False),
    Key("tab", "turn", "plan/checks", "which of plan and checks has the room, and scrolls (small screens)",
        footer=False),
    Key("PgDn", "scroll(±6)", "scroll", "scroll plan or checks (PgUp: back)", footer=False),
    HELP,
    Key("Esc", "app.leave_place", "back", "back; nothing was started", always=True),
)  # fmt: skip


class LaunchScreen(PlaceScreen):
    """Offers, plan, checks. Nothing is started without Enter.

    ``offers`` None: not read yet. ``trouble``: why the file, or what is chosen, cannot be started: a line a problem;
    ``file_trouble``: why the file cannot be read. ``checked``: all checks are done. ``waits``: Enter was pressed before
    plan and checks were there; it is started when they are. ``starting``: that is under way.
    """

    place = "launch"
    tab = "runs"
    alone = ("Nothing is started without Enter", "plan and checks are below")
    keys = LAUNCH_KEYS
    also = (("shift+tab", "turn"), ("q", "leave"))
    read_offers: tuple[LaunchOffer, ...] | None = None
    plan: LaunchPreview | None = None
    trouble = file_trouble = ""
    checked = waits = starting = False
    typed = ""
    profile: str | None = None
    checks_first = True
    _checks: Mapping[int, LaunchCheck] = {}
    _asked = 0

    @property
    def launcher(self) -> Launcher:
        """The page is offered only if there is one."""
        assert self.application.launcher is not None
        return self.application.launcher

    def head_alone(self) -> HeaderView:
        """The worst first: what the checks found."""
        if failed := failed_names(self.checks):
            return headline((f"{quantity.plural(len(failed), 'check')} failed", *self.alone), "danger")
        return super().head_alone()

    @property
    def offers(self) -> tuple[LaunchOffer, ...]:
        return self.read_offers or ()

    @property
    def checks(self) -> list[LaunchCheck]:
        """In their order; those that turned out not to apply are left out."""
        return [check for _, check in sorted(self._checks.items()) if check.name]

    def bodies(self) -> Sequence[Pane]:
        self.table = RowsPane(id="offers")
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
            return boxes | beside((0, top + rows, width, rest), width // 2, "plan", "checks")
        if rest < 10:
            return boxes | {"checks" if self.checks_first else "plan": (0, top + rows, width, rest)}
        small = max(3, min(rest // 3 + 1, rest - 6)) if rest < 30 else rest // 2
        plan = small if self.checks_first else rest - small
        return boxes | above((0, top + rows, width, rest), plan, "plan", "checks")

    def on_mount(self) -> None:
        super().on_mount()
        self.action_reload()

    def show(self) -> None:
        where = "trainwatch.toml" if any(offer.of_file for offer in self.offers) else "no trainwatch.toml here"
        offers = (*self.offers, LaunchOffer(name="a command", command=self.typed))
        self.table.show_table(OFFER_COLUMNS, offers, title=f"start · {where}")
        chosen, started = self.offer is not None or bool(self.typed), self.opens is not None
        if self.offer is not None and not self.offer.of_file:
            self.page.show([Paragraph(STARTED_HERE, style="warning")], title=self.offer.name)
        else:
            name = self.plan.name if self.plan is not None else self.offer.name if self.offer is not None else ""
            page = self._plan_page(chosen=chosen, started=started)
            self.page.show(page, title=f"plan · {name}" if name else "plan")
        words = check_words(self.checks)
        self.looks.set_class(bool(failed_names(self.checks)), "-danger")
        if self.checks:
            page = check_rows(self.checks, beside=self.size.width >= NARROW)
        else:
            waits = chosen and not started and not self.trouble
            page = [Paragraph("Looking …" if waits else "Nothing to check.", style="label")]
        self.looks.show(page, title=f"checks · {words}" if words else "checks")

    def _plan_page(self, *, chosen: bool, started: bool) -> list[Paragraph]:
        """``chosen``: there is something to start; ``started``: it was started before."""
        if self.read_offers is None:
            return [Paragraph("Reading trainwatch.toml …", style="label")]
        if self.trouble:
            lines = [  # an excerpt of a file keeps its columns, with what points into it
                Paragraph(line, style="danger", hard=line.startswith(" ")) for line in self.trouble.splitlines()
            ]
            return [*lines, Paragraph(), Paragraph("Correct it, then press L to read it again.", style="label")]
        if not chosen:
            return [Paragraph("Press t (or Enter) and type the command that starts your training.", style="label")]
        found = [Paragraph(STARTED_BEFORE, style="warning"), Paragraph()] if started else []
        if self.plan is None:
            return [*found, Paragraph("Calculating …", style="label")]
        return found + plan_rows(self.plan)

    def offered(self) -> tuple[Key, ...]:
        """Enter opens a run that was started before."""
        label = "start" if self.opens is None else "open"
        return tuple(msgspec.structs.replace(k, label=label) if k.action == "go" else k for k in super().offered())

    def idle(self) -> tuple[str, ...]:
        """A run that was started before has its profile already, and for some frameworks there is none."""
        none = self.opens is not None or (self.plan is not None and not self.plan.profiles)
        return ("profile",) if none else ()

    @property
    def offer(self) -> LaunchOffer | None:
        """The run of the file under the cursor; None on the typed command."""
        return next(iter(self.offers[self.table.cursor :]), None)

    @property
    def opens(self) -> str | None:
        """The id of the run that Enter would open, because it was started before."""
        return self.offer.run_id if self.offer is not None else None

    @property
    def order(self) -> LaunchRequest:
        offer = self.offer
        if offer is not None:
            return LaunchRequest(run=offer.name, profile=self.profile) if offer.of_file else LaunchRequest()
        return LaunchRequest(command=self.typed, profile=self.profile)

    # Offers, plan and checks are asked for in threads.

    def action_reload(self) -> None:
        self.tasks.fetch(self.launcher.offers, lambda found, trouble: self._take_offers(found or (), trouble))

    def _take_offers(self, offers: Sequence[LaunchOffer], trouble: str) -> None:
        """Show these; plan and check what is chosen among them."""
        self.read_offers, self.file_trouble = tuple(offers), trouble
        self.draw()
        self.ask()

    def ask(self) -> None:
        """Plan what is chosen now, and check it."""
        self.waits = False
        self.page.top = self.looks.top = 0
        self._asked += 1
        asked, order, launcher = self._asked, self.order, self.launcher
        nothing = order.run is None and not order.command
        self.plan, self._checks, self.checked = None, {}, False
        self.trouble = self.file_trouble if nothing else ""
        self.draw()
        if nothing:
            return

        def take(plan: LaunchPreview | None, trouble: str) -> None:
            if asked == self._asked:
                self.plan, self.trouble = plan, trouble
                self.draw()
                self.answered()
                if plan is not None and self.opens is None:
                    self.set_timer(LOOK_AFTER_S, lambda: self._check(asked, order))

        self.tasks.fetch(lambda: launcher.plan(order), take)

    def _check(self, asked: int, order: LaunchRequest) -> None:
        launcher = self.launcher
        if asked != self._asked:
            return

        def wanted() -> bool:
            return asked == self._asked and self.is_attached and self.app.is_running

        def seen(check: LaunchCheck) -> None:
            if wanted():
                self.tasks.show(lambda: take(check))

        def take(check: LaunchCheck) -> None:
            if asked == self._asked:
                self._checks = {**self._checks, check.place: check}
                self.draw()

        def done(_: None, trouble: str) -> None:
            if asked == self._asked:
                if trouble:
                    take(LaunchCheck(place=0, name="checks", result="warn", found=f"could not be made: {trouble}"))
                self.checked = True
                self.draw()
                self.answered()

        self.tasks.fetch(lambda: launcher.check(order, seen, wanted), done)

    def on_screen_resume(self) -> None:
        self.answered()

    def row_chosen(self, _: RowsPane) -> None:
        self.profile = None
        self.ask()

    def on_rows_pane_chosen(self, _: RowsPane.Chosen) -> None:
        """A second click types the command; a run needs Enter, because a click is easily made by accident."""
        if self.offer is None:
            self.action_type()
        else:
            self.show_message("Press Enter to start it.")

    def action_turn(self) -> None:
        self.checks_first = not self.checks_first
        self.draw()

    def action_scroll(self, rows: int) -> None:
        """Scroll the pane that is shown, or both if they are side by side."""
        if self.size.width >= SIDE_FROM or self.checks_first:
            self.looks.scroll(rows)
        if self.size.width >= SIDE_FROM or not self.checks_first or self.opens is not None:
            self.page.scroll(rows)

    def action_profile(self, steps: int) -> None:
        plan = self.plan
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

        def typed(command: str | None) -> None:
            if command:
                self.typed, self.profile = command, None
                self.table.cursor = len(self.offers)
                self.ask()

        self.app.push_screen(Ask("A command to start", TYPE_BODY, TYPE_KEYS, before=self.typed), typed)

    def copied(self) -> str:
        return "" if self.plan is None else shlex.join(self.plan.command)

    def action_go(self) -> None:
        """Open a run that was started before, else start it when its checks are done; pressed again: do not wait.

        If a check failed or is not done, it asks.
        """
        if self.starting:
            return
        if self.read_offers is None:
            self.show_message("One moment: trainwatch.toml is being read.")
        elif self.offer is None and not self.typed:
            self.action_type()
        elif self.opens is not None:
            self.open_run(self.opens)
        elif self.trouble:
            self.show_message(CANNOT_START)
        elif self.checked:
            self._start(failed_names(self.checks))
        elif not self.waits or self.plan is None:
            self.waits = True
            self.show_message("Its checks are still running: it starts when they are in. Enter again: do not wait.")
        else:
            missing = sum(check.result is None for check in self.checks)
            still = f"{quantity.plural(missing, 'check')} not done yet" if missing else "nothing was checked yet"
            self._start((*failed_names(self.checks), still))

    def answered(self) -> None:
        """Continue a start that waits for the checks, or say why it cannot be started; not below a dialog."""
        if self.is_current and self.waits:
            if self.trouble:
                self.waits = False
                self.show_message(CANNOT_START)
            elif self.checked:
                self._start(failed_names(self.checks))

    def _start(self, doubts: tuple[str, ...]) -> None:
        """``doubts``: what a person has to confirm."""
        self.waits = False
        order, launcher = self.order, self.launcher
        name = self.plan.name if self.plan is not None else order.run or "it"

        def begin() -> None:
            if not self.starting:
                self.starting = True
                self.show_message(f"Starting {name} under a supervisor of its own …")
                self.tasks.fetch(lambda: launcher.start(order), started)

        def started(run_id: str | None, trouble: str) -> None:
            self.starting = False
            if run_id is None:
                self.trouble = trouble
                self.draw()
                self.show_message("Nothing was started: the plan shows why.")
            else:
                self.open_run(run_id)

        if doubts:
            what = "What failed would most likely end it. Nothing is lost by starting."
            price = Price(title="Start it all the same?", lines=(*doubts, "", what), confirm="start it", lost_steps=0)
            confirm(self.app, price, begin)
        else:
            begin()


NARROW = 60
"""Below it a check's name stands in its text, not in a margin of its own."""
STARTED_BEFORE = "It was started before: Enter opens it. There r starts it again, from a checkpoint or anew."
STARTED_HERE = "It was started in this folder by its command, and is no run of trainwatch.toml. Enter opens it."
