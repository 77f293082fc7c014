"""Simulated trainers that resume, or begin anew, in nine forms of a log: what is said of the resume is never wrong."""

import random
import re
from collections.abc import Iterator

import msgspec
import pytest

from tests.shipped import CATALOGUE
from tests.tiers import ALL
from trainwatch.core.judge.knowledge import Knowledge
from trainwatch.core.judge.progress import STARTED_OVER_STEPS
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.fact import IncidentOpened, Note
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk, Observation, Start
from trainwatch.core.replay import Replay

FORMS = (
    "bar of the run",
    "bar that begins at the step",
    "bar of an epoch",
    "lines of the run",
    "lines without a total",
    "lines of an epoch",
    "lines in brackets",
    "keras",
    "epochs only",
)
SIMULATED = 700 if ALL else 40


class Trainer(msgspec.Struct, frozen=True, kw_only=True):
    """``every``: it prints every so many steps, a bar about so many; ``saved``: the step of its checkpoint.

    ``passes``: after a resume it draws the batches before the resume point, too. ``stored``: the checkpoint holds its
    step, else its epoch.
    """

    form: str
    epochs: int
    batches: int
    every: int
    from_zero: bool
    losses: bool
    saved: int
    passes: bool
    stored: bool

    @property
    def total(self) -> int:
        return self.epochs * self.batches

    def bar(self, label: str, n: int, total: int, *, loss: bool = True, rate: str = "4.00it/s") -> str:
        post = f", loss={2 - n / total:.3f}" if loss and self.losses else ""
        return f"\r{label}{100 * n // total:3d}%|███   | {n}/{total} [00:10<00:20, {rate}{post}]"

    def line(self, n: int) -> str:
        epoch, batch = divmod(n - 1, self.batches)
        loss, named = f"{2 - n / self.total:.4f}", epoch + (not self.from_zero)
        return {
            "bar of the run": self.bar("", n, self.total),
            "bar that begins at the step": self.bar("Steps: ", n, self.total),
            "bar of an epoch": self.bar(f"Epoch {named}: ", batch + 1, self.batches),
            "lines of the run": f"step {n}/{self.total} loss {loss} lr 1e-4\n",
            "lines without a total": f"iter {n}: loss {loss}, time 250.00ms\n",
            "lines of an epoch": f"Epoch {named} | Step {batch + 1}/{self.batches} | Loss {loss}\n",
            "lines in brackets": f"Epoch [{epoch + 1}/{self.epochs}] Step [{batch + 1}/{self.batches}] Loss: {loss}\n",
            "keras": f"\r{batch + 1}/{self.batches} ━━━━━━━━ 3s 288ms/step - accuracy: 0.875 - loss: {loss}",
            "epochs only": f"{{'loss': '{loss}', 'grad_norm': '0.5', 'epoch': '{n / self.batches:.4g}'}}\n",
        }[self.form]

    def prints(self, n: int, rng: random.Random) -> bool:
        last = n % self.batches == 0
        if self.form.startswith("bar") or self.form == "keras":
            return last or rng.random() < 0.9 / self.every
        return n % self.every == 0 or (last and self.form in {"lines of an epoch", "lines in brackets"})

    def log(self, begin: int, end: int, rng: random.Random, *, resumed: bool) -> Iterator[tuple[int, str]]:
        """Steps with what is printed at them, from the step after ``begin`` on."""
        passed = self.passes and resumed and self.form in {"bar of the run", "bar of an epoch"}
        first = (begin // self.batches * self.batches if self.form == "bar of an epoch" else 0) if passed else begin
        if self.form in {"bar of the run", "bar that begins at the step"}:
            at = begin if self.form == "bar that begins at the step" else 0
            yield begin, self.bar("", at, self.total, loss=False, rate="?it/s")
        for n in range(first + 1, end + 1):
            epoch, batch = divmod(n - 1, self.batches)
            if batch == 0 and self.form == "keras":
                yield n - 1, f"\nEpoch {epoch + 1}/{self.epochs}\n"
            if batch == 0 and self.form == "bar of an epoch":
                label = f"\nEpoch {epoch + (not self.from_zero)}: "
                yield n - 1, self.bar(label, 0, self.batches, loss=False, rate="?it/s")
            if n <= begin:
                yield n, re.sub(", loss=[^]]*", "", self.line(n)).replace("4.00it/s", "900.00it/s")
            elif self.prints(n, rng):
                yield n, self.line(n)


def trainer(rng: random.Random) -> Trainer:
    epochs, batches = rng.choice([2, 4, 10]), rng.choice([12, 40, 100])
    form, by_epoch = rng.choice(FORMS), rng.random() < 0.3
    saved = rng.randrange(1, epochs) * batches
    if not by_epoch and form != "keras":
        saved = rng.randrange(2, epochs * batches - 2)
    return Trainer(
        form=form, epochs=epochs, batches=batches, every=rng.choice([1, 1, 2, 5, 10]), from_zero=rng.random() < 0.5,
        losses=rng.random() < 0.7, saved=saved, passes=rng.random() < 0.5,
        stored=saved % batches != 0 or rng.random() < 0.5,
    )  # fmt: skip


def told(its: Trainer, rng: random.Random, *, resumes: bool) -> tuple[list[str], list[str]]:
    """Notes about the resume, and incidents of it: the trainer saves, is killed, and resumes or begins anew."""
    step = its.saved if its.stored else None
    save = CheckpointEvent(
        t=0.0, path="out/ck", event="complete", step=step, epoch=None if its.stored else its.saved // its.batches,
        size_bytes=1e6, verdict="complete",
    )  # fmt: skip
    seen: list[Observation] = [Start(t=0.0, attempt=1, pid=1)]
    t, saves = 1.0, [save]
    for n, text in its.log(0, min(its.total - 1, its.saved + rng.randrange(1, 12)), rng, resumed=False):
        t += 0.25
        seen.append(LogChunk(t=t, text=text))
        if saves and n >= its.saved:
            seen.append(msgspec.structs.replace(saves.pop(), t=t))
    seen += [msgspec.structs.replace(each, t=t) for each in saves]
    seen += [
        Exit(t=t + 1, code=None, signal=9),
        Start(t=t + 9, attempt=2, pid=2, resume_from="out/ck", resume_step=step),
    ]
    begin, most, t, waiting = its.saved if resumes else 0, rng.choice([1, 6, 1000]), t + 12, ""
    pieces = [text for _, text in its.log(begin, min(its.total, begin + 60), rng, resumed=resumes)]
    for n, text in enumerate(pieces, 1):
        t, waiting = t + 0.25, waiting + text
        if n % most == 0 or n == len(pieces):
            seen.append(LogChunk(t=t, text=waiting))
            waiting = ""
    fold = Replay(Judge(Knowledge(catalogue=CATALOGUE)))
    fold.feed_all(seen)
    notes = [entry.text for _, entry in fold.entries if isinstance(entry, Note) and entry.text.startswith("resume")]
    found = [entry.incident.reason for _, entry in fold.entries if isinstance(entry, IncidentOpened)]
    return notes, [reason for reason in found if "resume" in reason]


@pytest.mark.parametrize("seed", range(SIMULATED))
def test_a_trainer_that_resumes_is_not_ended_and_the_step_that_is_named_is_right(seed: int) -> None:
    rng = random.Random(seed)
    its = trainer(rng)
    notes, ended = told(its, rng, resumes=True)
    assert ended == []
    for note in notes:
        named = re.search(r"first step after (?:it|ck is) (at or before )?(\d+)", note)
        if named is not None and not named[1]:
            assert int(named[2]) == its.saved + 1, (note, its)
        elif named is not None:
            assert int(named[2]) > its.saved, (note, its)
        assert not note.startswith("resumed by itself"), (note, its)


@pytest.mark.parametrize("seed", range(SIMULATED // 2))
def test_a_trainer_that_begins_anew_is_not_told_as_resumed(seed: int) -> None:
    rng = random.Random(seed)
    its = trainer(rng)
    if its.saved < STARTED_OVER_STEPS:
        its = msgspec.structs.replace(its, saved=its.batches if its.batches >= STARTED_OVER_STEPS else 2 * its.batches)
    notes, _ = told(its, rng, resumes=False)
    assert [note for note in notes if "verified" in note or "by itself" in note] == [], its
