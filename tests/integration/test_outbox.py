"""Quiet hours and notices that are sent together, with a real command that is notified."""

import datetime as dt
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import until
from trainwatch.core.act.notify.held_notices import FILE, HeldNotice, HeldNotices, together
from trainwatch.core.act.notify.outbox import Outbox
from trainwatch.core.act.notify.quiet_time import quiet_until
from trainwatch.core.app.supervise.observation_works import ObservationWorks
from trainwatch.core.model.observation import HostSample, ProcessSample
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Notify, Settings
from trainwatch.core.model.text.json_line import encode_exact

KEEP = "import sys; open('heard', 'a').write(sys.stdin.read())"


def at(hour: int, minute: int = 0, day: int = 22) -> float:
    return dt.datetime(2026, 11, day, hour, minute).timestamp()  # noqa: DTZ001  local, as the setting is


class Place:
    def __init__(self, folder: Path, **notify: Any) -> None:
        self.folder = folder
        self.wall = at(22)
        self.said: list[str] = []
        settings = Settings(notify=Notify(command=(sys.executable, "-c", KEEP), **notify))
        self.spec = RunSpec(
            id="luca-1", name="luca", command=("x",), cwd=str(folder), created_wall=0.0, settings=settings
        )

    def outbox(self) -> Outbox:
        return Outbox(self.spec, self.folder, tell=self.said.append, now=lambda: self.wall)

    @property
    def heard(self) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in (self.folder / "heard").read_text().splitlines()]
        except FileNotFoundError:
            return []


@pytest.mark.parametrize(
    ("hours", "wall", "until_"),
    [
        ("23:00-07:00", at(22, 59), None),
        ("23:00-07:00", at(23), at(7, day=23)),
        ("23:00-07:00", at(6, 59), at(7)),
        ("23:00-07:00", at(7), None),
        ("12:00-13:30", at(13), at(13, 30)),
        ("", at(3), None),
    ],
)
def test_quiet_hours_end_at_their_next_end(hours: str, wall: float, until_: float | None) -> None:
    assert quiet_until(hours, wall) == until_


def test_in_quiet_hours_only_what_cannot_wait_is_sent_and_takes_along_what_waits(tmp_path: Path) -> None:
    place = Place(tmp_path, quiet="22:00-07:00")
    box = place.outbox()
    ok, detail, _ = box.send("incident", "luca: hang (idle)", "no step for 3 min", 1)
    assert (ok, detail) == (True, "it is sent at 07:00:00 (quiet hours)")
    assert place.heard == []
    box.send("recovery", "luca: trains again", "")
    assert box.send("give_up", "luca: given up", "3 restarts")[0]
    [heard] = place.heard
    assert (heard["event"], heard["title"]) == ("give_up", "luca: 3 notices: given up")
    assert heard["body"].splitlines() == [
        "22:00  hang (idle)",
        "    no step for 3 min",
        "22:00  trains again",
        "22:00  given up",
        "    3 restarts",
    ]
    box.close()
    assert not (tmp_path / FILE).exists()


def test_notices_of_some_seconds_are_one_message(tmp_path: Path) -> None:
    place = Place(tmp_path, group_s=60.0)
    box = place.outbox()
    box.send("incident", "luca: crash (cuda_oom)", "why", 4)
    place.wall += 5
    box.send("restart", "luca: attempt 2 started", "")
    place.wall += 56
    box._wake.set()
    heard = until(lambda: place.heard, "the message")
    assert [(h["event"], h["title"], h["incident"]) for h in heard] == [
        ("incident", "luca: 2 notices: crash (cuda_oom)", 4)
    ]
    until(lambda: place.said, "the journal has it")
    box.close()


def test_a_question_and_the_end_wait_for_no_others(tmp_path: Path) -> None:
    place = Place(tmp_path, group_s=60.0)
    box = place.outbox()
    box.send("question", "luca: restart?", "")
    assert [h["title"] for h in place.heard] == ["luca: restart?"]
    box.close()


def test_a_new_supervisor_sends_what_the_last_one_kept(tmp_path: Path) -> None:
    place = Place(tmp_path, quiet="22:00-07:00")
    place.outbox().send("warning", "luca: VRAM is full", "")
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    place.wall = at(7, 1, day=23)
    box = place.outbox()
    until(lambda: [h["title"] for h in place.heard] == ["luca: VRAM is full"], "it is sent")
    box.close()


def test_what_is_kept_is_sent_after_the_supervisor_ended(tmp_path: Path) -> None:
    place = Place(tmp_path, quiet="22:00-07:00")
    (tmp_path / "run.json").write_bytes(encode_exact(place.spec))
    held = HeldNotices(tmp_path)
    held.add(HeldNotice(event="finish", title="luca: finished", wall=time.time(), due=time.time() + 0.5))
    place.wall = time.time() - 3600
    place.outbox().close()
    until(lambda: [h["title"] for h in place.heard] == ["luca: finished"], "the process of its own sends it")
    until(lambda: held.due() is None, "nothing is left")


def test_before_the_machine_may_end_all_is_sent(tmp_path: Path) -> None:
    place = Place(tmp_path, quiet="22:00-07:00")
    box = place.outbox()
    box.send("finish", "luca: finished", "")
    box.flush()
    assert [h["title"] for h in place.heard] == ["luca: finished"]
    box.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_notice_that_cannot_be_kept_is_sent(tmp_path: Path) -> None:
    place = Place(tmp_path, quiet="22:00-07:00")
    box = place.outbox()
    place.folder = tmp_path / "gone"
    assert box.send("finish", "luca: finished", "")[0]


def test_one_notice_alone_is_sent_as_it_is() -> None:
    one = HeldNotice(event="finish", title="luca: finished", wall=0.0, due=0.0)
    assert together("luca", [one]) is one


def test_observation_works_only_if_all_of_it_does() -> None:
    now = [100.0]
    works = ObservationWorks(1.0, now=lambda: now[0])

    def why_not(*, turned: float = 0.0, live: bool = True, blocked: bool = False) -> str | None:
        return works.why_not(turned=now[0] - turned, live=live, blocked=blocked)

    assert why_not() == "the machine was not seen yet"
    works.seen(HostSample(t=1.0))
    assert why_not(live=False) is None
    assert why_not() == "the trainer's processes were not seen yet"
    works.seen(ProcessSample(t=1.0, cpu_cores=1.0))
    assert why_not() is None
    assert why_not(turned=20.0) == "its loop has not turned for 20 s"
    assert why_not(blocked=True) == "its journal cannot be written"
    now[0] += 16.0
    assert why_not() == "the machine was not seen for 16 s"
