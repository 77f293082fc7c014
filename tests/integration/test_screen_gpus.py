"""The screen while the NVIDIA driver is ill: it is drawn at once, says what is silent since when, and can be left."""

import os
import re
from collections.abc import Iterator

import pytest

from tests.fakes.e2e_world import HASTY_DRIVER, World, until
from tests.fakes.nvml.driver import FakeNvml
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.tiers import SECOND_TIER

pytestmark = [pytest.mark.tmux, NO_TMUX]


@pytest.fixture
def person(world: World, driver: FakeNvml) -> Iterator[Terminal]:
    """Sits at a terminal in the project."""
    del driver
    with terminal((120, 40), world.project, world.env) as made:
        yield made


def pane(text: str) -> str:
    """The GPU pane's part of the screen."""
    rows = text.splitlines()
    top = next((i for i, row in enumerate(rows) if "GPU" in row and "╭" in row), 0)
    return "\n".join(row.split("│")[1] if row.count("│") >= 2 else row for row in rows[top : top + 14])


def leave(person: Terminal) -> None:
    person.press("q")
    person.until(lambda text: "continue" in text, "the exit message")
    person.until(lambda _: person.ended, "it ends")


def steps_of(text: str) -> int:
    found = re.search(r"step ([\d,]+)", text)
    return int(found.group(1).replace(",", "")) if found else 0


@SECOND_TIER
def test_a_gpu_driver_that_hangs_at_start_does_not_delay_the_screen(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    driver.show("gpus = 8\nhang = 600000\n")
    world.write("--steps", "5000", "--step-time", "0.05", more={"watch": {"gpu_timeout_s": 1.0}})
    world.headless("--force")  # else a start is refused
    world.at_step(1)
    person.trainwatch()
    first = person.see("job", "Training", "RAM")
    said = person.until(lambda text: re.search(r"not answered for \d+ s", pane(text)), "since when it is silent")
    assert "No NVIDIA GPU" not in said
    person.until(lambda text: steps_of(text) > steps_of(first), "the rest of the screen goes on")
    leave(person)
    assert world.story().state == "running"


@SECOND_TIER
def test_each_unreadable_or_lost_gpu_is_named_and_others_are_shown(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    healthy = "gpus = 8\n[gpu *]\nutil_gpu = 77\n"
    driver.show(healthy)
    world.write("--steps", "50000", "--step-time", "0.05", more=HASTY_DRIVER)
    world.headless()
    world.at_step(1)
    person.trainwatch()
    person.see("8 GPUs", "77 %")

    driver.show(healthy + "[gpu 5]\nfault = hang:2500\n")
    person.until(
        lambda t: re.search(r"\b5 .*✖.*(silent|answer).* \d+ s", pane(t)) and pane(t).count("77 %") == 7,
        "GPU 5 is silent since when, and the others are read",
    )
    driver.show(healthy + "[gpu 2]\nfault = lost\n")
    shown = person.until(lambda t: re.search(r"\b2 +✖ .*lost", pane(t)), "GPU 2 is lost")
    assert "8 GPUs" in shown

    driver.show(healthy + "[gpu *]\nfault = notsupported:=power\n")
    shown = person.until(lambda t: pane(t).count("– –") >= 7 and "✖" not in pane(t), "power is unknown, not 0")
    assert " 0 W" not in pane(shown)

    driver.show("gpus = 8\nhang = 600000\n")
    person.until(lambda t: re.search(r"not answered for \d+ s|no answer for \d+ s", pane(t)), "all are silent")
    began = steps_of(person.until(steps_of, "the step"))
    person.until(lambda t: steps_of(t) > began, "the rest of the screen goes on")
    leave(person)


@SECOND_TIER
@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("init_error = driver_mismatch\n", r"version"),
        pytest.param("init_error = not_loaded\n", r"not loaded", marks=SECOND_TIER),
        pytest.param("gpus = 0\n", r"No NVIDIA GPU", marks=SECOND_TIER),
    ],
    ids=["mismatch", "not_loaded", "none"],
)
def test_a_gpu_driver_error_is_shown_with_its_reason(
    world: World, driver: FakeNvml, person: Terminal, state: str, said: str
) -> None:
    driver.show(state)
    world.write("--steps", "5000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    person.trainwatch()
    shown = person.until(lambda text: re.search(said, pane(text)), said)
    assert " 0 %" not in pane(shown)
    leave(person)


@pytest.mark.skipif(
    os.readlink("/proc/self/ns/pid") != "pid:[4026531836]",  # noqa: PTH115
    reason="needs the machine's own PID namespace: in a container the driver's pids are those of the host",
)
def test_gpu_page_and_host_page_show_a_real_run_with_its_processes(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    """Before: no page had clocks, fan, PCIe, ECC, processes, cores or rates."""
    plain = "gpus = 2\n[gpu *]\nname = NVIDIA GeForce RTX 4080\nutil_gpu = 77\nfan = 43\npcie_rx = 8400\necc_mode = 1\necc_corrected = 0\necc_uncorrected = 0\n"
    driver.show(plain)
    world.write("--steps", "50000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    pid = world.status()["pid"]
    used = f"{plain}[gpu 0]\nproc = {pid} 5120 C 61 20\nproc = {os.getpid()} 2048 C\n"
    driver.show(used)
    person.trainwatch()
    person.see("2 GPUs", "77 %")
    assert not list(world.home.glob("runs/*/details.gpus")), "nothing is read before a page is open"
    person.press("8")
    person.until(lambda t: re.search(rf" {pid} +own .*5\.00 GiB +61 %", t), "the trainer's row")
    person.until(lambda t: re.search(rf" {os.getpid()} +other .*2\.00 GiB ", t), "the row of a foreign process")
    person.see("RTX 4080", "fan         43 %", "ECC         0 uncorrected, 0 corrected", "of 16.0 GiB", "100 % ┤")
    driver.show(f"{used}[gpu 1]\nthrottle = 0x40\n")  # the page opens on a GPU that is in trouble before
    person.until(lambda t: re.search(r"✖ +1 .*thermal \(hardware\)", t), "GPU 1 is slowed")
    person.press("Right")
    person.until(lambda t: re.search(r"slowed +✖ thermal \(hardware\)", t), "the facts of GPU 1")
    person.see("PCIe in  8.60 MB/s")
    person.press("9")
    person.until(lambda t: re.search(rf" {pid} .* \d+ % +\d+ MiB", t), "the trainer among the processes of the run")
    person.until(lambda t: re.search(r"\d+ cores", t), "the cores")
    person.until(lambda t: re.search(r"load +\d", t), "the load")
    person.press("Escape")
    driver.show(plain + "[gpu 1]\nfault = lost\n")
    person.see("GPU 1 lost: it no longer answers on the bus")
    leave(person)


@SECOND_TIER
def test_a_hot_gpu_is_told_with_its_limit_in_header_journal_and_list(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    hot = "gpus = 4\n[gpu *]\ntemp = 60\n[gpu 3]\ntemp = 86\n[gpu 1]\nthrottle = 0x40\n"
    driver.show(hot)
    world.write("--steps", "50000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    driver.show(f"{hot}[gpu 2]\nfault = lost\n")  # a start on a lost GPU is refused
    person.trainwatch()
    person.until(lambda t: "GPU 2 lost" in t, "the lost GPU first")
    driver.show("gpus = 4\n[gpu *]\ntemp = 60\n[gpu 3]\ntemp = 91\n[gpu 1]\nthrottle = 0x40\n[gpu 2]\nfault = lost\n")
    person.press("8")
    person.until(lambda t: re.search(r"✖ +3 .*91 °C", t), "the row of GPU 3")
    leave(person)
    until(lambda: len(world.story().incidents) == 3, "three incidents")
    assert {i.class_: i.reason.partition(":")[0] for i in world.story().incidents} == {
        "gpu3.temp": "GPU 3 too hot",
        "gpu1.slowed": "GPU 1 is slowed down by thermal (hardware)",
        "gpu2.lost": "GPU 2 lost",
    }


@SECOND_TIER
def test_details_of_a_driver_that_hangs_are_dimmed_with_their_age(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    driver.show("gpus = 1\n[gpu *]\nutil_gpu = 77\nfan = 43\n")
    world.write("--steps", "50000", "--step-time", "0.05", more=HASTY_DRIVER)
    world.headless()
    world.at_step(1)
    person.trainwatch()
    person.see("77 %")
    person.press("8")
    person.until(lambda t: re.search(r"fan +43 %", t), "the fan")
    driver.show("gpus = 1\nhang = 600000\n")
    text = person.until(lambda t: re.search(r"no.* answer.* \d+ s", t), "since when it is silent")
    assert "77 %" not in text
    leave(person)


@SECOND_TIER
@pytest.mark.parametrize("size", [(40, 10), (45, 30), (80, 24), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_pages_of_sixteen_gpus_fit_every_terminal(world: World, driver: FakeNvml, size: tuple[int, int]) -> None:
    driver.show("gpus = 16\n[gpu *]\nutil_gpu = 50~99/20\nfan = 43\n")
    world.write("--steps", "50000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    with terminal(size, world.project, world.env) as person:
        person.trainwatch()
        person.until(lambda t: "job" in t or "Training" in t, "the dashboard")
        person.press_until("8", "16 GPUs")
        for key in ("Tab", "Tab", "Tab", "z", "Down", "Right", "Escape"):
            person.press(key)
        person.press_until("9", "machine")
        person.until(lambda t: all(len(row) <= size[0] for row in t.splitlines()), "no row is too long")
        person.press_until("1", "Training")
        leave(person)


@SECOND_TIER
def test_without_a_gpu_the_page_says_why_in_a_real_run(world: World, driver: FakeNvml, person: Terminal) -> None:
    driver.show("init_error = not_loaded\n")
    world.write("--steps", "5000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    person.trainwatch()
    person.see("Training")
    person.press_until("8", "No NVIDIA GPU seen: driver not loaded")
    leave(person)
