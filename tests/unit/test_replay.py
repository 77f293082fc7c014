"""The judge over a recorded trace."""

from typing import Any

import msgspec
import pytest

from tests.builders import Story
from tests.shipped import FAILURES, LOG_SHAPES
from trainwatch.core import replay as replaying
from trainwatch.core.model.settings import Hang, Settings
from trainwatch.core.replay import TraceError, merge


def replay(trace: list[bytes], settings: Settings | None = None) -> dict[str, Any]:
    return replaying.replay(trace, shapes=LOG_SHAPES, catalogue=FAILURES, settings=settings)


def lines(story: Story) -> list[bytes]:
    return [msgspec.json.encode(o) + b"\n" for o in story.observations]


def test_replay_reports_a_hang_and_the_decisions() -> None:
    result = replay(lines(Story().start().load().train(100).dead(300)))
    assert [(i["kind"], i["class"]) for i in result["incidents"]] == [("quiet", "idle"), ("hang", "idle")]
    assert [d["decision"] for d in result["decisions"]] == [
        "notify",
        "capture_stacks",
        "notify",
        "capture_stacks",
        "stop_attempt",
        "clear_gpu",
        "list_checkpoints",
        "start_attempt",
    ]
    assert all(d["reason"] for d in result["decisions"])
    assert result["final_state"] == "starting"
    assert result["observations"] == len(lines(Story().start().load().train(100).dead(300)))


def test_other_settings_change_the_decisions() -> None:
    trace = lines(Story().start().load().train(100).dead(60).train(20))
    assert replay(trace)["incidents"] == []
    assert replay(trace, settings=Settings(hang=Hang(min_s=20.0)))["incidents"][0]["class"] == "idle"


def test_settings_recorded_in_the_trace_apply_unless_others_are_given() -> None:
    recorded = {"hang": {"min_s": 20.0, "max_s": "never"}, "nonsense": 1, "watch": {"unknown": 3}}
    assert merge(Settings(), recorded).hang.min_s == 20.0
    assert merge(Settings(hang=Hang(min_s=50.0)), recorded).hang.min_s == 50.0
    meta = msgspec.json.encode({"t": 0, "kind": "meta", "settings": recorded, "preset": "kohya"})
    trace = [meta, *lines(Story(meta=False).start().load().train(100).dead(60).train(20))]
    assert replay(trace)["incidents"][0]["class"] == "idle"


@pytest.mark.parametrize(
    "first", [b'{"t":1,"kind":"weather","sky":"grey"}\n', b'\xef\xbb\xbf{"t":0,"kind":"tick"}\r\n']
)
def test_lines_of_a_later_version_are_skipped_and_a_trace_of_windows_is_read(first: bytes) -> None:
    result = replay([first, b"\r\n", b'{"t":2,"kind":"tick"}\r\n'])
    assert (result["observations"], "unreadable_lines" in result) == (1 + (b"tick" in first), False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"not json\n", "2: no JSON object"),
        (b'{"t":2,"kind":"ti\n', "2: "),
        (b"\x00\xff\xfe binary\n", "2: "),
        (b"[1]\n", "2: "),
        (b"[" * 5000 + b"\n", "2: "),
        (b'{"t":"now","kind":"tick"}\n', "2: "),
        (b'{"t":null,"kind":"tick"}\n', "2: "),
        (b'{"kind":"tick"}\n', "2: "),
        (b'{"t":1}\n', "2: "),
        (b'{"t":1,"kind":"log","text":null}\n', "2: "),
        (b'{"t":1,"kind":"checkpoint","path":"a","event":"melted"}\n', "2: "),
    ],
)
def test_broken_line_is_reported_and_skipped(line: bytes, said: str) -> None:
    result = replay([b'{"t":0,"kind":"tick"}\n', line, b'{"t":2,"kind":"tick"}\n'])
    assert (result["observations"], result["unreadable_lines"]) == (2, 1)
    assert result["first_unreadable"].startswith(said)


def test_file_without_an_observation_is_not_a_trace() -> None:
    with pytest.raises(TraceError, match="1: no JSON object"):
        replay([b"steps: 12%\n", b"not json\n"])


def test_empty_trace_gives_an_empty_result() -> None:
    assert replay([])["final_state"] == "idle"
