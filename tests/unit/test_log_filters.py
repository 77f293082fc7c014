"""Lines are told apart by level and by rank, whatever wrote them."""

import pytest

from trainwatch.core.model.log_lines import level_pattern, rank_of, rank_pattern


@pytest.mark.parametrize(
    ("line", "worst"),
    [
        ("INFO bucket 4", ""),
        ("E1122 03:04:05.1 123 reader.cc:9] cannot open", "errors"),
        ("W1122 03:04:05.1 123 reader.cc:9] slow", "warnings"),
        ("2026-11-22 03:04:05 - trainer - WARNING - late", "warnings"),
        ("2026-11-22 03:04:05 | CRITICAL | disk full", "errors"),
        ('{"level": "warn", "msg": "late"}', "warnings"),
        ('{"levelname": "ERROR", "message": "x"}', "errors"),
        ("Traceback (most recent call last):", "errors"),
        ('[rank1]:   File "train.py", line 4, in <module>', "errors"),
        ("RuntimeError: shapes differ", "errors"),
        ("train.py:9: UserWarning: deprecated", "warnings"),
        ("no errors so far, 0 warnings", ""),
    ],
)
def test_level_of_a_line_is_seen_in_any_loggers_words(line: str, worst: str) -> None:
    errors, warnings = level_pattern("errors"), level_pattern("warnings")
    assert errors is not None
    assert warnings is not None
    assert bool(errors.search(line)) == (worst == "errors")
    assert bool(warnings.search(line)) == bool(worst)
    assert level_pattern("") is None


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[rank3]: Traceback (most recent call last):", "3"),
        ("[default3]:loss 0.4", "3"),
        ("[Rank 3] starting", "3"),
        ("2026-11-22T03:04:05Z stderr F [rank3]: x", "3"),
        ("[3]: epoch 1", "3"),
        ("[1,3]<stderr>: x", "3"),
        ("3: saving", "3"),
        ('{"rank": 3, "msg": "x"}', "3"),
        ("local_rank=3 device cuda:3", "3"),
        ("[rank30]: x", "30"),
        ("lora_rank=16", ""),
        ("3: 0.4", ""),
        ("epoch 3: loss 1", ""),
        ("step 3/10", ""),
    ],
)
def test_rank_of_a_line_is_seen_in_any_launchers_words(line: str, rank: str) -> None:
    assert rank_of(line) == rank
    assert bool(rank_pattern("3").search(line)) == (rank == "3")
