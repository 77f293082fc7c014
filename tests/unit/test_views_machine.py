"""The GPU page and the host page as values: what is known with its unit, what is not as –, what is old dimmed."""

import msgspec
import pytest

from tests.fakes.feed import empty, healthy, readings
from tests.fakes.screen_jobs import machine_details
from trainwatch.core.model.machine_details import GpuDetails, MachineDetails
from trainwatch.core.model.observation import GpuSample
from trainwatch.core.model.story import Situation
from trainwatch.core.views.machine_page import (
    PROCESS_COLUMNS,
    TREE_COLUMNS,
    GpuCard,
    command,
    gpu_page_view,
    host_page_view,
)

replace = msgspec.structs.replace


def facts(card: GpuCard) -> dict[str, tuple[str, str]]:
    return {fact.label: (fact.text, fact.level) for fact in card.facts}


def gauges(card: GpuCard) -> dict[str, tuple[str, str]]:
    return {gauge.label: (gauge.text, gauge.level) for gauge in card.gauges}


def page(now: Situation, details: GpuDetails | None) -> GpuCard:
    (card,) = gpu_page_view(now, details).cards
    return card


def test_a_gpu_has_a_gauge_for_each_reading_with_its_unit() -> None:
    now = healthy()
    card = page(now, machine_details(now).gpus)
    assert gauges(card) == {
        "utilisation": ("98 %", "safe"),
        "memory": ("14.2 of 14.9 GiB", "safe"),
        "power": ("291 W of 320 W", "safe"),
        "temperature": ("62 °C", "safe"),
        "SM clock": ("2,706 of 3,105 MHz", "safe"),
        "fan": ("59 %", "safe"),
        "PCIe in": ("8.60 MB/s", "safe"),
        "PCIe out": ("2.20 MB/s", "safe"),
    }
    found = facts(card)
    assert found["limit"] == ("slows 101 °C, off 104 °C", "safe")
    assert found["PCIe"] == ("gen 4 x8 (can 4 x16)", "safe")
    assert found["ECC"] == ("0 uncorrected, 3 corrected", "safe")
    assert found["driver"] == ("570.133.07, CUDA 12.8", "safe")
    assert found["mem busy"] == ("47 %", "safe")
    assert found["MIG"] == ("–", "unknown")


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


def test_what_the_history_keeps_is_drawn_from_it() -> None:
    now = healthy()
    reading = replace(readings(0.0).gpus[0], fan_pct=41.0, clock_mem_mhz=11201.0)
    kept = replace(now, gpu=GpuSample(t=now.now_t, gpus=(reading,)))
    series = {gauge.label: gauge.series for gauge in page(kept, machine_details(now).gpus).gauges}
    assert (series["fan"], series["PCIe in"]) == ("gpu0.fan", "gpu0.pcie_in")
    assert gauges(page(kept, None))["fan"] == ("41 %", "safe"), "the sample has it, also without details"
    late = machine_details(replace(now, now_t=now.now_t - 42)).gpus
    shown = gauges(page(kept, late))
    assert (shown["fan"][1], shown["PCIe in"][1]) == ("safe", "unknown"), "only the rates are old"
    assert now.host is not None
    host = replace(now, host=replace(now.host, disk_read=5e6, disk_written=1e6))
    drawn = {gauge.label: gauge.series for gauge in host_page_view(host, machine_details(now)).gauges}
    assert drawn["disks read"] == "host.disk_read"


def test_old_details_are_dimmed_with_their_age() -> None:
    now = healthy()
    details = machine_details(replace(now, now_t=now.now_t - 42)).gpus
    view = gpu_page_view(now, details)
    assert view.note == "details 42 s old"
    assert view.processes_note == "42 s old"
    assert view.stale
    assert gauges(view.cards[0])["fan"] == ("59 %", "unknown")
    assert gauges(view.cards[0])["utilisation"] == ("98 %", "safe"), "the sample is of now"
    assert facts(view.cards[0])["ECC"][1] == "unknown"
    old = gpu_page_view(replace(now, now_t=now.now_t + 200), details)
    assert {gauge.level for gauge in old.cards[0].gauges} == {"unknown"}
    assert old.cards[0].level == "unknown"
    assert old.note.startswith("3 min old")


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


def test_a_lost_gpu_has_its_sentence_instead_of_values() -> None:
    now = healthy()
    lost = replace(readings(now.now_t).gpus[0], trouble="lost: it no longer answers on the bus")
    card = page(replace(now, gpu=GpuSample(t=now.now_t, gpus=(lost,))), machine_details(now).gpus)
    assert (card.gauges, card.facts, card.level) == ((), (), "danger")
    assert card.view.trouble == "lost: it no longer answers on the bus"


def test_processes_are_own_or_foreign_with_memory_user_and_command() -> None:
    now = healthy()
    own, foreign = gpu_page_view(now, machine_details(now).gpus).processes
    one, two = ({column.title: column.text(row) for column in PROCESS_COLUMNS} for row in (own, foreign))
    assert [one[name] for name in ("pid", "whose", "user", "memory", "SM", "CPU", "command")] == [
        "4202", "own", "mira", "14.2 GiB", "80 %", "112 %", "python train_network.py --config_file sdxl.toml",
    ]  # fmt: skip
    assert [two[name] for name in ("whose", "type", "SM", "RAM")] == ["other", "G", "–", "–"]


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


def test_details_that_never_come_are_not_waited_for_forever() -> None:
    """A supervisor of an older trainwatch does not read them."""
    now = healthy()
    assert gpu_page_view(now, None, late=True).processes_note.startswith("Not known: this run's supervisor")
    late = host_page_view(now, MachineDetails(), late=True)
    assert late.rows_note == gpu_page_view(now, None, late=True).processes_note
    assert gpu_page_view(now, machine_details(now).gpus, late=True).processes_note == ""


def test_a_simulated_gpu_has_no_empty_charts() -> None:
    now = healthy()
    simulated = replace(now, gpu=readings(now.now_t, simulated=True))
    assert [gauge.label for gauge in page(simulated, None).gauges] == [
        "utilisation", "memory", "power", "temperature", "SM clock",
    ]  # fmt: skip


def test_the_page_says_why_there_is_no_gpu() -> None:
    now = healthy()
    refused = replace(now, gpu=GpuSample(t=now.now_t, trouble="No NVIDIA GPU seen: driver not loaded"))
    assert gpu_page_view(refused, None).message == "No NVIDIA GPU seen: driver not loaded"
    assert gpu_page_view(empty(), None).message == "No reading: no supervisor is running"
    unwatched = replace(now, supervisor_alive=False)
    assert "no supervisor is running" in gpu_page_view(unwatched, None).processes_note
    assert gpu_page_view(replace(now, gpu=readings(now.now_t, simulated=True)), None).processes_note.startswith(
        "The GPU is simulated"
    )


def test_the_host_has_gauges_rates_and_the_processes_of_the_run() -> None:
    now = healthy()
    view = host_page_view(now, machine_details(now))
    found = {gauge.label: gauge.text for gauge in view.gauges}
    assert found["RAM"] == "11.3 of 27.9 GiB"
    assert found["CPU of the run"].endswith(" of 4 cores")
    assert found["swap"] == "0.26 GiB of 7.45 GiB"
    facts_of = {fact.label: fact.text for fact in view.facts}
    assert facts_of["nvme0n1"].startswith("120 MB/s read, ")
    assert facts_of["nvme0n1"].endswith(", busy 40 %")
    assert facts_of["eth0"].endswith(", – out")
    assert facts_of["load"] == "2.40  2.10  1.90"
    assert facts_of["cores"] == "4, the busiest 96 %"
    trainer, worker = ({column.title: column.text(row) for column in TREE_COLUMNS} for row in view.rows)
    assert [trainer[name] for name in ("pid", "state", "CPU", "RAM")] == ["4202", "runs", "112 %", "2.79 GiB"]
    assert (worker["state"], worker["CPU"]) == ("blocked", "–")


def test_the_host_page_without_details_says_why() -> None:
    now = healthy()
    waiting = host_page_view(now, MachineDetails())
    assert waiting.rows_note == "Reading …"
    assert {f.text for f in waiting.facts if f.label in {"load", "CPU temp", "cached"}} == {"–"}
    dead = host_page_view(replace(now, supervisor_alive=False), MachineDetails())
    assert "no supervisor is running" in dead.rows_note
    old = host_page_view(replace(now, now_t=now.now_t + 60), machine_details(now))
    assert old.rows_note == "60 s old"
    nothing = host_page_view(empty(), MachineDetails())
    assert (nothing.gauges, nothing.facts) == ((), ())
    assert nothing.message == "No reading: no supervisor is running"


def test_a_command_begins_with_the_name_of_its_program() -> None:
    assert command("/usr/bin/python -m train --out /data") == "python -m train --out /data"
    assert command("python x.py") == "python x.py"
    assert command(None) == "–"
