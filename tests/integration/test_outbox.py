"""Notices that are sent together: a service gets one message in some seconds, a command each event."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import until
from tests.fakes.services import LocalService, local_service
from trainwatch.core.act.notify import GAP_S, Outbox
from trainwatch.core.app.supervise.run_output import ObservationWorks
from trainwatch.core.model.observation import HostSample, ProcessSample
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.settings import Notify, Settings

KEEP = "import sys; open('heard', 'a').write(sys.stdin.read())"


class Place:
    def __init__(self, folder: Path, service: LocalService) -> None:
        self.folder, self.service = folder, service
        self.said: list[str] = []
        urls = (f"ntfy://{service.address}/luca-7f3a",)
        settings = Settings(notify=Notify(command=(sys.executable, "-c", KEEP), urls=urls))
        self.spec = RunSpec(
            id="luca-1", name="luca", command=("x",), cwd=str(folder), created_wall=0.0, settings=settings
        )

    def outbox(self, gap_s: float = GAP_S) -> Outbox:
        box = Outbox(self.spec, str(self.folder), gap_s=gap_s, again_s=(gap_s,))
        box.tell = self.said.append
        return box

    @property
    def to_command(self) -> list[str]:
        return [json.loads(line)["title"] for line in (self.folder / "heard").read_text().splitlines()]

    @property
    def to_service(self) -> list[Any]:
        return self.service.paths("/")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with local_service() as service:
        yield Place(tmp_path, service)


def test_the_first_notice_is_sent_at_once_and_those_of_the_next_seconds_are_one_message(place: Place) -> None:
    box = place.outbox()
    assert box.send("incident", "luca: crash (cuda_oom)", "why", 4)[0]
    assert [message["title"] for message in place.to_service] == ["luca: crash (cuda_oom)"]
    ok, detail, _ = box.send("restart", "luca: attempt 2 started", "from step 40")
    assert ok
    assert detail.endswith("sent to services within 10 s, with others")
    box.send("give_up", "luca: given up", "3 restarts")
    assert place.to_command == ["luca: crash (cuda_oom)", "luca: attempt 2 started", "luca: given up"], "each event"
    assert len(place.to_service) == 1

    box.flush()  # as at the end of the supervisor, or before a command that may end the machine

    message = place.to_service[1]
    assert (message["title"], message["priority"]) == ("luca: 2 notices: given up", 4)
    assert [line[7:] for line in message["message"].splitlines() if line[:2].isdecimal()] == [
        "attempt 2 started", "given up"
    ]  # fmt: skip
    assert "    from step 40" in message["message"]
    assert place.said == ["2 notices that waited: notified 1 service"]
    box.flush()
    assert len(place.to_service) == 2


def test_what_waits_is_sent_by_itself(place: Place) -> None:
    box = place.outbox(gap_s=2.0)
    for title in ("luca: hang", "luca: trains again"):
        box.send("incident", title, "")
    until(lambda: len(place.to_service) == 2, "the second message, as it is: alone")
    assert place.to_service[1]["title"] == "luca: trains again"
    until(lambda: place.said, "the journal has it")


def test_a_flood_from_several_threads_loses_nothing_and_is_two_messages(place: Place) -> None:
    place.spec = RunSpec(
        id="luca-1", name="luca", command=("x",), cwd=str(place.folder), created_wall=0.0,
        settings=Settings(notify=Notify(urls=place.spec.settings.notify.urls)),
    )  # fmt: skip
    box = place.outbox()
    threads = [threading.Thread(target=box.send, args=("warning", f"luca: w{n}", "")) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    box.flush()
    assert len(place.to_service) == 2
    said = " ".join(f"{message['title']} {message['message']}" for message in place.to_service)
    assert all(f"w{n}" in said for n in range(20))


def test_a_message_that_waited_and_fails_is_told(place: Place) -> None:
    box = place.outbox()
    box.send("incident", "luca: crash", "")
    place.service.status = 400
    box.send("finish", "luca: finished", "")
    box.flush()
    assert place.said[0].startswith("1 notice that waited FAILED: notify.urls: url 1 (Ntfy): not delivered: HTTP 400")


def test_what_reached_no_service_is_sent_again_with_what_came_meanwhile(place: Place) -> None:
    box = place.outbox(gap_s=1.0)
    place.service.status = 503
    ok, detail, _ = box.send("question", "luca: restart it?", "")
    assert not ok
    assert "; it is sent again" in detail
    assert box.send("warning", "luca: disk", "")[0]
    place.service.status = 200
    until(lambda: place.said, "it is sent by itself")
    assert place.to_service[-1]["title"] == "luca: 2 notices: restart it?"
    assert place.said[-1] == "2 notices that waited: notified 1 service"
    box.flush(5.0)
    assert len(place.to_service) == 2


def test_what_waits_when_the_supervisor_is_killed_is_sent_by_the_next_one(place: Place) -> None:
    place.service.status = 503
    place.outbox(gap_s=1e6).send("give_up", "luca: given up", "")
    place.service.status = 200
    seen = len(place.to_service)
    place.outbox(gap_s=0.1)
    until(lambda: place.said, "it is sent by itself")
    assert [message["title"] for message in place.to_service[seen:]] == ["luca: given up"]
    place.outbox().flush()
    assert len(place.to_service) == seen + 1


def test_a_message_whose_answer_was_lost_is_not_sent_twice(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    box = place.outbox(gap_s=0.5)
    with monkeypatch.context() as lost:
        lost.setattr(place.service, "reply", lambda: int("lost"))
        assert not box.send("question", "luca: restart it?", "")[0]
    box.flush(1.0)
    assert len(place.to_service) == 1


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
