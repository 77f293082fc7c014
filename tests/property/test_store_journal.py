"""Whatever a crash leaves of a journal is a prefix of it, can be shown, and can be continued."""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.pages import blocks
from tests.tiers import examples
from trainwatch.core.model.decision import Entry, Record, StartAttempt
from trainwatch.core.model.fact import HealthChanged, JudgeSnapshot, Note, ProgressMade, StateChanged
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.story import RunStory
from trainwatch.core.model.story_fold import apply
from trainwatch.core.store.journal import (
    JournalFollower,
    JournalWriter,
    fold_journal,
    fold_whole_lines,
    load_story,
    read_journal,
    read_stored,
    store,
)

texts = st.text(max_size=30)
floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers(0, 2**40)
EVERY_KIND = [
    record.fact or record.decision or record.outcome or Note(text="")
    for block in blocks()
    if block.page.name == "state.md" and block.language == "json"
    for record in (msgspec.json.decode(line.text, type=Record) for line in block.lines)
    if not isinstance(record.fact, HealthChanged)  # a stored story has its reading alone
]
"""The records that docs/state.md shows: of each kind one at least (tests/unit/test_docs.py)."""
entries: st.SearchStrategy[Entry | Outcome] = st.one_of(
    st.sampled_from(EVERY_KIND),
    st.builds(Note, text=texts),
    st.builds(StateChanged, state=st.sampled_from(("running", "hung", "finished")), reason=texts),
    st.builds(ProgressMade, attempt=numbers, progress=st.builds(Progress, step=st.none() | numbers, loss=floats)),
    st.builds(JudgeSnapshot, version=numbers, state=st.dictionaries(texts, texts, max_size=3)),
    st.builds(StartAttempt, id=numbers, reason=texts, attempt=numbers, resume_from=st.none() | texts),
    st.builds(Outcome, t=floats, decision=numbers, action=texts, ok=st.booleans(), detail=texts),
)
batches = st.lists(st.lists(entries, min_size=1, max_size=4), max_size=5)


def fold(records: list[Record]) -> RunStory:
    story = RunStory()
    for record in records:
        story = apply(story, record)
    return story


@example(batches=[EVERY_KIND, EVERY_KIND[::-1]], cut=1.0, after=EVERY_KIND[::-1])
@example(batches=[EVERY_KIND[::-1], EVERY_KIND], cut=0.4, after=EVERY_KIND[:1])
@settings(max_examples=examples(100), deadline=None)
@given(batches=batches, cut=st.floats(0, 1), after=st.lists(entries, min_size=1, max_size=3))
def test_a_truncated_journal_is_a_prefix_and_can_be_continued(
    batches: list[list[Entry | Outcome]], cut: float, after: list[Entry | Outcome]
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        with JournalWriter(path) as writer:
            written = [record for batch in batches for record in writer.append_all(1.0, 2.0, batch)]
        data = path.read_bytes()
        kept = data[: int(cut * len(data))]
        path.write_bytes(kept)

        survivors = list(read_journal(path))
        assert survivors == written[: len(survivors)]
        assert len(survivors) >= kept.count(b"\n"), "no whole line is lost"
        assert load_story(path) == fold(survivors)
        follower = JournalFollower(path)
        assert list(follower.poll()) == survivors

        with JournalWriter(path) as writer:
            continued = list(writer.append_all(3.0, 4.0, after))
        assert path.read_bytes().startswith(kept), "nothing is ever removed"
        assert [r.seq for r in continued] == list(range(len(survivors) + 1, len(survivors) + 1 + len(after)))
        assert list(read_journal(path)) == [*survivors, *continued]
        assert list(follower.poll()) == continued


@settings(max_examples=examples(100), deadline=None)
@given(batches=batches, step=st.integers(1, 200))
def test_a_journal_follower_returns_the_same_records_for_any_chunking(
    batches: list[list[Entry | Outcome]], step: int
) -> None:
    with TemporaryDirectory() as folder:
        whole, growing = Path(folder) / "whole", Path(folder) / "growing"
        with JournalWriter(whole) as writer:
            written = [record for batch in batches for record in writer.append_all(1.0, 2.0, batch)]
        data = whole.read_bytes()
        follower = JournalFollower(growing)
        seen: list[Record] = []
        with growing.open("ab", buffering=0) as file:
            for at in range(0, len(data), step):
                file.write(data[at : at + step])
                seen += follower.poll()
        assert seen == written
        assert follower.skipped == 0


@example(batches=[EVERY_KIND[::-1], EVERY_KIND], places=[0.2, 0.8])
@example(batches=[EVERY_KIND, EVERY_KIND[::-1]], places=[0.5])
@settings(max_examples=examples(100), deadline=None)
@given(batches=batches, places=st.lists(st.floats(0, 1), max_size=4))
def test_a_story_that_is_stored_now_and_then_is_that_of_the_whole_journal(
    batches: list[list[Entry | Outcome]], places: list[float]
) -> None:
    with TemporaryDirectory() as folder:
        whole, growing = Path(folder) / "whole", Path(folder) / "journal.jsonl"
        with JournalWriter(whole) as writer:
            written = [record for batch in batches for record in writer.append_all(1.0, 2.0, batch)]
        data = whole.read_bytes()
        snapshots = [r.fact for r in written if isinstance(r.fact, JudgeSnapshot)]
        for place in (*sorted(places), 1.0):
            growing.write_bytes(data[: int(place * len(data))])
            store(growing, fold_whole_lines(growing))
            assert load_story(growing) == fold(list(read_journal(growing)))
        assert fold_journal(growing).snapshot == (snapshots[-1] if snapshots else None)
        assert read_stored(growing).offset == len(data)
        assert list(JournalFollower(growing, read_stored(growing)).poll()) == []
        with JournalWriter(growing) as writer:
            assert writer.seq == len(written)
