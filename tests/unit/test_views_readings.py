"""`status`, the health list and the header show the readings of now, not those of the last change of level."""

from typing import Any

from tests.unit.test_views_whole_run import began, told
from trainwatch.core.model.fact import Fact, HealthChanged, IncidentOpened, StateChanged
from trainwatch.core.model.observation import GpuReading, GpuSample, HostSample
from trainwatch.core.model.progress import Level
from trainwatch.core.model.run import Incident
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.views.dashboard import header_view
from trainwatch.core.views.state.status import status_object

GIB = 1 << 30


def levels(metric: str, value: float, unit: str, level: Level, *, incident: bool = False) -> RunStory:
    facts: list[tuple[float, Fact]] = [
        (1.0, began(1)),
        (2.0, StateChanged(state="running", reason="")),
        (3.0, HealthChanged(metric=metric, value=value, unit=unit, level=level, before="unknown")),
    ]
    if incident:
        reason = f"{metric} is {value:.0f} {unit}: {level}"
        opened = Incident(
            id=1, t=3.0, wall=1003.0, kind="health", class_=metric, reason=reason, severity="warning", attempt=1
        )
        facts.append((3.0, IncidentOpened(incident=opened)))
    return told(*facts)


def shown(story: RunStory, gpu: GpuSample | None, host: HostSample | None = None) -> dict[str, tuple[float, str]]:
    found = status_object(Situation(story=story, gpu=gpu, host=host, now_t=100.0, now_wall=1100.0), run="r")
    return {r["metric"]: (r["value"], r["level"]) for r in found["health"]}


def card(**reading: Any) -> GpuSample:
    return GpuSample(t=90.0, gpus=(GpuReading(index=0, mem_total_bytes=16 * GIB, **reading),))


def test_near_a_bound_the_level_is_the_judges() -> None:
    assert shown(levels("gpu0.temp", 84, "°C", "warning"), card(temp_c=85.5))["gpu0.temp"] == (85.5, "warning")


def test_without_a_sample_the_last_level_stays() -> None:
    assert shown(levels("gpu0.temp", 88, "°C", "danger"), None) == {"gpu0.temp": (88, "danger")}


def test_header_names_the_free_disk_of_now() -> None:
    story = levels("ram_available", 3e9, "B", "danger", incident=True)
    now = Situation(story=story, host=HostSample(t=90.0, ram_available_bytes=3.5e9), now_t=100.0, now_wall=1100.0)
    assert "Almost no RAM available: 3.26 GiB (limit 3.73 GiB)" in header_view(now).verdict.sentence
