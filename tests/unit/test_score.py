"""The score in the output of an evaluation, and which checkpoint is the best."""

import pytest

from trainwatch.core.model.checkpoint import Evaluation, best_of, better_of
from trainwatch.core.model.score import read_score


@pytest.mark.parametrize(
    ("output", "asked", "metric", "value", "why"),
    [
        ('{"fid": 12.3}', "", "fid", 12.3, ""),
        ('loading\n{"fid": 12.3, "n": 400}\n', "", "fid", 12.3, ""),
        ('{"step": "x", "clip_score": 31}\nbye\n', "", "clip_score", 31.0, ""),
        ('{\n  "fid": 9.5,\n  "parts": {"a": 1}\n}\n', "", "fid", 9.5, ""),
        ('{"fid": 1}\n{"fid": 2}\n', "", "fid", 2.0, ""),
        ("fid: 12.3\n", "", "fid", 12.3, ""),
        ("FID = 12.3\nsaved to x.png\n", "", "FID", 12.3, ""),
        ("1e-3\n", "", "score", 0.001, ""),
        ("accuracy: 93.5 %\n", "", "accuracy", 93.5, ""),
        ("", "", "", None, "it printed nothing"),
        ("\n \n", "", "", None, "it printed nothing"),
        ("Done.\n", "", "", None, 'no score in its output (last line: "Done.")'),
        ('{"fid": NaN}', "", "fid", None, "it printed NaN as fid"),
        ("nan\n", "", "score", None, "it printed NaN as score"),
        ("fid: -inf\n", "", "fid", None, "it printed an infinite number as fid"),
        ('{"fid": null}', "", "", None, "its JSON has no number"),
        ('{"ok": true}', "", "", None, "its JSON has no number"),
        ('{"loss": 1.5}', "fid", "fid", None, 'its JSON has no number "fid" (it has: loss)'),
        ("{not json}\n", "", "", None, 'no score in its output (last line: "{not json}")'),
    ],
)
def test_the_score_is_read_in_the_usual_forms_and_unknown_with_a_reason(
    output: str, asked: str, metric: str, value: float | None, why: str
) -> None:
    found = read_score(output, asked)
    assert (found.metric, found.value, found.why) == (metric, value, why)


def test_a_metric_chooses_among_numbers() -> None:
    both = '{"kid": 0.1, "fid": 12.3}'
    assert read_score(both, "fid").value == 12.3
    assert read_score(both).metric == "kid"
    assert read_score(both).values == {"kid": 0.1, "fid": 12.3}
    assert read_score("kid: 0.1\nfid: 12.3\n", "kid").value == 0.1
    assert read_score("done: score is fid 7.5 of it, fid=8.5", "fid").value == 8.5


def test_which_scores_are_better_is_told_by_the_settings_or_the_name() -> None:
    assert better_of("fid", "auto") == "lower"
    assert better_of("val/loss", "auto") == "lower"
    assert better_of("CLIP_score", "auto") == "higher"
    assert better_of("quality", "auto") is None
    assert better_of("accuracy_loss", "auto") is None
    assert better_of("quality", "higher") == "higher"


def scored(name: str, score: float | None, metric: str = "fid", better: str | None = "lower") -> Evaluation:
    return Evaluation(path=name, mtime=1.0, metric=metric, score=score, better=better)  # type: ignore[arg-type]


def test_the_best_is_that_of_the_newest_metric() -> None:
    found = [scored("a", 3.0), scored("b", 2.0), scored("c", None), scored("d", 2.0), scored("e", 5.0)]
    best = best_of(found)
    assert best is not None
    assert best.path == "d"
    higher = [scored("a", 0.5, "acc", "higher"), scored("b", 0.7, "acc", "higher")]
    assert best_of([*found, *higher]) == higher[1]


def test_no_best_if_it_cannot_be_told() -> None:
    assert best_of([]) is None
    assert best_of([scored("a", None)]) is None
    assert best_of([scored("a", 1.0, "quality", None)]) is None
