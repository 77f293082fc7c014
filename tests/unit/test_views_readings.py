"""`status`, the health list and the header show the readings of now, not those of the last change of level."""

from typing import Any

import pytest

from tests.unit.test_views_whole_run import began, told
from trainwatch.core.model.attempt import Incident
from trainwatch.core.model.fact import Fact, HealthChanged, IncidentOpened, StateChanged
from trainwatch.core.model.observation import GpuReading, GpuSample, HostSample
from trainwatch.core.model.progress import Level
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


def test_status_has_the_temperature_of_now() -> None:
    """It said 45 °C, the value of the first level, while the sample said 85."""
    story = levels("gpu0.temp", 45, "°C", "safe")
    assert shown(story, card(temp_c=85, util_pct=97)) == {"gpu0.temp": (85, "warning"), "gpu0.util": (97, "safe")}
    assert shown(story, card(temp_c=60)) == {"gpu0.temp": (60, "safe")}


def test_near_a_bound_the_level_is_the_judges() -> None:
    assert shown(levels("gpu0.temp", 84, "°C", "warning"), card(temp_c=85.5))["gpu0.temp"] == (85.5, "warning")


def test_without_a_sample_the_last_level_stays() -> None:
    assert shown(levels("gpu0.temp", 88, "°C", "danger"), None) == {"gpu0.temp": (88, "danger")}


def test_memory_of_a_card_and_the_host_are_of_now() -> None:
    story = levels("gpu0.vram", 100, "%", "warning")
    assert shown(story, card(mem_used_bytes=15 * GIB))["gpu0.vram"] == (93.75, "safe")
    host = HostSample(t=90.0, ram_used_bytes=20e9, ram_total_bytes=25e9, ram_available_bytes=5e9, disk_free_bytes=1e12)
    assert shown(levels("ram_used", 60, "%", "safe"), None, host) == {"ram_used": (80.0, "warning")}
    assert shown(levels("ram_available", 9e9, "B", "safe"), None, host) == {"ram_available": (5e9, "warning")}


@pytest.mark.parametrize(
    ("used", "sentence"), [(15, "GPU 0 memory 94 % (safe)"), (16, "GPU 0 memory nearly full: 100 % (limit 98 %)")]
)
def test_header_names_the_value_of_now(used: int, sentence: str) -> None:
    """The header said "vram is 100 %" beside a meter that showed 94 %."""
    story = levels("gpu0.vram", 100, "%", "warning", incident=True)
    now = Situation(story=story, gpu=card(mem_used_bytes=used * GIB), now_t=100.0, now_wall=1100.0)
    assert sentence in header_view(now).verdict.sentence
    unread = Situation(story=story, now_t=100.0, now_wall=1100.0)
    assert "GPU 0 memory nearly full: 100 %" in header_view(unread).verdict.sentence


def test_header_names_the_free_disk_of_now() -> None:
    story = levels("ram_available", 3e9, "B", "danger", incident=True)
    now = Situation(story=story, host=HostSample(t=90.0, ram_available_bytes=3.5e9), now_t=100.0, now_wall=1100.0)
    assert "Almost no RAM available: 3.26 GiB (limit 3.73 GiB)" in header_view(now).verdict.sentence
