"""The table of keys: bindings, footer, help and palette are built from it."""

from collections.abc import Callable

import msgspec

from ..core.model.run import LIVE_STATES, PAUSED_STATES, TERMINAL_STATES
from ..core.model.story import Situation
from ..core.views.state.run_progress import last_step
from .ui.cells import ASCII, glyphs_for


class KeyContext(msgspec.Struct, frozen=True, kw_only=True):
    """What decides which keys apply."""

    now: Situation
    startable: bool = False
    samples: bool = False
    """The run has a folder of sample images."""
    launchable: bool = False
    """Another run can be started from here."""
    has_runs: bool = False
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


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """``acts``: changes something (hidden when read-only). ``always``: in the footer at any width."""

    key: str
    shown: str
    action: str
    label: str
    help: str
    when: Applies = lambda _: True
    acts: bool = False
    footer: bool = True
    always: bool = False
    first: Applies = lambda _: False
    """When it comes first in the footer: it is the next thing to do."""


KEYS: tuple[Key, ...] = (
    Key(
        key="enter", shown="Enter", action="start", label="start", help="start this project's run",
        when=lambda c: c.startable and not c.started and c.now.now_wall > 0, acts=True, first=lambda c: not c.started,
    ),
    Key(
        key="S", shown="S", action="supervisor", label="start supervisor",
        help="start a supervisor (detached; it continues without this screen)",
        when=lambda c: c.started and not c.watched and c.state not in TERMINAL_STATES, acts=True,
        first=lambda c: not c.watched,
    ),
    Key(
        key="Y", shown="Y", action="answer", label="yes", help="do what waits for your answer (shows what it costs)",
        when=lambda c: c.now.story.question is not None, acts=True, first=lambda c: c.now.story.question is not None,
    ),
    Key(
        key="w", shown="w", action="wait", label="wait", help="wait longer on a suspected hang",
        when=lambda c: c.silent and c.watched, acts=True, first=lambda c: c.silent,
    ),
    Key(
        key="s", shown="s", action="save_now", label="save", help="ask the trainer for a checkpoint now",
        when=lambda c: c.state == "running" and c.watched, acts=True, footer=False,
    ),
    Key(
        key="a", shown="a", action="attach", label="attach", help="go to the trainer's terminal, and come back",
        when=lambda c: c.started and c.live,
    ),
    Key(
        key="k", shown="k", action="kill", label="kill", help="kill the training now (asks, and shows what is lost)",
        when=lambda c: c.live and c.watched, acts=True,
    ),
    Key(
        key="x", shown="x", action="stop", label="stop", help="stop the training after saving (asks)",
        when=lambda c: c.live and c.watched, acts=True, footer=True,
    ),
    Key(
        key="r", shown="r", action="resume", label="resume", help="end a pause; resume or restart from a checkpoint",
        when=lambda c: c.started, acts=True,
        first=lambda c: c.state in PAUSED_STATES | {"stopped", "ended_early", "given_up"},
    ),
    Key(
        key="p", shown="p", action="app.place('profiles')", label="profile", when=lambda c: c.started,
        help="the profiles: what a switch would change, and the switch",
    ),
    Key(
        key="c", shown="c", action="acknowledge", label="ack", help="acknowledge the newest open incident",
        when=lambda c: any(not i.acknowledged for i in c.now.story.open_incidents) and c.watched, acts=True,
    ),
    Key(
        key="A", shown="A", action="act", label="act", help="what is done without you: all, ask first, notify only",
        when=lambda c: c.started and c.watched and c.state not in {"finished", "given_up"}, acts=True, footer=False,
    ),
    Key(
        key="e", shown="e", action="explain", label="explain", help="explain the newest incident",
        when=lambda c: bool(c.now.story.incidents),
        first=lambda c: c.state in {"given_up", "ended_early", "hung", "backing_off", "cleaning"},
    ),
    Key(
        key="m", shown="m", action="summary", label="summary", help="what happened while you were away", footer=False,
        when=lambda c: c.started,
    ),
    Key(
        key="P", shown="P", action="pause", label="pause", help="pause the training; its GPU memory stays held (asks)",
        when=lambda c: c.state in {"running", "starting", "hung"} and c.watched, acts=True, footer=False,
    ),
    Key(key="slash", shown="/", action="search", label="search", help="search the log (a regular expression)",
        when=lambda c: c.started),
    Key(key="n", shown="n", action="search_next(True)", label="older match", help="next older match", footer=False),
    Key(key="N", shown="N", action="search_next(False)", label="newer match", help="next newer match", footer=False),
    Key(key="space", shown="space", action="follow", label="follow/hold", help="hold the log, or follow it again",
        when=lambda c: c.started),
    Key(key="up", shown="↑ ↓", action="scroll(1)", label="scroll", help="scroll the log (also PgUp, PgDn, Home, End)",
        footer=False),
    Key(key="left_square_bracket", shown="[ ]", action="zoom(-1)", label="zoom",
        help="all charts show a shorter or longer time", footer=False),
    Key(key="tab", shown="tab", action="pane(1)", label="pane", help="the next pane (shift: back)", footer=False),
    Key(key="z", shown="z", action="whole", label="zoom", help="show the pane at full size, and back", footer=False),
    Key(key="left", shown="← →", action="event(-1)", label="events",
        help="select an event of the timeline; the charts show that time", footer=False,
        when=lambda c: c.started),
    Key(key="o", shown="o", action="open", label="open", help="open the screen of the pane, or of the event",
        footer=False, when=lambda c: c.started),
    Key(key="1", shown="1…9", action="place('dashboard')", label="more", always=True,
        help="dashboard · log · incidents · checkpoints · profiles · runs · metrics · gpus · host"),
    Key(key="R", shown="R", action="runs", label="runs", help="all runs of this machine", footer=False,
        when=lambda c: c.has_runs),
    Key(key="y", shown="y", action="app.copy_text", label="copy", help="copy the text of this screen", footer=False),
    Key(key="i", shown="i", action="app.place('samples')", label="images", footer=False,
        help="the newest sample images of the run", when=lambda c: c.samples),
    Key(key="D", shown="D", action="app.place('ranks')", label="ranks",
        help="the ranks of a distributed training, and the nodes of its job", when=lambda c: c.distributed),
    Key(key="l", shown="l", action="app.place('launch')", label="launch", acts=True,
        help="start something: a run of trainwatch.toml, or a command", when=lambda c: c.launchable),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="q", shown="q", action="leave", label="leave",
        help="leave the screen; training and supervisor continue", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "scroll(-1)"),
    ("pageup", "scroll(20)"),
    ("pagedown", "scroll(-20)"),
    ("home", "log_start"),
    ("end", "follow_end"),
    ("right_square_bracket", "zoom(1)"),
    ("right", "event(1)"),
    ("shift+tab", "pane(-1)"),
    ("enter", "open"),
    ("escape", "back"),
)
"""Keys without a line of their own in footer and help."""


def applying(context: KeyContext) -> tuple[Key, ...]:
    """Keys that apply now, the next thing to do first."""
    found = [k for k in KEYS if k.when(context) and not (k.acts and context.read_only)]
    return tuple(sorted(found, key=lambda k: not k.first(context)))


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
