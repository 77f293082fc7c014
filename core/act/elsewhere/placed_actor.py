"""The actor of attempts on this machine: what runs in a container or as another user is ended through its own tool."""

import time
from typing import Any

from ...model.decision import EndLeftovers, PauseAttempt, StopAttempt, UnpauseAttempt
from ...model.ports.supervision import AttemptTarget
from ..actor import RunActor
from ..attempt_launcher import Performed
from ..launch.launching import is_alive
from ..stop.own_handler import graces
from ..stop.save_in_progress import SaveWatch
from ..stop.stop_sequence import stop_steps
from ..stop.stopping import members
from .container import container_of
from .other_user import other_user_of
from .place import Place, PlaceEnd, PlaceError, end_place
from .unreached import may_run_on

CLIENT_S = 5.0
"""A client ends by itself, with the trainer's status, when what it started has ended."""
POLL_S = 0.1


class PlacedActor(RunActor):
    """As ``RunActor``. If a place does not answer, its client is left alone, and nothing counts as gone."""

    def _stop(self, decision: StopAttempt | EndLeftovers) -> Performed:
        target = self._target
        place = None if target is None else place_of(target)
        if target is None:
            return super()._stop(decision)
        if place is None:
            return self._unless_unreached(target, super()._stop(decision))
        try:
            ended = self._end(place, target, decision)
            if ended.gone and ended.signal is not None:
                _wait_for(target)
            detail, data = "", dict[str, Any]()
            if ended.gone:
                gone, detail, data = super()._stop(decision)  # the client, and what it started here
                if not gone:
                    return gone, detail, data
                ended = ended if not place.running() else self._end(place, target, decision)
        except PlaceError as error:
            detail = f"{place.name} could not be ended or asked: {error}; its client was left alone"
            return False, detail, {"gone": False}
        if not ended.gone:
            return False, f"{place.name} was not ended by {ended.signal or 'anything'}", {"gone": False}
        if ended.signal is not None:
            detail = f"{place.name} ended by {ended.signal} after {ended.seconds:.1f} s"
            data = {**data, "signal": ended.signal, "seconds": ended.seconds, "gone": True}
        return True, detail, data

    def _end(self, place: Place, target: AttemptTarget, decision: StopAttempt | EndLeftovers) -> PlaceEnd:
        left_s = decision.within_s if isinstance(decision, StopAttempt) else None
        steps = stop_steps(decision.mode, *graces(self._spec.settings.restart, left_s))
        saves = SaveWatch(self._spec.output_dir)
        return end_place(place, steps, lambda: saves.writing(members(target)))

    @staticmethod
    def _unless_unreached(target: AttemptTarget, done: Performed) -> Performed:
        gone, detail, data = done
        left = may_run_on(target.directory) if gone else ""
        return (False, f"{detail}; {left}", {**data, "gone": False}) if left else done

    def _pause(self, decision: PauseAttempt) -> Performed:
        target = self._target
        place = None if target is None else place_of(target)
        if place is None:
            return super()._pause(decision)
        try:
            place.pause()
        except PlaceError as error:
            return False, str(error), {}
        return True, f"{place.name} was paused", {}

    def _unpause(self, decision: UnpauseAttempt) -> Performed:
        target = self._target
        place = None if target is None else place_of(target)
        if place is None:
            return super()._unpause(decision)
        try:
            place.unpause()
        except PlaceError as error:
            return False, str(error), {}
        return True, f"{place.name} goes on", {}


def place_of(target: AttemptTarget) -> Place | None:
    """Where the trainer of an attempt runs, if it cannot be signalled as a process of ours; None if it can."""
    return container_of(target.directory) or other_user_of(target)


def _wait_for(target: AttemptTarget) -> None:
    """Give the client the time to end with the trainer's status."""
    deadline = time.monotonic() + CLIENT_S
    while is_alive(target.trainer) and time.monotonic() < deadline:
        time.sleep(POLL_S)
