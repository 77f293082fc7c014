"""The chosen resume point is the checkpoint that was written last, whatever happens to folder, supervisor and clock."""

import json
import os
import random
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.builders import World, judge
from tests.tiers import examples
from tests.unit.test_judge_recovery import crash, running
from trainwatch.core.judge.recovery.takeover import from_story
from trainwatch.core.judge.resume.resume_point import newest_verified
from trainwatch.core.judge.state import to_snapshot
from trainwatch.core.model.checkpoint import Holds, Verdict
from trainwatch.core.model.decision import Record, StartAttempt
from trainwatch.core.model.fact import CheckpointKnown, CheckpointsSetAside
from trainwatch.core.model.observation import CheckpointChange, CheckpointEvent, LogChunk
from trainwatch.core.model.story import RunStory
from trainwatch.core.model.story_fold import apply

CREATED = 1_000_000.0


class File(msgspec.Struct):
    """``written``: a number that grows with each save; 0: from before this run."""

    mtime: float
    step: int
    written: int
    verdict: Verdict = "complete"
    holds: Holds = "state"


class Folder:
    """An output folder, its trainer, and the supervisors that come and go."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world: World = running(judge(created_wall=CREATED))
        self.story = RunStory()
        self.read = 0
        self.files: dict[str, File] = {}
        self.written, self.step = 0, 100
        self.wall_offset = 0.0
        self.watching = True

    # --- what happens

    def save(self, name: str | None = None, *, verdict: Verdict = "complete", holds: Holds = "state") -> None:
        if not self.watching and self.wall_offset:
            return  # nothing shows the order of these
        self.written, self.step = self.written + 1, self.step + 10
        self.world.t += self.random.choice([0.0, 0.1, 3.0])
        mtime = float(int(CREATED + self.world.t + self.wall_offset))  # a file system that counts seconds
        path = f"out/{name or f'step-{self.step}'}"
        self.files[path] = File(mtime, self.step, self.written, verdict, holds)
        if self.watching:
            self.print_step()
        self.report(path, "created", "writing")
        self.report(path, "complete" if verdict == "complete" else "created", verdict)

    def saves(self, number: int) -> None:
        for _ in range(number):
            self.save()

    def weights(self, number: int) -> None:
        for _ in range(number):
            self.save(f"w-{self.written}", holds="weights")

    def rewrite(self, number: int) -> None:
        """In place, as `last.pt`: it has another step and time."""
        names = sorted(self.files)
        self.save(names[number % len(names)].removeprefix("out/") if names else "last")

    def remove(self, number: int) -> None:
        names = sorted(self.files)
        for path in names[number % len(names) :][:3] if names else ():
            del self.files[path]
            self.report(path, "removed", None)

    def foreign(self, number: int) -> None:
        """Somebody copies a checkpoint of an older training into the folder."""
        path = f"out/old-{number}"
        self.files[path] = File(CREATED - 1000.0 - number, 10**6 + number, 0)
        self.report(path, "complete", "complete")

    def clock(self, number: int) -> None:
        """The clock of the machine is set back."""
        if not self.wall_offset and self.watching:
            self.wall_offset = -600.0 - number

    def away(self, _number: int) -> None:
        """The supervisor is killed; the trainer goes on."""
        self.watching = False

    def back(self, number: int) -> None:
        """A new supervisor lists the folder in any order."""
        if self.watching:
            return
        self.watching = True
        self.remember()
        snapshot = to_snapshot(self.world.state)
        old, new = self.world.state, World(self.world.judge)
        known = None if number % 3 == 0 and not self.wall_offset else json.loads(json.dumps(snapshot))
        new.state = msgspec.structs.replace(
            from_story(self.story, known, None), machine=old.machine, attempt=old.attempt, time=old.time
        )
        new.t, new.live = self.world.t, self.world.live
        self.world, self.read = new, 0
        self.print_step()
        names = sorted(self.files)
        self.random.shuffle(names)
        for path in names:
            if self.random.random() < 0.2:
                self.report(path, "created", "writing")
            verdict = self.files[path].verdict
            self.report(path, "complete" if verdict == "complete" else "created", verdict)
        for known_path in [k.path for k in new.state.saved.checkpoints.known if k.path not in self.files]:
            self.report(known_path, "removed", None)

    # --- what is told of it

    def report(self, path: str, event: CheckpointChange, verdict: Verdict | None) -> None:
        if not self.watching:
            return
        file = self.files.get(path)
        self.world.see(
            CheckpointEvent(
                t=self.world.t, path=path, event=event, verdict=verdict, form="directory",
                mtime=None if file is None else file.mtime, step=None if file is None else file.step,
                holds=None if file is None else file.holds, size_bytes=1e6,
            )
        )  # fmt: skip

    def print_step(self) -> None:
        self.world.see(LogChunk(t=self.world.t, text=f"\rsteps: 1%| | {self.step}/900000 [1:00<9:00, 2.50s/it]"))

    def remember(self) -> None:
        """The journal's facts about checkpoints, as they survive a supervisor."""
        for t, entry in self.world.entries[self.read :]:
            if isinstance(entry, CheckpointKnown | CheckpointsSetAside):
                self.story = apply(self.story, Record(seq=self.story.seq + 1, t=t, wall=CREATED + t, fact=entry))
        self.read = len(self.world.entries)
        self.story = msgspec.structs.replace(self.story, wall0=CREATED, t=self.world.t)

    @property
    def expected(self) -> str | None:
        usable = {p: f for p, f in self.files.items() if f.written and f.verdict == "complete"}
        whole = {p: f for p, f in usable.items() if f.holds == "state"} or usable
        return max(whole, key=lambda p: whole[p].written, default=None)

    def check(self) -> None:
        if self.watching:
            found = newest_verified(self.world.state.saved.checkpoints)
            assert (None if found is None else found.path) == self.expected


happenings = st.lists(
    st.tuples(
        st.sampled_from(["saves", "saves", "weights", "rewrite", "remove", "foreign", "clock", "away", "back", "torn"]),
        st.integers(0, 9),
    ),
    max_size=15,
)


def play(folder: Folder, steps: list[tuple[str, int]]) -> None:
    for what, number in steps:
        if what == "torn":
            folder.save(verdict="torn")
        else:
            getattr(folder, what)(number)
        folder.check()
    folder.back(0)
    folder.check()


@settings(max_examples=examples(40), deadline=None)
@example(steps=[("foreign", 0), ("away", 0), ("rewrite", 0), ("foreign", 1)], seed=0)
@example(steps=[("saves", 2), ("away", 0), ("saves", 2), ("back", 0), ("clock", 0), ("saves", 1)], seed=0)
@given(steps=happenings, seed=st.integers(0, 9))
def test_the_resume_point_is_the_checkpoint_that_was_written_last(steps: Any, seed: int) -> None:
    folder = Folder(seed)
    play(folder, steps)
    expected = folder.expected
    crash(folder.world)
    assert folder.world.of(StartAttempt)[-1].resume_from == expected


def test_of_hundreds_of_checkpoints_the_newest_is_chosen_after_each_gap() -> None:
    """Two thousand with `./trainwatch.sh test --all`."""
    many = 1900 if os.environ.get("TRAINWATCH_MATRIX") == "all" else 250
    folder = Folder(1)
    play(folder, [("saves", 50), ("away", 0), ("saves", many), ("back", 1), ("weights", 50), ("away", 0)])
    play(folder, [("away", 0), ("saves", 50), ("remove", many), ("back", 3), ("saves", 1), ("clock", 3000)])
    play(folder, [("saves", 5)])
    assert len(json.dumps(to_snapshot(folder.world.state))) < 60_000
    expected = folder.expected
    crash(folder.world)
    assert folder.world.of(StartAttempt)[-1].resume_from == expected
