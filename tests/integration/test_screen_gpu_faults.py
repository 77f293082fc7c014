"""GPUs that fail, get too hot, are slowed down or are not read any more, in real runs at a real terminal."""

import os
import re
import signal
from collections.abc import Iterator

import pytest

from tests.fakes.e2e_world import HASTY_DRIVER, World, until
from tests.fakes.nvml.driver import FakeNvml
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.integration.test_screen_truth import head
from tests.tiers import SECOND_TIER
from trainwatch.core import processes
from trainwatch.core.model.fact import IncidentOpened

pytestmark = [pytest.mark.tmux, NO_TMUX, SECOND_TIER]
NEVER_MS, SLOW_MS = 3_600_000, 20_000
"""A driver that hangs for ever gets another reader; a call for one GPU is waited for."""
HEALTHY = "gpus = 2\n[gpu *]\nutil_gpu = 77\ntemp = 60\n"


@pytest.fixture
def driver(fake_nvml: FakeNvml, world: World) -> FakeNvml:
    world.env |= {"LD_LIBRARY_PATH": str(fake_nvml.folder), "FAKE_NVML_STATE": str(fake_nvml.state)}
    fake_nvml.show(HEALTHY)
    return fake_nvml


@pytest.fixture
def person(world: World, driver: FakeNvml) -> Iterator[Terminal]:
    """Looks at a training whose two GPUs are well."""
    del driver
    world.write("--steps", "50000", "--step-time", "0.05", more=HASTY_DRIVER)
    assert world.asks("run", "--detach").code == 0
    world.at_step(20)
    with terminal((120, 40), world.project, world.env) as made:
        made.trainwatch()
        made.see("2 GPUs", "77 %", "RAM")
        yield made


def children(pid: int) -> list[int]:
    """Pids of the processes that this one started."""
    return [child.pid for child in processes.all_processes().values() if child.parent == pid]


def new(person: Terminal, label: str = "RAM") -> set[str]:
    """The colours of utilisations that were just read; old ones are grey as the label is."""
    return {colour for colour, _ in person.styles("77 %")} - {colour for colour, _ in person.styles(label)}


def test_readings_of_a_frozen_supervisor_are_dimmed_with_their_age_on_every_page(
    world: World, person: Terminal
) -> None:
    """Before: the GPU pane and the list of the GPU page kept old values bright."""
    assert len(new(person)) == 1
    pid = world.status()["supervisor"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        text = person.until(lambda t: len(re.findall(r"\d+ s old", t)) >= 2, "the age of the GPUs and of the memory")
        assert "no step for" not in head(text)
        assert "Last step" not in head(text), "nobody looks for steps"
        assert person.styles("77 %")
        assert not new(person)
        assert not any(bold for _, bold in person.styles("GiB"))
        assert "╱" not in text, "the trainer may go on"
        grey = set(person.styles("s old"))
        person.press("8")
        person.until(lambda t: re.search(r"utilisation +77 %", t) and "s old" in t, "the GPU page")
        assert set(person.styles("2,505 MHz")) | set(person.styles("77 %")) <= grey | set(person.styles("–"))
        person.press("9")
        person.until(lambda t: "CPU of the machine" in t and "s old" in t, "the host page")
        assert not any(bold for _, bold in person.styles("GiB"))
    finally:
        os.kill(pid, signal.SIGCONT)


def test_readings_of_a_stopped_gpu_reader_are_dimmed_and_then_said_to_be_missing(
    world: World, person: Terminal
) -> None:
    (reader,) = (child for child in children(world.status()["supervisor"]["pid"]))
    os.kill(reader, signal.SIGSTOP)
    person.until(lambda t: re.search(r"(no|not) .*answer.* \d+ s|\d+ s old", t), "that the reader is silent")
    person.until(lambda _: not new(person), "nothing looks new")
    person.until(lambda _: new(person), "another reader reads them again")


@pytest.mark.parametrize("where", ["driver", "one GPU"])
def test_a_driver_that_hangs_is_told_with_its_age_until_it_answers(
    where: str, world: World, driver: FakeNvml, person: Terminal
) -> None:
    """A call of the driver does not return. No old value looks new, the training goes on, and the values come back."""
    assert new(person)
    driver.show(f"hang = {NEVER_MS}\n{HEALTHY}" if where == "driver" else f"{HEALTHY}[gpu 1]\nfault = hang:{SLOW_MS}\n")
    silent = ("0", "1") if where == "driver" else ("1",)

    def ages(text: str) -> dict[str, int]:
        return {found[1]: int(found[2]) for found in re.finditer(r"│ +(\d) .*?no answer for (\d+) s", text)}

    first = ages(person.until(lambda t: set(silent) <= set(ages(t)), "the GPUs that do not answer"))
    text = person.until(lambda t: all(ages(t).get(gpu, 0) > first[gpu] for gpu in silent), "that the age grows")
    assert "no answer" in head(text)
    assert "Training" in head(text), "a driver that hangs says nothing about the trainer"
    if where == "driver":
        assert not new(person)
    before = world.status()["progress"]["step"]
    until(lambda: world.status()["progress"]["step"] > before, "steps while the driver hangs")
    person.press("8")
    text = person.until(lambda t: "no answer for" in t and "processes" in t, "the GPU page")
    if where == "driver":
        assert not new(person, "utilisation")
    driver.show(HEALTHY)
    person.until(lambda t: "no answer" not in t and new(person, "utilisation"), "new values")
    person.press("1")
    text = person.until(lambda t: "no answer" not in t and "2 GPUs" in t, "the dashboard without the trouble")
    assert "lost" not in head(text)


def test_a_gpu_that_is_too_hot_or_slowed_is_told_in_header_incident_and_journal(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    driver.show(f"{HEALTHY}[gpu 1]\ntemp = 91\n")
    person.until(lambda t: "GPU 1 too hot: 91 °C" in head(t), "the hot GPU")
    person.until(lambda t: re.search(r"│ .*GPU 1 too hot", t), "its incident")
    driver.show(f"{HEALTHY}[gpu 0]\nthrottle = 0x40\n[gpu 1]\ntemp = 91\n")
    person.until(lambda t: "(+1 more)" in head(t), "both")
    until(lambda: {i.class_ for i in world.story().incidents} == {"gpu1.temp", "gpu0.slowed"}, "both incidents")
    driver.show(f"{HEALTHY}[gpu 0]\nthrottle = 0x40\n")
    person.until(
        lambda t: "GPU 0 is slowed down by thermal (hardware)" in head(t), "the slowed GPU, when the other is well"
    )
    told = [record.fact.incident for record in world.records() if isinstance(record.fact, IncidentOpened)]
    assert {incident.reason.partition(":")[0] for incident in told} == {
        "GPU 1 too hot",
        "GPU 0 is slowed down by thermal (hardware)",
    }


def test_a_lost_gpu_of_the_run_is_danger_in_header_incident_and_journal(
    world: World, driver: FakeNvml, person: Terminal
) -> None:
    own = f"{HEALTHY}[gpu 1]\nproc = {world.status()['pid']} 5120 C 61 20\n"
    driver.show(own)
    person.until(lambda _: any(gpu["own"] for gpu in world.status()["gpus"]), "a GPU of the run")
    driver.show(f"{own}fault = lost\n")
    person.until(lambda t: re.search(r"✖ GPU 1 lost: it no longer answers on the bus", head(t)), "the lost GPU")
    until(lambda: any(i.class_ == "gpu1.lost" and i.severity == "danger" for i in world.story().incidents), "incident")
    person.until(lambda t: re.search(r"│ .*✖ .*GPU 1 lost", t), "its incident on the screen")
    assert "GPU 1 lost" in world.asks("status").out.splitlines()[0]
