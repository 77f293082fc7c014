"""Copies of another machine's runs: resumed where they ended, never joined to what is of another journal."""

import os
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from trainwatch.core.app.screen.mirror.serving import POLL_S, RATE_BYTES_PER_S, pause_s
from trainwatch.core.model.observation import GpuReading, GpuSample, HostSample
from trainwatch.core.model.remote.messages import CardsNow
from trainwatch.core.model.run_card import RunCard
from trainwatch.core.store.metrics.history_reader import HistoryReader
from trainwatch.core.store.metrics.history_rows import HistoryCopy, HistoryRows
from trainwatch.core.store.metrics.history_writer import HistoryWriter
from trainwatch.core.store.mirror.frames import Frames, FrameWriter
from trainwatch.core.store.mirror.journal_copy import PIECE_BYTES, CopiedFile, GrowingFile, Part
from trainwatch.core.store.mirror.kept_answers import MOST, Kept, KeptAnswers
from trainwatch.core.store.mirror.mirrors import KEPT_S, HostMirror, mirrors_folder, remove_old


def followed(original: Path, copy: CopiedFile) -> tuple[GrowingFile, int]:
    """A new connection that brings the copy up to date, and how many bytes it took."""
    size, digest = copy.have()
    source = GrowingFile(original, size, digest)
    return source, brought(source, copy)


def brought(source: GrowingFile, copy: CopiedFile) -> int:
    sent = 0
    while parts := list(source.new()):
        for part in parts:
            assert copy.add(part)
            sent += len(part.data)
    return sent


def test_a_copy_goes_on_where_it_ended(tmp_path: Path) -> None:
    original, copy = tmp_path / "journal.jsonl", CopiedFile(tmp_path / "copy.jsonl")
    original.write_bytes(b"one\n" * 1000)
    source, sent = followed(original, copy)
    assert sent == 4000
    with original.open("ab") as file:
        file.write(b"two\n")
    assert brought(source, copy) == 4
    with original.open("ab") as file:  # the line is cut here
        file.write(b"three\nhalf a li")
    assert followed(original, copy)[1] == len(b"three\nhalf a li")
    assert copy.path.read_bytes() == original.read_bytes()
    assert copy.path.stat().st_mode & 0o077 == 0


def test_another_journal_of_the_same_name_is_read_anew(tmp_path: Path) -> None:
    original, copy = tmp_path / "journal.jsonl", CopiedFile(tmp_path / "copy.jsonl")
    original.write_bytes(b"old\n" * 500)
    source, _ = followed(original, copy)
    before = copy.path.stat().st_ino
    original.write_bytes(b"new\n" * 600)
    _, sent = followed(original, copy)
    assert sent == 2400
    assert copy.path.read_bytes() == original.read_bytes()
    assert copy.path.stat().st_ino != before, "who reads the copy must see that it is another one"
    replacement = tmp_path / "replacement"
    replacement.write_bytes(b"newest\n" * 900)
    source, _ = followed(original, copy)
    replacement.replace(original)  # while it is followed
    brought(source, copy)
    assert copy.path.read_bytes() == original.read_bytes()
    original.write_bytes(b"short\n")
    brought(source, copy)
    assert copy.path.read_bytes() == b"short\n"


def test_a_piece_that_does_not_follow_on_is_refused(tmp_path: Path) -> None:
    copy = CopiedFile(tmp_path / "copy")
    assert copy.add(Part(0, b"abc", anew=False))
    assert not copy.add(Part(5, b"x", anew=False))
    assert not copy.add(Part(0, b"x", anew=False))
    assert copy.path.read_bytes() == b"abc"


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.binary(max_size=50)),
            st.tuples(st.just("replace"), st.binary(max_size=50)),
            st.tuples(st.just("cut"), st.integers(0, 3)),
            st.tuples(st.just("poll"), st.none()),
        ),
        max_size=20,
    )
)
def test_after_any_cuts_and_changes_the_copy_agrees(tmp_path_factory: pytest.TempPathFactory, acts: list) -> None:  # type: ignore[type-arg]
    folder = tmp_path_factory.mktemp("copies")
    original, copy = folder / "journal.jsonl", CopiedFile(folder / "copy")
    original.write_bytes(b"")
    source, _ = followed(original, copy)
    for act, value in acts:
        match act:
            case "append":
                with original.open("ab") as file:
                    file.write(value)
            case "replace":
                (folder / "new").write_bytes(value)
                (folder / "new").replace(original)
            case "cut":  # some pieces arrived, the rest is lost
                for part in list(source.new())[:value]:
                    copy.add(part)
                size, digest = copy.have()
                source = GrowingFile(original, size, digest)
            case _:
                brought(source, copy)
    followed(original, copy)
    assert copy.path.read_bytes() == original.read_bytes() if copy.path.exists() else not original.read_bytes()


def test_a_long_journal_comes_in_pieces(tmp_path: Path) -> None:
    original, copy = tmp_path / "journal.jsonl", CopiedFile(tmp_path / "copy")
    original.write_bytes(os.urandom(3 * PIECE_BYTES + 17))
    source = GrowingFile(original, 0, b"")
    first = list(source.new(most=2))
    assert [len(part.data) for part in first] == [PIECE_BYTES, PIECE_BYTES]
    assert source.behind
    assert all(copy.add(part) for part in [*first, *source.new()])
    assert list(source.new()) == []
    assert copy.path.read_bytes() == original.read_bytes()


def written(writer: HistoryWriter, begin: int, end: int) -> None:
    for t in range(begin, end):
        writer.add(GpuSample(t=float(t), gpus=(GpuReading(index=0, util_pct=float(t % 100), power_w=200.0),)))
        writer.add(HostSample(t=float(t), ram_used_bytes=1000 + t))
    writer.commit()


def test_a_history_is_copied_row_by_row_and_gone_on_with(tmp_path: Path) -> None:
    original, copy = tmp_path / "history.sqlite", HistoryCopy(tmp_path / "copy.sqlite")
    writer = HistoryWriter(original)
    written(writer, 0, 5000)

    def take(rows: HistoryRows) -> int:
        count = 0
        while True:
            for each in rows.new():
                copy.write(each.table, each.columns, each.rows)
                count += len(each.rows)
            if not rows.behind:
                return count

    source = HistoryRows(original, copy.marks())
    first = take(source)
    written(writer, 5000, 5100)
    assert 0 < take(source) < first / 4
    written(writer, 5100, 5200)
    assert 0 < take(HistoryRows(original, copy.marks())) < first / 4, "after a cut only the rest is sent"
    assert take(source) >= 0
    names = ("gpu0.util", "host.ram_used")
    with HistoryReader(original) as there, HistoryReader(copy.path) as here:
        assert here.charts(names, 0, 5200, 100) == there.charts(names, 0, 5200, 100)
        assert here.charts(names, 5000, 5200, 100) == there.charts(names, 5000, 5200, 100)
        assert here.latest() == there.latest()
    assert not [path for path in tmp_path.glob("copy.sqlite*") if path.stat().st_mode & 0o077]
    copy.write("no such table", ("t",), ((1,),))
    copy.write("gpu_1", ("t", "gpu", "column of a newer version"), ((9000, 0, 1.0),))
    copy.close()
    writer.close()


def test_messages_cross_a_pipe_and_what_is_none_is_refused() -> None:
    reading, writing = os.pipe()
    frames: Frames[CardsNow] = Frames(reading, CardsNow)
    cards = CardsNow(cards=(RunCard(id="a", name="a", state="running", watched=True, created_wall=1.0),), wall=2.0)
    sent = FrameWriter(writing).send(cards)
    assert sent == 4 + len(msgspec.msgpack.encode(cards))
    assert frames.next() == cards
    os.write(writing, b"bash: welcome to box1")
    with pytest.raises(ValueError, match="not of trainwatch"):
        frames.next()
    os.close(writing)
    os.close(reading)


def test_what_is_sent_at_once_is_followed_by_a_pause() -> None:
    assert pause_s(0, behind=False) == pause_s(1000, behind=False) == POLL_S
    assert pause_s(0, behind=True) == 0
    assert pause_s(8 * PIECE_BYTES, behind=True) * RATE_BYTES_PER_S == 8 * PIECE_BYTES


def test_copies_are_a_private_cache_that_is_removed_when_nobody_opens_it(tmp_path: Path) -> None:
    folder = mirrors_folder({"XDG_CACHE_HOME": str(tmp_path)})
    mirror = HostMirror(folder, "box1")
    old, new = mirror.run("old-1"), mirror.run("new-1")
    assert old.path.stat().st_mode & 0o077 == 0
    long_ago = time.time() - KEPT_S - 60
    os.utime(old.path / "mirror.json", (long_ago, long_ago))
    remove_old(folder)
    assert not old.path.exists()
    assert new.path.exists()
    mirror.heard(new, 5.0)
    assert mirror.mark(new).heard_wall == 5.0
    for wrong in ("", "../x", ".hidden"):
        with pytest.raises(ValueError, match="not a run id"):
            mirror.run(wrong)


def test_an_answer_is_kept_for_its_question_and_the_oldest_go(tmp_path: Path) -> None:
    nothing = KeptAnswers(tmp_path / "no such run")
    nothing.keep("profiles", {}, Kept(1.0, b"x"))
    assert nothing.find("profiles", {}) is None
    kept = KeptAnswers(tmp_path)
    kept.keep("checkpoints", {"method": "show", "path": "a"}, Kept(5.0, b"a"))
    assert kept.find("checkpoints", {"path": "a", "method": "show"}) == Kept(5.0, b"a")
    assert kept.find("checkpoints", {"method": "show", "path": "b"}) is None
    for number in range(MOST):
        kept.keep("incident files", {"incident": number}, Kept(6.0, b"b"))
    assert kept.find("checkpoints", {"path": "a", "method": "show"}) is None
    assert len(list((tmp_path / "answers").iterdir())) == MOST
    assert not [path for path in (tmp_path / "answers").iterdir() if path.stat().st_mode & 0o077]
    next((tmp_path / "answers").iterdir()).write_bytes(b"damaged")
    assert all(kept.find("incident files", {"incident": n}) in {None, Kept(6.0, b"b")} for n in range(MOST))
