"""The morning report of whole nights, compared with reviewed texts (tests/make_goldens.py writes them anew)."""

import os
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from tests.fakes.feed import (
    CRASH,
    HOUR,
    WALL0,
    asking,
    empty,
    finished,
    given_up,
    healthy,
    hung,
    told_records,
    unwatched,
)
from trainwatch.core.model.decision import NotifyPeople, Record, StartAttempt, StopAttempt
from trainwatch.core.model.fact import CommandReceived
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.story import Situation
from trainwatch.core.views.report import LossCourse, Report, ReportSources
from trainwatch.core.views.report_building import build_report, summary_sentence, with_machine
from trainwatch.core.views.report_pages import html, markdown

TEXTS = Path(__file__).parent / "report_texts"
SCENES = {
    "empty": empty(),
    "healthy": healthy(),
    "hung": hung(),
    "finished": finished(),
    "given_up": given_up(),
    "unwatched": unwatched(),
}
SPEC = RunSpec(
    id="luca-1a2b3c4d",
    name="luca",
    command=("accelerate", "launch", "train_network.py", "--config_file", "{config}", "--wandb_api_key", "0a1b2c3d4e"),
    cwd="/data/luca",
    created_wall=WALL0,
    env={"HF_TOKEN": "hf_SecretSecretSecret", "CUDA_VISIBLE_DEVICES": "0", "LANG": "C"},
    preset="kohya",
    config="/data/luca/sdxl.toml",
    output_dir="/data/outputs/luca",
)


def records() -> tuple[Record, ...]:
    t = CRASH.t
    stop = StopAttempt(id=1, reason="end what is left of it", incident=1, attempt=1)
    tell = NotifyPeople(id=2, reason="tell", incident=1, event="incident", title="crash")
    stopped = Outcome(t=t + 1, decision=1, action="stop_attempt", ok=True, detail="no process was left to end")
    start = StartAttempt(id=3, reason="start attempt 2 from step 2160", incident=1, attempt=2)
    failed = Outcome(t=t + 29, decision=3, action="start_attempt", ok=False, detail="no disk, token=abcdef99")
    asked = CommandReceived(verb="profile", by="luca", detail="conservative")
    return (
        Record(seq=1, t=t, wall=WALL0 + t, decision=stop),
        Record(seq=2, t=t, wall=WALL0 + t, decision=tell),
        Record(seq=3, t=t + 1, wall=WALL0 + t + 1, outcome=stopped),
        Record(seq=4, t=t + 28, wall=WALL0 + t + 28, decision=start),
        Record(seq=5, t=t + 29, wall=WALL0 + t + 29, outcome=failed),
        Record(seq=6, t=4 * HOUR, wall=WALL0 + 4 * HOUR, fact=asked),
    )


def report(now: Situation, *, with_records: bool = True) -> Report:
    sources = ReportSources(
        spec=SPEC,
        particulars=told_records(records() if with_records and now.story.attempts else ()),
        loss=LossCourse(first=0.34, last=0.0713, lowest=0.0702) if now.story.attempts else LossCourse(),
        log_ends={1: ("Traceback (most recent call last):", "torch.OutOfMemoryError: CUDA out of memory | hf_SecretSecretSecret")},
    )  # fmt: skip
    machine = {"driver": "570.86, CUDA 12.8", "kernel": "Linux 5.15.167.4-microsoft-standard-WSL2"}
    return with_machine(build_report(now, sources), machine, SPEC)


pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize("name", SCENES)
def test_markdown_report_equals_its_golden_file(name: str) -> None:
    text = markdown(report(SCENES[name]))
    path = TEXTS / f"{name}.md"
    if os.environ.get("TRAINWATCH_UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCENES)
def test_no_report_format_contains_secrets(name: str) -> None:
    made = report(SCENES[name])
    for text in (markdown(made), html(made), msgspec.json.encode(made).decode()):
        for secret in ("SecretSecret", "0a1b2c3d4e", "abcdef99"):
            assert secret not in text


class Tags(HTMLParser):
    """Counts what is open; remembers whether anything comes from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elsewhere: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "!doctype"}:
            self.open.append(tag)
        self.elsewhere += [value or "" for key, value in attrs if key in {"src", "href"}] + [tag] * (tag == "script")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", SCENES)
def test_html_report_is_complete_and_loads_no_external_files(name: str) -> None:
    evil = msgspec.structs.replace(report(SCENES[name]), run="<script>alert(1)</script>")
    tags = Tags()
    tags.feed(html(evil))
    assert tags.open == []
    assert tags.elsewhere == []


def test_log_lines_cannot_break_a_table_of_the_report() -> None:
    base = report(finished())
    row = msgspec.structs.replace(base.checkpoints[0], reason="a | b\nc", verdict="torn")
    text = markdown(msgspec.structs.replace(base, checkpoints=(row,)))
    assert "torn: a \\| b c |" in text


@pytest.mark.parametrize(
    ("kinds", "recovered", "lost_steps", "said"),
    [
        ("", 0, 0, "nothing went wrong; nothing needs your decision."),
        ("c", 0, 0, "it crashed once; nothing needs"),
        ("cch", 3, 0, "it crashed twice and hung once and was restarted each time"),
        ("ccc", 2, 0, "it crashed 3 times and was restarted twice; no step was lost"),
        ("c", 1, None, "restarted; how many steps were lost is not known, 9 min lost in all"),
    ],
)
def test_summary_sentence_counts_crashes_hangs_and_lost_steps(
    kinds: str, recovered: int, lost_steps: int | None, said: str
) -> None:
    base = report(finished())
    names = {"c": "crash", "h": "hang"}
    rows = tuple(msgspec.structs.replace(base.incidents[0], kind=names[kind], down_s=None) for kind in kinds)
    made = msgspec.structs.replace(base, incidents=rows, needs=())
    assert said in summary_sentence(made, recovered, lost_steps, diverged=False)


def test_the_report_has_what_would_have_been_done_and_when() -> None:
    for text in (markdown(report(asking(asks=False))), html(report(asking(asks=False)))):
        assert "Not done by itself" in text
        assert "would have restarted at 04:" in text
        assert "from luca-step00007200-state (step 7200), after ending it: no step for 90 s" in text
