import random

from trainwatch.core.sense.log.burst_reduction import LINE_BYTES, NEWS_LINES, TAIL_LINES, BurstReduction, Piece


def reduced(stretch: bytes, block: int = 4096) -> list[Piece]:
    reduction = BurstReduction(lambda _line: True)
    for start in range(0, len(stretch), block):
        reduction.feed(stretch[start : start + block])
    return reduction.finish()


def flood(lines: int) -> list[bytes]:
    chance = random.Random(7)
    return [f"debug {i}: token {chance.random()}\n".encode() for i in range(lines)]


def test_important_lines_in_a_burst_are_kept_with_following_lines_and_line_counts() -> None:
    lines = flood(5000)
    lines[2000] = b"Traceback (most recent call last):\n"
    lines[2003] = b"torch.OutOfMemoryError: CUDA out of memory\n"
    pieces = reduced(b"".join(lines))
    kept = b"".join(piece.data for piece in pieces)
    assert lines[2000] in kept
    assert lines[2003] in kept
    assert lines[1000] not in kept
    assert kept.endswith(b"".join(lines[-TAIL_LINES:]))
    before = 0
    for piece in pieces:
        before += piece.skipped_lines
        if lines[2000] in piece.data:
            assert before == 2000
        before += piece.data.count(b"\n")
    assert before == 5000


def test_repeated_lines_do_not_displace_other_important_lines() -> None:
    lines = [f"ERROR retry {i}\n".encode() for i in range(50_000)]
    lines[30_000] = b"RuntimeError: NCCL timeout\n"
    kept = b"".join(piece.data for piece in reduced(b"".join(lines), block=65536))
    assert b"NCCL timeout" in kept
    assert len(kept) < 100_000


def test_first_important_lines_are_kept_if_there_are_too_many() -> None:
    words = [f"{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}" for i in range(17_000)]
    kept = b"".join(p.data for p in reduced(b"".join(f"Error {w}\n".encode() for w in words)))
    assert b"Error aaa\n" in kept
    assert kept.count(b"\n") <= NEWS_LINES * 16 + TAIL_LINES + 2


def test_the_last_progress_bar_of_a_burst_is_kept() -> None:
    bar = b"\r 41%|####      | 410/1000 [00:41<00:59, 10.0it/s, loss=0.1]\n"
    lines = flood(3000)
    kept = b"".join(p.data for p in reduced(b"".join([*lines[:1000], bar, *lines[1000:]])))
    assert b"410/1000" in kept


def test_an_endless_line_in_a_burst_uses_bounded_memory() -> None:
    reduction = BurstReduction(lambda _line: True)
    for _ in range(300):
        reduction.feed(b"\0" * 65536)
        assert len(reduction._held) <= 2 * 65536
    pieces = reduction.finish()
    assert sum(p.skipped_bytes for p in pieces) > 250 * 65536
    assert all(len(p.data) <= max(LINE_BYTES, 32768) for p in pieces)
