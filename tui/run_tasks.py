"""Long work that a screen over the board begins: the run's one job, which outlives the screen."""

from collections.abc import Callable
from typing import Any, Protocol

from .job import Work
from .run_session import Board, OpenPlace

ONE_AT_A_TIME = "One thing at a time: something else is being worked on. [Esc] calls it off."


class WorkPlace(OpenPlace, Protocol):
    """A screen that work is begun on."""

    board: Board


def begin(on: WorkPlace, title: str, work: Work, done: Callable[[Any], str], *, timed: bool = False) -> None:
    """Do it in the job's thread; ``done`` keeps the result and returns a sentence. It may end on another screen."""
    board, place = on.board, on.place

    def then(result: Any, trouble: str) -> None:
        board.call_soon(lambda: finish(result, trouble))

    def finish(result: Any, trouble: str) -> None:
        said = trouble or done(result)
        board.renew(place)
        if said:
            board.say(said)

    if not board.jobs.start(title, work, then, timed=timed):
        on.say(ONE_AT_A_TIME)
    on.draw()
