"""How the values of a metric went, for the report."""

from pathlib import Path

from trainwatch.core.app.runs.report import metric_courses
from trainwatch.core.model.observation import MetricValues
from trainwatch.core.store.history_reader import HistoryReader
from trainwatch.core.store.history_writer import HistoryWriter


def test_the_last_value_is_not_the_mean_of_its_second(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.sqlite")
    for t, value in ((0.5, 0.9), (4.1, 0.4), (4.5, 0.3), (4.9, 0.2)):
        writer.add(MetricValues(t=t, values={"loss": value}))
    writer.close()
    with HistoryReader(tmp_path / "history.sqlite") as history:
        newest = history.latest().metrics
        assert newest is not None
        (course,) = metric_courses(history, 10.0, newest.values)
        (without,) = metric_courses(history, 10.0, {})
    assert (course.first, course.last, course.lowest, course.highest) == (0.9, 0.2, 0.2, 0.9)
    assert without.last > course.last, "a history of an older version has no newest values"
