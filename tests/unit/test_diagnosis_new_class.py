"""CONTRIBUTING: a failure class is one entry of failures.toml. Nothing else names it."""

from pathlib import Path

import msgspec
import pytest

from tests.builders import knowledge, story_of
from tests.shipped import SHAPES
from tests.unit.test_judge_recovery import crash, running, save
from trainwatch.core.config.shipped import read_table
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.recovery.ending import diagnosis_of
from trainwatch.core.judge.step import Judge
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.shipped import FailureCatalogue
from trainwatch.core.model.story import Situation
from trainwatch.core.views.report import ReportSources
from trainwatch.core.views.report_building import build_report
from trainwatch.core.views.report_pages import markdown
from trainwatch.core.views.state.status import status_object

ENTRY = """
[[classes]]
name = "tape_jam"
title = "tape jammed"
retryable = true
settings = "never"
explanation = "The tape library jammed while it was read."
remedies = ["Clear the tape path."]
gates = ["Tape path"]
exceptions = {TapeJam = 0.9}
exit_codes = {77 = 0.8}
signatures = [{weight = 0.95, literal = "ape path", pattern = 'Tape path \\d+ is blocked', source = "tape library"}]
examples = ["Tape path 7 is blocked"]
"""
SHIPPED = Path(__file__).parents[2] / "configs" / "failures.toml"


@pytest.fixture
def failures(tmp_path: Path) -> FailureCatalogue:
    path = tmp_path / "failures.toml"
    path.write_text(SHIPPED.read_text(encoding="utf-8") + ENTRY, encoding="utf-8")
    return read_table(path, FailureCatalogue)


@pytest.mark.parametrize(
    ("log", "code"),
    [("\nTape path 7 is blocked\n", 1), ("\nlibrary.errors.TapeJam: path 7\n", 1), ("\nstep done\n", 77)],
)
def test_a_new_failure_class_is_diagnosed_shown_and_restarted_with_one_entry(
    failures: FailureCatalogue, log: str, code: int
) -> None:
    catalogue = CompiledCatalogue(failures, SHAPES)
    judge = Judge(msgspec.structs.replace(knowledge(), catalogue=catalogue))
    world = crash(save(running(judge)), log, code)
    story = story_of(world.entries)
    assert "start_attempt" in world.decisions
    status = status_object(Situation(story=story, now_t=world.t, now_wall=world.t), run="x")
    (incident,) = status["incidents"]
    assert (incident["class"], incident["title"]) == ("tape_jam", "tape jammed")
    spec = RunSpec(id="x-1", name="x", command=("train",), cwd="/", created_wall=0.0)
    report = markdown(build_report(Situation(story=story, now_wall=world.t), ReportSources(spec=spec)))
    assert "tape jammed" in report
    assert "The tape library jammed while it was read." in report


def test_the_example_of_a_new_failure_class_is_its_test(failures: FailureCatalogue) -> None:
    catalogue = CompiledCatalogue(failures, SHAPES)
    quiet = "nothing of note\n" * 1000
    for text in failures.classes[-1].examples:
        assert diagnosis_of([quiet, text], catalogue, 1).title == "tape jammed"
