"""Writes docs/run-states.md and the diagram of docs/how-it-decides.md: ``python docs/make_states.py``.

States, events and transitions are in core/judge/run_states.py and run_states.py and nowhere else; a test compares.
"""

from collections.abc import Iterator
from pathlib import Path

from trainwatch.core.judge import run_states
from trainwatch.core.judge.run_states import EVENTS, FROM_ANY_STATE, TRANSITIONS, WORDS, Event, State

PAGE = Path(__file__).parent / "run-states.md"
DECIDES = Path(__file__).parent / "how-it-decides.md"
MARKS = ("<!-- diagram: begin (written by docs/make_states.py) -->\n", "<!-- diagram: end -->\n")
BOXES: dict[str, tuple[str, tuple[State, ...]]] = {
    "trainer": ("a trainer exists", ("starting", "running", "hung", "paused", "suspended", "queued")),
    "ending": ("it is being ended", ("stopping",)),
    "next": (
        "the next attempt is prepared",
        ("cleaning", "listing", "copying", "verifying", "backing_off", "held", "held_gpu"),
    ),
}
"""Boxes of the short diagram; every other state is a box of its own."""
GROUPS: dict[str, tuple[State, ...]] = {
    "trainer_exists": ("starting", "running", "hung", "paused", "suspended"),
    "next_attempt": ("cleaning", "listing", "copying", "verifying", "backing_off", "held", "held_gpu"),
    "ended": ("stopped", "interrupted", "finished", "ended_early", "given_up"),
}
"""Boxes that stand for several states: an event that leads from all of them to the same state is one arrow."""
HEAD = """# The states of a run

Written by `python docs/make_states.py` from the table in `core/judge/run_states.py`; a test
compares them. `StepBuilder.move(event, state, reason)` is the only way to another state: it looks the event up
in the row of the current state. A pair that has no row is a bug and raises `ImpossibleTransitionError`.

A restart goes `stopping` → `cleaning` → `listing` → `verifying` → `backing_off` → `starting`. Each state waits for the
outcome of one decision; a stage that is not needed (no checkpoint, no wait) is left out. `copying` takes the place of
`verifying` if what is there is damaged, or is not understood and the settings say so.
"""


def page() -> str:
    """The text of docs/run-states.md."""
    return f"{HEAD}\n{_diagram()}\n{_states()}\n{_events()}\n{_table()}"


def _diagram() -> str:
    always = " and ".join(f"`{event}` leads to `{state}`" for event, state in FROM_ANY_STATE.items())
    lines = ["stateDiagram-v2", "    [*] --> idle"]
    lines += [f'    state "any of {", ".join(members)}" as {group}' for group, members in GROUPS.items()]
    lines += [f"    {before} --> {after}: {', '.join(events)}" for (before, after), events in _arrows().items()]
    drawing = "\n".join(lines)
    return f"""## Diagram

A box "any of …" stands for each of the states that it lists. From every state, {always}; these arrows are not drawn.

```mermaid
{drawing}
```
"""


def _arrows() -> dict[tuple[str, str], list[str]]:
    """(box or state, state that follows) → the events between them; ``FROM_ANY_STATE`` is left out."""
    arrows: dict[tuple[str, str], list[str]] = {}
    drawn: set[tuple[State, Event]] = set()
    for group, members in GROUPS.items():
        for event, after in TRANSITIONS[members[0]].items():
            if event not in FROM_ANY_STATE and all(TRANSITIONS[state].get(event) == after for state in members):
                arrows.setdefault((group, after), []).append(event)
                drawn |= {(state, event) for state in members}
    for before, row in TRANSITIONS.items():
        for event, after in row.items():
            if event not in FROM_ANY_STATE and (before, event) not in drawn:
                arrows.setdefault((before, after), []).append(event)
    return arrows


def decides() -> str:
    """docs/how-it-decides.md with the short diagram of today between its marks."""
    text = DECIDES.read_text("utf-8")
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}{_short_diagram()}{MARKS[1]}{after}"


def _short_diagram() -> str:
    """The transitions between the boxes. What happens inside a box, or leads out of an end, is left out."""
    box_of = {state: box for box, (_, members) in BOXES.items() for state in members}
    arrows: dict[tuple[str, str], list[str]] = {}
    for before, row in TRANSITIONS.items():
        for event, after in () if before in GROUPS["ended"] else row.items():
            pair = box_of.get(before, before), box_of.get(after, after)
            if pair[0] != pair[1] and event not in FROM_ANY_STATE and event not in arrows.setdefault(pair, []):
                arrows[pair].append(event)
    lines = ["stateDiagram-v2", "    [*] --> idle"]
    lines += [f'    state "{title}" as {box}' for box, (title, _) in BOXES.items()]
    lines += [f"    {before} --> {after}: {', '.join(events)}" for (before, after), events in arrows.items() if events]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _states() -> str:
    variants = {variant.__struct_config__.tag: variant for variant in run_states.Variant.__subclasses__()}
    rows = [f"| `{state}` | {_first_line(variants[state])} | {word} |" for state, word in WORDS.items()]
    return "## States\n\n| state | meaning | shown as |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _first_line(variant: type) -> str:
    return (variant.__doc__ or "").partition("\n")[0].replace("``", "`")


def _events() -> str:
    rows = [f"| `{event}` | {meaning} |" for event, meaning in EVENTS.items()]
    return "## Events\n\n| event | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _table() -> str:
    rows = [f"| `{state}` | {'; '.join(_follows(state))} |" for state in TRANSITIONS]
    return "## Transitions\n\n| in state | event → state that follows |\n|---|---|\n" + "\n".join(rows) + "\n"


def _follows(state: State) -> Iterator[str]:
    by_state: dict[State, list[str]] = {}
    for event, after in TRANSITIONS[state].items():
        by_state.setdefault(after, []).append(f"`{event}`")
    for after, events in by_state.items():
        yield f"{', '.join(events)} → `{after}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    DECIDES.write_text(decides(), "utf-8")
