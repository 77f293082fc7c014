"""The table of keys: bindings, footer, help and palette are built from it."""

import re
from collections.abc import Callable, Collection

import msgspec

from ..core.model.run import LIVE_STATES, PAUSED_STATES, TERMINAL_STATES
from ..core.model.story import Situation
from ..core.views.dashboard import HeaderView
from ..core.views.state.run_progress import last_step
from .ui.cells import ASCII, glyphs_for


class KeyContext(msgspec.Struct, frozen=True, kw_only=True):
    """What decides which keys apply."""

    now: Situation
    launchable: bool = False
    """Another run can be started from here."""
    read_only: bool = False

    @property
    def distributed(self) -> bool:
        """It has several ranks, or runs as a job."""
        return self.now.job is not None or bool(self.now.process is not None and self.now.process.ranks)

    @property
    def state(self) -> str:
        return self.now.story.state

    @property
    def live(self) -> bool:
        """A trainer is running."""
        return self.state in LIVE_STATES

    @property
    def silent(self) -> bool:
        """A step is late, a hang is suspected, or one was declared."""
        if self.state == "hung" or any(i.kind == "quiet" for i in self.now.story.open_incidents):
            return True
        step = last_step(self.now)
        return step is not None and step.level != "safe"

    @property
    def started(self) -> bool:
        """It was started at least once."""
        return bool(self.now.story.attempts)

    @property
    def watched(self) -> bool:
        """A supervisor runs, or this is not known yet."""
        return self.now.supervisor_alive is not False


Applies = Callable[[KeyContext], bool]
ARROWS = {"← →": "left, right", "↑ ↓": "up, down"}
"""Arrows as words, where they would be drawn as other keys."""


def key_words(shown: str) -> str:
    """The keys as this terminal can show them: in ASCII arrows would be drawn as ``<``, ``>``, ``^`` and ``v``."""
    return ARROWS.get(shown, shown) if glyphs_for() is ASCII else shown


class Key(msgspec.Struct, frozen=True):
    """A row of a table of keys. ``shown``: as help and footer write it; one of PAIRS stands for two keys.

    ``action``: what it does; the ``±`` of a pair is - for its first key and + for its second. ``acts``: changes
    something (hidden when read-only). ``always``: in the footer at any width. ``first``: when it comes first there, as
    the next thing to do; the head offers these, and they work on every page.
    """

    shown: str
    action: str
    label: str
    help: str
    when: Applies = lambda _: True
    acts: bool = False
    footer: bool = True
    always: bool = False
    first: Applies = lambda _: False

    @property
    def name(self) -> str:
        """The action without what it is called with."""
        return self.action.partition("(")[0]

    @property
    def key(self) -> str:
        """The key that a click presses, by Textual's name: of a pair the second one, which goes on."""
        return PAIRS[self.shown][1] if self.shown in PAIRS else NAMES.get(self.shown, self.shown)

    @property
    def bindings(self) -> tuple[tuple[str, str], ...]:
        """(key, action) of all its keys."""
        if "±" not in self.action:
            return ((self.key, self.action),)
        return tuple((key, self.action.replace("±", sign)) for key, sign in zip(PAIRS[self.shown], "-+", strict=True))


PAIRS = {
    "← →": ("left", "right"), "↑ ↓": ("up", "down"), "[ ]": ("left_square_bracket", "right_square_bracket"),
    "tab": ("shift+tab", "tab"), "PgDn": ("pageup", "pagedown"), "n N": ("n", "N"),
}  # fmt: skip
NAMES = {"/": "slash", "?": "question_mark", "Enter": "enter", "Esc": "escape", "Home": "home", "1…9": "1"}
"""Textual's name of a key that is written so."""


KEYS: tuple[Key, ...] = (
    Key("Enter", "start", "start", "start this project's run", acts=True, first=lambda c: not c.started,
        when=lambda c: not c.started and c.now.now_wall > 0),
    Key("S", "supervisor", "supervise", "start a supervisor (detached; it continues without this screen)",
        when=lambda c: c.started and not c.watched and c.state not in TERMINAL_STATES, acts=True,
        first=lambda c: not c.watched),
    Key("Y", "answer", "yes", "do what waits for your answer (shows what it costs)", acts=True,
        when=lambda c: c.now.story.question is not None, first=lambda c: c.now.story.question is not None),
    Key("z", "take_back", "take back", "take back the order that the supervisor has not answered yet", acts=True,
        when=lambda c: c.now.left is not None, first=lambda c: c.now.left is not None),
    Key("w", "wait", "wait", "wait longer on a suspected hang", when=lambda c: c.silent and c.watched, acts=True,
        first=lambda c: c.silent),
    Key("s", "save_now", "save", "ask the trainer for a checkpoint now", acts=True, footer=False,
        when=lambda c: c.state == "running" and c.watched),
    Key("a", "attach", "attach", "go to the trainer's terminal, and come back", when=lambda c: c.started and c.live),
    Key("K", "kill", "kill", "kill the training now (asks, and shows what is lost)", acts=True,
        when=lambda c: c.live and c.watched),
    Key("x", "stop", "stop", "stop the training after saving (asks)", when=lambda c: c.live and c.watched, acts=True),
    Key("r", "resume", "resume", "end a pause; resume or restart from a checkpoint", acts=True,
        when=lambda c: c.started,
        first=lambda c: c.state in PAUSED_STATES | {"stopped", "ended_early", "given_up"}),
    Key("p", "app.place('profiles')", "profile", "the profiles: what a switch would change, and the switch",
        when=lambda c: c.started),
    Key("c", "acknowledge", "ack", "acknowledge the newest open incident", acts=True,
        when=lambda c: c.watched and (
            any(not i.acknowledged for i in c.now.story.open_incidents)
            or (c.now.story.question is not None and c.now.story.question.fact.by != "")
        ),
        first=lambda c: c.now.story.question is not None and c.now.story.question.fact.asks),
    Key("A", "act", "act", "what is done without you: all, ask first, notify only", acts=True, footer=False,
        when=lambda c: c.started and c.watched and c.state not in {"finished", "given_up"}),
    Key("e", "explain", "explain", "explain what the head names, or the newest",
        when=lambda c: bool(c.now.story.incidents),
        first=lambda c: c.state in {"given_up", "ended_early", "hung", "backing_off", "cleaning"}),
    Key("m", "summary", "summary", "what happened while you were away", footer=False, when=lambda c: c.started),
    Key("P", "pause", "pause", "pause the training; its GPU memory stays held (asks)", acts=True, footer=False,
        when=lambda c: c.state in {"running", "starting", "hung"} and c.watched),
    Key("/", "search", "search", "search the log (a regular expression)", when=lambda c: c.started),
    Key("n", "search_next(True)", "older match", "next older match", footer=False),
    Key("N", "search_next(False)", "newer match", "next newer match", footer=False),
    Key("space", "follow", "follow/hold", "hold the log, or follow it again", when=lambda c: c.started),
    Key("↑ ↓", "scroll(±1)", "scroll", "scroll the log (also k, j, PgUp, PgDn, Home, End)", footer=False),
    Key("[ ]", "zoom(±1)", "zoom", "all charts show a shorter or longer time", footer=False),
    Key("tab", "pane(±1)", "pane", "the next pane (shift: back)", footer=False),
    Key("z", "whole", "zoom", "show the pane at full size, and back", footer=False),
    Key("← →", "event(±1)", "events", "select an event of the timeline; the charts show that time", footer=False,
        when=lambda c: c.started),
    Key("o", "open", "open", "open the screen of the pane, or of the event", footer=False, when=lambda c: c.started),
    Key("1…9", "place('dashboard')", "more", always=True,
        help="dashboard · log · incidents · checkpoints · profiles · runs · metrics · gpus · host"),
    Key("R", "app.place('runs')", "runs", "all runs of this machine", footer=False),
    Key("y", "app.copy_text", "copy", "copy the text of this screen", footer=False),
    Key("i", "app.place('samples')", "images", "the newest sample images of the run", footer=False),
    Key("D", "app.place('ranks')", "ranks", "the ranks of a distributed training, and the nodes of its job",
        when=lambda c: c.distributed),
    Key("l", "app.place('launch')", "launch", "start something: a run of trainwatch.toml, or a command", acts=True,
        when=lambda c: c.launchable),
    Key("?", "help", "help", "this list", always=True),
    Key("q", "leave", "leave", "leave the screen; training and supervisor continue", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("j", "scroll(1)"), ("k", "up"), ("pageup", "scroll(-20)"), ("pagedown", "scroll(20)"), ("home", "log_start"),
    ("end", "follow_end"), ("enter", "open"), ("escape", "back"),
)  # fmt: skip
"""Keys without a line of their own in footer and help."""
BY_ACTION = {key.name: key for key in KEYS}
HELP = BY_ACTION["help"]


def applying(context: KeyContext, keys: tuple[Key, ...] = KEYS) -> tuple[Key, ...]:
    """Those that apply now, the next thing to do first."""
    found = [k for k in keys if k.when(context) and not (k.acts and context.read_only)]
    return tuple(sorted(found, key=lambda k: not k.first(context)))


def head_here(head: HeaderView, context: KeyContext, own: Collection[str] = ()) -> HeaderView:
    """The head with keys that do here what it says: ``[1] [r] continue`` on a page with another r; none if read-only.

    ``own``: keys of the page that do something else.
    """
    said = head.verdict
    clauses, worst = [*said.clauses], said.worst
    for key in (key for key in KEYS if key.first(context)):
        offer, other = re.escape(f"[{key.shown}]"), f"[1] [{key.shown}]"
        if key.acts and context.read_only:
            offer, other = rf"(:? \(?)?{offer} [\w ,]*\)?", ""
        elif key.key not in own:
            continue
        clauses, worst = [re.sub(offer, other, clause) for clause in clauses], re.sub(offer, other, worst)
    left = tuple(filter(None, clauses))
    vital = said.vital - sum(not clause for clause in clauses[: said.vital])
    verdict = msgspec.structs.replace(said, clauses=left, worst=worst, vital=vital)
    return msgspec.structs.replace(head, verdict=verdict)


READ_ONLY = "This screen is read-only: open it without --read-only to do that."
OVER: dict[str, str] = {
    "finished": "The run is finished: r starts it again.",
    "stopped": "The run is stopped: r resumes it.",
    "ended_early": "The trainer exited before the end: e shows why, r resumes it.",
    "given_up": "The run was given up: e shows why, r resumes it.",
}
"""By state without a trainer: why the key does nothing."""
MISSING: dict[str, str] = {
    "answer": "No question waits for an answer.",
    "wait": "Nothing is hung.",
    "save_now": "Only a training that runs can save.",
    "acknowledge": "No incident is open.",
    "supervisor": "A supervisor is running already.",
}
"""By action: why it does nothing."""


def why_not(action: str, context: KeyContext) -> str:
    """Why a key that acts on the run does nothing now."""
    if context.read_only:
        return READ_ONLY
    if not context.started:
        return "The run has not been started yet."
    if action == "acknowledge" and all(i.acknowledged for i in context.now.story.open_incidents):
        return MISSING[action]
    if context.state in OVER:
        return OVER[context.state]
    if not context.watched and action != "supervisor":
        return "No supervisor is running: S starts one."
    if action in MISSING:
        return MISSING[action]
    return "It is paused: r lets it go on." if context.state in PAUSED_STATES else "No trainer is running now."
