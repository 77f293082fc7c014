"""Scores the judge on labelled logs, and its speed: ``python bench/judge.py --corpus DIR [--carriers] [--speed]``.

DIR has progress*.jsonl, failures*.jsonl and hard*.jsonl. A field of a progress sample counts if the label or the
answer has a value; numbers are correct within 1 %, ``also`` names further right answers. A phase sample (label other
than train) is correct if no step was read and the phase is not train. Prints ratios, and how often an answer of each
confidence was right. ``--carriers`` reads each failure in the carriers of tests/logs/carriers.py, too. ``--cross``
scores each fifth of the failures without the signatures that no other log matches.
"""

import argparse
import json
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.logs.carriers import CARRIERS
from trainwatch.core.config.shipped import load_failures, load_log_shapes
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.progress import progress_of
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.text.shapes import ShapeTable

FIELDS = ("step", "total_steps", "epoch", "total_epochs", "loss", "lr", "sec_per_step")
CONFIDENT = 0.8
CHUNK = 1 << 20
SHAPES = ShapeTable(load_log_shapes())
CATALOGUE = CompiledCatalogue(load_failures(), SHAPES)


def rows(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def text_of(row: dict) -> str:
    lines = row["lines"]
    return lines if isinstance(lines, str) else "\n".join(lines)


def same(label: float | None, answer: float | None) -> bool:
    if label is None or answer is None:
        return label is answer
    return abs(label - answer) <= 0.01 * abs(label) + 1e-12


def also_right(row: dict, field: str) -> list:
    """Further answers that an honest reader accepts."""
    also = row.get("also", {}).get(field, ())
    return list(also) if isinstance(also, list | tuple) else [also]


def score_progress(path: Path, *, verbose: bool) -> tuple[float, float]:
    right = counted = negatives = negatives_right = phases_right = total = 0
    for row in rows(path):
        answer = msgspec.to_builtins(progress_of([text_of(row)], SHAPES))
        total += 1
        train = row["phase"] == "train"
        phases_right += train == (answer["phase"] == "train")
        if not train:
            negatives += 1
            good = answer["step"] is None and answer["phase"] != "train"
            negatives_right += good
            if verbose and not good:
                print(
                    f"  {row['id']} {row['framework']}: phase {row['phase']} answered {answer['phase']} step "
                    f"{answer['step']}"
                )
            continue
        for field in FIELDS:
            label, got = row["expect"].get(field), answer[field]
            if label is None and got is None:
                continue
            counted += 1
            good = any(same(each, got) for each in (label, *also_right(row, field)))
            right += good
            if verbose and not good:
                print(f"  {row['id']} {row['framework']}: {field} is {label}, answered {got}")
    fields, phases = right / max(1, counted), negatives_right / max(1, negatives)
    print(
        f"progress fields {right}/{counted} = {fields:.3f}   phase negatives {negatives_right}/{negatives} = "
        f"{phases:.3f}   train or not {phases_right}/{total}"
    )
    return fields, phases


Answers = list[tuple[float, bool]]
"""Confidence, and whether the answer was right."""
BINS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def is_right(row: dict, failure: str) -> bool:
    return failure in (row["label"], *(row.get("also") or ()))


def print_reliability(answers: Answers) -> None:
    """How often answers of each confidence were right."""
    print("reliability: confidence, answers, right, mean confidence")
    for low, high in pairwise(BINS):
        of_bin = [(sure, good) for sure, good in answers if low < sure <= high]
        if of_bin:
            right = sum(good for _, good in of_bin)
            mean = sum(sure for sure, _ in of_bin) / len(of_bin)
            print(f"  {low:.1f}-{high:.1f} {len(of_bin):5} {right / len(of_bin):7.3f} {mean:7.3f}")


def score_carried(path: Path) -> None:
    """Causes that are named in each carrier, of those that are named without."""
    known = [
        row
        for row in rows(path)
        if is_right(row, diagnosis_of([text_of(row)], CATALOGUE, row.get("exit_hint")).failure)
    ]
    for name, wrap in CARRIERS.items():
        texts = ("\n".join(wrap(text_of(row).split("\n"))) for row in known)
        found = (diagnosis_of([text], CATALOGUE, row.get("exit_hint")) for text, row in zip(texts, known, strict=True))
        right = sum(is_right(row, each.failure) for row, each in zip(known, found, strict=True))
        print(f"  in {name}: {right}/{len(known)}")


def score_failures(path: Path, answers: Answers, *, verbose: bool) -> tuple[float, float]:
    right = wrong_sure = retry = total = 0
    confusion: Counter[tuple[str, str]] = Counter()
    for row in rows(path):
        answer = diagnosis_of([text_of(row)], CATALOGUE, row.get("exit_hint"))
        total += 1
        good = is_right(row, answer.failure)
        answers.append((answer.confidence, good))
        right += good
        retry += answer.retryable == row.get("retryable")
        wrong_sure += not good and answer.confidence > CONFIDENT
        if not good:
            confusion[row["label"], answer.failure] += 1
            if verbose:
                cause = answer.cause.text[:100] if answer.cause else None
                print(
                    f"  {row['id']} {row['framework']}: {row['label']} answered {answer.failure} "
                    f"({answer.confidence:.2f}) {cause!r}"
                )
    print(
        f"causes {right}/{total} = {right / max(1, total):.3f}   confident and wrong {wrong_sure}/{total} = "
        f"{wrong_sure / max(1, total):.3f}   retryable {retry}/{total}"
    )
    if verbose:
        for (label, got), times in confusion.most_common():
            print(f"    {label} -> {got}: {times}")
    return right / max(1, total), wrong_sure / max(1, total)


FOLDS = 5


def cross_validate(paths: list[Path], *, verbose: bool) -> None:
    """Score each fifth of the logs without the signatures that only logs of this fifth match.

    This is how messages fare that no signature knows: by status codes, types, words and places.
    """
    all_rows = [row for path in paths for row in rows(path)]
    lines = [CATALOGUE.in_known_words(text_of(row)).split("\n") for row in all_rows]
    shipped = load_failures()
    of_row = [frozenset(known_signatures(each)) for each in lines]
    answers: Answers = []
    left_out = []
    for fold in range(FOLDS):
        held = [n for n in range(len(all_rows)) if n % FOLDS == fold]
        known = frozenset().union(*(of_row[n] for n in range(len(all_rows)) if n % FOLDS != fold))
        mine = frozenset().union(*(of_row[n] for n in held)) - known
        left_out.append(len(mine))
        classes = tuple(
            msgspec.structs.replace(each, signatures=tuple(s for s in each.signatures if s.pattern not in mine))
            for each in shipped.classes
        )
        catalogue = CompiledCatalogue(msgspec.structs.replace(shipped, classes=classes), SHAPES)
        for n in held:
            row = all_rows[n]
            answer = diagnosis_of([text_of(row)], catalogue, row.get("exit_hint"))
            good = is_right(row, answer.failure)
            answers.append((answer.confidence, good))
            if verbose and not good:
                print(f"  {row['id']}: {row['label']} answered {answer.failure} ({answer.confidence:.2f})")
    right = sum(good for _, good in answers)
    sure = [good for confidence, good in answers if confidence > CONFIDENT]
    wrong, total = len(sure) - sum(sure), len(answers)
    signatures = sum(len(each.signatures) for each in shipped.classes)
    print(f"cross-validated: {sum(left_out)} of {signatures} signatures left out in one of {FOLDS} parts")
    print(
        f"causes {right}/{total} = {right / total:.3f}   confident and wrong {wrong}/{total} = {wrong / total:.3f}   "
        f"wrong above {CONFIDENT} {wrong}/{len(sure)}"
    )
    print_reliability(answers)


def known_signatures(lines: list[str]) -> Iterator[str]:
    for line in lines:
        for found in CATALOGUE.matches(line) or ():
            yield found.pattern


def quiet_log(size: int) -> str:
    """Lines of a program without progress or failures."""
    dice = random.Random(1)
    words = "the worker read shard of data from path and wrote result to file index value host memory queue".split()  # noqa: SIM905
    out: list[str] = []
    length = 0
    while length < size:
        line = (
            f"2026-01-02 12:{length % 60:02d}:07,123 INFO data.reader - {' '.join(dice.choices(words, k=9))} {length}"
        )
        out.append(line)
        length += len(line) + 1
    return "\n".join(out)


def bar_log(size: int) -> str:
    out: list[str] = []
    length = step = 0
    while length < size:
        step += 1
        bar = f"\rsteps:  12%|█▏        | {step}/1026000 [51:15<6:16:15,  2.50s/it, avr_loss=0.{step % 10000:04d}]"
        out.append(bar)
        length += len(bar)
    return "".join(out)


def speed(rounds: int) -> None:
    """Megabytes per second of processor time over a log of 1 MB that is read in so many rounds; peak memory.

    The first round compiles patterns. The best of the others is the least disturbed one: on shared cores the processor
    time of the same work varies by half.
    """
    works = {"progress": partial(progress_of, shapes=SHAPES), "diagnose": partial(diagnosis_of, catalogue=CATALOGUE)}
    for name, text in (("quiet", quiet_log(CHUNK)), ("bars", bar_log(CHUNK))):
        size = len(text.encode()) / 1e6
        for verb, work in works.items():
            took = []
            for _ in range(1 + rounds):
                began = time.process_time()
                work([text])
                took.append(time.process_time() - began)
            print(f"{verb:9} {name:6} {size / min(took):8.1f} MB/s, first {size / took[0]:.1f}")
    print(f"peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--carriers", action="store_true")
    parser.add_argument("--cross", action="store_true")
    options = parser.parse_args()
    answers: Answers = []
    if options.corpus:
        for path in sorted(options.corpus.glob("progress*.jsonl")):
            print(path.name)
            score_progress(path, verbose=options.verbose)
        for path in sorted((*options.corpus.glob("failures*.jsonl"), *options.corpus.glob("hard*.jsonl"))):
            print(path.name)
            score_failures(path, answers, verbose=options.verbose)
            if options.carriers:
                score_carried(path)
        print_reliability(answers)
        if options.cross:
            cross_validate(
                sorted((*options.corpus.glob("failures*.jsonl"), *options.corpus.glob("hard*.jsonl"))),
                verbose=options.verbose,
            )
    if options.speed:
        speed(options.rounds)


if __name__ == "__main__":
    main()
