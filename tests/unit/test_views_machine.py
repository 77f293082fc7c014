"""The GPU page and the host page as values: what is known with its unit, what is not as –, what is old dimmed."""

import msgspec
import pytest

from tests.fakes.feed import empty, healthy, readings
from tests.fakes.screen_jobs import machine_details
from trainwatch.core.model.machine_details import GpuDetails, MachineDetails
from trainwatch.core.model.observation import GpuSample
from trainwatch.core.model.story import Situation
from trainwatch.core.views.dashboard import memory_view
from trainwatch.core.views.machine_page import GpuCard, gpu_page_view, host_page_view

replace = msgspec.structs.replace


def facts(card: GpuCard) -> dict[str, tuple[str, str]]:
    return {fact.label: (fact.text, "safe" if fact.style == "text" else fact.style) for fact in card.facts}


def gauges(card: GpuCard) -> dict[str, tuple[str, str]]:
    return {gauge.label: (gauge.text, gauge.level) for gauge in card.gauges}


def page(now: Situation, details: GpuDetails | None) -> GpuCard:
    (card,) = gpu_page_view(now, details).cards
    return card


def test_what_the_driver_does_not_tell_is_unknown_and_never_zero() -> None:
    now = healthy()
    bare = replace(now, gpu=GpuSample(t=now.now_t, gpus=(replace(readings(0.0).gpus[0], util_pct=None, power_w=None),)))
    card = page(bare, None)
    assert gauges(card)["utilisation"] == ("–", "unknown")
    assert gauges(card)["power"] == ("–", "unknown")
    assert gauges(card)["SM clock"] == ("–", "unknown")
    assert {text for label, (text, _) in facts(card).items() if label in {"fan", "ECC", "PCIe", "limit", "slowed"}} == {
        "–"
    }
    known = machine_details(now).gpus
    assert known is not None
    without_fan = replace(known, gpus=(replace(known.gpus[0], fan_pct=None),))
    assert "fan" not in gauges(page(now, without_fan)), "no chart of what is never known"
    assert facts(page(now, without_fan))["fan"] == ("–", "unknown")


@pytest.mark.parametrize(
    ("throttle", "text", "level"),
    [
        (None, "–", "unknown"),
        ((), "no", "safe"),
        (("power cap",), "power cap", "safe"),
        (("power cap", "thermal (hardware)"), "power cap, thermal (hardware)", "danger"),
    ],
)
def test_a_power_cap_is_usual_and_a_fault_of_the_hardware_is_not(
    throttle: tuple[str, ...] | None, text: str, level: str
) -> None:
    now = healthy()
    slowed = replace(now, gpu=GpuSample(t=now.now_t, gpus=(replace(readings(0.0).gpus[0], throttle=throttle),)))
    card = page(slowed, machine_details(now).gpus)
    assert (card.slowed, card.slowed_level) == (text, level)
    assert (card.level == "danger") == (level == "danger")


def test_uncorrected_errors_and_rows_that_wait_for_a_reset_are_alarms() -> None:
    now = healthy()
    details = machine_details(now).gpus
    assert details is not None
    bad = replace(details.gpus[0], ecc_uncorrected=2, rows_remapped=4, rows_pending=True)
    card = page(now, replace(details, gpus=(bad,)))
    assert facts(card)["ECC"] == ("2 uncorrected, 3 corrected", "danger")
    assert facts(card)["bad rows"] == ("4 replaced, more after a reset", "warning")
    assert card.level == "danger"
    off = page(now, replace(details, gpus=(replace(details.gpus[0], ecc=False),)))
    assert facts(off)["ECC"] == ("off", "safe")


@pytest.mark.parametrize(
    ("details", "note"),
    [
        (None, "Reading …"),
        (GpuDetails(t=5.2 * 3600), "Not known: the driver does not list processes (as under WSL2)"),
        (GpuDetails(t=5.2 * 3600, processes=()), "No process uses a GPU"),
    ],
)
def test_the_page_says_why_there_are_no_processes(details: GpuDetails | None, note: str) -> None:
    assert gpu_page_view(healthy(), details).processes_note == note


def test_the_page_says_why_details_or_gpus_are_not_there() -> None:
    """A supervisor of an older trainwatch does not read details: they are not waited for forever."""
    now = healthy()
    assert gpu_page_view(now, None, late=True).processes_note.startswith("Not known: this run's supervisor")
    late = host_page_view(now, MachineDetails(), late=True)
    assert late.rows_note == gpu_page_view(now, None, late=True).processes_note
    assert gpu_page_view(now, machine_details(now).gpus, late=True).processes_note == ""
    refused = replace(now, gpu=GpuSample(t=now.now_t, trouble="No NVIDIA GPU seen: driver not loaded"))
    assert gpu_page_view(refused, None).message == "No NVIDIA GPU seen: driver not loaded"
    assert gpu_page_view(empty(), None).message == "No reading: no supervisor is running"
    unwatched = replace(now, supervisor_alive=False)
    assert "no supervisor is running" in gpu_page_view(unwatched, None).processes_note
    simulated = replace(now, gpu=readings(now.now_t, simulated=True))
    assert gpu_page_view(simulated, None).processes_note.startswith("The GPU is simulated")


@pytest.mark.parametrize(("kept_s", "gone"), [(-1.0, True), (2.0, False), (20.0, True)])
def test_processes_of_an_ended_attempt_are_not_shown_as_running(kept_s: float, gone: bool) -> None:
    """What is left of it after its end is; one that was seen before the newest attempt began tells nothing of now."""
    now, details = healthy(), machine_details(healthy())
    assert details.tree is not None
    assert now.process is not None
    *before, newest = now.story.attempts
    ended = replace(newest, ended_t=now.now_t - kept_s)
    over = replace(now, story=replace(now.story, attempts=(*before, ended)))
    later = replace(over, now_t=over.now_t + (kept_s if kept_s > 5 else 0))
    cpu = next(meter for meter in memory_view(later).meters if meter.label == "cpu")
    page = host_page_view(later, details)
    assert ((cpu.text, cpu.extra, cpu.level) == ("–", "no process", "unknown")) == gone
    assert (not page.rows and page.rows_note.startswith("No process of the run is there")) == gone
    restarted = replace(now, story=replace(now.story, attempts=(*before, replace(newest, t=now.now_t + 1))))
    assert host_page_view(restarted, details).rows_note == "Reading …"
    assert next(meter for meter in memory_view(restarted).meters if meter.label == "cpu").text == "–"
