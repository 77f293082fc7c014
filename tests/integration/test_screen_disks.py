"""A person at a real terminal while a disk is really full: the journal's, and the one of the checkpoints."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.e2e_world import World
from tests.fakes.repeated_facts import lines_of, repeated
from tests.fakes.small_disk import NEEDS_MOUNTS, SmallDisk, small_disk
from tests.fakes.tmux_terminal import NO_TMUX, Terminal, terminal
from tests.integration.test_screen_truth import head
from tests.tiers import SECOND_TIER

pytestmark = [NO_TMUX, NEEDS_MOUNTS, pytest.mark.tmux, SECOND_TIER]

SAVER = """
import pathlib, time
out = pathlib.Path("out")
step = max([int(p.stem.rpartition("step")[2]) for p in out.glob("*.safetensors")], default=0)
header = b'{"w":{"dtype":"F32","shape":[102400],"data_offsets":[0,409600]}}'
while step < 100000:
    time.sleep(0.05)
    step += 1
    print(f"step {step}/100000 loss {2 / step:.4f}", flush=True)
    if step % 20 == 0:
        with (out / f"model-step{step:08d}.safetensors").open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + bytes(409600))
"""


@contextmanager
def disk_for(world: World, folder: Path, size_mb: float) -> Iterator[tuple[SmallDisk, Terminal]]:
    """A person and all commands where ``folder`` is a small disk."""
    with small_disk(folder, size_mb) as disk:
        world.env |= {"XDG_CACHE_HOME": str(world.short / "cache")}
        world.within = disk.within(world.project)
        if folder == world.home:
            world.home = disk.outside
        try:
            with terminal((100, 30), world.project, world.env) as person:
                person.run(f"exec {' '.join(world.within)} sh")
                yield disk, person
        finally:
            world.clear()


def test_a_journal_that_cannot_be_written_is_said_first(world: World) -> None:
    world.write("--steps", "40000", "--step-time", "0.05")
    with disk_for(world, world.home, 40) as (disk, person):
        assert world.asks("run", "--detach").code == 0
        person.trainwatch()
        person.until(lambda text: "● Training" in head(text), "the training")
        disk.fill()
        said = head(person.until(lambda text: "annot be written" in head(text), "the journal"))
        assert re.search(r"✖ .*journal.* cannot be written", said), said
        disk.empty()
        person.until(lambda text: "● Training" in head(text), "it can be written again")


def test_a_held_restart_tells_needed_and_free_room_apart(world: World) -> None:
    """Before: held … 0.1 GB are free, 0.0 GB are."""
    (world.project / "train.py").write_text(SAVER)
    with disk_for(world, world.out, 8) as (_, person):
        done = world.asks("run", "--detach", "--name", "full", "--output-dir", "out", "--", "python", "train.py")
        assert done.code == 0, done.err
        person.trainwatch("--run", "full")
        card = re.search(r"─╮([^╮╯]*disk nearly full[^╯]*)─╯", person.see("disk nearly full"))
        assert card is not None
        assert not repeated([" ".join(re.sub(r"[│╭╰]", " ", card[1]).split())])
        head_line, *rest = lines_of(world.asks("status", "full"))
        assert re.search("[Dd]isk (nearly|is) full", head_line), "held, if the disk is full meanwhile"
        assert not repeated(rest), "what the head names stands once below it"
        assert not repeated(lines_of(world.asks("report", "full", "--short")))
        person.press("Escape")  # the card of what needs a person
        text = person.until(lambda text: "held:" in head(text), "the held restart")
        found = re.search(r"continues when (\S+ \S+) are free \((\S+ \S+) were\)", head(text))
        assert found is not None, text
        assert found[1] != found[2]
        assert not re.search(r"\b0\.0+ GB", text)
