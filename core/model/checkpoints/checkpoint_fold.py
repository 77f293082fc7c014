"""The checkpoints of a story while records are added to it.

In lists and dicts that change in place: a story is frozen, and a new one for each record would copy all of them each
time.
"""

from bisect import bisect_left, bisect_right, insort

import msgspec

from ..fact import CheckpointKnown
from ..story import CheckpointOrigin, RunStory
from .checkpoint import AgeOrder, Checkpoint, age_order
from .evaluation import Evaluation


class CheckpointFold:
    """Begins with the checkpoints of ``story``. ``into`` gives a story with what was added."""

    def __init__(self, story: RunStory) -> None:
        self._before = story
        self._checkpoints: list[Checkpoint] | None = None
        self._by_path: dict[str, Checkpoint] = {}
        self._times: dict[str, float] = {}
        self._origins: dict[str, CheckpointOrigin] = {}
        self._evaluations: dict[str, Evaluation] | None = None

    def add(self, t: float, fact: CheckpointKnown, story: RunStory) -> RunStory:
        """Take one in, in the order of age. Returns ``story`` with what else follows from it."""
        checkpoints = self._open()
        known = fact.checkpoint
        before = self._by_path.pop(known.path, None)
        if before is not None:
            del checkpoints[self._place_of(before)]
        if fact.removed:
            self._times.pop(known.path, None)
        else:
            _insert(checkpoints, known)
            self._by_path[known.path] = known
            self._times.setdefault(known.path, t)
        if known.path in self._origins or fact.origin is not None:
            self._origins.pop(known.path, None)
            if fact.origin is not None and not fact.removed:
                self._origins[known.path] = CheckpointOrigin(origin=fact.origin, t=fact.written_t)
        replaced = before is not None and before.mtime != known.mtime
        if (fact.removed or replaced) and known.path in story.set_aside:
            rest = {path: other for path, other in story.set_aside.items() if path != known.path}
            return msgspec.structs.replace(story, set_aside=rest)
        return story

    def evaluated(self, found: Evaluation, story: RunStory) -> RunStory:
        """Take in the result of an evaluation, as the newest."""
        if self._evaluations is None:
            self._evaluations = dict(self._before.evaluations)
        self._evaluations.pop(found.path, None)
        self._evaluations[found.path] = found
        if found.path not in story.evaluations_begun:
            return story
        begun = {path: other for path, other in story.evaluations_begun.items() if path != found.path}
        return msgspec.structs.replace(story, evaluations_begun=begun)

    def into(self, story: RunStory) -> RunStory:
        """``story`` with the checkpoints as they are now. It must have those with which this fold began."""
        if self._evaluations is not None:
            story = msgspec.structs.replace(story, evaluations=self._evaluations)
        if self._checkpoints is None:
            return story
        return msgspec.structs.replace(
            story,
            checkpoints=tuple(self._checkpoints),
            checkpoint_times=self._times,
            origins=self._origins,
        )

    def _open(self) -> list[Checkpoint]:
        if self._checkpoints is None:
            self._checkpoints = list(self._before.checkpoints)
            self._by_path = {each.path: each for each in self._checkpoints}
            self._times = dict(self._before.checkpoint_times)
            self._origins = dict(self._before.origins)
        return self._checkpoints

    def _place_of(self, known: Checkpoint) -> int:
        checkpoints = self._open()
        if checkpoints[-1] is known:  # nearly always: most records are about the newest checkpoint
            return len(checkpoints) - 1
        first = bisect_left(checkpoints, known.mtime, key=_mtime)
        for at in range(first, len(checkpoints)):
            if checkpoints[at] is known:
                return at
        return checkpoints.index(known)  # a story that was not made by records may have another order


def _insert(checkpoints: list[Checkpoint], known: Checkpoint) -> None:
    """Insert by modification time; among checkpoints of the same time by the other parts of their age."""
    if not checkpoints or checkpoints[-1].mtime < known.mtime:
        checkpoints.append(known)
        return
    first = bisect_left(checkpoints, known.mtime, key=_mtime)
    after = bisect_right(checkpoints, known.mtime, first, key=_mtime)
    if first != after:
        insort(checkpoints, known, first, after, key=_age)
    else:
        checkpoints.insert(first, known)


def _mtime(known: Checkpoint) -> float:
    return known.mtime


def _age(known: Checkpoint) -> AgeOrder:
    return age_order(known.name, known.mtime, known.step, known.epoch)
