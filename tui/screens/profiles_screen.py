"""Key 5: the ladder of profiles, the profile of the run and why, and what a switch would change."""

from collections.abc import Mapping, Sequence

from ...core.model.launch import TrialResult
from ...core.model.preset import NO_PROFILE, Change, Profile
from ...core.views.screens.profiles import (
    LADDER_COLUMNS,
    ProfilesView,
    next_checkpoint_words,
    pairs,
    profiles_view,
    switch_differences,
)
from ...core.views.words import Paragraph
from ..keys import HELP, Key, KeyContext
from ..panes.pane import Pane
from ..panes.rows_pane import PagePane, RowsPane
from ..run_session import Box
from ..ui.cells import Span
from .place_screen import RunPage, above, share

NO_PROFILES = (
    "No profile is known for this run. trainwatch trial measures its settings as they are, trainwatch trial -- "
    "--batch_size 4 others. What fits becomes a profile: write profiles/NAME.toml beside trainwatch.toml, with the "
    'keys below [settings], and [profiles] ladder = ["NAME", ...] in trainwatch.toml, least memory first. '
    "Those that are shipped: trainwatch profiles list"
)

NO_LADDER = (
    "None is set, so a restart after out of memory has no smaller profile. trainwatch trial --profile NAME measures "
    "one here; then write [profiles] ladder = [...] in trainwatch.toml, the one that needs least memory first."
)


def _can_switch(context: KeyContext) -> bool:
    return context.started and context.state != "finished"


PROFILE_KEYS: tuple[Key, ...] = (
    Key("Enter", "switch(False)", "at checkpoint", "switch at the next complete checkpoint; no step is lost (asks)",
        acts=True, when=_can_switch),
    Key("n", "switch(True)", "now", "switch now: ends the training with time to save, and restarts it (asks)",
        acts=True, when=_can_switch),
    Key("y", "app.copy_text", "copy", "copy ladder and difference as text", footer=False),
    Key("↑ ↓", "move(±1)", "choose", "choose a profile (also k, j, Home, End)"),
    Key("PgDn", "scroll(±6)", "scroll", "scroll what is below the ladder", footer=False),
    HELP,
    Key("Esc", "app.leave_place", "back", "back to the previous screen", always=True),
)  # fmt: skip


class ProfilesScreen(RunPage):
    """Ladder, difference."""

    place = "profiles"
    keys = PROFILE_KEYS
    view: ProfilesView | None = None
    changes: Mapping[str, tuple[Change, ...] | str] = {}
    """By profile: what a launch would change, or the error."""
    trials: Mapping[str, TrialResult] = {}
    """What was measured on this machine, by profile."""

    @property
    def profiles(self) -> Sequence[Profile]:
        """Those of the ladder, or all that are known; also to do without one, if the run has one."""
        known = self.session.run.profiles
        if known and self.now.story.profile is not None and all(p.name != NO_PROFILE for p in known):
            return (*known, Profile(name=NO_PROFILE, title="your own config as it stands"))
        return known

    def idle(self) -> tuple[str, ...]:
        """Those that would only say why they do nothing."""
        return ("switch",) * (self._in_use or not self.profiles) + ("move",) * (not self.profiles)

    def bodies(self) -> Sequence[Pane]:
        self.table = RowsPane(id="ladder")
        self.page = PagePane(id="difference")
        return (self.table, self.page)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        rows = share(height, len(self.profiles) + 2, 3, max(4, height // 2))
        return above((0, top, width, height), rows if self.profiles else height, "ladder", "difference")

    def on_mount(self) -> None:
        """Read the settings of a launch in a thread."""
        super().on_mount()
        self.renew()
        services, profiles = self.session.run.services, self.profiles

        def read() -> dict[str, tuple[Change, ...] | str]:
            changes: dict[str, tuple[Change, ...] | str] = {}
            for profile in profiles:
                try:
                    changes[profile.name] = tuple(services.changes(profile))
                except Exception as error:
                    changes[profile.name] = str(error)
            return changes

        self.read(read, self._take)

    def renew(self) -> None:
        self.draw()
        self.read(self.session.run.services.trials, self._take_trials)

    def _take_trials(self, found: Mapping[str, TrialResult] | None, _: str) -> None:
        self.trials = found or {}  # without results nothing is shown as measured

    def _take(self, found: dict[str, tuple[Change, ...] | str] | None, _: str) -> None:
        self.changes = found or {}

    def show(self) -> None:
        ladder = self.session.run.plan.settings.profiles.ladder
        self.view = profiles_view(self.now, self.profiles, ladder, self.trials)
        if self.table.chosen is None and self.now.story.seq:
            self.table.chosen = next((rung.name for rung in self.view.rungs if rung.now), None)
        glyphs = self.table.glyphs
        now: Span = ("safe", glyphs.levels["safe"])
        self.table.show_table(
            LADDER_COLUMNS, self.view.rungs, message=NO_PROFILES, level=lambda rung: rung.use,
            ids=lambda rung: rung.name,
            signs={"now": now, "last": now, "next": ("accent", glyphs.expected), "": ("accent", " ")},
            title="ladder · safest first" if ladder else "profiles · no ladder is set",
        )  # fmt: skip
        self.page.show(self._difference(), title=self._title())

    def _title(self) -> str:
        profile = self._profile
        if profile is None:
            return "profile"
        return f"{profile.name} · a {'restart' if self.table.here.now else 'switch'} would change"

    @property
    def _in_use(self) -> bool:
        """The run uses the profile under the cursor, and no switch to another one is due."""
        return bool(self.table.items) and self.table.here.now and not self.now.story.profile_pending

    @property
    def _profile(self) -> Profile | None:
        return self.profiles[self.table.cursor] if self.table.items else None

    def _difference(self) -> list[Paragraph]:
        profile, view = self._profile, self.view
        if profile is None or view is None:
            return []
        first = "last" if view.over else "now"
        found = [Paragraph(text=text, label=first if i == 0 else "", style="text") for i, text in enumerate(view.why)]
        rung = self.table.here
        if rung.description and rung.description != rung.title:
            found.append(Paragraph(text=rung.description, label="about"))
        if rung.expect:
            found.append(Paragraph(text=pairs("", rung.expect), label="guide"))
        if rung.measured:
            found.append(Paragraph(text=pairs("", rung.measured), label="here", style="strong"))
        if rung.died:
            found.append(Paragraph(text=f"it {rung.died}, so this run left it", label="failed", style="warning"))
        if not self.session.run.plan.settings.profiles.ladder:
            found.append(Paragraph(text=NO_LADDER, label="ladder", style="label"))
        found.append(Paragraph())
        return found + self._changes(profile, is_now=rung.now, over=view.over)

    def _changes(self, profile: Profile, *, is_now: bool, over: bool) -> list[Paragraph]:
        wanted = self.changes.get(profile.name)
        if isinstance(wanted, str):
            return [Paragraph(text=wanted, label="cannot", style="warning")]
        if wanted is None:
            return [Paragraph(text="Calculating …", style="label")]
        attempt = self.now.story.attempt
        differences = switch_differences(attempt.changes if attempt is not None else (), wanted)
        if not differences:
            same = "The last attempt used these settings." if over else "The run already uses these settings."
            text = same if is_now else "No setting would differ."
            return [Paragraph(text=text, style="label")]
        width = max(len(d.key) for d in differences)
        found = [
            Paragraph(text=f"{d.key:<{width}}  {d.before} → {d.after}", label=d.where, style="text")
            for d in differences
        ]
        if self.now.story.attempts and not is_now:
            found += [
                Paragraph(),
                Paragraph(text=f"[Enter] {next_checkpoint_words(self.now)}   [n] now", style="label"),
            ]
        return found

    def row_chosen(self, _: RowsPane) -> None:
        self.page.top = 0
        self.draw()

    def action_switch(self, at_once: bool) -> None:
        profile = self._profile
        if profile is None:
            self.show_message("No profile is known for this run.")
        elif self._in_use:
            over = self.view is not None and self.view.over
            used = "Its last attempt used" if over else "The run uses"
            self.show_message(f"{used} {profile.name}{'' if over else ' already'}.")
        else:
            self.session.operations.switch_to(profile.name, at_once=at_once)
