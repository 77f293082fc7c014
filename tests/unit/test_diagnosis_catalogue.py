"""The shipped failure catalogue is complete and consistent, and its page shows it."""

import re
import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.shipped import CATALOGUE, FAILURES, SHAPES
from trainwatch.core.judge.failure.catalogue import SIGNALS, CompiledCatalogue, Proof, read_kernel_line
from trainwatch.core.judge.scales import SURE
from trainwatch.core.model.shipped import FailureCatalogue, FailureClass, KernelPattern

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


SIGNATURES = [row for each in FAILURES.classes for row in each.signatures]
MESSAGES = [row for each in FAILURES.classes for row in each.messages]
PUBLIC = (
    *("cuda_oom", "host_oom", "cuda_unknown_error", "cuda_illegal_access", "cuda_device_assert", "cuda_launch_failure"),
    *("gpu_lost", "driver_mismatch", "nccl_timeout", "cudnn_cublas_error", "triton_compile", "nan_loss"),
    *("dataloader_crash", "disk_full", "io_error", "network_error", "checkpoint_corrupt", "checkpoint_mismatch"),
    *("config_error", "import_error", "dtype_error", "code_bug", "port_in_use", "segfault", "killed_by_user", "hang"),
    *("success", "unknown"),
)
"""Names that scripts rely on: none may go."""


def test_diagnosis_every_class_that_scripts_rely_on_is_there() -> None:
    assert set(PUBLIC) <= set(FAILURES.names)


@pytest.mark.parametrize("known", FAILURES.classes, ids=lambda known: known.name)
def test_diagnosis_class_is_complete(known: FailureClass) -> None:
    assert known.examples
    assert known.title
    assert known.explanation.endswith(".")
    assert known.remedies or known.name == "success"
    assert set(known.signals) <= set(SIGNALS)


def test_diagnosis_literals_stand_in_every_match() -> None:
    wrong = []
    rows = [(row.pattern, row.literal) for row in SIGNATURES]
    rows += [(row.pattern, row.literal) for row in FAILURES.noise]
    for pattern, literal in rows:
        found, text = pattern, literal
        if pattern.startswith("(?i"):
            found, text = pattern.lower(), literal.lower()
        if not needs(parser.parse(found), text):
            wrong.append((literal, pattern))
    assert wrong == []


def test_diagnosis_words_of_a_message_are_never_sure() -> None:
    assert max(row.weight for row in MESSAGES) < SURE


@pytest.mark.parametrize("rows", ["messages", "kernel_lines"])
def test_diagnosis_order_over_all_classes_is_unambiguous(rows: str) -> None:
    order = [row.order for each in FAILURES.classes for row in getattr(each, rows)]
    assert len(set(order)) == len(order)


def test_diagnosis_own_pattern_that_does_not_compile_is_named() -> None:
    with pytest.raises(ValueError, match=r"failure pattern '\('.*fix the regular expression"):
        CompiledCatalogue(FailureCatalogue(), SHAPES, {"unknown": ("(",)})


KERNEL = [(each.name, row) for each in FAILURES.classes for row in each.kernel_lines]


@pytest.mark.parametrize(("failure", "row"), KERNEL, ids=[row.example[:40] for _, row in KERNEL])
def test_diagnosis_kernel_lines_read_their_examples(failure: str, row: KernelPattern) -> None:
    assert read_kernel_line(row.example, CATALOGUE) == Proof(
        failure, row.weight, row.meaning, fatal=failure == "gpu_lost"
    )


ROOT = Path(__file__).resolve().parents[2]
TAXONOMY = (ROOT / "docs" / "failure-taxonomy.md").read_text(encoding="utf-8")


def test_the_page_of_classes_shows_the_catalogue() -> None:
    table = runpy.run_path(str(ROOT / "docs" / "make_pages.py"))["failure_table"]
    assert table(FAILURES) in TAXONOMY, "run docs/make_pages.py"
