"""A trial of a profile for five minutes, started from the profiles screen after a confirmation."""

from collections.abc import Callable

from ...core.model.launch.trial import TrialResult
from ...core.model.text.suggestion import typed
from ...core.views.screens.confirmation import Price
from ...core.views.screens.profiles import measured_words
from ..dialogs.dialog import confirm
from ..run_session import ONE_AT_A_TIME, TaskPlace, start_task

MINUTES = 5.0
AS_IT_IS = "the settings as they are"
"""What is measured if the run has no profile."""
CANNOT = "This screen cannot run trials; use: {}"


def trial_price(profile: str, minutes: float, rivals: tuple[str, ...]) -> Price:
    """The confirmation of a trial: what it does, in sentences."""
    profile = profile or AS_IT_IS
    lines = (
        [f"Careful: {'; '.join(rivals)}. A trial beside it would slow it, or take its memory.", ""] if rivals else []
    )
    lines += [
        f"Runs this training's own command with {profile} in a folder of its own. Your checkpoints are not touched.",
        f"It takes {minutes:g} minutes from its first step on and then ends; Esc cancels it.",
        "Then its cost on this machine is shown: speed, memory, stability.",
    ]
    # A key is enough: no step of the run is lost.
    return Price(title=f"Run a trial of {profile} for {minutes:g} minutes?", lines=tuple(lines), confirm="run it",
                 lost_steps=None if rivals else 0)  # fmt: skip


class TrialWork:
    """The trials of one profiles screen; one is a job of the run's dashboard, and outlives the screen."""

    def __init__(self, screen: TaskPlace) -> None:
        self._on = screen

    def ask(self, profile: str) -> None:
        """Look for rivals, confirm, run the trial."""
        trials = self._on.session.run.trials
        if trials is None:
            self._on.show_message(CANNOT.format(typed("trial", *(("--profile", profile) if profile else ()))))
            return
        if self._on.session.long_task.state is not None:
            self._on.show_message(ONE_AT_A_TIME)
            return

        def look() -> Callable[[], None]:
            try:
                rivals = tuple(trials.rivals())
            except Exception as error:
                message = str(error)
                return lambda: self._on.show_message(message)
            price = trial_price(profile, MINUTES, rivals)

            def ask() -> None:
                confirm(self._on.app, price, lambda: self._try(profile, beside=bool(rivals)))

            return ask

        self._on.tasks.submit(look)

    def _try(self, profile: str, *, beside: bool) -> None:
        trials = self._on.session.run.trials
        if trials is None:
            return

        def done(result: TrialResult) -> str:
            name = profile or "Settings as they are"
            words = ", ".join(f"{what} {how}" for what, how in measured_words(result, result.wall) if what != "tried")
            return f"{name}, measured here: {words or result.exit}"

        start_task(
            self._on,
            f"trial of {profile or AS_IT_IS} for {MINUTES:g} minutes",
            lambda progress: trials.attempt(profile, MINUTES, beside=beside, progress=progress),
            done,
            timed=True,
        )
