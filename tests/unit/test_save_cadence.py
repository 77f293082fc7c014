"""What a save costs, and how often a run should save: only with evidence."""

import pytest

from tests.builders import Story, World
from tests.fakes.feed import healthy
from tests.unit.test_lost_time import incident, state, told
from trainwatch.core.judge.findings import pace
from trainwatch.core.judge.findings.pace import SaveCost
from trainwatch.core.model.fact import AttemptStarted, Fact, SaveMeasured
from trainwatch.core.views.state.cadence import Cadence, cadence, cadence_words
from trainwatch.core.views.timeline import timeline_view

HOUR = 3600.0


def world_with(story: Story) -> World:
    return World().begin().watch(story)


def measured(world: World) -> list[SaveMeasured]:
    return world.of(SaveMeasured)


def test_a_save_costs_what_its_step_took_longer() -> None:
    story = Story(meta=False).load(10).train(40).save(20.0, "out/a").train(40).save(20.0, "out/b").train(5)
    first, second = measured(world_with(story))
    assert first.cost_s == pytest.approx(20.0, abs=1.0)
    assert first.every_s is None
    assert second.cost_s == pytest.approx(20.0, abs=1.0)
    assert second.every_s == pytest.approx(40 * 2.5 + 20, abs=5.0)


def test_the_files_of_one_save_count_once() -> None:
    story = Story(meta=False).load(10).train(40).save(20.0, "out/a")
    story.checkpoint("out/b", step=40).checkpoint("out/c", step=40).train(20)
    assert len(measured(world_with(story))) == 1


def test_a_checkpoint_that_is_noticed_late_belongs_to_its_own_step() -> None:
    known = SaveCost()
    for t in (0.0, 2.5, 5.0, 25.0, 27.5, 30.0, 37.0):
        known, _ = pace.with_saved_step(known, t, 2.5)
    _, found = pace.with_checkpoint(known, 24.9)
    assert found is not None
    assert found.cost_s == 17.5
    for t in range(40, 400, 3):
        known, _ = pace.with_saved_step(known, float(t), 2.5)
    known, _ = pace.with_saved_step(known, 420.0, 2.5)
    assert [gap.end_t for gap in known.gaps] == [420.0]  # older ones are forgotten


def saves(cost_s: float, every_s: float | None, count: int = 3) -> list[tuple[float, Fact]]:
    return [(10.0, SaveMeasured(attempt=1, cost_s=cost_s, every_s=every_s))] * count


FIRST = (state(0, "starting"), (0.0, AttemptStarted(attempt=1, pid=1)), state(0, "running"))


def test_the_interval_is_that_of_young() -> None:
    story = told(*FIRST, *saves(9.0, 2100.0), incident(7200, "crash", 0.0), state(7200, "running"))
    known = cadence(story, 2 * 7200.0)
    assert known.failure_s == 4 * HOUR
    assert known.best_s == pytest.approx((2 * 9.0 * 4 * HOUR) ** 0.5)
    assert known.is_off
    words = "every 35 min; every 8 min would lose less: a save costs 9 s, and it failed once in 4 h 00 m of training"
    assert cadence_words(known) == words


def test_nothing_is_advised_without_evidence() -> None:
    unknown = cadence(told(*FIRST), HOUR)
    assert unknown == Cadence()
    assert cadence_words(unknown) == "–"
    one_save = cadence(told(*FIRST, *saves(9.0, None, 1), incident(10, "crash", 0.0)), HOUR)
    assert (one_save.cost_s, one_save.best_s, one_save.is_off) == (None, None, False)
    no_failure = cadence(told(*FIRST, *saves(9.0, 600.0)), HOUR)
    assert cadence_words(no_failure) == "every 10 min; a save costs 9 s"
    by_person = cadence(told(*FIRST, *saves(9.0, 600.0), incident(10, "health", 0.0)), HOUR)
    assert by_person.failures == 0


def test_an_interval_that_is_nearly_right_is_left_alone() -> None:
    story = told(*FIRST, *saves(0.2, 100.0), incident(10, "hang", 0.0), incident(20, "crash", 0.0))
    known = cadence(story, HOUR)
    assert known.best_s == 60.0  # no shorter one is advised
    assert not known.is_off
    words = "every 100 s, which is right: a save costs less than 1 s, and it failed 2 times in 1 h 00 m of training"
    assert cadence_words(known) == words


def test_the_screen_advises_only_where_much_is_lost() -> None:
    assert "better a save" not in timeline_view(healthy()).title
