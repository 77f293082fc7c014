"""The shipped catalogue keeps its own promises."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.shipped import FAILURES, SHAPES
from trainwatch.core.judge.failure.diagnosis import SPECIFIC, compile_catalogue
from trainwatch.core.judge.failure.exception_messages import MESSAGES
from trainwatch.core.judge.failure.exit_status import NAMES, SIGNALS
from trainwatch.core.judge.failure.kernel_lines import XIDS, read_kernel_line
from trainwatch.core.judge.failure.tracebacks import EXCEPTIONS, find_exception
from trainwatch.core.model.failure import FAILURE_CLASSES, FailureCatalogue, FailureSignature

parser: Any = re._parser  # type: ignore[attr-defined]
codes: Any = re._constants  # type: ignore[attr-defined]


def runs(tree: Iterable[tuple[Any, Any]]) -> list[str]:
    """Literal runs that every match has."""
    found, run = [], ""
    for kind, value in tree:
        if kind is codes.LITERAL:
            run += chr(value)
            continue
        if kind is codes.SUBPATTERN and all(each is codes.LITERAL for each, _ in value[-1]):
            run += "".join(chr(char) for _, char in value[-1])
            continue
        found.append(run)
        run = ""
        if kind is codes.SUBPATTERN:
            found += runs(value[-1])
        elif kind is codes.MAX_REPEAT and value[0] >= 1:
            found += runs(value[2])
    return [*found, run]


def needs(tree: Iterable[tuple[Any, Any]], literal: str) -> bool:
    tree = list(tree)
    if any(literal in run for run in runs(tree)):
        return True
    return any(
        (kind is codes.SUBPATTERN and needs(value[-1], literal))
        or (kind is codes.BRANCH and all(needs(branch, literal) for branch in value[1]))
        for kind, value in tree
    )


def test_diagnosis_catalogue_has_a_rule_for_every_class() -> None:
    assert sorted(rule.failure for rule in FAILURES.rules) == sorted(FAILURE_CLASSES)
    assert all(rule.explanation.endswith(".") for rule in FAILURES.rules)
    assert all(rule.remedies for rule in FAILURES.rules if rule.failure != "success")


def test_diagnosis_catalogue_literals_stand_in_every_match() -> None:
    wrong = []
    for row in FAILURES.signatures:
        pattern, literal = row.pattern, row.literal
        if pattern.startswith("(?i"):
            pattern, literal = pattern.lower().replace(r"\s", r"\s"), literal.lower()
        if not needs(parser.parse(pattern), literal):
            wrong.append((row.literal, row.pattern))
    assert wrong == []


def test_diagnosis_catalogue_rows_are_sound() -> None:
    rows = [(row.failure, row.pattern) for row in FAILURES.signatures]
    assert len(set(rows)) == len(rows)
    assert all(0 < row.weight <= 1 and row.source for row in FAILURES.signatures)
    assert {row.failure for row in FAILURES.signatures} == set(FAILURE_CLASSES)


def test_diagnosis_catalogue_patterns_compile() -> None:
    for row in FAILURES.signatures:
        re.compile(row.pattern)


def test_diagnosis_own_pattern_that_does_not_compile_is_named() -> None:
    row = FailureSignature(failure="unknown", pattern="(", role="root", weight=1.0, literal="(")
    with pytest.raises(ValueError, match=r"failure pattern '\('.*fix the regular expression"):
        compile_catalogue(FailureCatalogue(), SHAPES, own=(row,))


def test_diagnosis_class_without_rule_gets_a_bare_one() -> None:
    assert compile_catalogue(FailureCatalogue(), SHAPES).rule("hang").retryable is False


def test_diagnosis_tables_name_known_classes() -> None:
    tables = [EXCEPTIONS.values(), SIGNALS.values(), ((row[0], row[1]) for row in XIDS.values())]
    assert all(failure in FAILURE_CLASSES and 0 < weight <= 1 for table in tables for failure, weight in table)
    assert NAMES["SIGKILL"] == 9


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.", "OutOfMemoryError"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
        ("AssertionError", "AssertionError"),
        ("2024-01-01 ERROR - ValueError: bad", "ValueError"),
        ("    ChildFailedError: ", None),
        ("/x.py:3: UserWarning: odd", None),
        ("Error: something", None),
        ("no error here", None),
    ],
)
def test_diagnosis_exception_names(line: str, kind: str | None) -> None:
    raised = find_exception(line)
    assert (raised.type if raised else None) == kind


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("NVRM: Xid (PCI:0000:01:00): 79, pid=7, GPU has fallen off the bus.", "gpu_lost"),
        ("[ 12.3] NVRM: Xid (PCI:0000:01:00): 31, pid=7, name=python, MMU Fault", "cuda_illegal_access"),
        ("NVRM: Xid (PCI:0000:01:00): 999, what", "cuda_unknown_error"),
        ("Memory cgroup out of memory: Killed process 77 (python)", "host_oom"),
        ("misc dxg: dxgk: dxgkio_query_adapter_info: Ioctl failed: -22", None),
        ("misc dxg: dxgk: dxgvmb_send_sync_msg: wait for completion failed: fffffe00", "cuda_unknown_error"),
        ("hv_vmbus: dxg channel rescind", "gpu_lost"),
        ("misc dxg: dxgk: dxgkio_make_resident: Ioctl failed: -12", "cuda_oom"),
        ("INFO: task python:77 blocked for more than 120 seconds.", "hang"),
        ("usb 1-1: new device", None),
    ],
)
def test_diagnosis_kernel_line(line: str, failure: str | None) -> None:
    clue = read_kernel_line(line)
    assert (clue.failure if clue else None) == failure


TAXONOMY = (Path(__file__).resolve().parents[2] / "docs" / "failure-taxonomy.md").read_text(encoding="utf-8")


def test_the_page_of_classes_has_a_row_for_each_with_what_the_catalogue_says() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", TAXONOMY, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(FAILURE_CLASSES)
    retryable = {rule.failure for rule in FAILURES.rules if rule.retryable}
    assert {name for name, again in rows if again.startswith("yes")} == retryable


def test_the_page_of_classes_counts_the_words_of_the_gate() -> None:
    words = compile_catalogue(FAILURES, SHAPES).gates.literals
    said = re.search(r"about (\d+) words", TAXONOMY)
    assert said is not None
    assert abs(int(said[1]) - len(words)) <= 10


def test_the_page_of_classes_names_the_weights_of_a_message() -> None:
    weights = [weight for _, weight, _ in MESSAGES]
    assert f"weights of {min(weights)} to {max(weights)}" in TAXONOMY
    assert max(weights) < SPECIFIC
