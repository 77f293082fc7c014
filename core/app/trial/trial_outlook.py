"""How long a trial will take, before it starts, and the whole run under its profile."""

import msgspec

from ...model.run import RunSpec
from ...views import quantity
from ..plan.definitions import definitions_of
from ..plan.launch_plan import plan_launch
from ..preflight.length_check import expected_of_run, length_said
from ..runs.known_runs import home
from .trial_run import Trial, plan_trial


def trial_outlook(spec: RunSpec, trial: Trial) -> tuple[str, str]:
    """(time of the trial, time of the whole run as the trial's settings have it); the second is empty if unknown.

    Raises CliError if there is no such profile.
    """
    definitions = definitions_of(spec)
    planned = msgspec.structs.replace(plan_trial(spec, trial, home(), definitions), id=spec.id)
    plan = plan_launch(planned, definitions)
    expected = expected_of_run(plan, home())
    length = trial.length
    ends = [(60.0 * length.minutes, f"{length.minutes:g} minutes after its first step", False)]
    guessed = expected is not None and bool(expected.guess)
    if length.steps is not None and expected is not None and expected.pace_s is not None:
        ends.append((length.steps * expected.pace_s, f"after {quantity.plural(length.steps, 'step')}", guessed))
    if expected is not None and expected.seconds is not None:
        ends.append((expected.seconds, "when the training is done", guessed))
    if length.limit_s is not None:
        ends.append((length.limit_s, f"{quantity.duration(length.limit_s)} after its start", False))
    lasts_s, end, guess = min(ends)
    # Other ends may come first if nobody knows how long a step takes.
    sooner = (length.steps is not None or expected is not None) and (expected is None or expected.pace_s is None)
    least = "at most " if sooner else ""
    note = ", a guess" if guess else "; the time per step is not known" if sooner else ""
    said = f"{least}about {quantity.duration(lasts_s)} (it ends {end}{note})"
    return said, length_said(plan, expected)
