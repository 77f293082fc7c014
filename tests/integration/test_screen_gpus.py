"""The screen while the NVIDIA driver is ill: it is drawn at once, says what is silent since when, and can be left."""

import re
from collections.abc import Iterator

import pytest

from tests.fakes.e2e_world import World, world
from tests.fakes.nvml.driver import FakeNvml, fake_nvml, fake_nvml_library
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal

__all__ = ["fake_nvml", "fake_nvml_library", "world"]

pytestmark = [pytest.mark.tmux, NO_TMUX]


@pytest.fixture
def driver(fake_nvml: FakeNvml, world: World) -> FakeNvml:
    world.env |= {"LD_LIBRARY_PATH": str(fake_nvml.folder), "FAKE_NVML_STATE": str(fake_nvml.state)}
    return fake_nvml


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


def test_a_gpu_driver_that_hangs_at_start_does_not_delay_the_screen(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    driver.show("gpus = 8\nhang = 600000\n")
    world.write("--steps", "5000", "--step-time", "0.05", more={"watch": {"gpu_timeout_s": 1.0}})
    world.headless()
    world.at_step(1)
    person.trainwatch()
    first = person.see("job", "Training", "RAM")
    said = person.until(lambda text: re.search(r"not answered for \d+ s", pane(text)), "since when it is silent")
    assert "No NVIDIA GPU" not in said
    person.until(lambda text: steps_of(text) > steps_of(first), "the rest of the screen goes on")
    leave(person)
    assert world.story().state == "running"


def test_each_unreadable_or_lost_gpu_is_named_and_others_are_shown(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    healthy = "gpus = 8\n[gpu *]\nutil_gpu = 77\n"
    driver.show(healthy)
    world.write("--steps", "50000", "--step-time", "0.05")
    world.headless()
    world.at_step(1)
    person.trainwatch()
    person.see("8 GPUs", "77 %")

    driver.show(healthy + "[gpu 5]\nfault = hang:2500\n")
    person.until(lambda t: re.search(r"\b5 .*✖.*(silent|answer).* \d+ s", pane(t)), "GPU 5 is silent since when")
    assert len(re.findall(r"77 %", pane(person.text))) == 7
    driver.show(healthy + "[gpu 2]\nfault = lost\n")
    shown = person.until(lambda t: re.search(r"\b2 +✖ .*lost", pane(t)), "GPU 2 is lost")
    assert "8 GPUs" in shown

    driver.show(healthy + "[gpu *]\nfault = notsupported:=power\n")
    person.until(lambda t: pane(t).count("– –") >= 7 and "✖" not in pane(t), "power is unknown, not 0")
    assert " 0 W" not in pane(person.text)

    driver.show("gpus = 8\nhang = 600000\n")
    person.until(lambda t: re.search(r"not answered for \d+ s|no answer for \d+ s", pane(t)), "all are silent")
    began = steps_of(person.text)
    person.until(lambda t: steps_of(t) > began, "the rest of the screen goes on")
    leave(person)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("init_error = driver_mismatch\n", r"version"),
        ("init_error = not_loaded\n", r"not loaded"),
        ("gpus = 0\n", r"No NVIDIA GPU"),
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
    person.until(lambda text: re.search(said, pane(text)), said)
    assert " 0 %" not in pane(person.text)
    leave(person)
