"""A learning rate that is proposed from the loss curve: never taken by itself, whatever the settings allow.

Source: the DiT training guide (a loss that does not fall, or is unstable: 1e-4 to 5e-5). The evidence is the trend over
thousands of lines (findings/loss_trend.py). None is proposed if the trainer prints one that its scheduler has lowered
that far already: the plateau is then the end of the schedule.
"""

from ..recovery.remedies import remedies, remedy_choice
from ..recovery.remedies.remedies import Option
from ..step_builder import StepBuilder
from . import hints

TROUBLE = "plateau"
"""In remedies.toml: a loss that does not fall, or rises."""
RATES = ("learning_rate", "lr")


def rate_options(builder: StepBuilder) -> tuple[Option, ...]:
    """The remedies that fit, without those that propose a rate which the scheduler has reached already."""
    here = remedy_choice.circumstances(builder)
    found = remedies.options(builder.knowledge.remedies, TROUBLE, here)
    return tuple(option for option in found if not _is_lower_already(option, builder.state.progress.lr))


def describe(builder: StepBuilder, found: tuple[Option, ...]) -> str:
    """The end of a sentence: what may help, with the values of the learning rate; empty if nothing is known."""
    values = ", ".join(dict.fromkeys(option.words for option in found if option.changes))
    return f"{hints.advice(builder, found)}{f' ({values})' if values else ''}"


def propose(builder: StepBuilder, found: tuple[Option, ...], finding: str, incident: int) -> None:
    """Record each proposal once; a person takes it."""
    why = f"the loss curve shows it ({finding}); a learning rate is changed by a person only"
    remedy_choice.propose(builder, found, TROUBLE, incident, why=why)


def _is_lower_already(option: Option, printed: float | None) -> bool:
    rates = [c.after for c in option.changes if c.key.replace("-", "_") in RATES and isinstance(c.after, int | float)]
    return printed is not None and bool(rates) and printed <= max(rates)
