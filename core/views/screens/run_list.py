"""What the list of runs shows: one row for each run of the state folder; its order, and which are left out."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

import msgspec

from ...model.progress import Level
from ...model.run import LIVE_STATES, NAN_CLASSES, TERMINAL_STATES, Incident
from ...model.story import HOST_ROW, RunCard, Situation
from .. import quantity
from ..checkpoint_list import LEVELS as VERDICTS
from ..checkpoint_list import verdict_clause
from ..columns import Column
from ..run_summary import RunSummary
from ..state.concerns import worst_clause
from ..state.run_progress import SEVERITY, worst
from ..words import STATE_WORDS, STATES, sentence, title_of

Sort = Literal["newest", "worst", "progress", "speed", "end", "loss", "name", "project"]
SORTS: tuple[Sort, ...] = get_args(Sort)
Which = Literal["all", "live", "wrong", "over"]
WHICH: tuple[Which, ...] = get_args(Which)
WHICH_WORDS: dict[Which, str] = {
    "all": "all", "live": "live ones", "wrong": "those with something wrong", "over": "those that are over",
}  # fmt: skip
DONE = "done "
"""Before the time of day at which a live run will be done."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the list. ``unwatched``: it needs a supervisor and has none; ``open``: it is on the screen.

    ``began``: when, if another run of the list has its name.
    """

    card: RunCard
    level: Level
    unwatched: bool
    now_wall: float
    open: bool = False
    began: str = ""

    @property
    def done(self) -> float | None:
        """Share of the steps that are done, 0..1; None = unknown."""
        step, total = self.card.step, self.card.total_steps
        return None if step is None or not total else min(1.0, max(0.0, step / total))

    @property
    def state(self) -> str:
        return self.state_word + (", unwatched" if self.unwatched else "")

    @property
    def state_word(self) -> str:
        """``running``; ``queued, place 2`` of one that waits in the queue."""
        place = self.card.queued
        if self.card.id.startswith(HOST_ROW):
            return "no answer" if self.card.no_answer else "asked"
        if self.card.no_answer:
            return f"was {STATE_WORDS[self.card.state]}"
        if place is None:
            return STATE_WORDS[self.card.state]
        return "queued, next" if place == 1 else f"queued, place {place}"

    @property
    def project(self) -> str:
        return self.card.cwd.rstrip("/").rpartition("/")[2]


def run_row(card: RunCard, now_wall: float, current: str | None = None) -> RunRow:
    """``current``: id of the run that is open."""
    alone = not card.no_answer and not card.watched and card.state not in TERMINAL_STATES | {"idle"}
    if card.no_answer or (card.state == "stopped" and not card.trouble):  # not known now; a person has decided
        level: Level = "unknown"
    else:
        of_state: Level = "warning" if alone else STATES[card.state].level
        level = worst((of_state, card.level or "unknown"))
    return RunRow(card=card, level=level, unwatched=alone, now_wall=now_wall, open=card.id == current)


def run_rows(cards: Sequence[RunCard], now_wall: float, current: str | None = None) -> list[RunRow]:
    """The rows of a list, those of one name with what tells them apart."""
    names = [shown_name(card) for card in cards]
    rows = (run_row(card, now_wall, current) for card in cards)
    return [
        row if names.count(name) == 1 else msgspec.structs.replace(row, began=began_at(row.card, now_wall))
        for name, row in zip(names, rows, strict=True)
    ]


def began_at(card: RunCard, now_wall: float) -> str:
    """``14:32:10``: two runs of one name seldom begin in the same second."""
    return quantity.clock(card.created_wall, now_wall, seconds=True)


def with_summary(card: RunCard, said: RunSummary, now: Situation) -> RunCard:
    """The card with what the run's summary and its newest samples say."""
    story = now.story
    used = [g for g in now.gpu.gpus if g.own] if now.gpu is not None and said.live else []
    busy = [g.util_pct for g in used if g.util_pct is not None]
    host = now.host if said.live else None
    return msgspec.structs.replace(
        card,
        state=said.state,
        step=said.position.step,
        total_steps=said.position.total_steps,
        last_incident=_named(story.incidents[-1]) if story.incidents else None,
        level=said.level if said.attempts else None,
        trouble=worst_clause(said.troubles) if said.troubles else "",
        sec_per_step=said.position.sec_per_step,
        eta_s=said.position.eta_s,
        loss=said.loss,
        loss_is_nan=said.nan,
        gpus=tuple(g.index for g in used),
        gpu_pct=sum(busy) / len(busy) if busy else None,
        ram_pct=None if host is None else quantity.share_pct(host.ram_used_bytes, host.ram_total_bytes),
        changed_wall=story.wall0 + said.since_t if story.run is not None else None,
        attempts=said.attempts,
    )


def _named(incident: Incident) -> str:
    """A short phrase that stands alone: the class of some incidents says nothing without their kind."""
    if incident.kind == "checkpoint" and incident.class_ in VERDICTS and not incident.title:
        return f"Checkpoint {verdict_clause(incident.class_)}"
    if incident.kind == "loss" and incident.class_ in NAN_CLASSES:
        return "Loss was NaN"
    return sentence(title_of(incident))


def listed(
    cards: Iterable[RunCard], *, sort: Sort = "newest", which: Which = "all", words: str = "", hidden: bool = False
) -> tuple[RunCard, ...]:
    """The runs that are shown, in their order. ``words``: each must stand in its name, id, folder, command or state.

    ``hidden``: those that a person left out, too.
    """
    wanted = words.lower().split()
    found = [card for card in cards if (hidden or not card.hidden) and _is_of(card, which, wanted)]
    return tuple(sorted(found, key=_ORDER[sort])) if sort != "newest" else tuple(found)


def _is_of(card: RunCard, which: Which, words: Sequence[str]) -> bool:
    """Whether it is one of ``which``, and has each of the words."""
    state = STATE_WORDS[card.state] if card.queued is None else "queued"
    text = " ".join((card.name, card.host, card.id, card.cwd, *card.command, state, card.trouble)).lower()
    is_so = {
        "all": True,
        "live": card.state in LIVE_STATES or card.watched,
        "wrong": SEVERITY[run_row(card, 0.0).level] >= SEVERITY["warning"],
        "over": card.state in TERMINAL_STATES,
    }
    return is_so[which] and all(word in text for word in words)


_ORDER: dict[Sort, Callable[[RunCard], tuple[object, ...]]] = {
    "newest": lambda card: (-card.created_wall,),
    "worst": lambda card: (-SEVERITY[run_row(card, 0.0).level], -card.created_wall),
    "progress": lambda card: (-(run_row(card, 0.0).done or -1.0),),
    "speed": lambda card: (card.sec_per_step is None, card.sec_per_step),
    "end": lambda card: (card.eta_s is None, card.eta_s, -card.created_wall),
    "loss": lambda card: (card.loss_is_nan, card.loss is None, card.loss),
    "name": lambda card: (card.name, -card.created_wall),
    "project": lambda card: (card.cwd, -card.created_wall),
}


def end_text(row: RunRow) -> str:
    """``done 04:12`` of a live run, ``06:44`` of one that is over: when its state began.

    Empty for a live one whose machine does not answer: nobody sees whether it goes on.
    """
    card = row.card
    if card.eta_s is not None and not card.no_answer:
        return f"{DONE}{quantity.clock(row.now_wall + card.eta_s, row.now_wall)}"
    if card.state in TERMINAL_STATES and card.changed_wall is not None and card.attempts:
        return quantity.clock(card.changed_wall, row.now_wall)
    return ""


def gpu_text(row: RunRow) -> str:
    """``0: 98 %``: the GPUs that it uses, and how busy they are; empty if unknown."""
    card = row.card
    if not card.gpus:
        return ""
    which = ",".join(map(str, card.gpus)) if len(card.gpus) <= 3 else f"{len(card.gpus)} GPUs"
    return f"{which}: {quantity.percent(card.gpu_pct)}"


def _done(row: RunRow) -> str:
    return "" if row.done is None else f"{100 * row.done:.0f} %"


def shown_name(card: RunCard) -> str:
    """With the machine, if it is another one: ``box1: job``."""
    return f"{card.host}: {card.name}" if card.host and card.cwd else card.name


def _state_style(row: RunRow) -> str:
    return row.level if row.level in {"warning", "danger"} else "text"


NAME: Column[RunRow] = Column(title="run", text=lambda r: shown_name(r.card), width=10, fit=True, after=1,
                              style=lambda r: "accent" if r.open else "strong", below_width=54)  # fmt: skip
RUN_COLUMNS: tuple[Column[RunRow], ...] = (
    NAME,
    msgspec.structs.replace(NAME, width=14, after=2, from_width=54, below_width=88),
    msgspec.structs.replace(NAME, width=24, after=2, from_width=88, below_width=None),
    Column(title="began at", text=lambda r: r.began, fit=True, after=2, style="label", from_width=54, if_any=True),
    Column(title="project", text=lambda r: r.project, width=16, fit=True, after=2, style="label", from_width=136),
    # A narrow list has room for one of the two, and what nobody watches goes on by itself only.
    Column(title="state", text=lambda r: "unwatched" if r.unwatched else r.state_word, width=15, fit=True, after=1,
           style=_state_style, below_width=39),
    Column(title="state", text=lambda r: "unwatched" if r.unwatched else r.state_word, width=19, fit=True, after=1,
           style=_state_style, from_width=39, below_width=54),
    Column(title="state", text=lambda r: r.state, width=22, fit=True, after=1, style=_state_style, from_width=54),
    Column(title="done", text=_done, width=5, right=True, below_width=54),
    Column(title="done", text=_done, width=6, right=True, from_width=54),
    Column(title="", share=lambda row: row.done, width=12, before=2, from_width=170),
    Column(title="step", width=22, fit=True, right=True, style="label", before=2, from_width=92,
           text=lambda r: "" if r.card.step is None else quantity.out_of(r.card.step, r.card.total_steps)),
    Column(title="speed", width=14, fit=True, right=True, before=2, from_width=104,
           text=lambda r: "" if r.card.sec_per_step is None else quantity.pace(r.card.sec_per_step)),
    Column(title="loss", width=8, text=lambda r: "NaN" if r.card.loss_is_nan else "" if r.card.loss is None
           else quantity.three_digits(r.card.loss), right=True, before=1, from_width=112,
           style=lambda r: "danger" if r.card.loss_is_nan else "text"),
    Column(title="GPU", text=gpu_text, width=10, fit=True, right=True, before=2, from_width=128),
    Column(title="RAM", text=lambda r: "" if r.card.ram_pct is None else quantity.percent(r.card.ram_pct), width=6,
           right=True, from_width=150),
    Column(title="end", text=end_text, width=15, fit=True, right=True, before=2, style="label", from_width=62),
    Column(title="began", text=lambda r: quantity.age(max(0.0, r.now_wall - r.card.created_wall)), width=14,
           fit=True, right=True, before=2, style="label", from_width=160),
    # The worst that is wrong now, else the newest incident.
    Column(title="what is wrong, or was", before=2, from_width=56,
           text=lambda r: r.card.no_answer or r.card.trouble or r.card.last_incident or "",
           style=lambda r: _state_style(r) if r.card.trouble else "label"),
)  # fmt: skip
